//! Simple commands: from words to the program that runs, and what it does to the shell.

use std::rc::Rc;

use super::Evaluator;
use super::assignments::Assign;
use super::files;
use super::name::{self, Name};
use super::provenance::{Prints, SECRET_VARIABLE, STRANGER};
use super::state::State;
use crate::language::Shell;
use crate::rules::Invocation;
use crate::shell::ast::{Assignment, Command, Span, Word};
use crate::value::{Field, Output, Piece, Value};

/// A command on its way through wrappers.
pub struct Call<'a> {
    pub input: Option<&'a Output>,
    /// Files written and read by redirections and options.
    pub writes: &'a [Field],
    pub reads: &'a [Field],
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
        let fields = self.words(command, words, state);
        let streams = self.redirects(&command.redirects, state);
        let names: Vec<String> = assigned.iter().map(|(name, _)| name.clone()).collect();
        for (name, value) in &assigned {
            if let Assign::Value(value) = value {
                self.program_variable(name, value, command.span.clone(), state);
            }
        }
        let call = Call {
            input: streams.input.as_ref().or(input),
            writes: &streams.writes,
            reads: &streams.reads,
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
            if !call.writes.is_empty() || !call.reads.is_empty() || !names.is_empty() {
                self.show_plain("", &[], &call, state, command.span.clone());
            }
            self.keep_files(&streams.writes, &Output::nothing(), state);
            // `$(< file)` is what the file holds; `x=$(…)` writes nothing itself.
            return match (streams.input, names.is_empty() && streams.writes.is_empty()) {
                (Some(input), true) => input,
                _ => Output::nothing(),
            };
        }
        let secret = std::mem::take(&mut self.holds_secret_variable);
        let prints = fields[0].known().is_some_and(|name| name == "echo" || name == "printf");
        if secret && prints && !self.captured && command.redirects.is_empty() {
            self.raise("print-secret-variable", command.span.clone());
        }
        let mut output = self.call(&fields, &call, state);
        if secret {
            output.passed([SECRET_VARIABLE.to_owned()]);
        }
        self.keep_files(&streams.writes, &output, state);
        output
    }

    /// The words of a command, and what the substitutions among them give away.
    fn words(&mut self, command: &Command, words: &[Word], state: &mut State) -> Vec<Field> {
        self.prints = Prints::default();
        let (name, rest) = words.split_at(words.len().min(1));
        let mut fields = self.expand(name, state);
        if std::mem::take(&mut self.prints).decoded {
            // The program itself comes out of an encoding.
            self.raise("decoded-to-shell", command.span.clone());
        }
        let (mut prints, mut secrets) = (Prints::default(), Vec::new());
        for word in rest {
            fields.extend(self.expand(std::slice::from_ref(word), state));
            let own = std::mem::take(&mut self.prints);
            if own.secret_variable {
                secrets.push(fields.len().saturating_sub(1));
            }
            prints.merge(own);
        }
        self.sends_secret_variable(&fields, &secrets, command.span.clone());
        self.holds_secret_variable = !secrets.is_empty();
        let sender = fields
            .iter()
            .find(|field| field.known().is_some_and(|name| super::shells::is_sender(&name)));
        if let Some(tool) = sender.filter(|_| prints.environment) {
            self.raise("send-environment-argument", tool.span.start..command.span.end);
        }
        if let Some(tool) = sender.filter(|_| prints.identity && self.names_stranger(&fields)) {
            self.raise("send-identity", tool.span.start..command.span.end);
        }
        if prints.all_containers {
            self.removes_listed(&fields, command.span.clone());
        }
        fields
    }

    /// Files opened without a program: `> file`, or after a compound command.
    pub fn files_alone(&mut self, writes: &[Field], reads: &[Field], span: Span, state: &State) {
        let call = Call { input: None, writes, reads, assigns: &[], span: span.clone() };
        let at = writes.iter().chain(reads).next().map_or(span, |field| field.span.clone());
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
            reads: call.reads,
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
        let files = files::of(name, arguments);
        let writes = [call.writes, &files.writes].concat();
        let reads = [call.reads, &files.reads].concat();
        let exported = exported(name, arguments, call.assigns);
        let call = &Call {
            assigns: &exported,
            input: call.input,
            writes: &writes,
            reads: &reads,
            span: call.span.clone(),
        };
        self.show_plain(name, arguments, call, state, span);
        if super::shells::is_fetcher(name) {
            // What it saves came from the network.
            let mut saved = Output::unknown(name);
            if self.fetches_from_stranger(arguments) {
                saved.passed([STRANGER.to_owned()]);
            }
            self.keep_files(&files.writes, &saved, state);
        }
        self.look_alike_hosts(arguments);
        self.commands_in_options(name, arguments, call, state);
        self.subscripts(name, arguments, state);
        self.foreign_text(name, arguments, call, state);
        self.sql(name, arguments, call);
        self.lookup_of_data(name, arguments);
        self.strange_tree(name, first, arguments, call.input, state);
        self.acts_on_list(name, arguments, call, state);
        self.removes_tilde(name, arguments, call.span.clone());
        self.mounts_home(name, arguments, call.span.clone());
        self.deletes_listed_branches(name, arguments, call.span.clone());
        self.runs_fetched_file(name, first, arguments, state);
        if let Some(script) = first.known().and_then(|path| state.file(&path)) {
            // A script that the same text wrote.
            self.script_file(&script, call, state, first.span.clone());
        }
        if let Some(output) = self.looked_through(name, first, arguments, call, state) {
            return output;
        }
        self.builtin(name, arguments, state);
        self.reads_secret(name, arguments, call.input, state);
        let mut output = self.output_of(name, arguments, call.input, state);
        if super::shells::is_fetcher(name) && self.fetches_from_stranger(arguments) {
            output.passed([STRANGER.to_owned()]);
        }
        let secret = |field: &Field| holds_secrets(field) || self.is_secret_file(field, state);
        if arguments.iter().chain(call.reads).any(secret) {
            output.passed([SECRETS.to_owned()]);
        }
        output
    }

    /// Hosts of addresses that are written with letters of another alphabet.
    fn look_alike_hosts(&mut self, arguments: &[Field]) {
        for field in arguments {
            let Some(text) = field.known() else {
                continue;
            };
            let Some((_, rest)) = text.split_once("://") else {
                continue;
            };
            let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
            if crate::characters::look_alike(host) {
                self.raise("look-alike", field.span.clone());
            }
        }
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
        if !call.writes.is_empty() || !call.reads.is_empty() {
            self.files_alone(call.writes, call.reads, span, state);
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

/// Stands among the programs that an output went through, for a file with secrets in it.
pub const SECRETS: &str = "(secrets)";

/// Files that people keep keys and passwords in, by their names.
pub fn holds_secrets(field: &Field) -> bool {
    let text = field.value.without_unknown();
    let name = text.rsplit('/').next().unwrap_or_default();
    let env = name == ".env"
        || name.starts_with(".env.") && !name.ends_with("example") && !name.ends_with("sample");
    let key = name.starts_with("id_") && !name.ends_with(".pub") && text.contains(".ssh");
    let known = [
        ".netrc",
        ".pgpass",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "credentials.json",
        "shadow",
        "passwd",
    ];
    env || key
        || known.contains(&name)
        || (name.ends_with(".pem") || name.ends_with(".key")) && !name.starts_with('-')
        || [".ssh", ".aws", ".gnupg", ".kube"]
            .iter()
            .any(|part| text.split('/').any(|p| p == *part))
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

/// A value as a word of a shell that is read again.
pub fn word(value: &Value) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => quote(text),
        Piece::Glob(text) => text.clone(),
        Piece::Home => "\"$HOME\"".to_owned(),
        Piece::Name => "0".to_owned(),
        Piece::Unknown => "\"$__unknown\"".to_owned(),
        Piece::Many | Piece::Fetched => "$__unknown".to_owned(),
    };
    value.pieces.iter().map(piece).collect()
}

/// A text as one word of a shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A word that nothing is known about.
pub fn unknown(span: Span) -> Field {
    Field::new(Value::of(Piece::Many), span)
}
