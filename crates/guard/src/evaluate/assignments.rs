//! Values that a command gives to variables.

use super::Evaluator;
use super::state::State;
use crate::shell::ast::Assigned;
use crate::value::{Field, Piece, Value};

impl Evaluator<'_> {
    /// Assignments of a command, by name.
    pub fn assigned(
        &mut self,
        assignments: &[crate::shell::ast::Assignment],
        state: &mut State,
    ) -> Vec<(String, Assign)> {
        let mut all = Vec::new();
        for assignment in assignments {
            let before = std::mem::take(&mut self.prints);
            let value = match &assignment.value {
                Assigned::Word(word) => Assign::Value(self.expand_one(word, state)),
                Assigned::Appended(word) => {
                    let mut value = match state.assigned(&assignment.name) {
                        Some(value) => (**value).clone(),
                        None => Value::of(Piece::Unknown),
                    };
                    value.extend(&self.expand_one(word, state));
                    Assign::Value(value)
                }
                Assigned::Array(words) => Assign::Array(self.expand(words, state)),
            };
            state.mark_secret(&assignment.name, self.prints.environment);
            self.prints.merge(before);
            all.push((assignment.name.clone(), value));
        }
        all
    }
}

pub enum Assign {
    Value(Value),
    Array(Vec<Field>),
}

/// A field as the value of a variable: one word, even if it is not known which.
pub fn one_word(mut value: Value) -> Value {
    for piece in &mut value.pieces {
        if *piece == Piece::Many {
            *piece = Piece::Unknown;
        }
    }
    value
}
