//! Programs that start another one for each item of a list: xargs, parallel, find, fd.

use super::Evaluator;
use super::call::{Call, unknown};
use super::options::value_of;
use super::state::State;
use super::wrappers::skip_options;
use crate::shell::ast::Span;
use crate::value::{Field, Output, Piece, Value};

/// Inputs of xargs and parallel that are followed one by one.
const MOST_ITEMS: usize = 64;

impl Evaluator<'_> {
    pub fn xargs(
        &mut self,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
        span: Span,
    ) -> Output {
        let Some(at) = skip_options(arguments, "ILnPsdEaR") else {
            self.raise("unknown-program", span);
            return Output::default();
        };
        let command = &arguments[at..];
        if command.is_empty() {
            return Output::unknown("xargs");
        }
        let flag = |letter| {
            arguments[..at].iter().any(|field| {
                field.known().is_some_and(|t| !t.starts_with("--") && t.contains(letter))
            })
        };
        let text = call.input.and_then(|input| input.text.as_ref()).filter(|_| !flag('d'));
        let items = text.map(|text| match flag('0') {
            // Blanks are part of the items then.
            true => words(text, &span, &['\n', '\0']),
            false => words(text, &span, &[' ', '\t', '\n', '\0']),
        });
        let replaced = value_of(&arguments[..at], 'I', "--replace").map(|(_, text)| text);
        let mut own = state.clone();
        // What it starts does not read the list itself.
        let inner = Call {
            input: None,
            writes: &[],
            reads: &[],
            assigns: call.assigns,
            span: span.clone(),
        };
        let command = &removing_all(command, items.as_deref(), call.input)[..];
        match (replaced, items) {
            (None, Some(items)) if items.len() <= MOST_ITEMS => {
                let all = [command, &items[..]].concat();
                self.listed(&all, &inner, &mut own)
            }
            (None, _) => {
                let all = [command, &[unknown(span)][..]].concat();
                self.listed(&all, &inner, &mut own)
            }
            (Some(mark), items) => {
                let items = items.filter(|items| items.len() <= MOST_ITEMS);
                let items = items
                    .unwrap_or_else(|| vec![Field::new(Value::of(Piece::Unknown), span.clone())]);
                for item in items {
                    let all = replaced_words(command, &mark, &item.value);
                    self.listed(&all, &inner, &mut own);
                }
                Output::unknown("xargs")
            }
        }
    }

    /// A command for each item of a list; a shell is the only way to give it more than one program.
    fn listed(&mut self, words: &[Field], call: &Call<'_>, state: &mut State) -> Output {
        self.within_list = true;
        let output = self.call(words, call, state);
        self.within_list = false;
        output
    }

    pub fn parallel(
        &mut self,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
        span: Span,
    ) -> Output {
        let is = |field: &&Field, text: &str| field.known().as_deref() == Some(text);
        let split = arguments.iter().position(|field| is(&field, ":::"));
        let (command, items) = arguments.split_at(split.unwrap_or(arguments.len()));
        let Some(at) = skip_options(command, "jIaNnPS") else {
            self.raise("unknown-program", span);
            return Output::default();
        };
        let mut items: Vec<Field> = items.iter().skip(1).cloned().collect();
        let command = &command[at..];
        if items.is_empty() || items.len() > MOST_ITEMS {
            items = vec![match command {
                // As a part of a word it is a name; the rest of the text tells what is done to it.
                [text] if only_within_words(text) => Field::new(Value::of(Piece::Name), span),
                _ => unknown(span),
            }];
        }
        let marked = command.iter().any(|field| field.value.without_unknown().contains("{}"));
        for item in items {
            let mut all = replaced_words(command, "{}", &item.value);
            if !marked {
                all.push(item);
            }
            self.joined(&all, call, &mut state.clone());
        }
        Output::unknown("parallel")
    }

    pub fn find(&mut self, arguments: &[Field], call: &Call<'_>, state: &mut State) -> Output {
        let starts_expression = |field: &Field| {
            field.value.starts_with('-') || matches!(field.known().as_deref(), Some("(" | "!"))
        };
        let at = arguments.iter().position(starts_expression).unwrap_or(arguments.len());
        let (places, expression) = arguments.split_at(at);
        let limited = is_limited(expression);
        let here = [Field::new(Value::text("."), 0..0)];
        let places = if places.is_empty() { &here[..] } else { places };
        let mut output = Output::known(Value::default(), "find");
        for place in places {
            let mut found = place.value.clone();
            if limited {
                found.push_text("/");
                found.push(Piece::Name);
            }
            if let Some(text) = &mut output.text {
                text.extend(&found);
                text.push_text("\n");
            }
            self.find_actions(expression, &found, limited, call, state);
        }
        output
    }

    fn find_actions(
        &mut self,
        expression: &[Field],
        found: &Value,
        limited: bool,
        call: &Call<'_>,
        state: &mut State,
    ) {
        let mut at = 0;
        while let Some(field) = expression.get(at) {
            at += 1;
            let flag = field.known().unwrap_or_default();
            match flag.as_ref() {
                "-delete" => {
                    let words = [
                        Field::new(Value::text("rm"), field.span.clone()),
                        Field::new(Value::text("-r"), field.span.clone()),
                        Field::new(found.clone(), field.span.clone()),
                    ];
                    self.call(&words, call, state);
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = &expression[at..];
                    let end = rest
                        .iter()
                        .position(|field| matches!(field.known().as_deref(), Some(";" | "+")))
                        .unwrap_or(rest.len());
                    let mut words = replaced_words(&rest[..end], "{}", found);
                    // Every file of a tree, one by one, is the tree.
                    let removes = words.first().is_some_and(|field| {
                        matches!(super::name::of(field), super::name::Name::Known(n) if n == "rm")
                    });
                    if removes && !limited {
                        let span = field.span.clone();
                        words.insert(1, Field::new(Value::text("-r"), span));
                    }
                    let inner = Call {
                        input: None,
                        writes: &[],
                        reads: &[],
                        assigns: call.assigns,
                        span: call.span.clone(),
                    };
                    self.listed(&words, &inner, &mut state.clone());
                    at += end;
                }
                "-fprint" | "-fls" | "-fprintf" | "-fprint0" => {
                    if let Some(file) = expression.get(at) {
                        let file = std::slice::from_ref(file);
                        self.files_alone(file, &[], file[0].span.clone(), state);
                    }
                }
                _ => {}
            }
        }
    }

    pub fn fd(
        &mut self,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Option<Output> {
        let at = arguments.iter().position(|field| {
            matches!(field.known().as_deref(), Some("-x" | "-X" | "--exec" | "--exec-batch"))
        })?;
        let mut found = Value::text("./");
        found.push(Piece::Name);
        let command = &arguments[at + 1..];
        let mut words: Vec<Field> =
            command.iter().map(|field| replace(field, "{}", &found)).collect();
        if !command.iter().any(|field| field.value.without_unknown().contains('{')) {
            words.push(Field::new(found, arguments[at].span.clone()));
        }
        Some(self.listed(&words, call, &mut state.clone()))
    }
}

/// The words of a command with a mark in them replaced. A shell's text in which the mark is only a
/// part is read with a plain name there: the rest of the text tells what it does.
fn replaced_words(command: &[Field], mark: &str, by: &Value) -> Vec<Field> {
    let is_shell = command.first().is_some_and(|field| {
        matches!(super::name::of(field), super::name::Name::Known(name) if super::shells::is_shell(&name))
    });
    let open = by.pieces.iter().any(|p| matches!(p, Piece::Unknown | Piece::Many | Piece::Fetched));
    let word = |field: &Field| match field.known() {
        Some(text) if is_shell && open && text.contains(mark) && text.trim() != mark => {
            replace(field, mark, &Value::of(Piece::Name))
        }
        _ => replace(field, mark, by),
    };
    command.iter().map(word).collect()
}

/// Whether `{}` stands in a text of several words, and nowhere as a word of its own.
fn only_within_words(text: &Field) -> bool {
    let whole = |word: &str| word.trim_matches(|c| matches!(c, '"' | '\'')).starts_with("{}");
    text.known().is_some_and(|text| {
        text.contains(' ') && text.contains("{}") && !text.split_whitespace().any(whole)
    })
}

/// `find ~ -type f | xargs rm`: every file of a tree, one by one, is the tree.
fn removing_all(command: &[Field], items: Option<&[Field]>, input: Option<&Output>) -> Vec<Field> {
    let mut command = command.to_vec();
    let removes = command.first().is_some_and(|field| {
        matches!(super::name::of(field), super::name::Name::Known(name) if name == "rm" || name == "unlink" || name == "shred")
    });
    let from_find = input.is_some_and(|input| input.from.iter().any(|from| from == "find"));
    let whole = items
        .is_some_and(|items| items.iter().any(|item| !item.value.pieces.contains(&Piece::Name)));
    if removes && from_find && whole {
        let span = command[0].span.clone();
        command[0] = Field::new(Value::text("rm"), span.clone());
        command.insert(1, Field::new(Value::text("-r"), span));
    }
    command
}

/// The same word with a mark in it replaced.
fn replace(field: &Field, mark: &str, by: &Value) -> Field {
    let mut value = Value::default();
    for piece in &field.value.pieces {
        match piece {
            Piece::Text(text) if !mark.is_empty() && text.contains(mark) => {
                for (at, part) in text.split(mark).enumerate() {
                    if at > 0 {
                        value.extend(by);
                    }
                    value.push_text(part);
                }
            }
            piece => value.push(piece.clone()),
        }
    }
    Field { value: value.bounded(), span: field.span.clone(), feed: field.feed.clone() }
}

/// The words of a text.
fn words(text: &Value, span: &Span, separators: &[char]) -> Vec<Field> {
    let mut all = Vec::new();
    let mut current = Value::default();
    for piece in &text.pieces {
        let Piece::Text(text) = piece else {
            current.push(piece.clone());
            continue;
        };
        for (at, part) in text.split(separators).enumerate() {
            if at > 0 && !current.pieces.is_empty() {
                all.push(Field::new(std::mem::take(&mut current), span.clone()));
            }
            let unquoted: String = part.chars().filter(|c| !"'\"\\".contains(*c)).collect();
            current.push_text(&unquoted);
        }
    }
    if !current.pieces.is_empty() {
        all.push(Field::new(current, span.clone()));
    }
    all
}

/// Whether find's tests leave most files out.
fn is_limited(expression: &[Field]) -> bool {
    let tests = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-size",
        "-empty",
        "-newer",
        "-perm",
        "-user",
        "-group",
        "-links",
        "-inum",
        "-samefile",
        "-lname",
        "-nouser",
        "-newermt",
    ];
    expression.iter().enumerate().any(|(at, field)| {
        let Some(flag) = field.known() else {
            return false;
        };
        let everything = expression
            .get(at + 1)
            .and_then(|value| value.known())
            .is_some_and(|value| value.chars().all(|c| "*?.".contains(c)));
        let negated = at > 0 && matches!(expression[at - 1].known().as_deref(), Some("!" | "-not"));
        tests.contains(&flag.as_ref()) && !everything && !negated
    })
}
