//! Reads the command line: one verb, with no more of the parser than the line needs.

use std::ffi::OsString;

use clap::{Args, Parser};
use mcp_policy::text;

use super::{Cli, Command, Run, exec, verbs, words};

pub fn command_line() -> Cli {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let started = match words.first().and_then(|verb| verb.to_str()) {
        Some("run") => {
            let plain = words::plain_command(&words, words::Package::Possible);
            let run = plain.map(|command| Run { command, ..Run::default() });
            run.or_else(|| alone(&mut words)).map(|run| Command::Run(Box::new(run)))
        }
        Some("exec") => {
            let plain = words::plain_command(&words, words::Package::None);
            let exec = plain.map(|command| exec::Exec { command, ..exec::Exec::default() });
            exec.or_else(|| alone(&mut words)).map(|exec| Command::Exec(Box::new(exec)))
        }
        Some("check") => alone(&mut words).map(Command::Check),
        Some("version" | "--version" | "-V") if words.len() == 1 => verbs::tell_version(),
        Some("help") => {
            // `mcp help run` is `mcp run --help`.
            words.remove(0);
            words.push("--help".into());
            None
        }
        _ => None,
    };
    match started {
        Some(command) => Cli { command },
        None => Cli::try_parse_from([OsString::from("mcp")].into_iter().chain(words))
            .unwrap_or_else(|error| refuse(&error)),
    }
}

/// As clap does, but for words that a terminal would obey.
fn refuse(error: &clap::Error) -> ! {
    if let Some(told) = verbs::instead(error) {
        crate::render::say(&text::lines(&told));
        std::process::exit(2);
    }
    let is_unseen = |word: OsString| word.to_string_lossy().chars().any(text::is_unseen);
    if !error.use_stderr() || !std::env::args_os().any(is_unseen) {
        error.exit();
    }
    // Without styles: those are in the words as well.
    eprintln!("{}", text::lines(error.render().to_string().trim_end()));
    std::process::exit(2)
}

/// One verb without the flags of all others, which take longer to build than what comes after. `None` for help and
/// for mistakes: the whole says what is to be said.
pub(super) fn alone<T: Args>(words: &mut Vec<OsString>) -> Option<T> {
    let verb = T::augment_args(clap::Command::new("mcp"));
    if verb.get_arguments().any(clap::Arg::is_last_set) {
        *words = words::with_separator(&verb, words);
    }
    T::from_arg_matches(&verb.try_get_matches_from(&*words).ok()?).ok()
}

/// The options of a `mcp run` line that somebody else wrote, with their values as they stand: a client may put others
/// in their place (`${input:size}`). `None` for a line that `mcp run` refuses.
pub fn options_of_run(words: &[String]) -> Option<clap::ArgMatches> {
    let verb = Run::augment_args(clap::Command::new("mcp")).mut_args(|arg| {
        match arg.get_action().takes_values() {
            true => arg.value_parser(clap::value_parser!(OsString)),
            false => arg,
        }
    });
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let words = words::with_separator(&verb, &words);
    verb.try_get_matches_from(words).ok()
}

/// The words of `mcp exec` with `--` where its command begins: to be started once more with other options.
pub fn words_of_exec() -> Vec<OsString> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    words::with_separator(&exec::Exec::augment_args(clap::Command::new("mcp")), &words)
}
