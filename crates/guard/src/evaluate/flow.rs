//! Lists, pipelines and compound commands.

use std::rc::Rc;

use super::Evaluator;
use super::assignments::one_word;
use super::state::{Function, State};
use crate::shell::ast::{
    Assigned, Command, Item, Kind, Link, List, Part, Pipeline, Redirect, Word,
};
use crate::value::{Field, Output, Piece, Value};

/// Words of a loop that are followed one by one.
const MOST_ROUNDS: usize = 64;

/// What redirections do to a command.
pub struct Streams {
    pub input: Option<Output>,
    pub writes: Vec<Field>,
    pub reads: Vec<Field>,
}

impl Evaluator<'_> {
    pub fn list(&mut self, list: &List, state: &mut State, input: Option<&Output>) -> Output {
        let mut output = Output::nothing();
        for item in list {
            output = output.then(self.item(item, state, input));
        }
        output
    }

    fn item(&mut self, item: &Item, state: &mut State, input: Option<&Output>) -> Output {
        if item.background {
            let mut own = state.clone();
            return self.chain(item, &mut own, input);
        }
        self.chain(item, state, input)
    }

    fn chain(&mut self, item: &Item, state: &mut State, input: Option<&Output>) -> Output {
        let mut output = self.pipeline(&item.first, state, input);
        let mut certain = always_succeeds(&item.first);
        // Where the chain may have stopped.
        let mut stops: Vec<State> = Vec::new();
        for (link, pipeline) in &item.rest {
            if !self.spend(state.weight()) {
                break;
            }
            let next = match link {
                Link::And => {
                    // It worked, or this would not run.
                    state.cwd.otherwise = None;
                    if !certain && stops.len() < 8 {
                        stops.push(state.clone());
                    }
                    self.pipeline(pipeline, state, input)
                }
                // Runs when what was before failed: we do not know how far that came.
                Link::Or => {
                    let before = state.clone();
                    let next = self.pipeline(pipeline, state, input);
                    state.merge(&before);
                    next
                }
            };
            certain = certain && *link == Link::And && always_succeeds(pipeline);
            output = Output { text: None, from: output.then(next).from };
        }
        for stop in stops {
            state.merge(&stop);
        }
        output
    }

    fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        if let [only] = &pipeline.stages[..] {
            return self.command(only, state, input);
        }
        let mut fed: Option<Output> = input.cloned();
        let mut way = Output::nothing();
        let captured = std::mem::replace(&mut self.captured, true);
        for stage in &pipeline.stages {
            if !self.spend(state.weight()) {
                break;
            }
            // Each stage is a subshell.
            let mut own = state.clone();
            let output = self.command(stage, &mut own, fed.as_ref());
            way.passed(output.from);
            // Files written there are there afterwards.
            state.files = own.files;
            state.strange_tree |= own.strange_tree;
            fed = Some(Output { text: output.text, from: way.from.clone() });
        }
        self.captured = captured;
        fed.unwrap_or_default()
    }

    pub fn command(
        &mut self,
        command: &Command,
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        self.nested(command.span.clone(), |evaluator| {
            if let Kind::Simple { assignments, words } = &command.kind {
                return evaluator.simple(command, assignments, words, state, input);
            }
            let streams = evaluator.redirects(&command.redirects, state);
            if !streams.writes.is_empty() || !streams.reads.is_empty() {
                evaluator.files_alone(&streams.writes, &streams.reads, command.span.clone(), state);
            }
            let input = streams.input.as_ref().or(input);
            let output = evaluator.compound(command, state, input);
            evaluator.keep_files(&streams.writes, &output, state);
            output
        })
        .unwrap_or_default()
    }

    /// Expands redirections: what comes in, and which files are written.
    pub fn redirects(&mut self, redirects: &[Redirect], state: &mut State) -> Streams {
        let mut streams = Streams { input: None, writes: Vec::new(), reads: Vec::new() };
        for redirect in redirects {
            match redirect {
                Redirect::Write(word) => {
                    let value = self.expand_one(word, state);
                    if self.is_each_of_everything(&value, state) {
                        self.raise("overwrite-everything", word.span.clone());
                    }
                    streams.writes.push(Field::new(value, word.span.clone()));
                }
                Redirect::Read(word) => {
                    let field = self.expand_field(word, state);
                    // Reading such a name opens a connection.
                    if field.known().is_some_and(|name| {
                        name.starts_with("/dev/tcp/") || name.starts_with("/dev/udp/")
                    }) {
                        streams.writes.push(field.clone());
                    }
                    let mut input = self.file(&field, state);
                    if super::call::holds_secrets(&field) || self.is_secret_file(&field, state) {
                        input.passed([super::call::SECRETS.to_owned()]);
                    }
                    streams.input = Some(input);
                    if field.feed.is_none() {
                        streams.reads.push(field);
                    }
                }
                Redirect::HereString(word) => {
                    let mut value = self.expand_one(word, state);
                    value.push_text("\n");
                    streams.input = Some(Output { text: Some(value), from: Vec::new() });
                }
                Redirect::HereDocument(number) => {
                    let heredocs = self.heredocs.clone();
                    let value = heredocs.get(*number).map(|word| self.expand_one(word, state));
                    streams.input = Some(Output { text: value, from: Vec::new() });
                }
                Redirect::Duplicate => {}
            }
        }
        streams
    }

    /// What reading this file gives.
    pub fn file(&mut self, field: &Field, state: &State) -> Output {
        if let Some(feed) = &field.feed {
            return feed.clone();
        }
        let known = field.known().and_then(|name| state.file(&name));
        known.map_or_else(Output::default, |output| (*output).clone())
    }

    /// Remembers what a command put into files.
    pub fn keep_files(&mut self, writes: &[Field], output: &Output, state: &mut State) {
        for field in writes {
            if let Some(name) = field.known() {
                // Appending and truncating look alike here; what was there before is kept in doubt.
                let kept = match state.file(&name) {
                    Some(before) => (*before).clone().then(output.clone()),
                    None => output.clone(),
                };
                state.keep_file(&name, kept);
            }
        }
    }

    fn compound(&mut self, command: &Command, state: &mut State, input: Option<&Output>) -> Output {
        match &command.kind {
            Kind::Simple { .. } => Output::default(),
            Kind::Group(list) => self.list(list, state, input),
            Kind::Subshell(list) => {
                let mut own = state.clone();
                let output = self.list(list, &mut own, input);
                state.files = own.files;
                output
            }
            Kind::For { name, words, body } => {
                self.for_loop(name, words.as_deref(), body, state, input)
            }
            Kind::ArithmeticFor { head, body } => {
                self.walk_parts(&head.parts, state);
                self.arithmetic_parts(&head.parts, command.span.clone(), state);
                forget_arithmetic(&head.parts, state);
                self.rounds(body, state, input)
            }
            Kind::If { branches, otherwise } => self.branches(branches, otherwise, state, input),
            Kind::While { condition, body } => {
                if super::everything::starts_without_end(condition, body) {
                    self.raise("fork-bomb", command.span.clone());
                }
                self.list(condition, state, input);
                let output = self.rounds(body, state, input);
                self.list(condition, state, input);
                output
            }
            Kind::Case { subject, arms } => {
                self.expand_one(subject, state);
                let before = state.clone();
                let mut output = Output::default();
                for arm in arms {
                    let mut own = before.clone();
                    output.passed(self.list(arm, &mut own, input).from);
                    state.merge(&own);
                }
                output
            }
            Kind::Function { name, body } => {
                self.define(name, body, state, command);
                Output::nothing()
            }
            Kind::Test(words) => {
                let values: Vec<Value> =
                    words.iter().map(|word| self.expand_one(word, state)).collect();
                self.test_words(words, &values, state);
                Output::nothing()
            }
            Kind::Arithmetic(word) => {
                self.walk_parts(&word.parts, state);
                self.arithmetic_parts(&word.parts, word.span.clone(), state);
                forget_arithmetic(&word.parts, state);
                Output::nothing()
            }
        }
    }

    /// A body that runs any number of times.
    fn rounds(&mut self, body: &List, state: &mut State, input: Option<&Output>) -> Output {
        let before = state.clone();
        let mut output = Output::default();
        for _ in 0..2 {
            output.passed(self.list(body, state, input).from);
            state.merge(&before);
        }
        output
    }

    fn for_loop(
        &mut self,
        name: &str,
        words: Option<&[Word]>,
        body: &List,
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        let fields = match words {
            Some(words) => {
                self.prints = super::provenance::Prints::default();
                let fields = self.expand(words, state);
                state.mark_secret(name, self.prints.environment);
                fields
            }
            None => state.arguments.to_vec(),
        };
        let before = state.clone();
        let mut output = Output::default();
        if fields.len() > MOST_ROUNDS {
            state.assign(name, Value::of(Piece::Unknown));
            return self.rounds(body, state, input);
        }
        for field in fields {
            if !self.spend(1) {
                break;
            }
            state.assign(name, one_word(field.value));
            output.passed(self.list(body, state, input).from);
        }
        state.merge(&before);
        output
    }

    fn branches(
        &mut self,
        branches: &[(List, List)],
        otherwise: &List,
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        let mut output = Output::default();
        let mut ways: Vec<State> = Vec::new();
        for (condition, body) in branches {
            self.list(condition, state, input);
            let mut own = state.clone();
            output.passed(self.list(body, &mut own, input).from);
            if ways.len() < 16 {
                ways.push(own);
            } else {
                state.opaque = true;
            }
        }
        output.passed(self.list(otherwise, state, input).from);
        for way in ways {
            state.merge(&way);
        }
        output
    }

    fn define(&mut self, name: &str, body: &Rc<Command>, state: &mut State, at: &Command) {
        if super::bomb::bomb(name, body) {
            self.raise("fork-bomb", at.span.clone());
        }
        if state.functions.len() < 256 {
            let function = Function { body: body.clone(), heredocs: self.heredocs.clone() };
            state.functions.insert(name.to_owned(), function);
        } else {
            self.raise("too-complex", at.span.clone());
        }
        // Judged where it is defined too, with arguments we do not know: it may be called from
        // elsewhere. Only sure findings count; a call shows the rest.
        let (mut own, known) = (state.clone(), self.findings.len());
        let span = at.span.clone();
        own.arguments = Rc::new(vec![Field::new(Value::of(Piece::Many), span)]);
        self.active.push(name.to_owned());
        self.command(body, &mut own, None);
        self.active.pop();
        self.keep_heavier_than_unknown(known);
    }
}

/// Assignments to variables alone cannot fail.
fn always_succeeds(pipeline: &Pipeline) -> bool {
    match &pipeline.stages[..] {
        [Command { kind: Kind::Simple { assignments, words }, .. }] => {
            words.is_empty()
                && assignments.iter().all(|assignment| match &assignment.value {
                    Assigned::Word(word) => word
                        .parts
                        .iter()
                        .all(|part| matches!(part, Part::Plain(_) | Part::Literal(_))),
                    _ => false,
                })
        }
        _ => false,
    }
}

/// Names in arithmetic may be assigned to.
fn forget_arithmetic(parts: &[Part], state: &mut State) {
    for part in parts {
        if let Part::Literal(text) | Part::Plain(text) = part {
            let names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in names.filter(|name| name.starts_with(|c: char| !c.is_ascii_digit())) {
                state.assign(name, Value::of(Piece::Name));
            }
        }
    }
}
