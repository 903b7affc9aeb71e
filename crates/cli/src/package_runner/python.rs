//! uvx, uv tool run, uv run, pipx run.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Meaning, Next, Options, PackageLine, owned};

/// Options of uv that change nothing about which package runs.
const QUIET: &[&str] = &[
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "--no-cache",
    "-n",
    "--isolated",
    "--refresh",
    "--offline",
    "--no-progress",
    "--native-tls",
    "--no-config",
    "--upgrade",
    "-U",
    "--reinstall",
    "--no-env-file",
    "--managed-python",
    "--no-managed-python",
    "--no-python-downloads",
    "--frozen",
    "--locked",
    "--no-sync",
    "--no-dev",
    "--all-extras",
    "--active",
    "--exact",
    "--no-project",
    "--no-build",
];

/// The same, with a value.
const QUIET_WITH_VALUE: &[&str] = &[
    "--color",
    "--cache-dir",
    "--refresh-package",
    "--config-file",
    "--link-mode",
    "--resolution",
    "--prerelease",
    "--extra",
    "--group",
    "--upgrade-package",
    "-P",
];

pub fn uvx(runner: &str, rest: &[&str]) -> Meaning {
    let mut options = Options { rest };
    let (mut from, mut with) = (None, Vec::new());
    loop {
        match options.next() {
            Next::Option(name, glued) => match name {
                "--from" | "--spec" => match options.value(glued) {
                    Some(package) => from = Some(package),
                    None => return Meaning::as_is(),
                },
                "--with" | "-w" => match options.value(glued) {
                    Some(list) => with.push(list),
                    None => return Meaning::as_is(),
                },
                // Which Python there is, the package and the machine decide.
                "--python" | "-p" => {
                    if options.value(glued).is_none() {
                        return Meaning::as_is();
                    }
                }
                name if QUIET.contains(&name) => {}
                name if QUIET_WITH_VALUE.contains(&name) => {
                    if options.value(glued).is_none() {
                        return Meaning::as_is();
                    }
                }
                name => return Meaning::unknown_option(runner, name),
            },
            Next::Word | Next::Ended => return package(runner, from, &with, options.rest),
            Next::Nothing => return Meaning::as_is(),
        }
    }
}

pub fn pipx(rest: &[&str]) -> Meaning {
    let mut options = Options { rest };
    let (mut from, mut with) = (None, Vec::new());
    loop {
        match options.next() {
            Next::Option(name, glued) => match name {
                "--spec" => match options.value(glued) {
                    Some(package) => from = Some(package),
                    None => return Meaning::as_is(),
                },
                "--with" => match options.value(glued) {
                    Some(package) => with.push(package),
                    None => return Meaning::as_is(),
                },
                "--python" => {
                    if options.value(glued).is_none() {
                        return Meaning::as_is();
                    }
                }
                "--no-cache" | "--verbose" | "-v" | "-q" | "--quiet" => {}
                name => return Meaning::unknown_option("pipx run", name),
            },
            Next::Word | Next::Ended => return package("pipx run", from, &with, options.rest),
            Next::Nothing => return Meaning::as_is(),
        }
    }
}

fn package(runner: &str, from: Option<&str>, with: &[&str], words: &[&str]) -> Meaning {
    let Some((first, arguments)) = words.split_first() else {
        return Meaning::as_is();
    };
    let wanted = from.unwrap_or(first);
    let Some(reference) = reference(wanted) else {
        return Meaning::AsIs {
            note: Some(format!(
                "{wanted} is no package of PyPI by name and exact version; {runner} itself would fetch and run it"
            )),
        };
    };
    let with: Option<Vec<String>> = with.iter().map(|package| beside(package)).collect();
    let Some(with) = with else {
        return Meaning::unknown_option(runner, "--with");
    };
    let reference = [vec![reference], with].concat().join(",");
    let program = from.map(|_| first.split('@').next().unwrap_or_default().to_owned());
    let base = name_of(wanted);
    Meaning::Package(PackageLine {
        reference,
        program: program.filter(|program| normal(program) != normal(base)),
        with: Vec::new(),
        arguments: owned(arguments),
    })
}

fn name_of(package: &str) -> &str {
    package.split(['@', '=', '[', '<', '>', '~', '!']).next().unwrap_or_default().trim()
}

/// PyPI takes these for one name.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// `name`, `name@1.2`, `name==1.2`, `name[extra]`, `name@latest`.
fn reference(package: &str) -> Option<String> {
    let name = name_of(package);
    let rest = package[name.len()..].trim();
    let (extras, version) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (extras, version) = inner.split_once(']')?;
            (format!("[{}]", extras.replace(' ', "")), version.trim())
        }
        None => (String::new(), rest),
    };
    let version =
        version.strip_prefix("==").or_else(|| version.strip_prefix('@')).unwrap_or(version);
    let version = if version.is_empty() { String::new() } else { format!("@{version}") };
    let reference = format!("pypi:{name}{extras}{version}");
    // The one grammar for packages decides.
    let is_good = reference.parse::<mcp_package::Reference>().is_ok();
    (is_good && (!reference.contains(',') || !extras.is_empty())).then_some(reference)
}

/// What `--with` names, as it goes behind a reference: a name, perhaps with bounds, no file and no URL.
fn beside(requirement: &str) -> Option<String> {
    // `mcp >= 1, < 2`: blanks around an operator mean nothing, others separate.
    let is_sign = |c: char| "<>=!~,[]".contains(c);
    let mut joined = String::new();
    for word in requirement.split_whitespace() {
        if !joined.is_empty() && !joined.ends_with(is_sign) && !word.starts_with(is_sign) {
            return None;
        }
        joined += word;
    }
    let requirement = joined;
    let is_good = format!("pypi:x,{requirement}").parse::<mcp_package::Reference>().is_ok();
    is_good.then_some(requirement)
}

/// `uv [--directory D] run [options] X …`: the program that it starts, in D.
pub fn uv(rest: &[&str]) -> Meaning {
    let mut options = Options { rest };
    let mut directory: Option<PathBuf> = None;
    let mut has_run = false;
    let mut module = false;
    loop {
        match options.next() {
            Next::Option(name, glued) => match name {
                "--directory" | "--project" | "-C" => match options.value(glued) {
                    Some(path) => directory = Some(path.into()),
                    None => return Meaning::as_is(),
                },
                "--with" | "--with-requirements" | "--with-editable" => {
                    return Meaning::unknown_option("uv run", name);
                }
                "--python" | "-p" => {
                    if options.value(glued).is_none() {
                        return Meaning::as_is();
                    }
                }
                "-m" | "--module" if has_run => module = true,
                "-s" | "--script" if has_run => {}
                name if QUIET.contains(&name) => {}
                name if QUIET_WITH_VALUE.contains(&name) => {
                    if options.value(glued).is_none() {
                        return Meaning::as_is();
                    }
                }
                name => return Meaning::unknown_option("uv", name),
            },
            Next::Word if !has_run => match options.rest.split_first() {
                Some((&"run", rest)) => {
                    has_run = true;
                    options.rest = rest;
                }
                _ => return Meaning::as_is(),
            },
            Next::Word | Next::Ended if has_run => return started(directory, module, options.rest),
            _ => return Meaning::as_is(),
        }
    }
}

/// What `uv run` starts: a script by the Python of the project's environment, or a program of it.
fn started(directory: Option<PathBuf>, module: bool, words: &[&str]) -> Meaning {
    let Some((first, arguments)) = words.split_first() else {
        return Meaning::as_is();
    };
    let at = |path: &str| directory.as_ref().map_or_else(|| PathBuf::from(path), |d| d.join(path));
    let bin = if cfg!(windows) { "Scripts" } else { "bin" };
    let environment = |program: &str| OsString::from(at(".venv").join(bin).join(program));
    let mut command: Vec<OsString> = Vec::new();
    if module {
        command.extend([environment("python"), "-m".into(), (*first).into()]);
    } else if first.ends_with(".py") || first.ends_with(".pyw") {
        command.extend([environment("python"), at(first).into()]);
    } else {
        command.push(environment(first));
    }
    command.extend(owned(arguments));
    Meaning::Program { words: command, directory: Some(directory.unwrap_or_else(|| ".".into())) }
}
