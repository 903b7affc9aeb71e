//! A command that is none of ours: what was meant.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::{Cli, words};

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

/// `None` for another kind of mistake.
pub fn instead(error: &clap::Error) -> Option<String> {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if error.kind() == ErrorKind::MissingRequiredArgument && words == ["exec"] {
        return Some(
            "nothing to run; give the command as one text: mcp exec 'make && make test'".to_owned(),
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_told_as_clap_does() {
        assert_eq!(VERSION, Cli::command().render_version());
    }
}
