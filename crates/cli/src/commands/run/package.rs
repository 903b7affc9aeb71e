//! `mcp run PACKAGE`: reference → package in the store → manifest → policy and command.
//!
//! The manifest is a stranger's. What it asks for is given by people only (flags, the user's
//! config, a yes that is remembered), and what it says must not show a file by itself: its program
//! is one of its own or one on the user's PATH, and variables whose value names a file to be shown
//! are refused.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use mcp_files::Links;
use mcp_package::install::is_uv;
use mcp_package::manifest::{Files, Given, Launch, Manifest, Places, Platform, Scene, ServerJson};
use mcp_package::store::{self, Holder, Ready, Source, Store, Stored, Under};
use mcp_package::{Digest, Reference};
use mcp_policy::{CERTIFICATE_VARIABLES, Defaults, Layer, LayerKind, Policy};

use super::grant;
use super::runtime::Needs;
use crate::args::Run;
use crate::commands::package::install::uv_bundle;
use crate::commands::package::{fetch, open_store};
use crate::failure::Failure;
use crate::render;
use crate::{layers, paths};

/// What a package comes to.
pub struct Prepared {
    pub policy: Policy,
    pub command: Vec<OsString>,
    pub identity: Identity,
    pub needs: Needs,
    /// Keeps the files where they are until the run is over.
    ready: Option<Ready>,
}

impl Prepared {
    /// Of a package in the store: not of a directory, which may hold anything.
    pub fn compared_root(&self) -> Option<PathBuf> {
        self.ready.as_ref().map(|ready| ready.root.clone())
    }

    /// That the files are what they were: the command is not started before that is known.
    pub fn check(&self) -> Result<(), Failure> {
        check(self.ready.as_ref())
    }

    pub fn telling(&self, failure: Failure) -> Failure {
        telling(self.ready.as_ref(), failure)
    }
}

#[derive(Debug, Clone)]
pub struct Identity {
    pub reference: String,
    pub digest: Digest,
}

/// A package's files, and who it is.
pub struct Located {
    pub identity: Identity,
    /// What grants are remembered under, with the source and the digest.
    pub name: String,
    /// None for what an older `mcp` stored without it; that is shown, and not run.
    pub source: Option<Source>,
    pub root: PathBuf,
    pub files: Files,
    pub server_json: Option<ServerJson>,
    ready: Option<Ready>,
}

/// A package that was changed may fail by that alone: then this is what there is to say.
fn telling(ready: Option<&Ready>, failure: Failure) -> Failure {
    check(ready).err().unwrap_or(failure)
}

fn check(ready: Option<&Ready>) -> Result<(), Failure> {
    if let Some(ready) = ready.filter(|ready| !ready.is_as_recorded()) {
        open_store()?.ready(&ready.digest)?;
    }
    Ok(())
}

pub fn prepare(args: &Run, word: &OsStr) -> Result<Prepared, Failure> {
    let located = finished(locate(args, word)?, args)?;
    if args.starting.explain {
        check(located.ready.as_ref())?;
    }
    match asked(&located, args) {
        Ok((policy, command, needs)) => Ok(Prepared {
            policy,
            command,
            needs,
            identity: located.identity,
            ready: located.ready,
        }),
        Err(failure) => Err(telling(located.ready.as_ref(), failure)),
    }
}

/// What the manifest asks for, as far as people give it.
fn asked(located: &Located, args: &Run) -> Result<(Policy, Vec<OsString>, Needs), Failure> {
    let (manifest, places) = read(located)?;
    if !args.starting.quiet {
        for warning in &manifest.warnings {
            render::say(&render::plain(&format!("warning: {warning}")));
        }
    }
    let cwd = std::env::current_dir().unwrap_or_else(|_| located.root.clone());
    let given = Given(args.package.config.clone());
    let launch = manifest.launch(&Scene { places: &places, given: &given, cwd: &cwd })?;

    let mut layers = vec![own_layer(&located.root, &launch)?, launch.given.clone()];
    let mut people = layers::of_people(&args.permissions)?;
    layers.append(&mut people.layers);
    layers.extend(launch.asks.iter().cloned());
    let source = located.source.as_ref().ok_or_else(|| without_source(located))?;
    let digest = located.identity.digest;
    let question = grant::Question {
        holder: Holder { source, package: &located.name, digest },
        shown: &shown(located, source, &manifest),
        asks: mcp_package::asks(&launch.asks),
    };
    let granted = grant::settle(&question, &layers, args)?;
    // First, so that what people say later replaces it.
    layers.splice(0..0, granted);
    let policy = Policy::merge(&layers, Defaults::run())?;
    people.check(&policy)?;

    let mut command = vec![program(&launch.program, &located.root)?];
    command.extend(launch.args.iter().map(OsString::from));
    if let Some(name) = &args.package.program {
        choose_program(&mut command, name, located)?;
    }
    command.extend(args.command.iter().cloned());
    let package = format!("{} {}", manifest.name, manifest.version);
    let needs = Needs { package, runtimes: manifest.runtimes.clone() };
    Ok((policy, command, needs))
}

/// Another program of an npm package than the one named like it.
fn choose_program(command: &mut [OsString], name: &str, located: &Located) -> Result<(), Failure> {
    let package = located.name.strip_prefix("npm:").map(|name| {
        match name.get(1..).and_then(|t| t.find('@')) {
            Some(at) => &name[..=at],
            None => name,
        }
    });
    let shown = render::plain(name);
    if located.name.starts_with("pypi:") {
        return choose_script(command, name, located);
    }
    let (Some(package), [_, script, ..]) = (package, &mut *command) else {
        return Err(Failure::Usage(format!(
            "--bin {shown}: a program can be chosen for packages of npm and PyPI only; {} starts the one it is named for",
            render::plain(&located.name)
        )));
    };
    let directory = located.root.join("node_modules").join(package);
    let programs = mcp_package::install::npm_programs(package, &directory)?;
    match programs.iter().find(|(known, _)| known == name) {
        Some((_, path)) => {
            *script = directory.join(path).into();
            Ok(())
        }
        None => {
            let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
            Err(Failure::Usage(format!(
                "{package} has no program {shown}; it has: {} (mcp run --bin NAME npm:{package})",
                render::plain(&names.join(", "))
            )))
        }
    }
}

/// The same of PyPI: the installation left a file for each program.
fn choose_script(command: &mut [OsString], name: &str, located: &Located) -> Result<(), Failure> {
    let directory = located.root.join("programs");
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let known = |entry: std::fs::DirEntry| {
        entry.file_name().to_str()?.strip_suffix(".py").map(str::to_owned)
    };
    let mut names: Vec<String> = entries.filter_map(known).collect();
    names.sort();
    let start = located.root.join("start.py");
    let script = command.iter_mut().find(|word| Path::new(word) == start);
    let (Some(script), true) = (script, names.iter().any(|known| known == name)) else {
        let has = match names.is_empty() {
            true => "it was installed by an older mcp: mcp remove it, and run it again".to_owned(),
            false => format!("it has: {}", render::plain(&names.join(", "))),
        };
        return Err(Failure::Usage(format!(
            "{} has no program {}; {has}",
            render::plain(&located.name),
            render::plain(name)
        )));
    };
    *script = directory.join(format!("{name}.py")).into();
    Ok(())
}

/// What people asked for and who has it come first: what a package calls itself is its own word.
fn shown(located: &Located, source: &Source, manifest: &Manifest) -> String {
    let reference = &located.identity.reference;
    let from = match source {
        Source::File(path) if path == reference => String::new(),
        Source::Oci { .. } if reference.starts_with("oci://") => String::new(),
        source => format!(" (from {source})"),
    };
    let own = match located.name == manifest.name {
        true => String::new(),
        false => format!(", which calls itself {} {},", manifest.name, manifest.version),
    };
    format!("{reference}{from}{own}")
}

fn without_source(located: &Located) -> Failure {
    Failure::Refused(format!(
        "{} is from an older mcp, which did not note its source; get it again with mcp pull",
        render::plain(&located.identity.reference)
    ))
}

/// The same package with its dependencies, where it is of the type that leaves them to others.
fn finished(located: Located, args: &Run) -> Result<Located, Failure> {
    let Some(manifest) = located.files.mcpb.as_deref().filter(|text| is_uv(text)) else {
        return Ok(located);
    };
    if located.ready.is_none() {
        return Err(Failure::Refused(format!(
            "{} is a package of type uv, whose dependencies have to be installed for it; pack it first: mcp pack {0}",
            render::plain(&located.name)
        )));
    }
    let store = open_store()?;
    match store.derived(&located.identity.digest)? {
        Some(made) => {
            let ready = store.hold(&made)?;
            // To people, to grants and in the log it is what they asked for.
            Ok(Located {
                root: ready.root.clone(),
                files: store::read_manifests(&ready.root)?,
                ready: Some(ready),
                ..located
            })
        }
        // Once for the package, once for this.
        None if args.starting.explain || args.package.fetched > 1 => {
            Err(Failure::Refused(format!(
                "the dependencies of {} are not installed; --explain installs nothing",
                render::plain(&located.name)
            )))
        }
        None => {
            check(located.ready.as_ref())?;
            uv_bundle::make(&store, &located.identity.digest, &located.root, manifest)?;
            Err(again())
        }
    }
}

/// Finds the package's files, fetching it first where the store does not have it.
fn locate(args: &Run, word: &OsStr) -> Result<Located, Failure> {
    let text = word.to_str().ok_or_else(|| {
        Failure::Usage(format!("{}: is not UTF-8; a command goes after --", word.to_string_lossy()))
    })?;
    let reference: Reference = text.parse()?;
    if let Reference::Path(path) = &reference {
        return on_disk(path);
    }
    let store = open_store()?;
    let source = fetch::source(&reference, &args.package.fetching)?;
    let stored = match store.find(&reference, source.as_ref())? {
        Some(stored) => stored,
        None if args.package.fetched > 0 => {
            return Err(Failure::Refused(format!(
                "{reference} was fetched, and is not in the store"
            )));
        }
        None if args.starting.explain => {
            return Err(Failure::Refused(format!(
                "{reference} is not in the store{}, and --explain fetches nothing; get it with mcp pull {reference}",
                older(&store, &reference)
            )));
        }
        None => {
            if !older(&store, &reference).is_empty() {
                render::say(&format!(
                    "{reference} is from an older mcp, which did not note its source: getting it again"
                ));
            }
            fetch::fetch(&store, &reference, &args.package.fetching)?;
            // Again from the start: TLS, its memory and its threads have no place in a launcher.
            return Err(again());
        }
    };
    if let Some(key) = &args.package.fetching.require_signature {
        fetch::check_signature(&store, &stored, &reference, key)?;
    }
    let held = store.hold(&stored.digest)?;
    from_store(&reference.name(), &stored, held)
}

/// What is there under the name without a source is as good as nothing.
fn older(store: &Store, reference: &Reference) -> &'static str {
    match store.get(reference) {
        Ok(stored) if stored.source.is_none() => " with its source",
        _ => "",
    }
}

pub fn from_store(name: &str, stored: &Stored, mut ready: Ready) -> Result<Located, Failure> {
    let server_json = ready.server_json.take().map(|text| ServerJson::read(&text)).transpose()?;
    Ok(Located {
        identity: Identity { reference: stored.name.clone(), digest: ready.digest },
        name: name.to_owned(),
        source: stored.source.clone(),
        root: ready.root.clone(),
        files: store::read_manifests(&ready.root)?,
        server_json,
        ready: Some(ready),
    })
}

/// A directory as it is, or a bundle file by way of the store.
pub fn on_disk(path: &Path) -> Result<Located, Failure> {
    let path = match (path.strip_prefix("~"), paths::home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    let real = paths::real(&path).map_err(|e| Failure::input(&path, &e))?;
    let name = real
        .to_str()
        .ok_or_else(|| Failure::Usage(format!("{}: is not UTF-8", render::path(&real))))?;
    if real.is_dir() {
        let files = store::read_manifests(&real)?;
        // There is no digest of a directory that is being worked on; what it asks for has one.
        let digest = Digest::of(format!("{:?}\n{:?}", files.mcpb, files.ours).as_bytes());
        return Ok(Located {
            identity: Identity { reference: name.to_owned(), digest },
            name: name.to_owned(),
            source: Some(Source::file(&real)),
            files,
            server_json: None,
            ready: None,
            root: real,
        });
    }
    let store = open_store()?;
    let stored = bundle_in_store(&store, &real, name)?;
    from_store(name, &stored, store.hold(&stored.digest)?)
}

/// Hashed at every start; taken in only when it is another one.
fn bundle_in_store(store: &Store, path: &Path, name: &str) -> Result<Stored, Failure> {
    let source = Source::file(path);
    let find = || -> Result<Option<Stored>, Failure> {
        let is_it = |one: &Stored| one.name == name && one.source.as_ref() == Some(&source);
        Ok(store.list()?.into_iter().find(is_it))
    };
    if let Some(stored) = find()?
        && let Ok(manifest) = store.manifest(&stored.digest)
    {
        let file = mcp_files::open(path, Links::Follow).map_err(|e| Failure::input(path, &e))?;
        let (digest, _) = Digest::of_reader(file).map_err(|e| Failure::input(path, &e))?;
        if manifest.bundle()?.digest == digest {
            return Ok(stored);
        }
    }
    let names = [name.to_owned()];
    store.add_bundle(path, Under::Names { names: &names, source: &source }, None)?;
    find()?.ok_or_else(|| {
        Failure::Refused(format!("{}: was removed from the store meanwhile", render::plain(name)))
    })
}

/// The manifest, and what its variables stand for.
pub fn read(located: &Located) -> Result<(Manifest, Places), Failure> {
    let home = paths::home();
    let mut manifest =
        Manifest::read(&located.files, &Platform::current(), located.root.clone(), home.clone())?;
    if let Some(server) = &located.server_json {
        server.onto(&mut manifest);
    }
    let beside = |name: &str, variable: &str| {
        let home = home.as_ref()?;
        Some(user_directory(home, variable).unwrap_or_else(|| home.join(name)))
    };
    let places = Places {
        directory: located.root.clone(),
        desktop: beside("Desktop", "XDG_DESKTOP_DIR"),
        documents: beside("Documents", "XDG_DOCUMENTS_DIR"),
        downloads: beside("Downloads", "XDG_DOWNLOAD_DIR"),
        home,
    };
    Ok((manifest, places))
}

/// What a desktop calls its directories: `XDG_DESKTOP_DIR="$HOME/Schreibtisch"`.
fn user_directory(home: &Path, variable: &str) -> Option<PathBuf> {
    let file = home.join(".config/user-dirs.dirs");
    let text = mcp_files::read_text(&file, 1 << 20, Links::Follow).ok()?;
    let line =
        text.lines().find_map(|line| line.trim().strip_prefix(variable)?.strip_prefix('='))?;
    let value = line.trim().trim_matches('"');
    let path = match value.strip_prefix("$HOME/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(value),
    };
    path.is_absolute().then_some(path)
}

/// What the package has without asking: its own files, to read, and its own variables.
fn own_layer(root: &Path, launch: &Launch) -> Result<Layer, Failure> {
    let mut own = Layer::manifest("the package", root, None);
    own.read(root);
    let set = launch.asks.iter().flat_map(|layer| &layer.env.set);
    let set = set.map(|(name, value)| (name.clone(), value.value.clone()));
    for (name, value) in set.chain(launch.env.clone()) {
        if CERTIFICATE_VARIABLES.contains(&name.as_str()) {
            return Err(Failure::Refused(format!(
                "the package sets {name}, which would show it a file; set it yourself with --env {name}=… if it should"
            )));
        }
        own.env_set(name, value);
    }
    let mut own = own.build()?;
    own.kind = LayerKind::UserConfig;
    Ok(own)
}

/// A file of the package, by its real path, or a program on PATH.
fn program(program: &str, root: &Path) -> Result<OsString, Failure> {
    let path = Path::new(program);
    if path.components().count() == 1 && !path.is_absolute() {
        let is_python = program == "python" && !on_path("python") && on_path("python3");
        return Ok(if is_python { "python3".into() } else { program.into() });
    }
    let real = paths::real(path).map_err(|e| Failure::input(path, &e))?;
    let root = paths::real(root).map_err(|e| Failure::input(root, &e))?;
    // A link in a package's directory may lead to any file of the user's.
    if !real.starts_with(root) {
        return Err(Failure::Refused(format!(
            "the package starts {}, which is not one of its own files; it has to name a program on PATH",
            render::plain(program)
        )));
    }
    Ok(path.as_os_str().to_owned())
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// Starts this program once more with the same words; returns only where that fails.
#[cfg(unix)]
fn again() -> Failure {
    use std::os::unix::process::CommandExt;
    let mut words = std::env::args_os();
    let first = words.next().unwrap_or_else(|| "mcp".into());
    let program = std::env::current_exe().unwrap_or_else(|_| first.clone().into());
    let mut command = std::process::Command::new(program);
    command.arg0(first);
    // After the verb, before everything else.
    command.args(words.next()).arg("--fetched").args(words);
    let error = command.exec();
    Failure::Refused(format!(
        "the package is in the store now, but mcp could not start again: {error}"
    ))
}

#[cfg(not(unix))]
fn again() -> Failure {
    Failure::Refused("the package is in the store now; run it again".to_owned())
}
