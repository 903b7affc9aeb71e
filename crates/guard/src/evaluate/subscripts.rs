//! Places where bash evaluates a text a second time: the subscript of an array name that is given
//! to `test -v`, `printf -v`, `read`, `unset`, `declare` or `let`, and a variable's value inside
//! arithmetic. `test -v 'a[$(id)]'` runs `id` although the word is quoted.

use super::Evaluator;
use super::state::State;
use crate::shell::ast::{Part, Span, Word};
use crate::value::{Field, Value};

/// Values that name other variables in turn.
const DEEPEST: usize = 4;

impl Evaluator<'_> {
    /// Arguments of a builtin that takes names of variables.
    pub fn subscripts(&mut self, name: &str, arguments: &[Field], state: &mut State) {
        let takes_names = match name {
            "read" | "unset" | "declare" | "typeset" | "local" | "export" | "readonly"
            | "mapfile" | "readarray" | "getopts" | "wait" => true,
            // The whole argument is arithmetic.
            "let" => {
                for field in arguments {
                    if let Some(text) = field.known() {
                        self.arithmetic_text(&text, field.span.clone(), state);
                    }
                }
                true
            }
            _ => false,
        };
        let after_v = |at: usize| at > 0 && arguments[at - 1].known().as_deref() == Some("-v");
        for (at, field) in arguments.iter().enumerate() {
            let counts = match name {
                "test" | "[" => after_v(at),
                "printf" => after_v(at) && at == 1,
                _ => takes_names,
            };
            if counts {
                self.subscript(&field.value, field.span.clone());
            }
        }
    }

    /// The words of `[[ … ]]`: `-v NAME`, and both sides of `-eq` and its like, are evaluated.
    pub fn test_words(&mut self, words: &[Word], values: &[Value], state: &State) {
        let is = |at: usize, wanted: fn(&str) -> bool| {
            values.get(at).and_then(|value| value.known()).is_some_and(|text| wanted(&text))
        };
        for (at, value) in values.iter().enumerate() {
            let span = words.get(at).map_or(0..0, |word| word.span.clone());
            if at > 0 && is(at - 1, |text| text == "-v") {
                self.subscript(value, span.clone());
            }
            let numeric =
                is(at + 1, is_numeric_operator) || at > 0 && is(at - 1, is_numeric_operator);
            if numeric && let Some(text) = value.known() {
                self.arithmetic_text(&text, span, state);
            }
        }
    }

    /// A name with a subscript that bash expands.
    fn subscript(&mut self, value: &Value, span: Span) {
        let text = value.without_unknown();
        // Of `a=(…)` in quotes, too, bash evaluates what is in the parentheses.
        let evaluated = text.split_once('[').or_else(|| text.split_once("=("));
        if let Some((_, evaluated)) = evaluated
            && runs_something(evaluated)
        {
            self.raise("evaluated-text", span);
        }
    }

    /// The parts of `$((…))` or `((…))`.
    pub fn arithmetic_parts(&mut self, parts: &[Part], span: Span, state: &State) {
        for part in parts {
            match part {
                Part::Literal(text) | Part::Plain(text) => {
                    self.arithmetic_names(text, span.clone(), state, 0);
                }
                // `$((x))` and `$(($x))` evaluate the value alike.
                Part::Variable(variable, _) => {
                    self.arithmetic_names(&variable.name, span.clone(), state, 0);
                }
                _ => {}
            }
        }
    }

    /// A known text that is evaluated as arithmetic.
    fn arithmetic_text(&mut self, text: &str, span: Span, state: &State) {
        if text.contains('[') && runs_something(text) {
            self.raise("evaluated-text", span.clone());
        }
        self.arithmetic_names(text, span, state, 0);
    }

    fn arithmetic_names(&mut self, text: &str, span: Span, state: &State, depth: usize) {
        let names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in names.filter(|name| name.starts_with(|c: char| !c.is_ascii_digit())) {
            let Some(value) = state.assigned(name) else {
                continue;
            };
            let value = value.without_unknown();
            if value.contains('[') && runs_something(&value) {
                self.raise("evaluated-text", span.clone());
            } else if depth < DEEPEST && self.spend(1) {
                self.arithmetic_names(&value, span.clone(), state, depth + 1);
            }
        }
    }
}

pub fn runs_something(text: &str) -> bool {
    text.contains("$(") || text.contains('`') || text.contains("<(")
}

fn is_numeric_operator(text: &str) -> bool {
    matches!(text, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")
}
