//! What a cmd.exe line does.

use std::collections::HashMap;
use std::ops::Range;

use super::cmd_for::Each;
use super::cmd_lines::Reader;
use crate::evaluate::Evaluator;
use crate::language::Shell;
use crate::place::Place;
use crate::rules::Invocation;
use crate::shell::Origin;
use crate::value::{Field, Output, Piece, Value};

/// Commands whose switches may stand right behind the name.
const GLUED: &[&str] =
    &["rd", "rmdir", "del", "erase", "format", "cd", "copy", "xcopy", "cmd", "dir", "move"];

impl Evaluator<'_> {
    pub fn cmd(&mut self, text: &str, origin: Origin) {
        let span = origin.span(0, text.len());
        self.nested(span.clone(), |evaluator| {
            evaluator.cmd_secrets(text, &span);
            let mut variables = HashMap::new();
            let mut fed: Option<Output> = None;
            let mut over: Option<Loop> = None;
            let mut each: Option<Each> = None;
            for line in (Reader { text, at: 0, origin }).lines(&mut variables) {
                if !evaluator.spend(1 + line.words.len()) {
                    evaluator.raise("too-complex", span.clone());
                    return;
                }
                let input = if line.piped { fed.clone() } else { None };
                evaluator.cmd_for_source(&line.words);
                evaluator.cmd_reads(&line.words, &line.reads);
                if let Some(over) = &over {
                    evaluator.cmd_loop(over, &line.words);
                }
                if let Some(each) = &each {
                    evaluator.cmd_for_each(each, &line.words);
                }
                each = Each::of(&line.words).or(each);
                // A loop's commands may be several lines, in brackets.
                over = Loop::of(&line.words).or(over);
                let output = evaluator.cmd_line(&line.words, &line.writes, input.as_ref());
                line.writes.iter().for_each(|file| evaluator.keeps(file, output.clone()));
                fed = Some(output);
            }
        });
    }

    pub(super) fn cmd_line(
        &mut self,
        words: &[Field],
        writes: &[Field],
        input: Option<&Output>,
    ) -> Output {
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
        // `%x%` with blanks in it is more than one word; a path may have blanks.
        if name.contains(' ') && !name.contains(['\\', ':']) {
            let split = name.split(' ').filter(|word| !word.is_empty());
            let words: Vec<Field> = split
                .map(|word| Field::new(Value::text(word), first.span.clone()))
                .chain(rest.iter().cloned())
                .collect();
            return self.cmd_line(&words, writes, input);
        }
        if name.starts_with('%') {
            self.raise("unknown-program", first.span.clone());
        }
        self.cmd_file(first);
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
        self.moves_away(base, &arguments);
        if let Some(output) = self.portable(base, rest, writes, input, first.span.clone()) {
            return output;
        }
        let output = self.cmd_runs(base, &arguments, input, first.span.clone());
        self.shows(&arguments, output)
    }

    /// A program of the text's own making, or one that it fetched.
    fn cmd_file(&mut self, file: &Field) {
        self.starts_file(file);
        let text = self.kept(file).and_then(|kept| kept.text.clone());
        if let Some(text) = text.and_then(|text| text.known().map(|text| text.into_owned())) {
            self.cmd(&text, Origin::Within(file.span.clone()));
        }
    }

    /// Keys of the environment that a text prints or sends, by the names of the variables.
    fn cmd_secrets(&mut self, text: &str, span: &Range<usize>) {
        let secret = text.split('%').any(|name| {
            !name.contains([' ', '/', '\\']) && crate::evaluate::names_secret(&name.to_uppercase())
        });
        let lower = text.to_lowercase();
        if secret && ["curl", "nslookup", "ping"].iter().any(|tool| lower.contains(tool)) {
            if !lower.contains("authorization") && !lower.contains("token:") {
                self.raise("send-secret-variable", span.clone());
            }
        } else if secret && lower.trim_start_matches(['@', ' ']).starts_with("echo") {
            self.raise("print-secret-variable", span.clone());
        }
        // Itself, twice; a loop whose steps are zero wide, and which starts programs.
        let endless = lower.contains("for /l") && lower.contains(",0,") && lower.contains("start");
        if super::bomb::starts_itself(&lower) || endless {
            self.raise("fork-bomb", span.clone());
        }
    }

    /// `for /r C:\ %f in (*) do del %f`: everything of a place, one by one, is the place.
    fn cmd_loop(&mut self, over: &Loop, body: &[Field]) {
        let name = |field: &Field| {
            field
                .known()
                .map(|word| word.trim_start_matches('@').to_lowercase())
                .unwrap_or_default()
        };
        let is_of_loop = |field: &Field| field.value.starts_with('%');
        let begins = body.first().is_some_and(|first| name(first) == "do");
        let before = |field: &&Field| matches!(name(field).as_str(), "do" | "call" | "cmd" | "/c");
        let at = body.iter().take_while(before).count();
        let (program, given) = match body.get(at..) {
            Some([first, given @ ..]) => (name(first), given),
            _ => return,
        };
        let deletes = matches!(program.as_str(), "del" | "erase" | "rd" | "rmdir");
        match over {
            Loop::Place(place) if deletes && (begins || given.iter().any(is_of_loop)) => {
                let field = |text: &str| Field::new(Value::text(text), place.span.clone());
                self.cmd_line(&[field("rd"), field("/s"), place.clone()], &[], None);
            }
            Loop::Fetched(span)
                if begins
                    && (body.get(at).is_some_and(is_variable)
                        || body.get(1).is_some_and(|second| name(second) == "call")) =>
            {
                self.raise("download-to-shell", span.clone());
            }
            _ => {}
        }
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
            // As it does in a POSIX shell, it may make programs run other code than their own.
            "set" if word(0).is_some_and(|text| text.contains('=')) => {
                self.cmd_sets(arguments, span);
            }
            // Alone it prints what is set.
            "set" if arguments.is_empty() => return Output::unknown(super::portable::ENVIRONMENT),
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
            "forfiles" => self.for_files(arguments, span),
            // Of PowerShell's, but meant: it runs what comes in.
            "iex" | "invoke-expression" if input.is_some() => {
                self.raise("download-to-shell", span);
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
            "bash" | "sh" | "wsl" => self.posix_shell(name, arguments, span),
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

    /// `set NAME=value`.
    fn cmd_sets(&mut self, arguments: &[Field], span: Range<usize>) {
        let words: Vec<String> =
            arguments.iter().map(|field| field.value.without_unknown()).collect();
        let text = words.join(" ");
        let (name, value) = text.split_once('=').unwrap_or_default();
        self.sets_variable(&format!("env:{name}"), &Value::text(value.trim_end()), span);
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

/// What a `for` goes over.
enum Loop {
    Place(Field),
    /// Lines of something that comes from the network.
    Fetched(Range<usize>),
}

impl Loop {
    fn of(words: &[Field]) -> Option<Loop> {
        let word = |at: usize| words.get(at).and_then(|f| f.known()).map(|w| w.to_lowercase());
        if word(0).as_deref() != Some("for") {
            return None;
        }
        let inside = (0..words.len()).find(|at| word(*at).as_deref() == Some("in"))? + 1;
        let of = |value: Value| Some(Loop::Place(Field::new(value, words[0].span.clone())));
        match word(1).as_deref() {
            Some("/r") => match words.get(2).filter(|field| !is_variable(field)) {
                // Of a home or a drive some are too much, too.
                Some(place) if is_all(words.get(inside)) || !is_here(place) => {
                    Some(Loop::Place(place.clone()))
                }
                None if is_all(words.get(inside)) => of(Value::text(".")),
                _ => None,
            },
            Some("/d") => words.get(inside).map(|set| Loop::Place(set.clone())),
            Some("/f") => {
                let program = word(inside)?.trim_start_matches(['\'', '"', '`']).to_owned();
                let last = words.last()?;
                match program.as_str() {
                    "curl" | "powershell" | "certutil" => Some(Loop::Fetched(last.span.clone())),
                    "where" => {
                        let at = (inside..words.len()).find(|at| is_switch(&words[*at], "/r"))?;
                        words.get(at + 1).map(|place| Loop::Place(place.clone()))
                    }
                    "dir" => {
                        let text = last.value.without_unknown();
                        let text = text.trim_end_matches(['\'', '"', '`']);
                        let recursive = words.iter().any(|f| is_switch(f, "/s"));
                        // Some files of every directory below are taken for the directory.
                        let text = match text.rsplit_once('\\') {
                            Some((above, name)) if recursive && name.contains('*') => above,
                            _ => text,
                        };
                        let place = !text.starts_with('/') && !text.starts_with('\'');
                        match &last.value.pieces[..] {
                            [Piece::Home, ..] if recursive => of(Value::of(Piece::Home)),
                            [Piece::Home, ..] => of(last.value.clone()),
                            _ if place => of(Value::text(text)),
                            _ => of(Value::text(".")),
                        }
                    }
                    _ => None,
                }
            }
            _ if is_all(words.get(inside)) => of(Value::text(".")),
            // `C:\x\*.*`: everything in it.
            _ => words.get(inside).filter(|set| is_whole(set)).cloned().map(Loop::Place),
        }
    }
}

/// Everything in a directory that is named.
fn is_whole(set: &Field) -> bool {
    matches!(set.value.pieces.last(), Some(Piece::Text(text)) if text.ends_with("\\*") || text.ends_with("\\*.*"))
}

/// `%i`, whose value only the loop knows.
fn is_variable(field: &Field) -> bool {
    field.value.starts_with('%') || matches!(field.value.pieces.first(), Some(Piece::Unknown))
}

fn is_switch(field: &Field, switch: &str) -> bool {
    field.known().is_some_and(|text| text.eq_ignore_ascii_case(switch))
}

fn is_here(field: &Field) -> bool {
    field.known().is_some_and(|text| text.chars().all(|c| matches!(c, '.' | '\\' | '/')))
}

fn is_all(field: Option<&Field>) -> bool {
    field.is_some_and(|f| matches!(f.known().as_deref(), Some("*" | "*.*" | ".\\*" | ".\\*.*")))
}
