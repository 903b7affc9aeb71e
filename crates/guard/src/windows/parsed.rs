//! What PowerShell itself makes of a text, where there is one to ask: a script that has it parse and tell, and
//! the reading of its answer. It adds to what the light reader finds and takes nothing away but its
//! "unreadable": a parser of its own cannot be fooled about where a command begins.
//!
//! Leaves open: texts that make PowerShell load something while it parses are not given to it
//! ([`may_be_parsed`]); what a text computes before it runs it is unknown here as well.

use std::ops::Range;

use serde::Deserialize;

use super::objects::has_cmdlet;
use super::powershell::PowerShell;
use super::tokens::Token;
use super::types::is_harmless;
use crate::evaluate::Evaluator;
use crate::shell::Origin;
use crate::value::{Piece, Value};

/// For `-Command`: reads the text from standard input and writes its answer to standard output.
pub const PARSE_SCRIPT: &str = include_str!("parse.ps1");

/// The answer is that of this script.
const VERSION: u32 = 1;
/// More commands than a text of the longest length can hold.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// Words that have PowerShell look for modules, types or resources while it parses.
const LOADING: [&str; 4] = ["using", "configuration", "dscresource", "dynamickeyword"];

/// Whether PowerShell can be asked about a text without its loading anything.
pub fn may_be_parsed(text: &str) -> bool {
    let plain = text.replace('`', "").to_lowercase();
    !LOADING.iter().any(|word| plain.contains(word))
}

/// What PowerShell found in a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Parsed {
    mcp: u32,
    errors: Vec<Extent>,
    commands: Vec<Command>,
    members: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Extent {
    start: usize,
    end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Command {
    start: usize,
    end: usize,
    words: Vec<ParsedWord>,
    writes: Vec<ParsedWord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct ParsedWord {
    start: usize,
    end: usize,
    /// `None`: only running it tells.
    value: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Member {
    start: usize,
    end: usize,
    #[serde(rename = "type")]
    of: Option<String>,
    name: Option<String>,
    called: bool,
}

impl Parsed {
    /// Reads an answer of [`PARSE_SCRIPT`]; `None` where it is none, and nothing is known.
    pub fn read(answer: &[u8]) -> Option<Parsed> {
        if answer.len() > LONGEST_ANSWER {
            return None;
        }
        let parsed: Parsed = serde_json::from_slice(answer.trim_ascii()).ok()?;
        (parsed.mcp == VERSION).then_some(parsed)
    }

    /// Whether PowerShell could read it.
    pub fn is_well_formed(&self) -> bool {
        self.errors.is_empty()
    }
}

impl Evaluator<'_> {
    /// Judges what PowerShell found.
    pub fn parsed(&mut self, text: &str, parsed: &Parsed) {
        let at = Offsets::of(text);
        for Extent { start, end } in &parsed.errors {
            self.raise("unreadable", at.span(*start, *end));
        }
        let mut shell = PowerShell::default();
        for command in &parsed.commands {
            if !self.spend(1 + command.words.len()) {
                return self.raise("too-complex", 0..text.len());
            }
            let Some((first, rest)) = command.words.split_first() else { continue };
            let mut tokens: Vec<Token> = rest.iter().map(|word| at.token(word)).collect();
            for word in &command.writes {
                tokens.push(Token::Sign('>', at.span(word.start, word.end)));
                tokens.push(at.token(word));
            }
            // A command in braces is on its own; PowerShell lists it as well.
            let span = at.span(first.start, first.end.min(command.end));
            if is_block(text, &span) {
                continue;
            }
            self.named_command(&value(first), span, &tokens, None, &mut shell);
        }
        for member in &parsed.members {
            let span = at.span(member.start, member.end);
            let is_known = member.of.as_deref().is_some_and(is_harmless);
            let is_plain =
                member.of.is_none() && member.name.as_deref().is_some_and(|name| !runs(name));
            if is_known || is_plain || (!member.called && member.of.is_none()) {
                continue;
            }
            let name = member.of.as_deref().zip(member.name.as_deref());
            match text.get(span.clone()).filter(|_| name.is_some_and(has_cmdlet)) {
                // Judged as the cmdlet, from the words that PowerShell says belong to it.
                Some(call) => self.powershell_text(call, Origin::At(span.start), &mut shell),
                None => self.raise("dotnet-call", span),
            }
        }
    }
}

/// Methods of any object that run or fetch something.
fn runs(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("invoke") || name.contains("download") || name.contains("newscriptblock")
}

fn is_block(text: &str, span: &Range<usize>) -> bool {
    text.get(span.clone()).is_some_and(|word| word.starts_with('{'))
}

fn value(word: &ParsedWord) -> Value {
    word.value.as_ref().map_or_else(|| Value::of(Piece::Unknown), |text| Value::text(text.clone()))
}

/// From UTF-16 to bytes.
struct Offsets(Vec<usize>);

impl Offsets {
    fn of(text: &str) -> Offsets {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        for (at, c) in text.char_indices() {
            bytes.extend(std::iter::repeat_n(at, c.len_utf16()));
        }
        bytes.push(text.len());
        Offsets(bytes)
    }

    fn span(&self, start: usize, end: usize) -> Range<usize> {
        let last = self.0.last().copied().unwrap_or_default();
        let byte = |at: usize| self.0.get(at).copied().unwrap_or(last);
        byte(start)..byte(end).max(byte(start))
    }

    fn token(&self, word: &ParsedWord) -> Token {
        Token::Word(value(word), self.span(word.start, word.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Decision, Shell, judge, judge_parsed};

    /// As the script would tell of a text whose only command has these words.
    fn answer(text: &str, words: &[(&str, Option<&str>)]) -> String {
        let told: Vec<String> = words
            .iter()
            .map(|(word, value)| {
                let start = text[..text.find(word).unwrap()].encode_utf16().count();
                let end = start + word.encode_utf16().count();
                let value = serde_json::to_string(value).unwrap();
                format!(r#"{{"start":{start},"end":{end},"value":{value}}}"#)
            })
            .collect();
        let length = text.encode_utf16().count();
        format!(
            r#"{{"mcp":1,"errors":[],"members":[],"commands":[{{"start":0,"end":{length},"words":[{}],"writes":[]}}]}}"#,
            told.join(",")
        )
    }

    fn rules(text: &str, answer: &str) -> Vec<String> {
        let parsed = Parsed::read(answer.as_bytes()).unwrap();
        let verdict = judge_parsed(text, &parsed, &Context::default());
        verdict.findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn what_powershell_sees_is_judged() {
        let text = "ü; Remove-Item -Recurse C:\\";
        let words = [
            ("Remove-Item", Some("Remove-Item")),
            ("-Recurse", Some("-Recurse")),
            ("C:\\", Some("C:\\")),
        ];
        let parsed = Parsed::read(answer(text, &words).as_bytes()).unwrap();
        let verdict = judge_parsed(text, &parsed, &Context::default());
        assert_eq!(verdict.decision, Decision::Refuse);
        let reason = verdict.reason().unwrap();
        assert_eq!(reason.rule, "delete-everything-windows");
        assert!(text[reason.span.clone()].starts_with("Remove-Item"), "{:?}", reason.span);
    }

    #[test]
    fn process_escape_and_network_are_refused_by_its_parse_alone() {
        for (name, rule) in
            [("Start-Process", "detach-windows"), ("Invoke-WebRequest", "network-tool-windows")]
        {
            // The light reader sees a string only.
            let text = format!("\"{name}\"");
            let found = rules(&text, &answer(&text, &[(name, Some(name)), (name, Some("x"))]));
            assert!(found.iter().any(|id| id == rule), "{name}: {found:?}");
            let light = judge(&text, Shell::PowerShell, &Context::default());
            assert_eq!(light.decision, Decision::Allow, "the control: {light:?}");
        }
    }

    #[test]
    fn errors_make_it_unreadable_and_a_good_parse_readable() {
        let text = "a )";
        let light = judge(text, Shell::PowerShell, &Context::default());
        assert!(light.findings.iter().any(|finding| finding.rule == "unreadable"), "the control");
        let bad = r#"{"mcp":1,"errors":[{"start":2,"end":3}],"commands":[],"members":[]}"#;
        assert_eq!(rules(text, bad), ["unreadable"]);
        let good = r#"{"mcp":1,"errors":[],"commands":[],"members":[]}"#;
        assert!(rules(text, good).is_empty());
    }

    #[test]
    fn a_good_parse_takes_no_other_finding_away() {
        let good = r#"{"mcp":1,"errors":[],"commands":[],"members":[]}"#;
        assert_eq!(rules("Remove-Item -Recurse C:\\", good), ["delete-everything-windows"]);
    }

    #[test]
    fn calls_into_dotnet_are_told() {
        let call = |of: &str, name: &str| {
            let of = if of.is_empty() { "null".to_owned() } else { format!("\"{of}\"") };
            format!(
                r#"{{"mcp":1,"errors":[],"commands":[],"members":[{{"start":0,"end":1,"type":{of},"name":"{name}","called":true}}]}}"#
            )
        };
        assert_eq!(rules("x", &call("Diagnostics.Process", "Start")), ["dotnet-call"]);
        assert_eq!(rules("x", &call("", "DownloadString")), ["dotnet-call"]);
        assert!(rules("x", &call("Math", "Round")).is_empty());
        // What a cmdlet does too is judged by its own words.
        let whole = |text: &str| {
            call("IO.File", "ReadAllText").replace("\"end\":1", &format!("\"end\":{}", text.len()))
        };
        let own = "[IO.File]::ReadAllText('a.txt')";
        assert!(rules(own, &whole(own)).is_empty());
        let secret = "[IO.File]::ReadAllText('C:\\Users\\ann\\.ssh\\id_rsa')";
        assert!(!rules(secret, &whole(secret)).is_empty());
        assert_eq!(
            rules("x", &call("IO.File", "ReadAllText")),
            [] as [&str; 0],
            "a word alone calls nothing"
        );
        assert!(rules("x", &call("", "ToUpper")).is_empty());
    }

    #[test]
    fn foreign_answers_say_nothing() {
        for text in ["", "{}", "ok", r#"{"mcp":2,"errors":[],"commands":[],"members":[]}"#] {
            assert_eq!(Parsed::read(text.as_bytes()), None, "{text}");
        }
        // Offsets that do not exist, by a parser that is none of ours.
        let odd = r#"{"mcp":1,"errors":[],"members":[],"commands":[{"start":9,"end":3,"words":[{"start":99,"end":7,"value":null}],"writes":[]}]}"#;
        assert_eq!(rules("é", odd), ["unknown-program"]);
    }

    #[test]
    fn texts_that_load_something_while_parsed_are_not_given_to_it() {
        for text in ["using module .\\evil.psm1", "Us`ing assembly x", "configuration X {}"] {
            assert!(!may_be_parsed(text), "{text}");
        }
        assert!(may_be_parsed("Get-ChildItem | Sort-Object"));
    }
}
