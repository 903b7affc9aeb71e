//! What a cmd.exe line does.

use std::collections::HashMap;
use std::ops::Range;

use crate::evaluate::Evaluator;
use crate::language::Shell;
use crate::place::Place;
use crate::rules::Invocation;
use crate::shell::Origin;
use crate::value::{Field, Output, Piece, Value};
use crate::windows_place as known;

/// Commands whose switches may stand right behind the name.
const GLUED: &[&str] =
    &["rd", "rmdir", "del", "erase", "format", "cd", "copy", "xcopy", "cmd", "dir", "move"];

#[derive(Default)]
struct Line {
    words: Vec<Field>,
    writes: Vec<Field>,
    /// Fed by the command before it.
    piped: bool,
}

impl Evaluator<'_> {
    pub fn cmd(&mut self, text: &str, origin: Origin) {
        let span = origin.span(0, text.len());
        self.nested(span.clone(), |evaluator| {
            let mut variables = HashMap::new();
            let mut fed: Option<Output> = None;
            for line in (Reader { text, at: 0, origin }).lines(&mut variables) {
                if !evaluator.spend(1 + line.words.len()) {
                    evaluator.raise("too-complex", span.clone());
                    return;
                }
                let input = if line.piped { fed.clone() } else { None };
                fed = Some(evaluator.cmd_line(&line.words, &line.writes, input.as_ref()));
            }
        });
    }

    fn cmd_line(&mut self, words: &[Field], writes: &[Field], input: Option<&Output>) -> Output {
        let depth = self.nested(0..0, |evaluator| evaluator.cmd_words(words, writes, input));
        depth.unwrap_or_default()
    }

    fn cmd_words(&mut self, words: &[Field], writes: &[Field], input: Option<&Output>) -> Output {
        let Some((first, rest)) = words.split_first() else {
            return Output::nothing();
        };
        let Some(name) = first.known() else {
            self.raise("unknown-program", first.span.clone());
            return Output::default();
        };
        if crate::characters::look_alike(&name) {
            self.raise("look-alike", first.span.clone());
            return Output::default();
        }
        let name = name.trim_start_matches('@').to_lowercase();
        let (name, glued) = match name.split_once('/') {
            Some((start, switches)) if GLUED.contains(&start) => (start.to_owned(), switches),
            _ => (name.clone(), ""),
        };
        let base = name.rsplit('\\').next().unwrap_or_default();
        let base = base.strip_suffix(".exe").or_else(|| base.strip_suffix(".com")).unwrap_or(base);
        let mut arguments = Vec::new();
        for switch in glued.split('/').filter(|switch| !switch.is_empty()) {
            arguments.push(Field::new(Value::text(format!("/{switch}")), first.span.clone()));
        }
        for field in rest {
            // `/s/q` is two switches.
            match field.known() {
                Some(text)
                    if text.starts_with('/') && text.len() > 2 && text[1..].contains('/') =>
                {
                    for switch in text[1..].split('/') {
                        let value = Value::text(format!("/{switch}"));
                        arguments.push(Field::new(value, field.span.clone()));
                    }
                }
                _ => arguments.push(field.clone()),
            }
        }
        let end = rest.last().map_or(first.span.end, |field| field.span.end);
        self.show(&Invocation {
            shell: Shell::Cmd,
            name: base,
            arguments: &arguments,
            writes,
            reads: &[],
            assigns: &[],
            input,
            cwd: &Place::start(),
            span: first.span.start.min(end)..end.max(first.span.end),
        });
        self.cmd_runs(base, &arguments, input, first.span.clone())
    }

    fn cmd_runs(
        &mut self,
        name: &str,
        arguments: &[Field],
        input: Option<&Output>,
        span: Range<usize>,
    ) -> Output {
        let word =
            |at: usize| arguments.get(at).and_then(|field| field.known()).map(|w| w.to_lowercase());
        match name {
            "call" => return self.cmd_line(arguments, &[], input),
            "if" => {
                let mut at = 0;
                while matches!(word(at).as_deref(), Some("/i" | "not")) {
                    at += 1;
                }
                at += match word(at).as_deref() {
                    Some("exist" | "defined" | "errorlevel") => 2,
                    Some(word) if word.contains("==") => 1,
                    _ => 3,
                };
                return self.cmd_line(arguments.get(at..).unwrap_or_default(), &[], input);
            }
            "else" | "do" => return self.cmd_line(arguments, &[], input),
            "for" => {
                let at = (0..arguments.len()).find(|at| word(*at).as_deref() == Some("do"));
                if let Some(at) = at {
                    return self.cmd_line(&arguments[at + 1..], &[], input);
                }
            }
            "start" => {
                let at = (0..arguments.len()).find(|at| {
                    !matches!(word(*at).as_deref(), Some(w) if w.is_empty() || w.starts_with('/'))
                });
                if let Some(at) = at {
                    self.cmd_line(&arguments[at..], &[], input);
                }
            }
            "forfiles" => {
                let at = (0..arguments.len()).find(|at| word(*at).as_deref() == Some("/c"));
                if let Some(at) = at {
                    self.joined_cmd(arguments.get(at + 1..).unwrap_or_default(), span);
                }
            }
            "cmd" => {
                let at = (0..arguments.len())
                    .find(|at| matches!(word(*at).as_deref(), Some("/c" | "/k" | "/r")));
                match (at, input) {
                    (Some(at), _) => self.joined_cmd(&arguments[at + 1..], span),
                    (None, Some(_)) => self.raise("unknown-text", span),
                    (None, None) => {}
                }
            }
            "powershell" | "pwsh" => self.powershell_call(arguments, input, span),
            "bash" | "sh" | "wsl" => {
                let words: Vec<String> = arguments
                    .iter()
                    .map(|field| crate::evaluate::quote(&field.value.without_unknown()))
                    .collect();
                let program = if name == "wsl" { "" } else { name };
                self.bash_within(format!("{program} {}", words.join(" ")).trim_start(), span);
            }
            "echo" => {
                let mut text = Value::default();
                for field in arguments {
                    text.extend(&field.value);
                    text.push_text(" ");
                }
                return Output::known(text, name);
            }
            _ => {}
        }
        Output::unknown(name)
    }

    /// Words that cmd joins and reads again.
    pub(super) fn joined_cmd(&mut self, fields: &[Field], span: Range<usize>) {
        if let [only] = fields
            && let Some(text) = only.known()
        {
            return self.cmd(&text, only.origin(&text));
        }
        if fields.iter().any(|field| field.value.known().is_none()) {
            self.raise("unknown-text", span.clone());
        }
        let words: Vec<String> = fields.iter().map(|field| field.value.without_unknown()).collect();
        let whole = fields
            .iter()
            .fold(span, |all, field| all.start.min(field.span.start)..all.end.max(field.span.end));
        self.cmd(&words.join(" "), Origin::Within(whole));
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    origin: Origin,
}

impl Reader<'_> {
    /// Commands in the order they stand; `set` is followed on the way.
    fn lines(mut self, variables: &mut HashMap<String, Value>) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut line = Line::default();
        let mut word: Option<(Value, usize)> = None;
        let mut quoted = false;
        let mut redirected = false;
        while let Some(c) = self.text[self.at..].chars().next() {
            let from = self.at;
            self.at += c.len_utf8();
            let next = self.text[self.at..].chars().next();
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
                    let value = self.variable(c, variables);
                    word.get_or_insert((Value::default(), from)).0.extend(&value);
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
                '<' | '>' if !quoted => redirected = c == '>',
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
        lines.retain(|line| !line.words.is_empty());
        lines
    }

    fn finish(
        &self,
        word: &mut Option<(Value, usize)>,
        end: usize,
        line: &mut Line,
        redirected: &mut bool,
    ) {
        let Some((value, from)) = word.take() else {
            return;
        };
        let field = Field::new(value.bounded(), self.origin.span(from, end));
        if std::mem::take(redirected) { line.writes.push(field) } else { line.words.push(field) }
    }

    /// After `%` or `!`: the variable's value, or the sign itself.
    fn variable(&mut self, sign: char, variables: &HashMap<String, Value>) -> Value {
        let rest = &self.text[self.at..];
        let name = rest.split_once(sign).map(|(name, _)| name).filter(|name| {
            !name.is_empty() && name.len() < 64 && !name.contains(['\n', '"', '&', '|', '/'])
        });
        let Some(name) = name else {
            return Value::text(sign.to_string());
        };
        // A loop's variable (`%i`), or a sign that means itself.
        if name.contains(' ') && !name.contains(':') {
            return match sign {
                '%' => {
                    let letter = name.chars().next().map_or(0, char::len_utf8);
                    self.at += letter;
                    Value::of(Piece::Unknown)
                }
                _ => Value::text(sign.to_string()),
            };
        }
        self.at += name.len() + 1;
        let (base, part) = name.split_once(':').map_or((name, None), |(n, part)| (n, Some(part)));
        let value =
            variables.get(&base.to_lowercase()).cloned().unwrap_or_else(|| known::variable(base));
        match part {
            None => value,
            Some(part) => slice(&value, part).unwrap_or_else(|| Value::of(Piece::Unknown)),
        }
    }
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
