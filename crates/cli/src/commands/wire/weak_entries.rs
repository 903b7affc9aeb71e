//! Entries that are behind `mcp run` with the walls open.

use std::path::Path;

use crate::args;

/// The options of a wired line that take the walls away. The first word is `run`; the command line's own definition
/// says which options take a value, so that no value is taken for the command.
pub fn opened_wide(words: &[String], home: &Path) -> Vec<String> {
    let Some(options) = args::options_of_run(words) else {
        return Vec::new();
    };
    let values = |id: &str| -> Vec<String> {
        let raw = options.get_raw(id).into_iter().flatten();
        raw.map(|value| value.to_string_lossy().into_owned()).collect()
    };
    let holds_home = |value: &String| {
        let path = Path::new(value);
        path.is_absolute() && (path.parent().is_none() || home.starts_with(path)) || value == "~"
    };
    let mut found = Vec::new();
    let mut told = |flag: &str, values: Vec<String>| {
        found.extend(values.iter().map(|value| format!("--{flag} {value}")));
    };
    told("network", values("network").into_iter().filter(|value| value == "host").collect());
    told("fallback", values("fallback").into_iter().filter(|value| value == "warn").collect());
    for flag in ["read", "write"] {
        told(flag, values(flag).into_iter().filter(holds_home).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn found(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        opened_wide(&words, Path::new("/home/me"))
    }

    #[test]
    fn what_opens_the_walls_is_found() {
        for (line, expected) in [
            ("run --network host npm:x", "--network host"),
            ("run --network=host -- node x", "--network host"),
            ("run -q -r /home/me -- node x", "--read /home/me"),
            ("run -qw/ npm:x", "--write /"),
            ("run --write ~ npm:x", "--write ~"),
            ("run npm:x --fallback warn -- a", "--fallback warn"),
            ("run --max-memory ${input:size} --network host npm:x", "--network host"),
        ] {
            assert_eq!(found(line), [expected], "{line}");
        }
    }

    #[test]
    fn what_is_the_servers_is_not() {
        for line in [
            "run npm:x -- --network host",
            "run node x --network host",
            "run -r /home/me/notes npm:x",
            "run --network isolated npm:x",
            "run --config --network=host npm:x -- --network host",
        ] {
            assert_eq!(found(line), [""; 0], "{line}");
        }
    }

    /// Every option of `mcp run` that takes a value may stand before one that opens the walls.
    #[test]
    fn no_options_value_is_taken_for_the_command() {
        let cli = crate::args::Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        let mut seen = 0;
        for arg in run.get_arguments().filter(|arg| arg.get_action().takes_values()) {
            let (Some(long), false) = (arg.get_long(), arg.get_id() == "network") else {
                continue;
            };
            let also = if arg.get_id() == "platform" { "--explain " } else { "" };
            let line = format!("run {also}--{long} value --network host npm:x");
            assert_eq!(found(&line), ["--network host"], "{line}");
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    }
}
