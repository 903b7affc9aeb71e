//! What is exported: servers of a file, or one by the words after `mcp run`.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use mcp_export::{Server, Settings, Start};
use mcp_policy::Defaults;
use mcp_serve::Config;

use crate::args::run_line;
use crate::commands::run::as_package;
use crate::failure::Failure;
use crate::package_runner::{self, Meaning};
use crate::{layers, render};

/// The file that names are looked up in where none is given.
const USUAL: &str = "servers.toml";
const LARGEST: u64 = 1 << 20;

pub struct Source {
    pub servers: Vec<Server>,
    pub settings: Settings,
    pub listen: SocketAddr,
}

pub fn read(words: &[String], name: Option<&str>) -> Result<Source, Failure> {
    let first = words.first().map_or("", String::as_str);
    if Path::new(first).extension().is_some_and(|extension| extension == "toml") {
        return of_file(Path::new(first), &words[1..], name);
    }
    // `mcp export systemd notes`, beside a servers.toml.
    if let Ok(config) = Config::read(Path::new(USUAL))
        && words.iter().all(|word| config.servers.contains_key(word))
    {
        return of_file(Path::new(USUAL), words, name);
    }
    let config = Config::single(words.to_vec());
    let server = server(name.unwrap_or("server"), words)?;
    Ok(Source { servers: vec![server], settings: Settings::default(), listen: config.listen })
}

fn of_file(path: &Path, names: &[String], name: Option<&str>) -> Result<Source, Failure> {
    if name.is_some() {
        return Err(Failure::Usage(format!(
            "--name is for a server without a file; {} has names",
            render::path(path)
        )));
    }
    let text = mcp_files::read_text(path, LARGEST, mcp_files::Links::Follow)
        .map_err(|e| Failure::input(path, &e))?;
    let config = Config::read(path).map_err(|error| match text.contains("[servers") {
        true => Failure::Usage(error.to_string()),
        false => Failure::Usage(format!(
            "{} has no [servers.NAME]; for a policy file say what runs under it: mcp export TARGET --policy {0} COMMAND",
            render::path(path)
        )),
    })?;
    let settings = Settings::read(&text)
        .map_err(|e| Failure::Input { path: path.to_owned(), why: e.to_string() })?;
    let chosen: Vec<&String> = match names {
        [] => config.servers.keys().collect(),
        names => names.iter().collect(),
    };
    let servers: Result<Vec<Server>, Failure> = chosen
        .into_iter()
        .map(|name| match config.servers.get(name) {
            Some(found) => server(name, &found.run),
            None => Err(Failure::Usage(format!(
                "{} has no server {}; it has: {}",
                render::path(path),
                render::plain(name),
                render::plain(&config.servers.keys().cloned().collect::<Vec<_>>().join(", "))
            ))),
        })
        .collect();
    Ok(Source { servers: servers?, settings, listen: config.listen })
}

/// From the words after `mcp run` to a policy with every layer, and what is left of the words.
fn server(name: &str, words: &[String]) -> Result<Server, Failure> {
    let refused = |why: String| Failure::Usage(format!("servers.{name}: {}", why.trim_end()));
    let line = run_line(words).map_err(refused)?;
    let mut run = line.run;
    if run.home.is_some() {
        return Err(refused("--home would be shared by all clients; leave it out".to_owned()));
    }
    if run.browser {
        return Err(refused(
            "--browser gives this machine's; there it has to be in the image".to_owned(),
        ));
    }
    // Lines of npx and uvx are packages there, too; whether a program exists is known there only.
    if run.reference.is_none()
        && let Meaning::Package(line) = package_runner::understand(&run.command)
    {
        as_package(&mut run, line)?;
    }
    let policy = layers::effective(&run.permissions, Defaults::run())?;
    for set in policy.env.set.keys() {
        if looks_secret(set.as_str()) {
            render::say(&render::plain(&format!(
                "warning: {set} is set by its value, which the output has in clear; use --secret {set}=env:{set} instead"
            )));
        }
    }
    let mut options = line.options;
    if let Some(directory) = &run.cwd {
        let absolute = std::path::absolute(directory).map_err(|e| Failure::input(directory, &e))?;
        options.extend(["--cwd".to_owned(), text(absolute.as_os_str())?]);
    }
    if let Some(program) = &run.package.program
        && !options.iter().any(|word| word == "--bin")
    {
        options.extend(["--bin".to_owned(), program.clone()]);
    }
    let rest: Result<Vec<String>, Failure> = run.command.iter().map(|word| text(word)).collect();
    let start = match &run.reference {
        Some(reference) => Start::Package {
            reference: text(reference)?,
            fetching: line.fetching,
            arguments: rest?,
        },
        None => Start::Command(rest?),
    };
    Ok(Server { name: name.to_owned(), policy, options, start })
}

/// By the names that people give to credentials.
fn looks_secret(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "_KEY"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn text(word: &std::ffi::OsStr) -> Result<String, Failure> {
    word.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::Usage(format!(
            "{}: only words in UTF-8 can be exported",
            render::plain(&word.to_string_lossy())
        ))
    })
}

/// Name servers of this machine that are not on loopback.
pub fn name_servers() -> Vec<IpAddr> {
    let path = Path::new("/etc/resolv.conf");
    let text = mcp_files::read_text(path, LARGEST, mcp_files::Links::Follow).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines
        .filter_map(|address| address.trim().parse::<IpAddr>().ok())
        .filter(|address| !address.is_loopback())
        .collect()
}
