//! Which program a first word names.

use crate::characters;
use crate::value::{Field, Piece};

/// What is known about the name of a program.
pub enum Name {
    Known(String),
    /// Not known, but this if the unknown parts are empty.
    Perhaps(String),
    /// A pattern for the file system to find a program by: no person writes that to be understood.
    Pattern,
    LookAlike,
    Unknown,
}

pub fn of(field: &Field) -> Name {
    let pieces = &field.value.pieces;
    if pieces.iter().any(|piece| matches!(piece, Piece::Glob(_))) {
        return Name::Pattern;
    }
    // Only what is after the last slash names the program, wherever it is.
    let last = pieces.iter().rposition(
        |piece| matches!(piece, Piece::Text(text) if text.trim_end_matches('/').contains('/')),
    );
    let tail = match last {
        Some(at) => &pieces[at..],
        None => &pieces[..],
    };
    let known = tail.iter().all(|piece| matches!(piece, Piece::Text(_)));
    let mut text = field.value.without_unknown();
    if known && let Some(Piece::Text(tail)) = tail.first() {
        text = tail.clone();
    }
    let name = base(&text);
    if characters::look_alike(&name) {
        return Name::LookAlike;
    }
    match (known, name.is_empty()) {
        (true, _) => Name::Known(name),
        (false, true) => Name::Unknown,
        (false, false) => Name::Perhaps(name),
    }
}

/// Without directories, and without what Windows programs end in.
fn base(text: &str) -> String {
    let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    // zsh: the path of a program.
    let name = name.strip_prefix('=').unwrap_or(name);
    name.to_owned()
}
