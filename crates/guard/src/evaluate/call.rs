//! Simple commands: from words to the program that runs, and what it does to the shell.

use std::rc::Rc;

use super::Evaluator;
use super::flow::Assign;
use super::name::{self, Name};
use super::state::State;
use crate::context::Shell;
use crate::rules::Invocation;
use crate::shell::ast::{Assignment, Command, Item, Kind, List, Pipeline, Span, Word};
use crate::value::{Field, Output, Piece, Value};

/// A command on its way through wrappers.
pub struct Call<'a> {
    pub input: Option<&'a Output>,
    pub writes: &'a [Field],
    pub assigns: &'a [String],
    /// All of the command, for findings that no word stands for.
    pub span: Span,
}

impl Evaluator<'_> {
    pub fn simple(
        &mut self,
        command: &Command,
        assignments: &[Assignment],
        words: &[Word],
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        let assigned = self.assigned(assignments, state);
        let fields = self.expand(words, state);
        let streams = self.redirects(&command.redirects, state);
        let names: Vec<String> = assigned.iter().map(|(name, _)| name.clone()).collect();
        let call = Call {
            input: streams.input.as_ref().or(input),
            writes: &streams.writes,
            assigns: &names,
            span: command.span.clone(),
        };
        if fields.is_empty() {
            for (name, value) in assigned {
                match value {
                    Assign::Value(value) => state.assign(&name, value),
                    Assign::Array(fields) => state.assign_array(&name, fields),
                }
            }
            if !call.writes.is_empty() || !names.is_empty() {
                self.show_plain("", &[], &call, state, command.span.clone());
            }
            self.keep_files(&streams.writes, &Output::nothing(), state);
            // `x=$(…)` writes nothing itself.
            return Output::nothing();
        }
        let output = self.call(&fields, &call, state);
        self.keep_files(&streams.writes, &output, state);
        output
    }

    /// Writing to files without a program: `> file`, or after a compound command.
    pub fn writes_alone(&mut self, writes: &[Field], span: Span, state: &State) {
        let call = Call { input: None, writes, assigns: &[], span: span.clone() };
        let at = writes.first().map_or(span, |field| field.span.clone());
        self.show_plain("", &[], &call, state, at);
    }

    fn show_plain(
        &mut self,
        name: &str,
        arguments: &[Field],
        call: &Call<'_>,
        state: &State,
        span: Span,
    ) {
        self.show(&Invocation {
            shell: Shell::Bash,
            name,
            arguments,
            writes: call.writes,
            assigns: call.assigns,
            input: call.input,
            cwd: &state.cwd,
            span,
        });
    }

    /// Judges a command whose words are expanded, and what it starts in turn.
    pub fn call(&mut self, fields: &[Field], call: &Call<'_>, state: &mut State) -> Output {
        let Some((first, arguments)) = fields.split_first() else {
            return Output::nothing();
        };
        let span = first.span.clone();
        self.nested(span, |evaluator| evaluator.call_nested(first, arguments, call, state))
            .unwrap_or_default()
    }

    fn call_nested(
        &mut self,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Output {
        let name = match name::of(first) {
            Name::Known(name) => name,
            Name::Perhaps(name) => {
                // Judged as if the unknown part were empty: only a refusal says something.
                let known = self.findings.len();
                self.named(&name, first, arguments, call, state);
                let mut number = 0;
                self.findings.retain(|finding| {
                    number += 1;
                    number <= known || finding.decision == crate::Decision::Refuse
                });
                self.raise("unknown-program", first.span.clone());
                return Output::default();
            }
            Name::Unknown => {
                self.raise("unknown-program", first.span.clone());
                return Output::default();
            }
            Name::Pattern => {
                self.raise("disguised-name", first.span.clone());
                return Output::default();
            }
            Name::LookAlike => {
                self.raise("look-alike", first.span.clone());
                return Output::default();
            }
        };
        self.named(&name, first, arguments, call, state)
    }

    fn named(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Output {
        let bare = first.known().is_some_and(|text| text == name);
        if bare && let Some(text) = state.aliases.get(name).cloned() {
            return self.alias(name, &text, first, arguments, call, state);
        }
        if bare && state.functions.contains_key(name) {
            return self.function(name, arguments, call, state, first.span.clone());
        }
        let copied = first.known().and_then(|path| state.copy(&path));
        let name = copied.as_deref().unwrap_or(name);
        let end = arguments.last().map_or(first.span.end, |field| field.span.end);
        let span = first.span.start.min(end)..first.span.end.max(end);
        let writes = [call.writes, &written_by_dd(name, arguments)].concat();
        let exported = exported(name, arguments, call.assigns);
        let call = &Call {
            assigns: &exported,
            input: call.input,
            writes: &writes,
            span: call.span.clone(),
        };
        self.show_plain(name, arguments, call, state, span);
        if let Some(script) = first.known().and_then(|path| state.file(&path)) {
            // A script that the same text wrote.
            self.script_file(&script, call, state, first.span.clone());
        }
        if let Some(output) = self.looked_through(name, first, arguments, call, state) {
            return output;
        }
        self.builtin(name, arguments, state);
        self.output_of(name, arguments, call.input, state)
    }

    fn function(
        &mut self,
        name: &str,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
        span: Span,
    ) -> Output {
        let Some(function) = state.functions.get(name).cloned() else {
            return Output::default();
        };
        // Recursion is seen by its definition; walking it again shows nothing new.
        if self.active.iter().any(|active| active == name) || self.active.len() > 16 {
            return Output::default();
        }
        if !call.writes.is_empty() {
            self.writes_alone(call.writes, span, state);
        }
        let outer = std::mem::replace(&mut state.arguments, Rc::new(arguments.to_vec()));
        let heredocs = std::mem::replace(&mut self.heredocs, function.heredocs.clone());
        self.active.push(name.to_owned());
        let output = self.command(&function.body, state, call.input);
        self.active.pop();
        self.heredocs = heredocs;
        state.arguments = outer;
        output
    }

    /// An alias is text in place of the name.
    fn alias(
        &mut self,
        name: &str,
        text: &str,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Output {
        let mut words = text.to_owned();
        for field in arguments {
            words.push(' ');
            match field.known() {
                Some(known) => words.push_str(&quote(&known)),
                // Stays unknown when it is read again.
                None => words.push_str("\"$__unknown\""),
            }
        }
        let end = arguments.last().map_or(first.span.end, |field| field.span.end);
        let span = first.span.start..first.span.start.max(end);
        let removed = state.aliases.remove(name);
        let output = self.text(&words, crate::shell::Origin::Within(span), state, call.input);
        if let Some(text) = removed {
            state.aliases.insert(name.to_owned(), text);
        }
        output
    }
}

/// `of=…` is a redirection in all but name.
fn written_by_dd(name: &str, arguments: &[Field]) -> Vec<Field> {
    let target = |field: &Field| {
        let Some(Piece::Text(text)) = field.value.pieces.first() else {
            return None;
        };
        let mut value = Value::text(text.strip_prefix("of=")?);
        field.value.pieces[1..].iter().for_each(|piece| value.push(piece.clone()));
        Some(Field::new(value, field.span.clone()))
    };
    if name == "dd" { arguments.iter().filter_map(target).collect() } else { Vec::new() }
}

/// Names that are set for the command, or by it.
fn exported(name: &str, arguments: &[Field], set: &[String]) -> Vec<String> {
    let mut names = set.to_vec();
    if matches!(name, "export" | "declare" | "typeset" | "readonly" | "local") {
        let name = |field: &Field| match field.value.pieces.first() {
            Some(Piece::Text(text)) => text.split_once('=').map(|(name, _)| name.to_owned()),
            _ => None,
        };
        names.extend(arguments.iter().filter_map(name));
    }
    names
}

/// A text as one word of a shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A function that starts itself twice, or itself in the background.
pub fn bomb(name: &str, body: &Command) -> bool {
    let list = match &body.kind {
        Kind::Group(list) | Kind::Subshell(list) => list,
        _ => return false,
    };
    list.iter().any(|item| item_bombs(name, item))
}

fn item_bombs(name: &str, item: &Item) -> bool {
    let pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, next)| next));
    pipelines.into_iter().any(|pipeline| {
        let own = calls(name, pipeline);
        own > 0 && (item.background || pipeline.stages.len() > 1)
            || pipeline.stages.iter().any(|stage| inner_bombs(name, stage))
    })
}

fn inner_bombs(name: &str, command: &Command) -> bool {
    let inside = |list: &List| list.iter().any(|item| item_bombs(name, item));
    match &command.kind {
        Kind::Group(list) | Kind::Subshell(list) => inside(list),
        Kind::While { body, .. } | Kind::For { body, .. } | Kind::ArithmeticFor { body, .. } => {
            inside(body)
        }
        Kind::If { branches, otherwise } => {
            inside(otherwise) || branches.iter().any(|(_, body)| inside(body))
        }
        _ => false,
    }
}

fn calls(name: &str, pipeline: &Pipeline) -> usize {
    let is = |command: &&Command| match &command.kind {
        Kind::Simple { words, .. } => words.first().and_then(Word::bare) == Some(name),
        Kind::Group(list) | Kind::Subshell(list) => {
            list.iter().any(|item| calls(name, &item.first) > 0)
        }
        _ => false,
    };
    pipeline.stages.iter().filter(is).count()
}

/// A word that nothing is known about.
pub fn unknown(span: Span) -> Field {
    Field::new(Value::of(Piece::Many), span)
}
