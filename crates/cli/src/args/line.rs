//! From the words of the command line to a verb with its flags.

use std::ffi::OsString;

use clap::{Args, Parser};
use mcp_policy::text;

use super::{Check, Cli, Command, Run, exec, flags, verbs, wire, words};

pub fn command_line() -> Cli {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let started = match words.first().and_then(|verb| verb.to_str()) {
        Some("run") => {
            let plain = words::plain_command(&words, words::FirstWord::Possible);
            let run = plain.map(|command| Run { command, ..Run::default() });
            run.or_else(|| alone(&mut words)).map(|run| Command::Run(Box::new(run)))
        }
        Some("exec") => {
            let plain = words::plain_command(&words, words::FirstWord::None);
            let exec = plain.map(|command| exec::Exec { command, ..exec::Exec::default() });
            exec.or_else(|| alone(&mut words)).map(|exec| Command::Exec(Box::new(exec)))
        }
        // The line of a package runner is a command; what follows it is the runner's.
        Some("add") => {
            words = words::with_runner_apart(
                &wire::Add::augment_args(clap::Command::new("mcp")),
                &words,
            );
            None
        }
        Some("learn") => alone(&mut words).map(|learn| Command::Learn(Box::new(learn))),
        Some("check") => {
            words =
                words::with_words_apart(&Check::augment_args(clap::Command::new("mcp")), &words);
            alone(&mut words).map(Command::Check)
        }
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
    if let Some(told) = verbs::instead(error).or_else(|| flags::instead(error)) {
        crate::render::say(&text::word(&told));
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

/// The last option of a line without a command, and the word that it took for its value.
pub fn taken_by_an_option() -> Option<(String, String)> {
    let mut words = std::env::args_os().rev().map(|word| word.to_string_lossy().into_owned());
    let (mut word, option) = (words.next()?, words.next()?);
    // A value may be a secret.
    if let Some((name, _)) = word.split_once('=') {
        word = format!("{name}=…");
    }
    (option.starts_with('-') && !option.contains('=') && !word.starts_with('-'))
        .then_some((option, word))
}

/// What a person typed after `mcp run`: the options, a package among them, and the words of the command.
pub fn words_of_run() -> (Vec<OsString>, Vec<OsString>) {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.first().is_none_or(|verb| verb != "run") {
        return Default::default();
    }
    let mut words = words::with_separator(&Run::augment_args(clap::Command::new("mcp")), &words);
    let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let command = words.split_off(at).into_iter().skip(1).collect();
    let options = words.into_iter().skip(1).filter(|word| word != "--fetched").collect();
    (options, command)
}
