//! `mcp run PACKAGE`: reference → package in the store → manifest → policy and command.
//!
//! The manifest is a stranger's. What it asks for is given by people only (flags, the user's
//! config, a yes that is remembered), and what it says must not show a file by itself: its program
//! is one of its own or one on the user's PATH, and variables whose value names a file to be shown
//! are refused.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use mcp_package::manifest::{Given, Launch, LaunchContext, Manifest};
use mcp_package::store::{Holder, Ready, Source};
use mcp_policy::{CERTIFICATE_VARIABLES, Defaults, Layer, LayerKind, Policy};
use mcp_sandbox::Report;

use super::browser::Browser;
use super::runtime::Needs;
use super::{grant, restart};
use crate::args::{Run, Starting};
use crate::failure::Failure;
use crate::packages::files::{self, Identity, PackageFiles};
use crate::packages::kept::{self, Kept};
use crate::packages::locate::{self, Located, Looking};
use crate::{layers, paths, progress, render};

/// What a package comes to.
pub struct Prepared {
    pub policy: Policy,
    pub command: Vec<OsString>,
    pub identity: Identity,
    pub needs: Needs,
    /// What it keeps between its runs, once [`keep`](Prepared::keep) was called.
    pub kept: Option<Kept>,
    source: Option<Source>,
    name: String,
    /// Keeps the files where they are until the run is over.
    ready: Option<Ready>,
}

impl Prepared {
    /// Of a package in the store: not of a directory, which may hold anything.
    pub fn compared_root(&self) -> Option<PathBuf> {
        self.ready.as_ref().map(|ready| ready.root.clone())
    }

    /// Makes a place for what it keeps. A directory that a person works on keeps nothing by itself.
    pub fn keep(&mut self, starting: &Starting) {
        let (Some(ready), Some(source)) = (&self.ready, &self.source) else { return };
        let owner =
            kept::Owner { source, name: &self.name, digest: &ready.digest, root: &ready.root };
        if starting.explain {
            self.kept = Kept::planned(&owner);
            return;
        }
        match Kept::open(&owner) {
            Ok(kept) => self.kept = kept,
            // As on a disk that cannot be written: it ran there before, and kept nothing.
            Err(error) => {
                render::say(&format!(
                    "{} keeps nothing, because there is no place for it: {error}",
                    render::plain(&self.name)
                ));
            }
        }
        if let Some(kept) = self.kept.as_ref().filter(|_| !starting.quiet) {
            kept.tell_before();
            kept.tell_recipe(&self.policy);
        }
    }

    /// After its end: what was kept, or why nothing could be written beside its files.
    pub fn tell_kept(&self, report: &Report) {
        let Some(kept) = &self.kept else { return };
        match &report.unlayered {
            Some(why) if report.exit_code != 0 => render::say(&format!(
                "the package's own files are read-only here ({}); one that writes beside them cannot work",
                render::plain(why)
            )),
            _ => kept.tell_after(),
        }
    }

    /// That the files are what they were: the command is not started before that is known.
    pub fn check(&self) -> Result<(), Failure> {
        files::check(self.ready.as_ref())
    }

    pub fn telling(&self, failure: Failure) -> Failure {
        files::telling(self.ready.as_ref(), failure)
    }
}

pub fn prepare(args: &Run, word: &OsStr, browser: Option<&Browser>) -> Result<Prepared, Failure> {
    let located = locate(args, word)?;
    if args.starting.explain {
        files::check(located.ready.as_ref())?;
    }
    match asked(&located, args, browser) {
        Ok((policy, command, needs)) => Ok(Prepared {
            policy,
            command,
            needs,
            kept: None,
            source: located.source,
            name: located.name,
            identity: located.identity,
            ready: located.ready,
        }),
        Err(failure) => Err(files::telling(located.ready.as_ref(), failure)),
    }
}

/// The package's files, fetched first where the store does not have them.
fn locate(args: &Run, word: &OsStr) -> Result<PackageFiles, Failure> {
    if args.starting.quiet {
        progress::be_quiet();
    }
    let mut looking = Looking {
        fetching: &args.package.fetching,
        explain: args.starting.explain,
        fetched: args.package.fetched,
    };
    loop {
        match locate::locate(word, &looking)? {
            Located::Ready(package) => return Ok(*package),
            Located::Fetched => {
                restart::from_the_start()?;
                looking.fetched += 1;
            }
        }
    }
}

/// What the manifest asks for, as far as people give it.
fn asked(
    located: &PackageFiles,
    args: &Run,
    browser: Option<&Browser>,
) -> Result<(Policy, Vec<OsString>, Needs), Failure> {
    let (manifest, places) = files::read(located)?;
    if !args.starting.quiet {
        for warning in &manifest.warnings {
            render::say(&render::plain(&format!("warning: {warning}")));
        }
    }
    let cwd = std::env::current_dir().unwrap_or_else(|_| located.root.clone());
    let given = Given(args.package.config.clone());
    let launch = manifest.launch(&LaunchContext { places: &places, given: &given, cwd: &cwd })?;

    let mut layers = vec![own_layer(&located.root, &launch)?, launch.given.clone()];
    layers.extend(browser.map(Browser::layer).transpose()?);
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
    let defaults = browser.map_or_else(Defaults::run, |_| Browser::defaults());
    let policy = Policy::merge(&layers, defaults)?;
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
fn choose_program(
    command: &mut [OsString],
    name: &str,
    located: &PackageFiles,
) -> Result<(), Failure> {
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
fn choose_script(
    command: &mut [OsString],
    name: &str,
    located: &PackageFiles,
) -> Result<(), Failure> {
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
fn shown(located: &PackageFiles, source: &Source, manifest: &Manifest) -> String {
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

fn without_source(located: &PackageFiles) -> Failure {
    Failure::Refused(format!(
        "{} is from an older mcp, which did not note its source; get it again with mcp pull",
        render::plain(&located.identity.reference)
    ))
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
                "the package sets {name}, which would make a file visible to it; if you want that, set it yourself with --env {name}=…"
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
