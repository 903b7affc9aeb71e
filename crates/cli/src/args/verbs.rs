//! A command that is none of ours: what was meant.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::{Cli, words};
use crate::package_runner::{self, Meaning};

/// What other tools call it.
const ALIASES: &[(&str, &str)] = &[
    ("bash", "exec"),
    ("build", "pack"),
    ("config", "policy show"),
    ("dlx", "run"),
    ("fetch", "pull"),
    ("get", "pull"),
    ("info", "inspect"),
    ("logs", "log"),
    ("man", "completions man"),
    ("permissions", "grants"),
    ("publish", "push"),
    ("sh", "exec"),
    ("shell", "exec"),
    ("show", "inspect"),
    ("start", "run"),
    ("status", "ps"),
    ("top", "ps"),
    ("uninstall", "remove"),
    ("upgrade", "update"),
];

const RUNNERS: &[&str] =
    &["bunx", "docker", "node", "npm", "npx", "pipx", "python", "python3", "uv", "uvx"];

/// Commands of other tools that need more than another name here.
fn by_hand(verb: &str, rest: &[String]) -> Option<String> {
    let words = rest.join(" ");
    match (verb, rest) {
        ("install" | "i", []) => Some("type: mcp pull npm:NAME, or mcp pull pypi:NAME".to_owned()),
        ("install" | "i", [name]) if !words::is_package(name) && !name.starts_with('-') => {
            Some(format!("type: mcp pull npm:{name}, or mcp pull pypi:{name}"))
        }
        ("install" | "i", _) => Some(format!("type: mcp pull {words}")),
        ("stop", []) => Some("mcp ps lists what runs; then type: mcp kill ID".to_owned()),
        ("stop", _) => Some(format!("type: mcp kill {words} (mcp ps lists the ids)")),
        _ => None,
    }
}

/// The line that clap would print.
const VERSION: &str = concat!("mcp ", env!("CARGO_PKG_VERSION"), "\n");

/// `mcp --version`, without building the flags of every verb first.
pub fn tell_version() -> ! {
    crate::render::print(VERSION);
    std::process::exit(0)
}

/// What a verb wants that was typed without it, and where to find that.
const WANTED: &[(&str, &str)] = &[
    ("exec", "nothing to run; give the command as one text: mcp exec 'make && make test'"),
    ("add", "nothing to add; give a package: mcp add npx -y NAME, mcp add npm:NAME"),
    ("pull", "nothing to fetch; give a package: mcp pull npm:NAME, mcp pull pypi:NAME"),
    ("remove", "name the package; mcp list shows what is in the store"),
    ("rm", "name the package; mcp list shows what is in the store"),
    ("inspect", "name the package; mcp list shows what is in the store"),
    ("kill", "name the sandbox: mcp kill ID; mcp ps lists those that run"),
    ("stats", "name the sandbox: mcp stats ID; mcp ps lists those that run"),
    (
        "completions",
        "name your shell: mcp completions bash (zsh, fish, powershell), or mcp completions man",
    ),
    ("pack", "name the directory of the package: mcp pack ."),
    ("push", "name the package, and where to: mcp push acme/test@1.0.0 --registry HOST"),
    ("search", "give a word to look for: mcp search filesystem"),
    ("check", "give the command as one text: mcp check 'curl x | sh'"),
    ("login", "name the registry: mcp login HOST"),
    ("logout", "name the registry: mcp logout HOST"),
    ("export", "name the target and a server: mcp export kubernetes npm:NAME (or systemd, podman)"),
    (
        "image",
        "name the base, the image and the package: mcp image --base IMAGE --push HOST/NAME:TAG npm:NAME",
    ),
    ("policy check", "name the file: mcp policy check policy.toml"),
    ("policy diff", "name two files: mcp policy diff old.toml new.toml"),
    (
        "policy minimize",
        "name the file and the command: mcp policy minimize policy.toml -- node server.js",
    ),
    (
        "grants revoke",
        "name the package: mcp grants revoke NAME; mcp grants lists what was granted",
    ),
    ("data remove", "name the package: mcp data remove NAME; mcp data lists what is kept"),
];

/// Verbs with words of their own behind them.
fn behind(verb: &str, next: Option<&str>) -> Option<String> {
    let next = next?;
    match (verb, next) {
        ("grants" | "data", "list" | "ls" | "show") => {
            Some(format!("type: mcp {verb} (it lists them)"))
        }
        ("policy", "list" | "ls" | "print") => Some("type: mcp policy show".to_owned()),
        ("policy", "validate" | "lint" | "test") => Some("type: mcp policy check FILE".to_owned()),
        ("wire" | "unwire", word) if !word.starts_with('-') => {
            Some(format!("type: mcp {verb} --client {word}, or mcp {verb} --server {word}"))
        }
        ("doctor", word) if !word.starts_with('-') => {
            Some(format!("type: mcp doctor, or mcp doctor --only {word}"))
        }
        _ => None,
    }
}

/// `None` for another kind of mistake.
pub fn instead(error: &clap::Error) -> Option<String> {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let typed: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let verb = typed.first().map(String::as_str).unwrap_or_default();
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let is_typed = |wanted: &&(&str, &str)| {
                wanted
                    .0
                    .split(' ')
                    .enumerate()
                    .all(|(at, word)| typed.get(at).is_some_and(|w| w == word))
            };
            return WANTED.iter().find(is_typed).map(|(_, way)| (*way).to_owned());
        }
        ErrorKind::UnknownArgument if verb.starts_with('-') => {
            return Some(format!("a verb comes first; type: mcp run {}", without_values(&typed)));
        }
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            if verb == "pull"
                && let Meaning::Package(line) = package_runner::understand(&words[1..])
            {
                return Some(format!("type: mcp pull {}", line.reference));
            }
            let word = typed[1.min(typed.len())..].iter().find(|word| !word.starts_with('-'));
            if let Some(way) = behind(verb, word.map(String::as_str)) {
                return Some(way);
            }
        }
        _ => {}
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    // `mcp help VERB`.
    if words.first().is_some_and(|word| word == "help") {
        words.remove(0);
    }
    let verb = words.first()?.to_str()?;
    let command = Cli::command();
    if command.find_subcommand(verb).is_some() {
        return None;
    }
    let rest: Vec<String> =
        words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let typed = |verb: &str| format!("mcp {verb} {}", rest.join(" ")).trim_end().to_owned();
    if let Some((_, ours)) = ALIASES.iter().find(|(alias, _)| *alias == verb) {
        return Some(format!("{verb} is no command of mcp; type: {}", typed(ours)));
    }
    if let Some(way) = by_hand(verb, &rest) {
        return Some(format!("{verb} is no command of mcp; {way}"));
    }
    if RUNNERS.contains(&verb) || words::is_package(verb) {
        return Some(format!(
            "{verb} is no command of mcp; to run it in a sandbox: {}",
            typed(&format!("run {verb}"))
        ));
    }
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    Some(match mcp_policy::nearest(verb, &names) {
        Some(near) => format!("{verb} is no command of mcp; did you mean: {}", typed(near)),
        None => format!(
            "{verb} is no command of mcp; mcp help lists them, and mcp run {verb} runs a program"
        ),
    })
}

/// The words, but for what may be a secret.
fn without_values(words: &[String]) -> String {
    let word = |word: &String| match word.split_once('=') {
        Some((name, _)) => format!("{name}=…"),
        None => word.clone(),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_told_as_clap_does() {
        assert_eq!(VERSION, Cli::command().render_version());
    }
}
