//! Options and variables whose value is itself a command: `rsync -e`, `man -P`, `PAGER=`.
//!
//! The value is judged as a shell would read it. Beyond that, a value that does not begin with one
//! of the programs people give there is asked about: it runs where a reader does not look for it.

mod tables;

use self::tables::{LOADING, OPTIONS, SETTINGS, VARIABLES};
use super::Evaluator;
use super::call::Call;
use super::state::State;
use crate::shell::ast::Span;
use crate::value::{Field, Piece, Value};
use crate::wildcard;

impl Evaluator<'_> {
    /// Judges the commands in a program's options.
    pub fn commands_in_options(
        &mut self,
        name: &str,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) {
        let known: Vec<_> = arguments.iter().map(|field| field.known()).collect();
        let has = |word: &&str| known.iter().any(|text| text.as_deref() == Some(*word));
        for option in OPTIONS.iter().filter(|option| option.programs.contains(&name)) {
            if !option.verbs.is_empty() && !option.verbs.iter().any(has) {
                continue;
            }
            for (at, field) in arguments.iter().enumerate() {
                if let Some(value) =
                    option.spellings.iter().find_map(|s| value_at(arguments, at, s))
                {
                    let span =
                        call.span.start.min(field.span.start)..value.span.end.max(field.span.end);
                    self.command_value(&value, option.ordinary, span, state);
                }
            }
        }
        if matches!(name, "make" | "gmake")
            && arguments.iter().enumerate().any(|(at, _)| {
                ["-f", "--file", "--makefile"].iter().any(|spelling| {
                    value_at(arguments, at, spelling).is_some_and(|file| {
                        file.feed.is_some()
                            || matches!(file.known().as_deref(), Some("-" | "/dev/stdin"))
                    })
                })
            })
        {
            self.raise("hidden-command", call.span.clone());
        }
        self.setting(name, arguments, call, state);
    }

    /// `git config KEY VALUE`, `npm config set KEY VALUE`.
    fn setting(&mut self, name: &str, arguments: &[Field], call: &Call<'_>, state: &mut State) {
        if !matches!(name, "git" | "npm" | "pnpm" | "yarn") {
            return;
        }
        let words: Vec<&Field> =
            arguments.iter().filter(|field| !field.value.starts_with('-')).collect();
        let is = |at: usize, text: &str| {
            words.get(at).is_some_and(|f| f.known().as_deref() == Some(text))
        };
        if !is(0, "config") {
            return;
        }
        let at = 1 + usize::from(is(1, "set") || is(1, "add"));
        let (Some(key), value) = (words.get(at).and_then(|field| field.known()), words.get(at + 1))
        else {
            return;
        };
        // npm also takes `key=value`.
        let (key, value) = match key.split_once('=') {
            Some((key, value)) if name != "git" => {
                (key.to_owned(), Some(Field::new(Value::text(value), words[at].span.clone())))
            }
            _ => (key.into_owned(), value.map(|field| (*field).clone())),
        };
        let (key, Some(value)) = (key.to_ascii_lowercase(), value) else {
            return;
        };
        if key.starts_with("alias.") {
            // Text after `!` is the shell's.
            if let Some(text) = value.known()
                && let Some(text) = text.strip_prefix('!')
            {
                self.text_of(&value, text, &mut state.clone(), None);
            }
            return;
        }
        let outside =
            value.value.starts_with('/') || value.value.pieces.first() == Some(&Piece::Home);
        if key == "core.hookspath" && outside {
            self.raise("hidden-command", call.span.start..value.span.end);
        }
        let setting = SETTINGS.iter().find(|(pattern, _)| wildcard::matches(pattern, &key));
        if let Some((_, ordinary)) = setting {
            self.command_value(&value, ordinary, call.span.start..value.span.end, state);
        }
    }

    /// A variable that is set and names a program.
    pub fn program_variable(&mut self, name: &str, value: &Value, span: Span, state: &mut State) {
        self.source_variable(name, value, span.clone());
        self.planted_path(name, value, span.clone());
        if matches!(name, "PS1" | "PS2" | "PS4")
            && let Some(text) = value.known().filter(|text| text.contains(['$', '`']))
        {
            // Expanded as a text in double quotes at every prompt.
            let known = self.findings.len();
            let field = Field::new(Value::default(), span.clone());
            let text = format!("echo \"{}\"", text.replace('"', "\\\""));
            self.text_of(&field, &text, &mut state.clone(), None);
            self.keep_heavier_than_unknown(known);
        }
        let text = value.without_unknown();
        let loads = LOADING.iter().find(|(names, _)| names.contains(&name));
        if loads.is_some_and(|(_, options)| options.iter().any(|option| text.contains(option))) {
            self.raise("hidden-command", span.clone());
        }
        let found = VARIABLES
            .iter()
            .find(|(names, _)| names.iter().any(|pattern| wildcard::matches(pattern, name)));
        if let Some((_, ordinary)) = found {
            self.command_value(&Field::new(value.clone(), span.clone()), ordinary, span, state);
        }
    }

    fn command_value(&mut self, value: &Field, ordinary: &[&str], span: Span, state: &mut State) {
        let Some(text) = value.known() else {
            // `EDITOR=$x`: nothing to read, nothing to say.
            return;
        };
        let first = text.split_whitespace().next().unwrap_or_default();
        let planted = ["/tmp/", "/var/tmp/", "/dev/shm/"].iter().any(|at| first.starts_with(at));
        let first = first.rsplit('/').next().unwrap_or_default();
        if planted
            || !first.is_empty() && !ordinary.iter().any(|name| wildcard::matches(name, first))
        {
            self.raise("hidden-command", span);
        }
        if text.contains(char::is_whitespace) {
            // Judged in a state of its own: nothing it sets is seen here.
            let known = self.findings.len();
            self.text_of(value, &text, &mut state.clone(), None);
            self.keep_heavier_than_unknown(known);
        }
    }
}

/// The value of a spelling at this word: in the same word or the next.
fn value_at(arguments: &[Field], at: usize, spelling: &str) -> Option<Field> {
    let field = &arguments[at];
    let Some(Piece::Text(text)) = field.value.pieces.first() else {
        return None;
    };
    let whole = field.known();
    // `rsync -avze ssh`: the last letter of a cluster.
    let ends_cluster = spelling == "-e"
        && text.len() > 2
        && !text.starts_with("--")
        && text.ends_with('e')
        && text[1..].bytes().all(|byte| byte.is_ascii_alphabetic());
    if whole.is_some_and(|whole| whole == spelling || ends_cluster) {
        return arguments.get(at + 1).cloned();
    }
    let rest = text.strip_prefix(spelling)?;
    let glued = spelling.len() == 2 && !rest.is_empty();
    let rest = match rest.strip_prefix('=') {
        Some(rest) => rest,
        None if glued => rest,
        None => return None,
    };
    let mut value = Value::text(rest);
    field.value.pieces[1..].iter().for_each(|piece| value.push(piece.clone()));
    Some(Field::new(value, field.span.clone()))
}
