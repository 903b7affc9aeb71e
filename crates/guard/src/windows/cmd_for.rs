//! What a line of cmd.exe reads: `for` goes over files, over what commands print and over lists; `<` is input.

use crate::evaluate::Evaluator;
use crate::value::{Field, Piece, Value};

/// Items of a list that are followed one by one.
const MOST_ITEMS: usize = 16;

/// The variable of `for %d in (C D) do …` and what it stands for, one after the other.
pub struct Each {
    variable: String,
    items: Vec<Field>,
}

impl Each {
    pub fn of(words: &[Field]) -> Option<Each> {
        let [name, variable, inside, items @ ..] = words else {
            return None;
        };
        let is = |field: &Field, word: &str| {
            field.known().is_some_and(|text| text.eq_ignore_ascii_case(word))
        };
        let variable = variable.known()?.replace("%%", "%");
        let plain = is(name, "for") && is(inside, "in") && variable.len() == 2;
        let listed = !items.is_empty() && items.len() <= MOST_ITEMS;
        let all_known = items.iter().all(|item| {
            !item.value.pieces.iter().any(|piece| matches!(piece, Piece::Unknown | Piece::Many))
        });
        (plain && variable.starts_with('%') && listed && all_known)
            .then(|| Each { variable, items: items.to_vec() })
    }
}

impl Evaluator<'_> {
    /// `for /f %i in (file)` reads the file, `for /f %i in ('command')` runs the command.
    pub(super) fn cmd_for_source(&mut self, words: &[Field]) {
        let word = |field: &Field| field.known().map(|text| text.to_lowercase());
        let is_for = |at: usize, text: &str| words.get(at).and_then(word).as_deref() == Some(text);
        if !is_for(0, "for") || !is_for(1, "/f") {
            return;
        }
        let Some(at) = (0..words.len()).find(|at| is_for(*at, "in")) else {
            return;
        };
        let mut source = words[at + 1..].to_vec();
        let Some(first) = source.first_mut() else {
            return;
        };
        let runs = first.value.starts_with('\'') || first.value.starts_with('`');
        if runs {
            trim(first, true);
            source.last_mut().into_iter().for_each(|last| trim(last, false));
        } else {
            let read = Field::new(Value::text("type"), first.span.clone());
            source.insert(0, read);
        }
        self.cmd_line(&source, &[], None);
    }

    /// `set /p x=<file` shows what is in the file, `cmd < file` runs it.
    pub(super) fn cmd_reads(&mut self, words: &[Field], reads: &[Field]) {
        let name = words.first().and_then(|first| first.known()).unwrap_or_default().to_lowercase();
        for file in reads {
            let read = Field::new(Value::text("type"), file.span.clone());
            match name.as_str() {
                "set" => drop(self.cmd_line(&[read, file.clone()], &[], None)),
                "cmd" | "cmd.exe" => self.raise("unknown-text", file.span.clone()),
                _ => {}
            }
        }
    }

    /// Runs the commands of a loop with each item in the place of its variable.
    pub(super) fn cmd_for_each(&mut self, each: &Each, body: &[Field]) {
        let names = |field: &Field| field.value.without_unknown().contains(&each.variable);
        if !body.iter().any(names) {
            return;
        }
        for item in &each.items {
            let words: Vec<Field> =
                body.iter().map(|field| replaced(field, &each.variable, &item.value)).collect();
            self.cmd_line(&words, &[], None);
        }
    }
}

/// Without the quote at its start, or at its end.
fn trim(field: &mut Field, start: bool) {
    let piece = match start {
        true => field.value.pieces.first_mut(),
        false => field.value.pieces.last_mut(),
    };
    if let Some(Piece::Text(text)) = piece {
        *text = match start {
            true => text.trim_start_matches(['\'', '`']).to_owned(),
            false => text.trim_end_matches(['\'', '`']).to_owned(),
        };
    }
}

fn replaced(field: &Field, variable: &str, by: &Value) -> Field {
    let mut value = Value::default();
    for piece in &field.value.pieces {
        let Piece::Text(text) = piece else {
            value.push(piece.clone());
            continue;
        };
        for (at, part) in text.replace("%%", "%").split(variable).enumerate() {
            if at > 0 {
                value.extend(by);
            }
            value.push_text(part);
        }
    }
    Field::new(value.bounded(), field.span.clone())
}
