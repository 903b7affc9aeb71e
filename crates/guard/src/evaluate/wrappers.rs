//! Programs that start other programs: the command inside is judged as if it stood alone.

use super::Evaluator;
use super::call::{Call, unknown};
use super::options::{is_assignment, takes_next, value_of, wrapper};
use super::state::State;
use crate::shell::ast::Span;
use crate::value::{Field, Output, Piece, Value};

/// Inputs of xargs and parallel that are followed one by one.
const MOST_ITEMS: usize = 64;

impl Evaluator<'_> {
    /// What a wrapper's command does; `None` if this is no wrapper.
    pub fn looked_through(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Option<Output> {
        if super::shells::is_shell(name) {
            return Some(self.shell(name, first, arguments, call, state));
        }
        if name == "env"
            && let Some(at) = wrapper(name).and_then(|wrapper| wrapper.command_at(arguments))
            && let own = &arguments[..arguments.len().min(at + 1)]
            && let Some((at, text)) = value_of(own, 'S', "--split-string")
        {
            let mut words = text;
            for field in &arguments[at + 1..] {
                words.push(' ');
                words.push_str(&super::call::quote(&field.value.without_unknown()));
            }
            return Some(self.text_of(&arguments[at], &words, state, call.input));
        }
        if name == "command" && arguments.first()?.known().is_some_and(|t| t == "-v" || t == "-V") {
            return None;
        }
        if let Some(wrapper) = wrapper(name) {
            let at = wrapper.command_at(arguments);
            return Some(self.wrapped(at, first, arguments, call, state));
        }
        self.special_wrapper(name, first, arguments, call, state)
    }

    /// The command that begins at a word.
    fn wrapped(
        &mut self,
        at: Option<usize>,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Output {
        let Some(at) = at else {
            self.raise("unknown-program", first.span.clone());
            return Output::default();
        };
        let mut assigns: Vec<String> = call.assigns.to_vec();
        for field in &arguments[..at] {
            if let Some(text) = field.known().filter(|text| is_assignment(text)) {
                assigns.extend(text.split('=').next().map(str::to_owned));
            }
        }
        let inner =
            Call { assigns: &assigns, writes: &[], input: call.input, span: call.span.clone() };
        // `sudo -s`, `su`: a shell that reads.
        let shell = ["-s", "-i", "--shell", "--login"];
        let asks_shell = arguments[..at]
            .iter()
            .any(|field| field.known().is_some_and(|text| shell.contains(&text.as_ref())));
        if at == arguments.len()
            && asks_shell
            && let Some(input) = call.input
        {
            self.program_text(input, first.span.clone(), state);
        }
        self.call(&arguments[at..], &inner, state)
    }

    fn special_wrapper(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Option<Output> {
        let span = first.span.clone();
        Some(match name {
            "busybox" | "toybox" => self.call(arguments, call, state),
            "eval" => self.joined(arguments, call, state),
            "watch" => {
                let at = skip_options(arguments, "nq")?;
                self.joined(&arguments[at..], call, state)
            }
            "trap" => {
                let text = arguments.first().filter(|field| !field.value.starts_with('-'))?;
                let mut own = state.clone();
                self.joined(std::slice::from_ref(text), call, &mut own)
            }
            "xargs" => self.xargs(arguments, call, state, span),
            "find" => self.find(arguments, call, state),
            "fd" | "fdfind" => self.fd(arguments, call, state)?,
            "parallel" => self.parallel(arguments, call, state, span),
            "flock" => {
                if let Some((at, text)) = value_of(arguments, 'c', "--command") {
                    return Some(self.text_of(&arguments[at], &text, state, call.input));
                }
                let at = skip_options(arguments, "wE")?;
                self.call(arguments.get(at + 1..).unwrap_or_default(), call, state)
            }
            "su" | "runuser" | "script" => {
                let (at, text) = value_of(arguments, 'c', "--command")?;
                self.text_of(&arguments[at], &text, state, call.input)
            }
            "npx" => {
                let own = skip_options(arguments, "p")?;
                let own = &arguments[..arguments.len().min(own + 1)];
                let (at, text) = value_of(own, 'c', "--call")?;
                self.text_of(&arguments[at], &text, state, call.input)
            }
            "ssh" => {
                // Host, then a command of the far side's shell.
                let at = skip_options(arguments, "BbcDEeFIiJLlmOopQRSWw")? + 1;
                let rest = arguments.get(at..).filter(|rest| !rest.is_empty())?;
                let mut far = State::new();
                self.joined(rest, call, &mut far)
            }
            "git" => self.git(arguments, call, state)?,
            _ => return None,
        })
    }

    /// git's own ways to run a text.
    fn git(&mut self, arguments: &[Field], call: &Call<'_>, state: &mut State) -> Option<Output> {
        let known: Vec<_> = arguments.iter().map(|field| field.known()).collect();
        let is = |at: usize, text: &str| known.get(at).is_some_and(|k| k.as_deref() == Some(text));
        let verb = skip_options(arguments, "cC")?;
        let text_at = if is(verb, "submodule") && is(verb + 1, "foreach") {
            (verb + 2..arguments.len()).find(|at| !arguments[*at].value.starts_with('-'))?
        } else if is(verb, "rebase") {
            let (at, text) = value_of(arguments, 'x', "--exec")?;
            return Some(self.text_of(&arguments[at], &text, state, call.input));
        } else if is(verb, "bisect") && is(verb + 1, "run") {
            return Some(self.call(&arguments[verb + 2..], call, state));
        } else {
            return None;
        };
        Some(self.joined(&arguments[text_at..], call, state))
    }

    fn xargs(
        &mut self,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
        span: Span,
    ) -> Output {
        let Some(at) = skip_options(arguments, "ILnPsdEaR") else {
            self.raise("unknown-program", span);
            return Output::default();
        };
        let command = &arguments[at..];
        if command.is_empty() {
            return Output::unknown("xargs");
        }
        let flag = |letter| {
            arguments[..at].iter().any(|field| {
                field.known().is_some_and(|t| !t.starts_with("--") && t.contains(letter))
            })
        };
        let text = call.input.and_then(|input| input.text.as_ref()).filter(|_| !flag('d'));
        let items = text.map(|text| match flag('0') {
            // Blanks are part of the items then.
            true => vec![Field::new(text.clone(), span.clone())],
            false => words(text, &span),
        });
        let replaced = value_of(&arguments[..at], 'I', "--replace").map(|(_, text)| text);
        let mut own = state.clone();
        // What it starts does not read the list itself.
        let inner = Call { input: None, writes: &[], assigns: call.assigns, span: span.clone() };
        match (replaced, items) {
            (None, Some(items)) if items.len() <= MOST_ITEMS => {
                let all = [command, &items[..]].concat();
                self.call(&all, &inner, &mut own)
            }
            (None, _) => {
                let all = [command, &[unknown(span)][..]].concat();
                self.call(&all, &inner, &mut own)
            }
            (Some(mark), items) => {
                let items = items.filter(|items| items.len() <= MOST_ITEMS);
                let items = items
                    .unwrap_or_else(|| vec![Field::new(Value::of(Piece::Unknown), span.clone())]);
                for item in items {
                    let all: Vec<Field> =
                        command.iter().map(|field| replace(field, &mark, &item.value)).collect();
                    self.call(&all, &inner, &mut own);
                }
                Output::unknown("xargs")
            }
        }
    }

    fn parallel(
        &mut self,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
        span: Span,
    ) -> Output {
        let is = |field: &&Field, text: &str| field.known().as_deref() == Some(text);
        let split = arguments.iter().position(|field| is(&field, ":::"));
        let (command, items) = arguments.split_at(split.unwrap_or(arguments.len()));
        let Some(at) = skip_options(command, "jIaNnPS") else {
            self.raise("unknown-program", span);
            return Output::default();
        };
        let mut items: Vec<Field> = items.iter().skip(1).cloned().collect();
        if items.is_empty() || items.len() > MOST_ITEMS {
            items = vec![unknown(span)];
        }
        let command = &command[at..];
        let marked = command.iter().any(|field| field.value.without_unknown().contains("{}"));
        for item in items {
            let mut all: Vec<Field> =
                command.iter().map(|field| replace(field, "{}", &item.value)).collect();
            if !marked {
                all.push(item);
            }
            self.joined(&all, call, &mut state.clone());
        }
        Output::unknown("parallel")
    }

    fn find(&mut self, arguments: &[Field], call: &Call<'_>, state: &mut State) -> Output {
        let starts_expression = |field: &Field| {
            field.value.starts_with('-') || matches!(field.known().as_deref(), Some("(" | "!"))
        };
        let at = arguments.iter().position(starts_expression).unwrap_or(arguments.len());
        let (places, expression) = arguments.split_at(at);
        let limited = is_limited(expression);
        let here = [Field::new(Value::text("."), 0..0)];
        let places = if places.is_empty() { &here[..] } else { places };
        let mut output = Output::known(Value::default(), "find");
        for place in places {
            let mut found = place.value.clone();
            if limited {
                found.push_text("/");
                found.push(Piece::Name);
            }
            if let Some(text) = &mut output.text {
                text.extend(&found);
                text.push_text("\n");
            }
            self.find_actions(expression, &found, limited, call, state);
        }
        output
    }

    fn find_actions(
        &mut self,
        expression: &[Field],
        found: &Value,
        limited: bool,
        call: &Call<'_>,
        state: &mut State,
    ) {
        let mut at = 0;
        while let Some(field) = expression.get(at) {
            at += 1;
            let flag = field.known().unwrap_or_default();
            match flag.as_ref() {
                "-delete" => {
                    let words = [
                        Field::new(Value::text("rm"), field.span.clone()),
                        Field::new(Value::text("-r"), field.span.clone()),
                        Field::new(found.clone(), field.span.clone()),
                    ];
                    self.call(&words, call, state);
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = &expression[at..];
                    let end = rest
                        .iter()
                        .position(|field| matches!(field.known().as_deref(), Some(";" | "+")))
                        .unwrap_or(rest.len());
                    let mut words: Vec<Field> =
                        rest[..end].iter().map(|field| replace(field, "{}", found)).collect();
                    // Every file of a tree, one by one, is the tree.
                    let removes = words.first().is_some_and(|field| {
                        matches!(super::name::of(field), super::name::Name::Known(n) if n == "rm")
                    });
                    if removes && !limited {
                        let span = field.span.clone();
                        words.insert(1, Field::new(Value::text("-r"), span));
                    }
                    let inner = Call {
                        input: None,
                        writes: &[],
                        assigns: call.assigns,
                        span: call.span.clone(),
                    };
                    self.call(&words, &inner, &mut state.clone());
                    at += end;
                }
                "-fprint" | "-fls" | "-fprintf" | "-fprint0" => {
                    if let Some(file) = expression.get(at) {
                        self.writes_alone(std::slice::from_ref(file), file.span.clone(), state);
                    }
                }
                _ => {}
            }
        }
    }

    fn fd(&mut self, arguments: &[Field], call: &Call<'_>, state: &mut State) -> Option<Output> {
        let at = arguments.iter().position(|field| {
            matches!(field.known().as_deref(), Some("-x" | "-X" | "--exec" | "--exec-batch"))
        })?;
        let mut found = Value::text("./");
        found.push(Piece::Name);
        let command = &arguments[at + 1..];
        let mut words: Vec<Field> =
            command.iter().map(|field| replace(field, "{}", &found)).collect();
        if !command.iter().any(|field| field.value.without_unknown().contains('{')) {
            words.push(Field::new(found, arguments[at].span.clone()));
        }
        Some(self.call(&words, call, &mut state.clone()))
    }
}

/// Where the words after the options begin; `None` where an unknown word hides it.
fn skip_options(words: &[Field], with_value: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(field) = words.get(at) {
        let Some(text) = field.known() else {
            return if field.value.is_many() || field.value.starts_with('-') {
                None
            } else {
                Some(at)
            };
        };
        if text == "--" {
            return Some(at + 1);
        }
        if text.len() < 2 || !text.starts_with('-') {
            return Some(at);
        }
        at += 1 + usize::from(takes_next(&text, with_value));
    }
    Some(words.len())
}

/// The same word with a mark in it replaced.
fn replace(field: &Field, mark: &str, by: &Value) -> Field {
    let mut value = Value::default();
    for piece in &field.value.pieces {
        match piece {
            Piece::Text(text) if !mark.is_empty() && text.contains(mark) => {
                for (at, part) in text.split(mark).enumerate() {
                    if at > 0 {
                        value.extend(by);
                    }
                    value.push_text(part);
                }
            }
            piece => value.push(piece.clone()),
        }
    }
    Field { value: value.bounded(), span: field.span.clone(), feed: field.feed.clone() }
}

/// The words of a text, by blanks.
fn words(text: &Value, span: &Span) -> Vec<Field> {
    let mut all = Vec::new();
    let mut current = Value::default();
    for piece in &text.pieces {
        let Piece::Text(text) = piece else {
            current.push(piece.clone());
            continue;
        };
        for (at, part) in text.split([' ', '\t', '\n', '\0']).enumerate() {
            if at > 0 && !current.pieces.is_empty() {
                all.push(Field::new(std::mem::take(&mut current), span.clone()));
            }
            let unquoted: String = part.chars().filter(|c| !"'\"\\".contains(*c)).collect();
            current.push_text(&unquoted);
        }
    }
    if !current.pieces.is_empty() {
        all.push(Field::new(current, span.clone()));
    }
    all
}

/// Whether find's tests leave most files out.
fn is_limited(expression: &[Field]) -> bool {
    let tests = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-size",
        "-empty",
        "-newer",
        "-perm",
        "-user",
        "-group",
        "-links",
        "-inum",
        "-samefile",
        "-lname",
        "-nouser",
        "-newermt",
    ];
    expression.iter().enumerate().any(|(at, field)| {
        let Some(flag) = field.known() else {
            return false;
        };
        let everything = expression
            .get(at + 1)
            .and_then(|value| value.known())
            .is_some_and(|value| value.chars().all(|c| "*?.".contains(c)));
        let negated = at > 0 && matches!(expression[at - 1].known().as_deref(), Some("!" | "-not"));
        tests.contains(&flag.as_ref()) && !everything && !negated
    })
}
