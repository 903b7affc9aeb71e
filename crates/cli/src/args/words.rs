//! `--` is optional: the first word that is no option of ours begins the command.
//!
//! After a package, options of ours still count (`mcp run acme/test@1.0.0 --max-memory 64M`), and the
//! first other word begins what its server is given. An option that is not known is left where it is, so
//! that a misspelt limit is an error and never an argument of the server.

use std::ffi::OsString;
use std::path::Path;

use clap::Args as _;

/// The words of a verb with `--` put where the command begins.
pub fn with_separator(verb: &clap::Command, words: &[OsString]) -> Vec<OsString> {
    let mut package_seen = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.to_str() else {
            return separated(words, at);
        };
        if text == "--" {
            return words.to_vec();
        }
        if text.len() > 1 && text.starts_with('-') {
            let Some(step) = option_length(verb, text) else {
                return words.to_vec();
            };
            at += step;
            continue;
        }
        if !package_seen && takes_package(verb) && is_package(text) {
            package_seen = true;
            at += 1;
            continue;
        }
        return separated(words, at);
    }
    words.to_vec()
}

/// The words of `mcp check` with `--` before a command of several words. After a command that is one text, options of
/// ours still count.
pub fn with_words_apart(verb: &clap::Command, words: &[OsString]) -> Vec<OsString> {
    let mut at = 1;
    while let Some(text) = words.get(at).and_then(|word| word.to_str()) {
        let is_option = text.len() > 1 && text.starts_with('-');
        if !is_option || text == "--" {
            break;
        }
        match option_length(verb, text) {
            Some(step) => at += step,
            None => break,
        }
    }
    let is_ours = |word: &OsString| {
        let text = word.to_str().filter(|text| text.starts_with("--"));
        text.is_some_and(|text| option_length(verb, text).is_some())
    };
    match (words.get(at), words.get(at + 1)) {
        (Some(first), Some(next)) if first != "--" && !is_ours(next) => separated(words, at),
        _ => words.to_vec(),
    }
}

/// The words of `mcp add` with `--` behind the first word of a line: `add npx -y NAME` is `add npx -- -y NAME`. A name
/// before it, as clients' own commands have it (`claude mcp add NAME -- npx -y PACKAGE`), becomes `--name`.
pub fn with_runner_apart(verb: &clap::Command, words: &[OsString]) -> Vec<OsString> {
    const LINES: [&str; 22] = [
        "npx", "pnpx", "bunx", "uvx", "npm", "bun", "pnpm", "yarn", "uv", "pipx", "cmd", "env",
        "sh", "bash", "docker", "podman", "nerdctl", "node", "deno", "python", "python3",
        "npx.cmd",
    ];
    let (mut at, mut name) = (1, None);
    while let Some(text) = words.get(at).and_then(|word| word.to_str()) {
        let begins = LINES.contains(&text) && words.get(at + 1).is_some_and(|w| w != "--")
            || name.is_some() && text.contains("://");
        if text == "--" || begins {
            break;
        }
        match option_length(verb, text).filter(|_| text.len() > 1 && text.starts_with('-')) {
            Some(step) => at += step,
            None if !text.starts_with('-') && name.is_none() && !is_package(text) => {
                name = Some(at);
                at += 1;
            }
            None => return words.to_vec(),
        }
    }
    let line = match words.get(at) {
        Some(word) if word == "--" => at + 1,
        _ => at,
    };
    let Some(first) = words.get(line) else { return words.to_vec() };
    let mut all: Vec<OsString> = Vec::with_capacity(words.len() + 2);
    for (at, word) in words[..at].iter().enumerate() {
        if name == Some(at) {
            all.push("--name".into());
        }
        all.push(word.clone());
    }
    all.push(first.clone());
    if let Some(rest) = words.get(line + 1..).filter(|rest| !rest.is_empty()) {
        all.push("--".into());
        all.extend(rest.iter().cloned());
    }
    all
}

/// Whether a verb's first word may name a package.
#[derive(Clone, Copy, PartialEq)]
pub enum FirstWord {
    Possible,
    None,
}

/// The variable that stands for an option of `run`.
const REGISTRY: &str = "MCP_REGISTRY";

/// The command of a line without a single option, which needs no parser: `run -- server`, `exec TEXT`. Building the
/// flags takes longer than anything else before the sandbox is planned.
pub fn plain_command(words: &[OsString], package: FirstWord) -> Option<Vec<OsString>> {
    if std::env::var_os(REGISTRY).is_some() {
        return None;
    }
    let first = words.get(1)?;
    let command = match first.to_str() {
        Some("--") => &words[2..],
        Some(option) if option.len() > 1 && option.starts_with('-') => return None,
        Some(word) if package == FirstWord::Possible && is_package(word) => return None,
        _ => &words[1..],
    };
    (!command.is_empty()).then(|| command.to_vec())
}

fn separated(words: &[OsString], at: usize) -> Vec<OsString> {
    let mut all = words.to_vec();
    all.insert(at, "--".into());
    all
}

/// How many words an option of ours takes; `None` where it is not known.
fn option_length(verb: &clap::Command, text: &str) -> Option<usize> {
    let takes_value = |arg: &clap::Arg| arg.get_action().takes_values();
    if let Some(long) = text.strip_prefix("--") {
        let (name, glued) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        let names = |arg: &&clap::Arg| {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        let arg = verb.get_arguments().find(names)?;
        return Some(1 + usize::from(takes_value(arg) && !glued));
    }
    let mut letters = text[1..].chars();
    while let Some(letter) = letters.next() {
        let arg = verb.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
        if takes_value(arg) {
            return Some(1 + usize::from(letters.as_str().is_empty()));
        }
    }
    Some(1)
}

fn takes_package(verb: &clap::Command) -> bool {
    verb.get_arguments().any(|arg| arg.get_id() == "reference")
}

/// A word is a package when it has a scheme, ends in `.mcpb`, is a directory with a manifest, or has the
/// shape `owner/name[@version]` and is no file here. Everything else is a command.
pub fn is_package(text: &str) -> bool {
    if ["npm:", "pypi:", "oci://"].iter().any(|scheme| text.starts_with(scheme)) {
        return true;
    }
    if text.to_ascii_lowercase().ends_with(".mcpb") {
        return true;
    }
    let path = Path::new(text);
    if path.is_dir() {
        return ["manifest.json", "mcp.toml", "server.json"]
            .iter()
            .any(|name| path.join(name).is_file())
            || mcp_package::is_path(text);
    }
    if mcp_package::is_path(text) || path.exists() {
        return false;
    }
    let (name, _) = text.split_once('@').unwrap_or((text, ""));
    name.split('/').count() == 2
        && matches!(
            text.parse(),
            Ok(mcp_package::Reference::Named(_) | mcp_package::Reference::Official(_))
        )
}

/// The options of a `mcp run` line that another program wrote, with their values as they stand: a client may put others
/// in their place (`${input:size}`). `None` for a line that `mcp run` refuses.
pub fn options_of_run(words: &[String]) -> Option<clap::ArgMatches> {
    let verb = super::Run::augment_args(clap::Command::new("mcp")).mut_args(|arg| {
        match arg.get_action().takes_values() {
            true => arg.value_parser(clap::value_parser!(OsString)),
            false => arg,
        }
    });
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let words = with_separator(&verb, &words);
    verb.try_get_matches_from(words).ok()
}

/// The words of `mcp exec` with `--` where its command begins: to be started once more with other options.
pub fn words_of_exec() -> Vec<OsString> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    with_separator(&super::exec::Exec::augment_args(clap::Command::new("mcp")), &words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    fn separated(line: &str) -> String {
        let verb = crate::args::Run::augment_args(clap::Command::new("mcp"));
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = with_separator(&verb, &words);
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_text_to_check_may_have_options_of_ours_after_it() {
        for (line, expected) in [
            ("check ls --json", "check ls --json"),
            ("check --json ls", "check --json ls"),
            ("check --json rm -rf x", "check --json -- rm -rf x"),
            ("check npm install x", "check -- npm install x"),
            ("check --shell cmd dir /s", "check --shell cmd -- dir /s"),
            ("check -- rm -rf x", "check -- rm -rf x"),
            ("check -", "check -"),
        ] {
            let verb = crate::args::Check::augment_args(clap::Command::new("mcp"));
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words = with_words_apart(&verb, &words);
            assert_eq!(words.join(std::ffi::OsStr::new(" ")), OsString::from(expected));
        }
    }

    #[test]
    fn a_line_to_add_begins_at_its_runner() {
        for (line, expected) in [
            ("add npx -y x", "add npx -- -y x"),
            ("add --client cursor npx -y x", "add --client cursor npx -- -y x"),
            ("add -- npx -y x", "add npx -- -y x"),
            ("add memory -- npx -y x", "add --name memory npx -- -y x"),
            ("add memory npx -y x", "add --name memory npx -- -y x"),
            ("add memory -e A=1 -- npx -y x", "add --name memory -e A=1 npx -- -y x"),
            ("add memory --client codex uvx x", "add --name memory --client codex uvx -- x"),
            ("add memory -- npm:x", "add --name memory npm:x"),
            // A package's own arguments stay its own.
            ("add npm:x -- npx -y", "add npm:x -- npx -y"),
            ("add npm:x --client codex -- -y", "add npm:x --client codex -- -y"),
            ("add memory", "add memory"),
            ("add --remove memory --client codex", "add --remove memory --client codex"),
            ("add --scope user memory -- npx x", "add --scope user memory -- npx x"),
        ] {
            let verb = crate::args::wire::Add::augment_args(clap::Command::new("mcp"));
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words = with_runner_apart(&verb, &words);
            assert_eq!(words.join(std::ffi::OsStr::new(" ")), OsString::from(expected));
        }
    }

    #[test]
    fn the_command_begins_at_the_first_word_that_is_no_option() {
        for (line, expected) in [
            ("run node server.js --port 3", "run -- node server.js --port 3"),
            ("run --read . node server.js", "run --read . -- node server.js"),
            ("run --read=. -q node -v", "run --read=. -q -- node -v"),
            (
                "run -r . -w out -e A=1 -n example.com cmd -r x",
                "run -r . -w out -e A=1 -n example.com -- cmd -r x",
            ),
            ("run npx -y some-server", "run -- npx -y some-server"),
            ("run -- node --version", "run -- node --version"),
            ("run npm:some-server", "run npm:some-server"),
            ("run npm:some-server --max-memory 64M", "run npm:some-server --max-memory 64M"),
            (
                "run npm:some-server --max-memory 64M /data -x",
                "run npm:some-server --max-memory 64M -- /data -x",
            ),
            ("run acme/test@1.0.0 --yes -- --verbose", "run acme/test@1.0.0 --yes -- --verbose"),
            // A misspelt option of ours is an error, and no argument of a server.
            ("run --max-memroy 64M node", "run --max-memroy 64M node"),
            ("run npm:x --max-memroy 64M", "run npm:x --max-memroy 64M"),
            ("run /bin/true", "run -- /bin/true"),
            ("run server.mcpb a", "run server.mcpb -- a"),
        ] {
            assert_eq!(separated(line), expected, "{line}");
        }
    }

    /// What is read without the parser is what the parser would have read.
    #[test]
    fn lines_without_options_are_read_as_the_parser_reads_them() {
        let words = |line: &[&str]| -> Vec<OsString> { line.iter().map(OsString::from).collect() };
        let plain: [&[&str]; 9] = [
            &["--", "server"],
            &["--", "server", "--read", "x", "--", "-v"],
            &["--", "--odd"],
            &["--", ""],
            &["--", "npm:some-server"],
            &["node", "server.js", "--port", "3"],
            &["npx", "-y", "some-server"],
            &["-", "x"],
            &["", "x"],
        ];
        for line in plain {
            let run = words(&[&["run"], line].concat());
            let quick = plain_command(&run, FirstWord::Possible);
            let quick = quick.map(|command| super::super::Run { command, ..Default::default() });
            let parsed: Option<super::super::Run> = super::super::line::alone(&mut run.clone());
            assert!(quick.is_some(), "{line:?}");
            assert_eq!(format!("{quick:?}"), format!("{parsed:?}"), "{line:?}");
            let exec = words(&[&["exec"], line].concat());
            let quick = plain_command(&exec, FirstWord::None);
            let quick =
                quick.map(|command| super::super::exec::Exec { command, ..Default::default() });
            let parsed: Option<super::super::exec::Exec> =
                super::super::line::alone(&mut exec.clone());
            assert_eq!(format!("{quick:?}"), format!("{parsed:?}"), "{line:?}");
        }
        let options: [&[&str]; 6] =
            [&[], &["--"], &["-q", "x"], &["--help"], &["npm:some-server"], &["--read", ".", "x"]];
        for line in options {
            let run = words(&[&["run"], line].concat());
            assert_eq!(plain_command(&run, FirstWord::Possible), None, "{line:?}");
        }
    }

    /// No other flag of these verbs has a variable that stands for it.
    #[test]
    fn only_the_registry_is_also_a_variable() {
        let verbs = [
            crate::args::Run::augment_args(clap::Command::new("mcp")),
            crate::args::exec::Exec::augment_args(clap::Command::new("mcp")),
        ];
        let variables = verbs.iter().flat_map(clap::Command::get_arguments);
        let variables: Vec<_> = variables.filter_map(clap::Arg::get_env).collect();
        assert_eq!(variables, [REGISTRY]);
    }
}
