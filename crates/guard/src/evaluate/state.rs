//! The state of a shell at one point of the text: variables, functions, aliases, directory.

use std::collections::HashMap;
use std::rc::Rc;

use crate::place::Place;
use crate::shell::ast::{Command, Word};
use crate::value::{Field, Output, Piece, Value};

/// More variables than this are not followed; they are unknown.
const MOST_NAMES: usize = 256;

#[derive(Clone)]
pub struct Function {
    pub body: Rc<Command>,
    /// The here-documents of the text it was defined in.
    pub heredocs: Rc<[Word]>,
}

#[derive(Clone)]
pub struct State {
    /// Values the text gave; a name that is not here comes from the environment.
    variables: HashMap<String, Rc<Value>>,
    pub arrays: HashMap<String, Rc<Vec<Field>>>,
    pub functions: HashMap<String, Function>,
    pub aliases: HashMap<String, String>,
    /// Copies of and links to programs, by the name the text gave them.
    pub copies: HashMap<String, String>,
    /// Texts that the command itself put into files.
    pub files: HashMap<String, Rc<Output>>,
    /// Arguments of the function or script; at the top there are none.
    pub arguments: Rc<Vec<Field>>,
    /// `$0`, where the text says what it is.
    pub zero: Option<Value>,
    pub cwd: Place,
    /// `set -e`: what comes after a command only runs if it worked.
    pub stops_on_failure: bool,
    /// Something ran that may have set any variable.
    pub opaque: bool,
    /// Variables that hold the environment or a file with secrets.
    secrets: std::collections::HashSet<String>,
    /// A repository or an archive from an address that is not well known was put here.
    pub strange_tree: bool,
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

impl State {
    pub fn new() -> State {
        State {
            variables: HashMap::new(),
            arrays: HashMap::new(),
            functions: HashMap::new(),
            aliases: HashMap::new(),
            copies: HashMap::new(),
            files: HashMap::new(),
            arguments: Rc::new(Vec::new()),
            zero: None,
            cwd: Place::start(),
            stops_on_failure: false,
            opaque: false,
            secrets: std::collections::HashSet::new(),
            strange_tree: false,
        }
    }

    /// Remembers whether a variable holds the environment or a file with secrets.
    pub fn mark_secret(&mut self, name: &str, secret: bool) {
        match secret {
            true if self.secrets.len() < MOST_NAMES => {
                self.secrets.insert(name.to_owned());
            }
            true => {}
            false => {
                self.secrets.remove(name);
            }
        }
    }

    pub fn is_secret(&self, name: &str) -> bool {
        self.secrets.contains(name)
    }

    pub fn assign(&mut self, name: &str, value: Value) {
        if self.variables.len() >= MOST_NAMES && !self.variables.contains_key(name) {
            self.opaque = true;
            return;
        }
        self.arrays.remove(name);
        self.variables.insert(name.to_owned(), Rc::new(value.bounded()));
    }

    pub fn assign_array(&mut self, name: &str, fields: Vec<Field>) {
        if self.arrays.len() < MOST_NAMES {
            self.variables.remove(name);
            self.arrays.insert(name.to_owned(), Rc::new(fields));
        } else {
            self.opaque = true;
        }
    }

    /// What the text put into a file.
    pub fn file(&self, name: &str) -> Option<Rc<Output>> {
        self.files.get(name.trim_start_matches("./")).cloned()
    }

    pub fn keep_file(&mut self, name: &str, output: Output) {
        if self.files.len() < MOST_NAMES {
            self.files.insert(name.trim_start_matches("./").to_owned(), Rc::new(output));
        }
    }

    pub fn keep_copy(&mut self, name: &str, program: &str) {
        let base = program.rsplit('/').next().unwrap_or_default();
        // A copy of a copy is a copy.
        let base = self.copy(program).unwrap_or_else(|| base.to_owned());
        if self.copies.len() < MOST_NAMES && !base.is_empty() {
            self.copies.insert(name.trim_start_matches("./").to_owned(), base);
        }
    }

    /// The program that a path of the text's own making is.
    pub fn copy(&self, path: &str) -> Option<String> {
        self.copies.get(path.trim_start_matches("./")).cloned()
    }

    pub fn forget(&mut self, name: &str) {
        self.arrays.remove(name);
        self.variables.insert(name.to_owned(), Rc::new(Value::of(Piece::Unknown)));
    }

    pub fn unset(&mut self, name: &str) {
        self.arrays.remove(name);
        self.variables.insert(name.to_owned(), Rc::new(Value::default()));
        self.functions.remove(name);
    }

    /// The value that the text gave this name.
    pub fn assigned(&self, name: &str) -> Option<&Rc<Value>> {
        self.variables.get(name)
    }

    pub fn clear_names(&mut self) {
        self.variables.clear();
        self.arrays.clear();
        self.opaque = true;
    }

    /// How much copying it costs.
    pub fn weight(&self) -> usize {
        1 + (self.variables.len() + self.functions.len() + self.files.len()) / 16
    }

    /// What is known after one of two ways was taken.
    pub fn merge(&mut self, other: &State) {
        for (name, value) in &other.variables {
            match self.variables.get(name) {
                Some(own) if own == value => {}
                _ => self.forget(name),
            }
        }
        let differing: Vec<String> = self
            .variables
            .iter()
            .filter(|(name, _)| !other.variables.contains_key(*name))
            .map(|(name, _)| name.clone())
            .collect();
        differing.iter().for_each(|name| self.forget(name));
        for name in other.arrays.keys() {
            let same = self.arrays.get(name).is_some_and(|own| {
                other.arrays.get(name).is_some_and(|theirs| Rc::ptr_eq(own, theirs))
            });
            if !same {
                self.forget(name);
            }
        }
        // A function or alias that is there on one way only: calls of it are worth reading.
        for (name, function) in &other.functions {
            self.functions.entry(name.clone()).or_insert_with(|| function.clone());
        }
        for (name, text) in &other.aliases {
            self.aliases.entry(name.clone()).or_insert_with(|| text.clone());
        }
        for (name, program) in &other.copies {
            self.copies.entry(name.clone()).or_insert_with(|| program.clone());
        }
        for (name, text) in &other.files {
            self.files.entry(name.clone()).or_insert_with(|| text.clone());
        }
        if self.cwd != other.cwd {
            self.cwd.doubt(&other.cwd);
        }
        self.secrets.extend(other.secrets.iter().cloned());
        self.opaque |= other.opaque;
        self.strange_tree |= other.strange_tree;
    }
}

/// What is remembered while a text of PowerShell or cmd is read.
#[derive(Default)]
pub struct WindowsState {
    /// Files and variables, as a POSIX shell would have them.
    pub posix: State,
    /// What is read now was fed by, or holds, the environment or a file with secrets.
    pub secret: bool,
}
