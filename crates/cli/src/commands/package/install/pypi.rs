//! PyPI packages: wheels only, each with a digest that is required.

use std::process::{Command, Stdio};

use mcp_package::install::{
    Index, hosts_in_simple_page, pypi_index, pypi_launcher, pypi_manifest, requirements,
};
use mcp_package::{Digest, Package, Reference, Store, normal_pypi};
use mcp_sandbox::Sandbox;

use super::{Work, allow, is_on_path, missing, names, refuse_signature, say, step, variable};
use crate::args::package::Fetching;
use crate::commands::package::fetch;
use crate::failure::Failure;

const LARGEST_PAGE: u64 = 64 << 20;

pub fn pypi(
    store: &Store,
    reference: &Reference,
    package: &Package,
    server_json: Option<&str>,
    how: &Fetching,
) -> Result<Digest, Failure> {
    refuse_signature(reference, how)?;
    if !is_on_path("python3") {
        return Err(missing("python3", "install python3 and python3-pip"));
    }
    let (python, config) = configured()?;
    let index = pypi_index(&config, &variable)?;
    let files = file_hosts(&index, &package.name)?;
    say(reference, "pip");
    let work = Work::new(store)?;
    let wanted = match &package.version {
        Some(version) => format!("{}=={version}", package.name),
        None => package.name.clone(),
    };
    let mut resolve = pip(&work, &index, &files);
    resolve.args([
        "install",
        "--dry-run",
        "--ignore-installed",
        "--only-binary",
        ":all:",
        "--report",
        "report.json",
        "--",
    ]);
    resolve.arg(&wanted);
    step("resolving with pip", &work, &mut resolve, &[&index.url]).map_err(wheels_only)?;
    let (locked, version) = requirements(&work.read("report.json")?, &package.name)?;
    work.remove("report.json");
    work.write("requirements.txt", &locked)?;
    let mut install = pip(&work, &index, &files);
    install.args([
        "install",
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-compile",
        "--target",
        "site",
    ]);
    install.args(["--requirement", "requirements.txt"]);
    step("pip install", &work, &mut install, &[&index.url])?;
    work.remove("cache");
    compile(&work)?;
    work.write("start.py", &pypi_launcher(&package.name, &entry_points(&work, &package.name)?)?)?;
    let manifest = pypi_manifest(&package.name, &version, &python);
    let source = format!("pypi:{}@{version}", package.name);
    work.keep(
        store,
        &manifest,
        &names(reference, "pypi", &package.name, &version),
        &source,
        server_json,
    )
}

fn wheels_only(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(why) => Failure::Refused(format!(
            "{why}\n     (only wheels are installed: building from source would run the package's code)"
        )),
        other => other,
    }
}

/// The interpreter's version, and what pip is configured with: from the machine's own pip.
fn configured() -> Result<(String, String), Failure> {
    let said = |args: &[&str]| {
        let output = Command::new("python3")
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = said(&["-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]);
    let config = said(&["-m", "pip", "config", "list"]);
    match (version, config) {
        (Some(version), Some(config)) => Ok((version, config)),
        _ => Err(missing("pip", "install python3-pip, or run python3 -m ensurepip")),
    }
}

fn file_hosts(index: &Index, name: &str) -> Result<Vec<(String, u16)>, Failure> {
    let page = fetch::http().page(&format!("{}{name}/", index.url), None, LARGEST_PAGE)?;
    let page = page
        .ok_or_else(|| Failure::Refused(format!("pypi:{name}: the index has no such project")))?;
    Ok(hosts_in_simple_page(&String::from_utf8_lossy(&page)))
}

/// `-I` and no configuration file: what holds for pip is said here, the index as a secret where it
/// has a password in it.
fn pip(work: &Work, index: &Index, files: &[(String, u16)]) -> Sandbox {
    let mut sandbox = work.sandbox("python3");
    allow(&mut sandbox, index, files);
    for (name, value) in [
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_NO_INPUT", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_NO_COLOR", "1"),
        ("PIP_QUIET", "1"),
        ("PIP_PROGRESS_BAR", "off"),
    ] {
        sandbox.env(name, value);
    }
    sandbox.env("PIP_CACHE_DIR", work.path("cache"));
    match index.has_credentials() {
        true => sandbox.secret("PIP_INDEX_URL", &index.url),
        false => sandbox.env("PIP_INDEX_URL", &index.url),
    };
    for certificates in
        ["PIP_CERT", "SSL_CERT_FILE"].iter().filter_map(|name| variable(name)).take(1)
    {
        sandbox.read(&certificates).env("PIP_CERT", certificates);
    }
    // Not -I: that would leave out pip's own variables. There is nothing of the user's inside.
    sandbox.args(["-m", "pip"]);
    sandbox
}

/// With checked digests there is nothing left to check at every start; and no time in the files.
fn compile(work: &Work) -> Result<(), Failure> {
    let mut sandbox = work.sandbox("python3");
    sandbox.args(["-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s"]);
    sandbox.arg(&work.directory).arg("site");
    // A file that does not compile is the package's own affair.
    let _ = sandbox.output()?;
    Ok(())
}

fn entry_points(work: &Work, name: &str) -> Result<String, Failure> {
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
    Err(Failure::Refused(format!("pypi:{name}: pip installed nothing of that name")))
}
