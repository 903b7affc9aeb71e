//! From words to fields: braces, tildes, variables, substitutions, splitting, globs.

use super::Evaluator;
use super::brace::{self, Bit};
use super::state::State;
use crate::shell::ast::{Direction, List, Part, Quoting, Variable, Word};
use crate::value::{Field, Output, Piece, Value};

/// Collects the fields of one word.
struct Fields {
    done: Vec<Value>,
    current: Value,
    /// Something stands here, be it an empty string in quotes.
    present: bool,
    separators: String,
}

impl Fields {
    fn quoted(&mut self, value: &Value) {
        self.present = true;
        for piece in &value.pieces {
            self.current.push(match piece {
                Piece::Many => Piece::Unknown,
                piece => piece.clone(),
            });
        }
    }

    /// Bare text of the command itself: globs count, blanks are not in it.
    fn bare(&mut self, text: &str) {
        self.present |= !text.is_empty();
        push_globs(&mut self.current, text);
    }

    /// A bare expansion: split, and globs in it count too.
    fn expanded(&mut self, value: &Value) {
        for piece in &value.pieces {
            match piece {
                Piece::Text(text) => self.split(text),
                Piece::Unknown => {
                    self.present = true;
                    self.current.push(Piece::Many);
                }
                piece => {
                    self.present = true;
                    self.current.push(piece.clone());
                }
            }
        }
    }

    fn split(&mut self, text: &str) {
        let separators = self.separators.clone();
        let mut first = true;
        for part in text.split(|c| separators.contains(c)) {
            if !first {
                self.finish();
            }
            first = false;
            self.bare(part);
        }
    }

    fn finish(&mut self) {
        let value = std::mem::take(&mut self.current);
        if self.present || !value.pieces.is_empty() {
            self.done.push(value);
        }
        self.present = false;
    }
}

fn push_globs(value: &mut Value, text: &str) {
    if !text.contains(['*', '?', '[']) {
        value.push_text(text);
        return;
    }
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '*' | '?' => 1,
            '[' => rest.get(2..).and_then(|inner| inner.find(']')).map_or(0, |end| end + 3),
            _ => 0,
        };
        if length > 0 {
            match value.pieces.last_mut() {
                Some(Piece::Glob(last)) => last.push_str(&rest[..length]),
                _ => value.pieces.push(Piece::Glob(rest[..length].to_owned())),
            }
            rest = &rest[length..];
        } else {
            let end = c.len_utf8();
            value.push_text(&rest[..end]);
            rest = &rest[end..];
        }
    }
}

impl Evaluator<'_> {
    pub fn expand(&mut self, words: &[Word], state: &mut State) -> Vec<Field> {
        let mut fields = Vec::new();
        for word in words {
            self.expand_word(word, state, &mut fields);
        }
        fields
    }

    /// A word as the one value it is where nothing is split: assignments, redirections.
    pub fn expand_one(&mut self, word: &Word, state: &mut State) -> Value {
        let mut value = Value::default();
        for (at, part) in word.parts.iter().enumerate() {
            match part {
                Part::Plain(text) if at == 0 && text.starts_with('~') => {
                    let rest = tilde(text, &mut value);
                    value.push_text(rest);
                }
                Part::Plain(text) | Part::Literal(text) => value.push_text(text),
                part => {
                    let (inner, _) = self.part(part, state);
                    value.extend(&super::assignments::one_word(inner));
                }
            }
            if !self.spend(1) {
                return Value::of(Piece::Unknown);
            }
        }
        value.bounded()
    }

    /// A word that names one file.
    pub fn expand_field(&mut self, word: &Word, state: &mut State) -> Field {
        let mut fields = Vec::new();
        self.expand_word(word, state, &mut fields);
        match <[Field; 1]>::try_from(fields) {
            Ok([field]) => field,
            Err(_) => Field::new(Value::of(Piece::Many), word.span.clone()),
        }
    }

    fn expand_word(&mut self, word: &Word, state: &mut State, into: &mut Vec<Field>) {
        if !self.spend(1 + word.parts.len()) {
            self.raise("too-complex", word.span.clone());
            into.push(Field::new(Value::of(Piece::Many), word.span.clone()));
            return;
        }
        let Some(words) = brace::expand(&word.parts) else {
            self.walk_parts(&word.parts, state);
            into.push(Field::new(Value::of(Piece::Many), word.span.clone()));
            return;
        };
        let separators = match state.assigned("IFS").map(|value| value.known()) {
            Some(Some(known)) => known.into_owned(),
            _ => " \t\n".to_owned(),
        };
        for bits in words {
            let mut fields = Fields {
                done: Vec::new(),
                current: Value::default(),
                present: false,
                separators: separators.clone(),
            };
            let mut feed = None;
            for (at, bit) in bits.iter().enumerate() {
                self.bit(bit, at == 0, state, &mut fields, &mut feed);
            }
            fields.finish();
            if !self.spend(fields.done.len()) {
                fields.done = vec![Value::of(Piece::Many)];
            }
            into.extend(fields.done.into_iter().map(|value| Field {
                value: value.bounded(),
                span: word.span.clone(),
                feed: feed.clone(),
            }));
        }
    }

    fn bit(
        &mut self,
        bit: &Bit<'_>,
        first: bool,
        state: &mut State,
        fields: &mut Fields,
        feed: &mut Option<Output>,
    ) {
        match bit {
            Bit::Plain(text) if first && text.starts_with('~') => {
                fields.present = true;
                let rest = tilde(text, &mut fields.current);
                fields.bare(rest);
            }
            Bit::Plain(text) => fields.bare(text),
            Bit::Part(Part::Literal(text)) => {
                fields.present = true;
                fields.current.push_text(text);
            }
            Bit::Part(Part::Variable(Variable { name, operator }, quoting))
                if (name == "@" || name == "*" || name.ends_with("[@]"))
                    && matches!(operator, crate::shell::ast::Operator::None) =>
            {
                let all = match name.strip_suffix("[@]") {
                    Some(name) => state.arrays.get(name).cloned(),
                    None => Some(state.arguments.clone()),
                };
                self.all_words(all.as_deref(), *quoting, fields);
            }
            Bit::Part(Part::Process(list, direction)) => {
                *feed = self.process(list, *direction, state);
                fields.present = true;
                fields.current.push_text("/dev/fd/63");
            }
            Bit::Part(part) => {
                let (value, quoting) = self.part(part, state);
                match quoting {
                    Quoting::Quoted => fields.quoted(&value),
                    Quoting::Bare => fields.expanded(&value),
                }
            }
        }
    }

    /// `"$@"` and its like: a field each.
    fn all_words(&mut self, all: Option<&Vec<Field>>, quoting: Quoting, fields: &mut Fields) {
        let Some(all) = all else {
            fields.present = true;
            fields.current.push(Piece::Many);
            return;
        };
        for (at, field) in all.iter().enumerate() {
            if at > 0 {
                fields.finish();
            }
            if field.value.is_many() {
                fields.present = true;
                fields.current.push(Piece::Many);
                continue;
            }
            match quoting {
                Quoting::Quoted => fields.quoted(&field.value),
                Quoting::Bare => fields.expanded(&field.value),
            }
        }
    }

    /// What a part other than text stands for.
    fn part(&mut self, part: &Part, state: &mut State) -> (Value, Quoting) {
        match part {
            Part::Plain(text) => (Value::text(text.as_str()), Quoting::Bare),
            Part::Literal(text) => (Value::text(text.as_str()), Quoting::Quoted),
            Part::Variable(variable, quoting) => (self.variable(variable, state), *quoting),
            Part::Substitution(list, quoting) => {
                let mut own = state.clone();
                let captured = std::mem::replace(&mut self.captured, true);
                let output = if self.spend(state.weight()) {
                    self.list(list, &mut own, None)
                } else {
                    Output::default()
                };
                self.captured = captured;
                self.prints.add(&output);
                let open = match super::shells::is_fetched(&output) {
                    true => Piece::Fetched,
                    false => Piece::Many,
                };
                let value = output.text.map_or(Value::of(open), Value::trimmed);
                (value, *quoting)
            }
            Part::Arithmetic(inner) => {
                self.walk_parts(inner, state);
                self.arithmetic_parts(inner, 0..0, state);
                (Value::of(Piece::Name), Quoting::Quoted)
            }
            Part::Process(list, direction) => {
                self.process(list, *direction, state);
                (Value::text("/dev/fd/63"), Quoting::Quoted)
            }
            Part::Pattern(inner) => {
                self.walk_parts(inner, state);
                (Value::of(Piece::Glob("*(".to_owned())), Quoting::Bare)
            }
            Part::Unreadable => (Value::of(Piece::Unknown), Quoting::Quoted),
        }
    }

    /// A process the command talks to. What it writes to one is not known here.
    fn process(&mut self, list: &List, direction: Direction, state: &State) -> Option<Output> {
        let mut own = state.clone();
        match direction {
            Direction::From => Some(self.list(list, &mut own, None)),
            Direction::To => {
                self.list(list, &mut own, Some(&Output::default()));
                None
            }
        }
    }

    /// Walks what is run inside parts whose value does not matter.
    pub fn walk_parts(&mut self, parts: &[Part], state: &mut State) {
        for part in parts {
            if !matches!(part, Part::Plain(_) | Part::Literal(_)) && self.spend(1) {
                self.part(part, state);
            }
        }
    }
}

/// Adds what `~` or `~name` is, and gives what follows it.
fn tilde<'a>(text: &'a str, value: &mut Value) -> &'a str {
    // A colon ends a name: `~:/h` is a mount of the home for programs that expand it themselves.
    let end = text.find(['/', ':']).unwrap_or(text.len());
    value.push(match &text[1..end] {
        "+" => Piece::Text(".".to_owned()),
        "-" => Piece::Unknown,
        _ => Piece::Home,
    });
    &text[end..]
}
