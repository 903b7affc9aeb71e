//! Variables and the operators in `${…}`.

use super::Evaluator;
use super::state::State;
use crate::shell::ast::{Operator, Variable, Word};
use crate::value::{Piece, Value};
use crate::wildcard;

impl Evaluator<'_> {
    pub fn variable(&mut self, variable: &Variable, state: &mut State) -> Value {
        let name = &variable.name;
        let shown = !matches!(variable.operator, Operator::Alternative(_) | Operator::Length);
        self.prints.secret_variable |=
            shown && state.assigned(name).is_none() && super::provenance::names_secret(name);
        self.prints.environment |= shown && state.is_secret(name);
        match &variable.operator {
            Operator::None | Operator::Required => self.lookup(name, state),
            Operator::Length => Value::of(Piece::Name),
            Operator::Indirect => {
                let target = self.lookup(name, state);
                match target.known() {
                    Some(name) if !name.is_empty() => self.lookup(&name, state),
                    _ => Value::of(Piece::Many),
                }
            }
            Operator::Default(word) => {
                let value = self.expand_one(word, state);
                match state.assigned(name) {
                    Some(own) if own.known().is_some_and(|text| text.is_empty()) => value,
                    Some(own) => (**own).clone(),
                    None if is_set(name) => self.lookup(name, state),
                    // Not the text's to set, so the text's own default is what is judged.
                    None if !state.opaque => value,
                    None => Value::of(Piece::Many),
                }
            }
            Operator::Alternative(word) => self.expand_one(word, state),
            Operator::Slice { from, length } => {
                slice(name, &self.lookup(name, state), *from, *length)
            }
            Operator::CutFront { pattern, longest } => {
                self.cut(name, pattern, Side::Front, *longest, state)
            }
            Operator::CutBack { pattern, longest } => {
                self.cut(name, pattern, Side::Back, *longest, state)
            }
            Operator::Replace { pattern, with, all } => {
                let (pattern, with) =
                    (self.expand_one(pattern, state), self.expand_one(with, state));
                let own = self.lookup(name, state);
                match (own.known(), pattern.known(), with.known()) {
                    (Some(own), Some(pattern), Some(with))
                        if !pattern.is_empty() && !pattern.contains(['*', '?', '[']) =>
                    {
                        Value::text(match all {
                            true => own.replace(pattern.as_ref(), &with),
                            false => own.replacen(pattern.as_ref(), &with, 1),
                        })
                    }
                    _ => Value::of(Piece::Many),
                }
            }
            Operator::Upper => self.cased(name, state, str::to_uppercase),
            Operator::Lower => self.cased(name, state, str::to_lowercase),
            Operator::Other(parts) => {
                self.walk_parts(parts, state);
                // `${x@P}` expands the value once more.
                let value = self.lookup(name, state).without_unknown();
                if super::subscripts::runs_something(&value) {
                    self.raise("evaluated-text", 0..0);
                }
                Value::of(Piece::Many)
            }
        }
    }

    fn cased(&mut self, name: &str, state: &mut State, change: fn(&str) -> String) -> Value {
        match self.lookup(name, state).known() {
            Some(text) => Value::text(change(&text)),
            None => Value::of(Piece::Many),
        }
    }

    /// The value of a name, as far as the text or common sense tells.
    pub fn lookup(&mut self, name: &str, state: &State) -> Value {
        if let Some(value) = state.assigned(name) {
            return (**value).clone();
        }
        if let Some(array) = state.arrays.get(name) {
            return array.first().map_or_else(Value::default, |field| field.value.clone());
        }
        if let Ok(number) = name.parse::<usize>() {
            return argument(number, state);
        }
        match name {
            "@" | "*" if state.arguments.is_empty() => Value::default(),
            "HOME" => Value::of(Piece::Home),
            "PWD" => Value::text("."),
            "TMPDIR" => Value::text("/tmp"),
            "SHELL" | "BASH" => Value::text("bash"),
            "IFS" => Value::text(" \t\n"),
            "#" | "?" | "$" | "!" | "-" | "RANDOM" | "SECONDS" | "LINENO" | "UID" | "EUID"
            | "PPID" | "BASHPID" | "USER" | "LOGNAME" | "HOSTNAME" | "OSTYPE" | "HOSTTYPE"
            | "MACHTYPE" | "SHLVL" | "EPOCHSECONDS" => Value::of(Piece::Name),
            _ => Value::of(Piece::Unknown),
        }
    }

    fn cut(
        &mut self,
        name: &str,
        pattern: &Word,
        side: Side,
        longest: bool,
        state: &mut State,
    ) -> Value {
        let pattern = self.expand_one(pattern, state);
        let own = self.lookup(name, state);
        if let (Some(text), Some(pattern)) = (own.known(), pattern.known())
            && !pattern.contains('[')
            && text.len() < 4096
        {
            return Value::text(cut(&text, &pattern, side, longest));
        }
        // A suffix cut from a glob or a name leaves a glob or a name: `${f%.txt}` of `*.txt`.
        let solid =
            own.pieces.iter().all(|p| !matches!(p, Piece::Unknown | Piece::Many | Piece::Fetched));
        let plain = pattern.known().is_some_and(|pattern| !pattern.contains(['*', '/']));
        match (side, solid && plain && !own.pieces.is_empty()) {
            (Side::Back, true) => {
                let mut value = own;
                if let (Some(Piece::Text(last)), Some(pattern)) =
                    (value.pieces.last_mut(), pattern.known())
                    && let Some(left) = last.strip_suffix(pattern.as_ref())
                {
                    *last = left.to_owned();
                }
                value.pieces.retain(|piece| *piece != Piece::Text(String::new()));
                // What is left of `*` is some name, not all of them.
                for piece in &mut value.pieces {
                    if matches!(piece, Piece::Glob(_)) {
                        *piece = Piece::Name;
                    }
                }
                value
            }
            // What is after the last slash is a name.
            (Side::Front, _) if pattern.known().as_deref() == Some("*/") && longest => {
                Value::of(Piece::Name)
            }
            _ => Value::of(Piece::Many),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Front,
    Back,
}

fn cut(text: &str, pattern: &str, side: Side, longest: bool) -> String {
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    ends.push(text.len());
    let matching = ends.into_iter().filter(|at| match side {
        Side::Front => wildcard::matches(pattern, &text[..*at]),
        Side::Back => wildcard::matches(pattern, &text[*at..]),
    });
    let matching: Vec<usize> = matching.collect();
    let wanted = match (side, longest) {
        (Side::Front, true) | (Side::Back, false) => matching.last(),
        (Side::Front, false) | (Side::Back, true) => matching.first(),
    };
    match (wanted, side) {
        (Some(at), Side::Front) => text[*at..].to_owned(),
        (Some(at), Side::Back) => text[..*at].to_owned(),
        (None, _) => text.to_owned(),
    }
}

/// `${x:1:2}`. The paths in well-known variables begin with a slash.
fn slice(name: &str, value: &Value, from: usize, length: Option<usize>) -> Value {
    if let Some(text) = value.known() {
        let taken: String = match length {
            Some(length) => text.chars().skip(from).take(length).collect(),
            None => text.chars().skip(from).collect(),
        };
        return Value::text(taken);
    }
    if (from, length) == (0, Some(1)) && ["HOME", "PATH", "PWD", "OLDPWD"].contains(&name) {
        return Value::text("/");
    }
    Value::of(Piece::Many)
}

fn argument(number: usize, state: &State) -> Value {
    let Some(at) = number.checked_sub(1) else {
        return state.zero.clone().unwrap_or_else(|| Value::of(Piece::Name));
    };
    // After an unknown number of words we do not know which is which.
    let open = state.arguments.iter().take(number).any(|field| field.value.is_many());
    match state.arguments.get(at) {
        _ if open => Value::of(Piece::Unknown),
        Some(field) => field.value.clone(),
        None => Value::default(),
    }
}

/// Names that every shell has a value for.
fn is_set(name: &str) -> bool {
    ["HOME", "PWD", "SHELL", "BASH", "IFS", "UID", "EUID", "PPID", "USER", "HOSTNAME"]
        .contains(&name)
}
