//! `npm:` and `pypi:`: installed by the machine's own npm or pip, in a sandbox of its own.
//!
//! Inside, only a staging directory can be written, and only the configured index and the hosts that
//! its metadata names for files can be reached. The index's own token is the only secret, and no
//! script of a package is run. What comes out is locked by digests, packed and kept as any other
//! package, and run in another sandbox, without any of this.

mod bounded;
pub mod downloads;
mod npm;
mod pypi;
pub mod uv_bundle;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_files::Links;
use mcp_package::install::{Index, may_be_named, rule};
use mcp_package::manifest::MCPB;
use mcp_package::store::{Staging, Under};
use mcp_package::{Digest, Package, Reference, Store};
use mcp_policy::NetRule;
use mcp_sandbox::{Bytes, Outcome, Sandbox};

use self::downloads::Downloads;
use crate::failure::Failure;
use crate::packages::fetch;
use crate::paths;
use crate::{progress, render};

pub use npm::{lacks_scripts, npm};
pub use pypi::{lacks_build, pypi};

/// The version that an index has for a name without one, where it can be asked without installing anything.
pub fn newest(store: &Store, reference: &Reference) -> Result<Option<String>, Failure> {
    match reference {
        Reference::Npm(package) => npm::newest_on_npm(package),
        Reference::Pypi(package) => pypi::newest_on_pypi(store, package),
        _ => Ok(None),
    }
}

/// Where npm, pip and uv have their temporary files, in the directory that they may write.
const TEMPORARY: &str = "tmp";

/// The cache of a step in which code of a package runs, below the directory that it may write.
const OWN_CACHE: &str = "cache";

const TIME: Duration = Duration::from_secs(15 * 60);

/// A directory that an installation may write, and nothing else.
struct InstallDirectory {
    /// Held until all is done: it is removed with this.
    _staging: Staging,
    directory: PathBuf,
    downloads: Option<Downloads>,
}

impl InstallDirectory {
    fn new(store: &Store) -> Result<InstallDirectory, Failure> {
        let staging = store.staging()?;
        let directory = staging.path().join("work");
        for made in [&directory, &directory.join(TEMPORARY)] {
            fs::create_dir(made).map_err(|e| Failure::file(made, &e))?;
        }
        let directory = paths::real(&directory).map_err(|e| Failure::file(&directory, &e))?;
        Ok(InstallDirectory { _staging: staging, directory, downloads: None })
    }

    /// With what was downloaded from this index before.
    fn remembering(mut self, tool: &str, index: &Index) -> InstallDirectory {
        self.downloads = Downloads::of(tool, index);
        self
    }

    /// The cache for a step in which no code of a package runs.
    fn cache(&self, sandbox: &mut Sandbox) -> PathBuf {
        match &self.downloads {
            Some(downloads) => {
                sandbox.write(&downloads.directory);
                downloads.directory.clone()
            }
            None => self.path(OWN_CACHE),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A new file: what a script left under the name could be a link to anywhere.
    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.path(name);
        self.remove(name);
        fs::File::create_new(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| Failure::file(&path, &e))
    }

    fn directory(&self, name: &str) -> Result<(), Failure> {
        let path = self.path(name);
        self.remove(name);
        fs::create_dir(&path).map_err(|e| Failure::file(&path, &e))
    }

    /// What the installation wrote: a file and not a link, which could lead anywhere.
    fn read(&self, name: &str) -> Result<String, Failure> {
        let path = self.path(name);
        mcp_files::read_text(&path, 64 << 20, Links::Refuse).map_err(|e| Failure::file(&path, &e))
    }

    fn remove(&self, name: &str) {
        let path = self.path(name);
        let _ = mcp_files::remove_tree(&path).or_else(|_| fs::remove_file(&path));
    }

    /// A sandbox for one step, without network.
    fn sandbox(&self, program: &str) -> Sandbox {
        let mut sandbox = Sandbox::new(program);
        sandbox
            .write(&self.directory)
            .current_dir(&self.directory)
            .memory(Bytes::mib(2048))
            .processes(512)
            .tmp_size(Bytes::mib(1024))
            // Wheels and what is built of sources may be larger than memory has room for.
            .env("TMPDIR", self.path(TEMPORARY))
            .timeout(TIME);
        sandbox
    }

    /// Packs what is there, and takes it in.
    fn keep(
        &self,
        store: &Store,
        manifest: &str,
        under: Under<'_>,
        server_json: Option<&str>,
    ) -> Result<Digest, Failure> {
        self.remove(TEMPORARY);
        self.write(MCPB, manifest)?;
        Ok(store.add_tree(&self.directory, under, server_json)?)
    }
}

/// Opens the way to an index and to the hosts its metadata names. A person configured the index, so
/// its own addresses may be private ones; those of other hosts may not, by name or as an address.
fn allow(sandbox: &mut Sandbox, index: &Index, files: &[(String, u16)], more: &[NetRule]) {
    for rule in more {
        sandbox.allow_net(rule.to_string());
    }
    let (host, port) = (index.host(), index.port());
    sandbox.allow_net(rule(&host, port));
    let bare = host.trim_matches(['[', ']']).to_owned();
    for address in mcp_net::lookup::addresses(&bare).unwrap_or_default() {
        let ip = address.to_string();
        if ip != bare {
            sandbox.allow_net(rule(&ip, port));
        }
    }
    for (name, port) in files.iter().filter(|(name, _)| *name != host) {
        if may_be_named(name, fetch::is_public) {
            sandbox.allow_net(rule(name, *port));
        } else {
            render::say(&render::plain(&format!(
                "the index says that files are on {}, which is not a public address: not reached",
                rule(name, *port)
            )));
        }
    }
}

/// Runs one step to its end; what it said is told when it failed.
fn step(
    what: &str,
    work: &InstallDirectory,
    sandbox: &mut Sandbox,
    secrets: &[&str],
) -> Result<String, Failure> {
    let ran = progress::while_filling(what, &work.directory, || bounded::run(work, sandbox))?;
    if let Some(over) = ran.over {
        return Err(Failure::Refused(format!("{what} was ended: {over}")));
    }
    if ran.outcome.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let mut said = String::from_utf8_lossy(&ran.stderr).into_owned();
    if said.trim().is_empty() {
        said = String::from_utf8_lossy(&ran.stdout).into_owned();
    }
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        said = said.replace(secret, "***");
    }
    let mut lines = telling_lines(&said);
    lines.extend(outside_of_the_index(&ran.outcome));
    Err(Failure::Refused(format!(
        "{what} failed ({:?}):\n     {}",
        ran.outcome.ending,
        lines.join("\n     ")
    )))
}

/// The cause is mostly said first and summed up last; a log that is named is gone with the sandbox.
fn telling_lines(said: &str) -> Vec<String> {
    const FIRST: usize = 10;
    const LAST: usize = 8;
    let is_told = |line: &&str| {
        let line = line.trim().to_ascii_lowercase();
        let words = line.trim_start_matches("npm error").trim_start_matches("npm err!").trim();
        !words.is_empty()
            && !line.contains("complete log of this run")
            && !line.contains("-debug-0.log")
    };
    let lines: Vec<String> = said.lines().filter(is_told).map(render::plain).collect();
    match lines.len().checked_sub(FIRST + LAST) {
        Some(left @ 1..) => {
            let middle = [format!("… ({left} lines)")];
            [&lines[..FIRST], &middle, &lines[lines.len() - LAST..]].concat()
        }
        _ => lines,
    }
}

/// Hosts that were asked for and are not the index's: dependencies that are elsewhere.
fn outside_of_the_index(outcome: &Outcome) -> Vec<String> {
    let report = outcome.report.as_ref();
    let network = report.and_then(|report| report.network.as_ref());
    let refused = network.iter().flat_map(|network| network.refused.keys());
    let flag = |host: &String| {
        let host = render::plain(host);
        format!(
            "it asked for {host}, which is not of the index; if that is right: --install-net {host}"
        )
    };
    refused.take(4).map(flag).collect()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn missing(program: &str, how: &str) -> Failure {
    Failure::Refused(format!("{program} is not on this machine; {how}"))
}

fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// As it was asked for, and with the version that it came to.
fn names(reference: &Reference, kind: &str, name: &str, version: &str) -> Vec<String> {
    let exact = match reference {
        // With extras or company it is another package than the plain one of that version.
        Reference::Pypi(package) => {
            Reference::Pypi(Package { version: Some(version.to_owned()), ..package.clone() })
                .to_string()
        }
        _ => format!("{kind}:{name}@{version}"),
    };
    let mut names = vec![reference.to_string(), exact];
    if let Reference::Official(named) = reference {
        names = vec![format!("{}@{}", named.name, named.which)];
    }
    names.dedup();
    names
}

fn say(reference: &Reference, with: &str) {
    progress::note(&format!("installing {reference} with {with}, in a sandbox of its own"));
}

/// For `--require-signature`: other ecosystems have other signatures, or none.
fn refuse_signature(
    reference: &Reference,
    how: &crate::args::package::Fetching,
) -> Result<(), Failure> {
    match how.require_signature {
        Some(_) => Err(Failure::Refused(format!(
            "{reference} has no signature of ours, and --require-signature was given"
        ))),
        None => Ok(()),
    }
}

/// A configuration of another program's: none where there is no such file. One that cannot be read is
/// told, since without it another index would be asked.
fn file_text(path: &Path) -> Result<Option<String>, Failure> {
    match mcp_files::read_text(path, 4 << 20, Links::Follow) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::input(path, &e)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_and_no_log_that_is_gone() {
        let text = "npm error code E404\nnpm error\nnpm error 404 not here\n\
                    npm error A complete log of this run can be found in: /x/_logs/1-debug-0.log\n";
        assert_eq!(telling_lines(text), ["npm error code E404", "npm error 404 not here"]);
        let long: String = (0..100).map(|number| format!("line {number}\n")).collect();
        let told = telling_lines(&long);
        assert_eq!((told.len(), told[0].as_str(), told[18].as_str()), (19, "line 0", "line 99"));
        assert_eq!(told[10], "… (82 lines)");
    }

    /// `--allow-scripts` runs code of the package where the manifest is written afterwards.
    #[test]
    fn nothing_is_written_through_a_link_that_a_script_left() {
        let root = std::env::temp_dir().join(format!("mcp-install-{}", std::process::id()));
        let work = InstallDirectory::new(&Store::at(root.join("store"))).unwrap();
        let theirs = root.join("bashrc");
        fs::write(&theirs, "the user's").unwrap();
        std::os::unix::fs::symlink(&theirs, work.path(MCPB)).unwrap();
        work.write(MCPB, "{}").unwrap();
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "the user's");
        assert_eq!(work.read(MCPB).unwrap(), "{}");
        fs::remove_dir_all(&root).unwrap();
    }
}
