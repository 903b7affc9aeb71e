//! Builtins that change what the shell knows.

use std::rc::Rc;

use super::Evaluator;
use super::options::is_assignment;
use super::state::State;
use crate::place::Place;
use crate::value::{Field, Piece, Value};

impl Evaluator<'_> {
    pub fn builtin(&mut self, name: &str, arguments: &[Field], state: &mut State) {
        match name {
            "cd" | "pushd" | "chdir" => change_directory(arguments, state),
            "popd" => state.cwd = Place::unknown(),
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                self.program_assignments(arguments, state);
                declare(arguments, state);
            }
            "read" | "mapfile" | "readarray" | "getopts" | "let" => {
                for field in arguments {
                    match field.known() {
                        Some(text) if !text.starts_with('-') => {
                            let name = text.split(['=', '+']).next().unwrap_or_default();
                            state.forget(name);
                        }
                        Some(_) => {}
                        None => state.clear_names(),
                    }
                }
                state.forget("REPLY");
            }
            "printf" => {
                if let [flag, name, ..] = arguments
                    && flag.known().as_deref() == Some("-v")
                {
                    match name.known() {
                        Some(name) => state.forget(&name),
                        None => state.clear_names(),
                    }
                }
            }
            "unset" => {
                for field in arguments {
                    match field.known() {
                        Some(name) => state.unset(&name),
                        None => state.clear_names(),
                    }
                }
            }
            "alias" => {
                for field in arguments {
                    if let Some(text) = field.known()
                        && let Some((name, value)) = text.split_once('=')
                        && state.aliases.len() < 64
                    {
                        // What it does when it is called, sooner or later.
                        let known = self.findings.len();
                        self.text_of(field, value, &mut state.clone(), None);
                        self.keep_destruction(known);
                        state.aliases.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
            "cp" | "ln" | "mv" | "install" => copy_program(arguments, state),
            "hash" => {
                if let [flag, program, name, ..] = arguments
                    && flag.known().as_deref() == Some("-p")
                    && let (Some(program), Some(name)) = (program.known(), name.known())
                {
                    state.keep_copy(&name, &program);
                }
            }
            "unalias" => state.aliases.clear(),
            "set" => set(arguments, state),
            "shift" => shift(arguments, state),
            "source" | "." => self.source(arguments, state),
            _ => {}
        }
    }
}

impl Evaluator<'_> {
    /// `NAME=value` words whose name is that of a program others start.
    pub fn program_assignments(&mut self, words: &[Field], state: &mut State) {
        for field in words {
            let Some(Piece::Text(text)) = field.value.pieces.first() else {
                continue;
            };
            if let Some((name, start)) = text.split_once('=').filter(|_| is_assignment(text)) {
                let mut value = Value::text(start);
                field.value.pieces[1..].iter().for_each(|piece| value.push(piece.clone()));
                self.program_variable(name, &value, field.span.clone(), state);
            }
        }
    }
}

/// `cp /bin/rm x`: from now on `./x` is rm.
fn copy_program(arguments: &[Field], state: &mut State) {
    let operands: Vec<_> = arguments
        .iter()
        .filter(|field| !field.value.starts_with('-'))
        .filter_map(|field| field.known())
        .collect();
    if let [program, name] = &operands[..] {
        let name = match name.ends_with('/') || name.as_ref() == "." {
            true => format!("{name}/{}", program.rsplit('/').next().unwrap_or_default()),
            false => name.to_string(),
        };
        state.keep_copy(&name, program);
    }
}

fn change_directory(arguments: &[Field], state: &mut State) {
    let operand = arguments
        .iter()
        .find(|field| !field.value.starts_with('-') || field.known().as_deref() == Some("-"));
    let before = state.cwd.clone();
    state.cwd = match operand {
        None => before.join(&Value::of(Piece::Home)),
        Some(field) if field.known().as_deref() == Some("-") => Place::unknown(),
        Some(field) => before.join(&field.value),
    };
    // Where it fails, one stays.
    if !state.stops_on_failure {
        state.cwd.doubt(&before);
    }
}

fn declare(arguments: &[Field], state: &mut State) {
    for field in arguments {
        match field.known() {
            Some(text) if is_assignment(&text) => {
                if let Some((name, value)) = text.split_once('=') {
                    state.assign(name, Value::text(value));
                }
            }
            Some(_) => {}
            None => declare_unknown(&field.value, state),
        }
    }
}

/// `export X=$y/…`: the name is known, the value in part.
fn declare_unknown(value: &Value, state: &mut State) {
    let Some(Piece::Text(text)) = value.pieces.first() else {
        return state.clear_names();
    };
    let Some((name, start)) = text.split_once('=') else {
        return state.clear_names();
    };
    let mut assigned = Value::text(start);
    value.pieces[1..].iter().for_each(|piece| assigned.push(piece.clone()));
    state.assign(name, super::assignments::one_word(assigned));
}

/// `set -e`, `set -- words`.
fn set(arguments: &[Field], state: &mut State) {
    let stops = |field: &Field| {
        field.known().is_some_and(|text| {
            text.starts_with('-') && !text.starts_with("--") && text.contains('e')
        })
    };
    state.stops_on_failure |= arguments.iter().any(stops);
    let dashes = arguments.iter().position(|f| f.known().as_deref() == Some("--"));
    if let Some(at) = dashes {
        state.arguments = Rc::new(arguments[at + 1..].to_vec());
    } else if arguments.first().is_some_and(|f| !f.value.starts_with('-')) {
        state.arguments = Rc::new(arguments.to_vec());
    }
}

/// The arguments without the first ones.
fn shift(arguments: &[Field], state: &mut State) {
    let count = arguments.first().and_then(|field| field.known()?.parse().ok());
    let rest: Vec<Field> = state.arguments.iter().skip(count.unwrap_or(1)).cloned().collect();
    // Of an unknown number of words an unknown number is left.
    let open = state.arguments.iter().find(|field| field.value.is_many()).cloned();
    state.arguments = Rc::new(match (open, rest.is_empty()) {
        (Some(open), true) => vec![open],
        _ => rest,
    });
}
