//! The commands of a cmd.exe text: carets, quotes, variables and their slices.

use std::collections::HashMap;

use super::aliases::canonical;
use crate::shell::Origin;
use crate::value::{Field, Piece, Value};
use crate::windows_place as known;

#[derive(Default)]
pub struct Line {
    pub words: Vec<Field>,
    pub writes: Vec<Field>,
    pub reads: Vec<Field>,
    /// Fed by the command before it.
    pub piped: bool,
    /// Once PowerShell is named: how many brackets of its text are open.
    open_brackets: Option<usize>,
}

impl Line {
    /// `powershell -c iex(…)`: a bracket of PowerShell's; one that closes has its own that opens.
    fn keeps_bracket(&mut self, c: char) -> bool {
        match (c, &mut self.open_brackets) {
            ('(', Some(open)) => *open += 1,
            (')', Some(open)) if *open > 0 => *open -= 1,
            _ => return false,
        }
        true
    }
}

/// Reads a text of cmd.exe, command by command.
pub struct Reader<'a> {
    pub text: &'a str,
    pub at: usize,
    pub origin: Origin,
}

impl Reader<'_> {
    /// Commands in the order they stand; `set` is followed on the way.
    pub fn lines(mut self, variables: &mut HashMap<String, Value>) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut line = Line::default();
        let mut word: Option<(Value, usize)> = None;
        let mut quoted = false;
        let mut redirected = None;
        while let Some(c) = self.text[self.at..].chars().next() {
            let from = self.at;
            self.at += c.len_utf8();
            let next = self.text[self.at..].chars().next();
            if !quoted && line.keeps_bracket(c) {
                word.get_or_insert((Value::default(), from))
                    .0
                    .push_text(c.encode_utf8(&mut [0; 4]));
                continue;
            }
            let ends = !quoted
                && matches!(c, ' ' | '\t' | '\r' | '\n' | '&' | '|' | '(' | ')' | '<' | '>');
            if ends {
                self.finish(&mut word, from, &mut line, &mut redirected);
            }
            match c {
                '"' => {
                    quoted = !quoted;
                    word.get_or_insert((Value::default(), from));
                }
                '^' if !quoted => {
                    if let Some(next) = next {
                        self.at += next.len_utf8();
                        if next != '\n' && next != '\r' {
                            let (value, _) = word.get_or_insert((Value::default(), from));
                            value.push_text(next.encode_utf8(&mut [0; 4]));
                        }
                    }
                }
                '%' | '!' => {
                    let (value, own) = self.variable(c, variables);
                    let text = value.known().filter(|text| own && !quoted && text.contains(' '));
                    let Some(text) = text else {
                        word.get_or_insert((Value::default(), from)).0.extend(&value);
                        continue;
                    };
                    self.put_in(&text, &mut word, from, &mut line, &mut redirected);
                }
                '&' | '|' | '\n' if !quoted => {
                    let piped = c == '|' && next != Some('|');
                    if next == Some(c) && c != '\n' {
                        self.at += 1;
                    }
                    remember(&line, variables);
                    lines.push(std::mem::replace(&mut line, Line { piped, ..Line::default() }));
                }
                '(' | ')' if !quoted => {
                    // `(` opens a group only where a command begins.
                    if line.words.is_empty() || c == ')' {
                        remember(&line, variables);
                        lines.push(std::mem::take(&mut line));
                    }
                }
                '<' | '>' if !quoted => redirected = Some(c),
                ' ' | '\t' | '\r' if !quoted => {}
                c => {
                    word.get_or_insert((Value::default(), from))
                        .0
                        .push_text(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
        let end = self.at;
        self.finish(&mut word, end, &mut line, &mut redirected);
        lines.push(line);
        joined(lines)
    }

    /// The value of a variable is put in before the words are told apart.
    fn put_in(
        &self,
        text: &str,
        word: &mut Option<(Value, usize)>,
        from: usize,
        line: &mut Line,
        redirected: &mut Option<char>,
    ) {
        for (at, part) in text.split(' ').enumerate() {
            if at > 0 {
                self.finish(word, from, line, redirected);
            }
            if !part.is_empty() {
                word.get_or_insert((Value::default(), from)).0.push_text(part);
            }
        }
    }

    fn finish(
        &self,
        word: &mut Option<(Value, usize)>,
        end: usize,
        line: &mut Line,
        redirected: &mut Option<char>,
    ) {
        let Some((value, from)) = word.take() else {
            return;
        };
        let field = Field::new(value.bounded(), self.origin.span(from, end));
        let is_powershell =
            |name: std::borrow::Cow<'_, str>| matches!(&*canonical(&name), "powershell" | "pwsh");
        if line.open_brackets.is_none() && field.known().is_some_and(is_powershell) {
            line.open_brackets = Some(0);
        }
        match redirected.take() {
            Some('>') => line.writes.push(field),
            Some(_) => {
                line.reads.push(field.clone());
                line.words.push(field);
            }
            None => line.words.push(field),
        }
    }

    /// After `%` or `!`: the variable's value, or the sign itself; and whether the text has set it.
    fn variable(&mut self, sign: char, variables: &HashMap<String, Value>) -> (Value, bool) {
        let rest = &self.text[self.at..];
        let name = rest.split_once(sign).map(|(name, _)| name).filter(|name| {
            !name.is_empty() && name.len() < 64 && !name.contains(['\n', '"', '&', '|', '/'])
        });
        let Some(name) = name else {
            return (Value::text(sign.to_string()), false);
        };
        // A loop's variable (`%i`), or a sign that means itself.
        if name.contains(' ') && !name.contains(':') {
            let value = match sign {
                '%' => {
                    let letter = name.chars().next().map_or(0, char::len_utf8);
                    self.at += letter;
                    Value::of(Piece::Unknown)
                }
                _ => Value::text(sign.to_string()),
            };
            return (value, false);
        }
        self.at += name.len() + 1;
        let (base, part) = name.split_once(':').map_or((name, None), |(n, part)| (n, Some(part)));
        let own = variables.get(&base.to_lowercase());
        let value = own.cloned().unwrap_or_else(|| known::variable(base));
        let value = match part {
            None => value,
            Some(part) => slice(&value, part).unwrap_or_else(|| Value::of(Piece::Unknown)),
        };
        (value, own.is_some())
    }
}

/// Without empty lines. What is written to behind a group (`(…) > file`) belongs to its last command.
fn joined(lines: Vec<Line>) -> Vec<Line> {
    let mut kept: Vec<Line> = Vec::new();
    for line in lines {
        match (line.words.is_empty(), kept.last_mut()) {
            (false, _) => kept.push(line),
            (true, Some(last)) => last.writes.extend(line.writes),
            (true, None) => {}
        }
    }
    kept
}

/// `~1,3` of a known value.
fn slice(value: &Value, part: &str) -> Option<Value> {
    let text = value.known()?;
    let (from, length) = match part.strip_prefix('~')?.split_once(',') {
        Some((from, length)) => (from, length.parse::<usize>().ok()),
        None => (part.strip_prefix('~')?, None),
    };
    let from: usize = from.parse().ok()?;
    Some(Value::text(
        text.chars().skip(from).take(length.unwrap_or(usize::MAX)).collect::<String>(),
    ))
}

fn remember(line: &Line, variables: &mut HashMap<String, Value>) {
    let [set, rest @ ..] = &line.words[..] else {
        return;
    };
    if !set.known().is_some_and(|name| name.eq_ignore_ascii_case("set")) || variables.len() > 256 {
        return;
    }
    let mut text = Value::default();
    for (at, field) in rest.iter().enumerate() {
        if at > 0 {
            text.push_text(" ");
        }
        text.extend(&field.value);
    }
    if let Some(known) = text.known()
        && let Some((name, value)) = known.split_once('=')
    {
        variables.insert(name.to_lowercase(), Value::text(value));
    } else if let Some(Piece::Text(start)) = text.pieces.first()
        && let Some((name, _)) = start.split_once('=')
    {
        variables.insert(name.to_lowercase(), Value::of(Piece::Unknown));
    }
}
