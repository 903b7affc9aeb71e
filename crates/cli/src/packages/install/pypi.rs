//! PyPI packages: wheels only, each with a digest that is required. By the machine's pip, or by its
//! uv where there is no pip; for the interpreter that is there, since none is downloaded.

mod pip;
pub(super) mod uv;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcp_package::install::{
    Distributions, Index, NewestVersion, hosts_in_simple_page, is_newer, newest_in_simple_page,
    pypi_launchers, pypi_manifest,
};
use mcp_package::store::{Source, Under};
use mcp_package::{Digest, Package, Reference, Store, normal_pypi};
use mcp_policy::NetRule;
use mcp_sandbox::Sandbox;

use super::{
    InstallDirectory, OWN_CACHE, allow, bounded, file_text, is_on_path, missing, names,
    refuse_signature, say, variable,
};
use crate::args::package::Fetching;
use crate::failure::Failure;
use crate::packages::fetch::{self, RegistryEntry};
use crate::{paths, progress, render};

const LARGEST_PAGE: u64 = 64 << 20;

/// Is in a package that is older than the newest of its project, and names that: it has no wheel.
const OLDER_THAN: &str = "older-than.txt";

/// What an installation is made with.
pub(super) struct Installing<'a> {
    pub work: &'a InstallDirectory,
    pub index: &'a Index,
    /// The hosts that files are on.
    pub files: &'a [(String, u16)],
    pub python: &'a Python,
    /// Further hosts that a person named.
    pub more: &'a [NetRule],
    pub kinds: Distributions,
}

/// The interpreter that packages are installed for, and run with.
pub(super) struct Python {
    /// Major and minor.
    pub version: String,
    /// With the third number.
    full: String,
    program: PathBuf,
    /// Its installation, and the environment it is started from, if any.
    prefixes: [PathBuf; 2],
}

pub(super) enum Tool {
    /// With what it is configured with, in its own words.
    Pip(String),
    Uv,
}

pub fn pypi(
    store: &Store,
    reference: &Reference,
    package: &Package,
    listed: Option<RegistryEntry<'_>>,
    how: &Fetching,
) -> Result<Digest, Failure> {
    refuse_signature(reference, how)?;
    let python = Python::of_this_machine()?;
    let tool = Tool::of_this_machine()?;
    let (name, index) = tool.name_and_index()?;
    let source = listed.map_or_else(|| Source::Pypi(index.place()), |listed| listed.source.clone());
    let asked = [reference.to_string()];
    store.check_free(&Under::Names { names: &asked, source: &source }, None)?;
    let kinds = kinds(how, &index)?;
    let page = project_page(&index, &package.name)?;
    let files = hosts_in_simple_page(&page);
    say(reference, name);
    let work = InstallDirectory::new(store)?.remembering(name, &index);
    let (work_of, more) = (&work, how.install_net.as_slice());
    let installing =
        Installing { work: work_of, index: &index, files: &files, python: &python, more, kinds };
    let version = match &package.version {
        Some(version) => install_version(&tool, &installing, package, version)?,
        None => {
            let newest = newest_in_simple_page(&page, &package.name, &python.full);
            let newest = newest.ok_or_else(|| {
                Failure::Refused(format!(
                    "pypi:{}: the index has no version of it for Python {}",
                    package.name, python.full
                ))
            })?;
            install_newest(&tool, &installing, package, &newest)?
        }
    };
    let scripts = pypi_launchers(&package.name, &entry_points(&work, &package.name)?)?;
    work.directory("programs")?;
    for (file, text) in &scripts {
        work.write(file, text)?;
    }
    let manifest = pypi_manifest(&package.name, &version, &python.version);
    let names = names(reference, "pypi", &package.name, &version);
    let under = Under::Names { names: &names, source: &source };
    work.keep(store, &manifest, under, listed.map(|listed| listed.server_json))
}

/// Whether a package in the store is older than the newest of its project, which has no wheel.
pub fn lacks_build(root: &Path) -> bool {
    root.join(OLDER_THAN).exists()
}

/// What may be installed. Code of a package that is built runs where the address of the index is known.
pub(super) fn kinds(how: &Fetching, index: &Index) -> Result<Distributions, Failure> {
    match how.allow_build {
        true if index.has_credentials() => Err(Failure::Refused(
            "--allow-build runs code of packages, and the address of the index has a password in it that this code \
             would see; build the wheels yourself, or use an index without one"
                .to_owned(),
        )),
        true => Ok(Distributions::AnyKind),
        false => Ok(Distributions::Wheels),
    }
}

/// The version that an installation would come to now.
pub fn newest_on_pypi(store: &Store, package: &Package) -> Result<Option<String>, Failure> {
    let python = Python::of_this_machine()?;
    let tool = Tool::of_this_machine()?;
    let (tool_name, index) = tool.name_and_index()?;
    let files = hosts_in_simple_page(&project_page(&index, &package.name)?);
    let work = InstallDirectory::new(store)?.remembering(tool_name, &index);
    let kinds = Distributions::Wheels;
    let installing =
        Installing { work: &work, index: &index, files: &files, python: &python, more: &[], kinds };
    with_wheel(&tool, &installing, &package.name).map(Some)
}

/// The newest version of a project. Left to themselves, pip and uv would go back to one all of whose dependencies
/// have wheels, without a word. So each version is named to them, and one before the newest is told.
fn install_newest(
    tool: &Tool,
    installing: &Installing<'_>,
    package: &Package,
    newest: &NewestVersion,
) -> Result<String, Failure> {
    let may_fit = newest.has_wheel || installing.kinds == Distributions::AnyKind;
    let failed = match may_fit.then(|| install_version(tool, installing, package, &newest.version))
    {
        Some(Ok(version)) => return Ok(version),
        Some(Err(failure)) if installing.kinds == Distributions::AnyKind => return Err(failure),
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    // It has wheels for other machines only, or a dependency of it cannot be had: the tool knows.
    let version = match (with_wheel(tool, installing, &package.name), failed) {
        (Ok(version), Some(failure)) if version == newest.version => return Err(failure),
        (Ok(version), _) => version,
        (Err(_), Some(failure)) | (Err(failure), None) => return Err(failure),
    };
    for left in ["site", "requirements.txt", "requirements.in", "report.json"] {
        installing.work.remove(left);
    }
    let is_older = is_newer(&newest.version, &version) == Some(true);
    let installed = install_version(tool, installing, package, &version)?;
    if is_older {
        progress::note(&render::plain(&format!(
            "{} {version} is installed, not {}, which has no wheel for this machine (--allow-build builds from source)",
            package.name, newest.version
        )));
        installing.work.write(OLDER_THAN, &format!("{}\n", newest.version))?;
    }
    Ok(installed)
}

fn install_version(
    tool: &Tool,
    installing: &Installing<'_>,
    package: &Package,
    version: &str,
) -> Result<String, Failure> {
    let mut wanted = vec![format!("{}=={version}", package.with_extras())];
    wanted.extend(package.with.iter().cloned());
    install_locked(tool, installing, &wanted, &package.name)
}

/// The newest version of a project that has a wheel for this machine.
fn with_wheel(tool: &Tool, installing: &Installing<'_>, name: &str) -> Result<String, Failure> {
    let alone = [name.to_owned()];
    let version = match tool {
        Tool::Pip(_) => pip::resolve(installing, &alone, name, Dependencies::Left),
        Tool::Uv => uv::resolve(installing, &alone, name, Dependencies::Left),
    };
    let (_, version) = version.map_err(|failure| wheels_only(failure, installing.kinds, name))?;
    Ok(version)
}

/// Whether what a project depends on is resolved with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependencies {
    Taken,
    Left,
}

/// Resolves, locks by digest and installs into `site`; the version that `name` came to.
pub(super) fn install_locked(
    tool: &Tool,
    installing: &Installing<'_>,
    wanted: &[String],
    name: &str,
) -> Result<String, Failure> {
    let work = installing.work;
    let locked = match tool {
        Tool::Pip(_) => pip::resolve(installing, wanted, name, Dependencies::Taken),
        Tool::Uv => uv::resolve(installing, wanted, name, Dependencies::Taken),
    };
    let (locked, version) =
        locked.map_err(|failure| wheels_only(failure, installing.kinds, &wanted[0]))?;
    work.write("requirements.txt", &locked)?;
    match tool {
        Tool::Pip(_) => pip::install(installing)?,
        Tool::Uv => uv::install(installing)?,
    }
    work.remove(OWN_CACHE);
    compile(work)?;
    Ok(version)
}

/// What would help where something has no wheel. Not where the index could not be asked.
fn wheels_only(failure: Failure, kinds: Distributions, wanted: &str) -> Failure {
    const LACKS: [&str; 5] = [
        "no matching distribution",
        "could not find a version",
        "resolutionimpossible",
        "no solution found",
        "is not a wheel",
    ];
    match failure {
        Failure::Refused(why)
            if kinds == Distributions::Wheels
                && LACKS.iter().any(|lacks| why.to_ascii_lowercase().contains(lacks)) =>
        {
            Failure::Refused(format!(
                "{why}\n     {wanted}: only wheels are installed, because building from source runs code of the package. \
                 With --allow-build it is built, in a sandbox without secrets; or name an older version (@VERSION)"
            ))
        }
        other => other,
    }
}

/// What the machine's own interpreter says.
fn said_by_python(args: &[&str]) -> Option<String> {
    // Not here: `-m` looks into the current directory first, which may be anybody's.
    let output = Command::new("python3")
        .args(args)
        .current_dir(std::path::MAIN_SEPARATOR_STR)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// pip reads its own files, and would wait for ever for one that is a pipe.
fn pip_configuration_names_index() -> Result<bool, Failure> {
    let home = paths::home();
    let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| below_home(".config"));
    let system = variable("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".to_owned());
    let files = [variable("PIP_CONFIG_FILE").map(PathBuf::from), below_home(".pip/pip.conf")];
    let directories =
        std::env::split_paths(&system).map(|directory| directory.join("pip/pip.conf"));
    let user = config.map(|config| config.join("pip/pip.conf"));
    let all = files.into_iter().flatten().chain(user).chain(directories);
    let mut names_index = false;
    for path in all.chain([PathBuf::from("/etc/pip.conf")]) {
        names_index |= file_text(&path)?.is_some_and(|text| text.contains("index-url"));
    }
    Ok(names_index)
}

impl Python {
    pub fn of_this_machine() -> Result<Python, Failure> {
        let lack = || missing("python3", "install python3 and python3-pip, or uv");
        if !is_on_path("python3") {
            return Err(lack());
        }
        let script = "import sys; print('%d.%d' % sys.version_info[:2], '%d.%d.%d' % sys.version_info[:3], sys.executable, sys.base_prefix, sys.prefix, sep='\\n')";
        let said = said_by_python(&["-I", "-c", script]).ok_or_else(lack)?;
        let lines: Vec<&str> = said.lines().collect();
        match lines[..] {
            [version, full, program, base, prefix] => Ok(Python {
                version: version.to_owned(),
                full: full.to_owned(),
                program: program.into(),
                prefixes: [base.into(), prefix.into()],
            }),
            _ => Err(lack()),
        }
    }
}

impl Tool {
    /// For people, and the index that it is configured with.
    fn name_and_index(&self) -> Result<(&'static str, Index), Failure> {
        Ok(match self {
            Tool::Pip(config) => ("pip", mcp_package::install::pypi_index(config, &variable)?),
            Tool::Uv => ("uv", uv::index()?),
        })
    }

    /// uv, which is the faster, unless only pip is configured with an index.
    pub fn of_this_machine() -> Result<Tool, Failure> {
        let pip_has_index = pip_configuration_names_index()?;
        if !pip_has_index && uv::works() {
            return Ok(Tool::Uv);
        }
        match said_by_python(&["-m", "pip", "config", "list"]) {
            Some(config) => Ok(Tool::Pip(config)),
            None if uv::works() => Ok(Tool::Uv),
            None => Err(missing(
                "pip",
                "install python3-pip (or run python3 -m ensurepip), or uv from docs.astral.sh/uv",
            )),
        }
    }
}

/// What the index lists of a project.
pub(super) fn project_page(index: &Index, name: &str) -> Result<String, Failure> {
    let page = fetch::http().page(&format!("{}{name}/", index.url), None, LARGEST_PAGE)?;
    let page = page.ok_or_else(|| {
        Failure::Refused(format!(
            "pypi:{name}: the index has no such project; compare it with the server's README"
        ))
    })?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// A sandbox with the way to the index open, and the certificates that the user has for it.
fn sandbox(installing: &Installing<'_>, program: &str, certificates: &str) -> Sandbox {
    let mut sandbox = installing.work.sandbox(program);
    allow(&mut sandbox, installing.index, installing.files, installing.more);
    let named = ["PIP_CERT", "SSL_CERT_FILE"].iter().find_map(|name| variable(name));
    if let Some(file) = named {
        sandbox.read(&file).env(certificates, file);
    }
    sandbox
}

/// Code of a package that is built runs beside the cache.
fn cache(installing: &Installing<'_>, sandbox: &mut Sandbox) -> PathBuf {
    match installing.kinds {
        Distributions::Wheels => installing.work.cache(sandbox),
        Distributions::AnyKind => installing.work.path(OWN_CACHE),
    }
}

/// As a secret where it has a password in it.
fn set_index(sandbox: &mut Sandbox, name: &str, index: &Index) {
    match index.has_credentials() {
        true => sandbox.secret(name, &index.url),
        false => sandbox.env(name, &index.url),
    };
}

/// With checked digests there is nothing left to check at every start; and no time in the files.
fn compile(work: &InstallDirectory) -> Result<(), Failure> {
    let mut sandbox = work.sandbox("python3");
    sandbox.args(["-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s"]);
    sandbox.arg(&work.directory).arg("site");
    // A file that does not compile is the package's own affair.
    let _ = bounded::run(work, &mut sandbox)?;
    Ok(())
}

fn entry_points(work: &InstallDirectory, name: &str) -> Result<String, Failure> {
    let site = work.path("site");
    let entries = std::fs::read_dir(&site).map_err(|e| Failure::file(&site, &e))?;
    for entry in entries.flatten() {
        let directory = entry.file_name().to_string_lossy().into_owned();
        let project = directory.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'));
        if project.is_some_and(|(project, _)| normal_pypi(project) == name) {
            return work
                .read(&format!("site/{directory}/entry_points.txt"))
                .or_else(|_| Ok(String::new()));
        }
    }
    Err(Failure::Refused(format!("pypi:{name}: nothing of that name was installed")))
}
