//! The values of flags, each with an error that points at what is wrong with it.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mcp_policy::{Cores, EnvName, EnvPattern, Fallback, ValueError};

/// The words of a config file, each with its help.
pub(super) fn fallback() -> impl TypedValueParser<Value = Fallback> {
    let help = |fallback| match fallback {
        Fallback::Prompt => "Ask on the terminal",
        Fallback::Warn => "Start with a warning",
        _ => "Do not start",
    };
    // One word each: the config has a longer one for `warn` as well.
    let words = &Fallback::WORDS[..3];
    let values = words.iter().map(|(word, value)| PossibleValue::new(*word).help(help(*value)));
    PossibleValuesParser::new(values).map(|said| {
        let known = Fallback::WORDS.iter().find(|(word, _)| *word == said);
        known.map_or(Fallback::Deny, |(_, value)| *value)
    })
}

/// A limit that the word `none` takes away.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit<T>(pub Option<T>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    Pass(EnvPattern),
    Set(EnvName, String),
}

/// The value with a caret under what is wrong with it.
pub(super) fn caret(value: &str, error: &ValueError) -> String {
    format!("{}\n{}", error.message, error.render(value))
}

pub(super) fn parse<T: FromStr<Err = ValueError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| caret(text, &error))
}

pub(super) fn limit<T: FromStr<Err = ValueError>>(text: &str) -> Result<Limit<T>, String> {
    if text == "none" { Ok(Limit(None)) } else { parse(text).map(|value| Limit(Some(value))) }
}

pub(super) fn count(text: &str) -> Result<Limit<u32>, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    text.parse().map(|value| Limit(Some(value))).map_err(|_| "expected a whole number".to_owned())
}

pub(super) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| match text.contains(':') {
        true => "write one port: it has the same number inside and outside".to_owned(),
        false => "write a number from 1 to 65535".to_owned(),
    })
}

pub(super) fn runs(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a number: --last 20".to_owned())
}

pub(super) fn millicores(text: &str) -> Result<Limit<Cores>, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    Cores::parse_millicores(text)
        .map(|cores| Limit(Some(cores)))
        .map_err(|error| caret(text, &error))
}

pub(super) fn variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        Some((name, value)) => Ok(Variable::Set(parse(name)?, value.to_owned())),
        None if text.contains(char::is_whitespace) => Err(
            "the name of a variable has no spaces; give --env once for each variable: -e A -e B"
                .to_owned(),
        ),
        None => Ok(Variable::Pass(parse(text)?)),
    }
}

/// A single path component, so that a name can never lead out of the directory of homes.
pub(super) fn home_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    if text.is_empty() || text.len() > 128 || text.starts_with('.') || !text.chars().all(good) {
        return Err("expected letters, digits and ._-@+, not starting with a dot".to_owned());
    }
    Ok(text.to_owned())
}
