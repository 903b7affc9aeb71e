//! A verb that is none of ours: what was meant.

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
    ("install", "pull"),
    ("i", "pull"),
    ("logs", "log"),
    ("permissions", "grants"),
    ("publish", "push"),
    ("sh", "exec"),
    ("shell", "exec"),
    ("show", "inspect"),
    ("start", "run"),
    ("status", "ps"),
    ("stop", "kill"),
    ("top", "ps"),
    ("uninstall", "remove"),
    ("upgrade", "update"),
];

const RUNNERS: &[&str] =
    &["bunx", "docker", "node", "npm", "npx", "pipx", "python", "python3", "uv", "uvx"];

/// The line that clap would print.
const VERSION: &str = concat!("mcp ", env!("CARGO_PKG_VERSION"), "\n");

/// `mcp --version`, without building the flags of every verb first.
pub fn tell_version() -> ! {
    crate::render::print(VERSION);
    std::process::exit(0)
}

/// `None` for another kind of mistake.
pub fn instead(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
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
        return Some(format!("{verb} is no verb of mcp; type: {}", typed(ours)));
    }
    if RUNNERS.contains(&verb) || words::is_package(verb) {
        return Some(format!(
            "{verb} is no verb of mcp; to run it in a sandbox: {}",
            typed(&format!("run {verb}"))
        ));
    }
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    Some(match mcp_policy::nearest(verb, &names) {
        Some(near) => format!("{verb} is no verb of mcp; did you mean: {}", typed(near)),
        None => format!(
            "{verb} is no verb of mcp; mcp help lists them, and mcp run {verb} runs a program"
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
