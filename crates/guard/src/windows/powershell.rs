//! What a PowerShell text does.

use std::collections::HashMap;
use std::ops::Range;

use super::aliases::canonical;
use super::objects::cast;
use super::passed_on::{is_secret_variable, listed};
use super::portable::holds_secret;
use super::tokens::{Reader, Token, environment, fill, is_own_path};
use crate::evaluate::Evaluator;
use crate::language::Shell;
use crate::place::Place;
use crate::rules::Invocation;
use crate::shell::Origin;
use crate::value::{Field, Output, Piece, Value};

/// Words that begin a statement and hold their commands in blocks.
const KEYWORDS: &[&str] = &[
    "if", "elseif", "else", "while", "for", "foreach", "do", "until", "switch", "try", "catch",
    "finally", "function", "filter", "begin", "process", "end", "param", "return", "throw", "in",
    "trap", "data", "break", "continue", "exit",
];

pub const FETCHERS: &[&str] =
    &["invoke-webrequest", "invoke-restmethod", "curl", "wget", "start-bitstransfer"];

/// Cmdlets that run a file they are given.
const STARTERS: &[&str] = &[
    "start-process",
    "invoke-item",
    "import-module",
    "add-type",
    "start-job",
    "start-threadjob",
    "invoke-command",
];

#[derive(Default)]
pub struct PowerShell {
    pub(super) variables: HashMap<String, Value>,
    pub aliases: HashMap<String, String>,
    /// The variables that hold listings.
    pub(super) listings: Vec<String>,
    /// The place whose entries a loop goes through, one by one.
    pub(super) listed: Option<Value>,
}

impl Evaluator<'_> {
    pub fn powershell(&mut self, text: &str, origin: Origin) {
        let mut shell = PowerShell::default();
        if super::bomb::starts_itself(text) {
            self.raise("fork-bomb", origin.span(0, text.len()));
        }
        self.powershell_text(text, origin, &mut shell);
    }

    pub(super) fn powershell_text(&mut self, text: &str, origin: Origin, shell: &mut PowerShell) {
        let span = origin.span(0, text.len());
        let base = match origin {
            Origin::At(base) => Some(base),
            Origin::Within(_) => None,
        };
        self.nested(span.clone(), |evaluator| match Reader::new(text, base, span).all() {
            Ok(tokens) => {
                evaluator.statements(&tokens, shell);
            }
            Err(unreadable) => evaluator.raise("unreadable", unreadable.0),
        });
    }

    /// Runs statements; what the last one gives, and which programs it went through.
    pub(super) fn statements(&mut self, tokens: &[Token], shell: &mut PowerShell) -> Output {
        let mut output = Output::nothing();
        for statement in split(tokens, ';') {
            let stages: Vec<&[Token]> = split(statement, '|').collect();
            let items = super::loops::fed_one_by_one(&stages);
            for item in &items {
                output = self.stages(&stages[1..], Some(item.clone()), shell);
            }
            if items.is_empty() {
                output = self.stages(&stages, None, shell);
            }
        }
        output
    }

    pub(super) fn stage(
        &mut self,
        tokens: &[Token],
        input: Option<&Output>,
        shell: &mut PowerShell,
    ) -> Output {
        match tokens {
            [] => Output::nothing(),
            tokens if tokens.iter().any(is_inside_string) => {
                self.stage_with_strings(tokens, input, shell)
            }
            [Token::Variable(name, _), Token::Sign('=', _), rest @ ..]
            | [Token::Type(..), Token::Variable(name, _), Token::Sign('=', _), rest @ ..] => {
                let output = self.stage(rest, None, shell);
                let value = output.text.clone().unwrap_or_else(|| Value::of(Piece::Unknown));
                let value = if value.pieces.is_empty() { Value::of(Piece::Unknown) } else { value };
                self.sets_variable(name, &value, span_of(tokens));
                if shell.variables.len() < 256 {
                    shell.listings.retain(|own| !own.eq_ignore_ascii_case(name));
                    if super::passed_on::is_listing(&output) {
                        shell.listings.push(name.to_lowercase());
                    }
                    shell.variables.insert(name.to_lowercase(), value);
                }
                Output { text: Some(Value::default()), from: output.from }
            }
            // Of a loop over a listing, each entry stands for the place.
            [Token::Variable(name, _)] if shell.is_item(name) => {
                Output { text: shell.listed.clone(), from: vec!["get-childitem".to_owned()] }
            }
            // `$env:TOKEN` alone prints it.
            [Token::Variable(name, span)] if is_secret_variable(name) => {
                self.raise("print-secret-variable", span.clone());
                Output::default()
            }
            [Token::Sign('&', _), rest @ ..] => self.called(rest, input, shell),
            [Token::Word(value, _), rest @ ..] if value.known().as_deref() == Some(".") => {
                self.called(rest, input, shell)
            }
            [Token::Word(value, span), rest @ ..] => {
                let value = fill(value, &|name| shell.lookup(name));
                let keyword = value.known().map(|word| word.to_lowercase()).unwrap_or_default();
                // Behind a `|` it is the alias of `ForEach-Object`.
                let is_alias =
                    keyword == "foreach" && matches!(rest.first(), Some(Token::Block('{', ..)));
                if KEYWORDS.contains(&keyword.as_str()) && !is_alias {
                    let output = self.keyword(&keyword, span.clone(), rest, shell);
                    // `return iex x`
                    if !matches!(rest.first(), None | Some(Token::Block(..) | Token::Variable(..)))
                    {
                        self.stage(rest, input, shell);
                    }
                    return output;
                }
                self.named_command(&value, span.clone(), rest, input, shell)
            }
            tokens => self.expression(tokens, shell),
        }
    }

    /// What strings run (`"…$(…)…"`) is run before the command that they are given to, which is handed what that gives.
    fn stage_with_strings(
        &mut self,
        tokens: &[Token],
        input: Option<&Output>,
        shell: &mut PowerShell,
    ) -> Output {
        let (inside, own): (Vec<Token>, Vec<Token>) =
            tokens.iter().cloned().partition(is_inside_string);
        let outer = self.windows.secret;
        inside.iter().for_each(|block| drop(self.value(block, shell)));
        let output = self.stage(&own, input, shell);
        if let Some(Token::Word(..)) = own.first() {
            self.windows.secret = outer;
        }
        output
    }

    /// After `&` or `.`: a name that may be computed.
    fn called(
        &mut self,
        tokens: &[Token],
        input: Option<&Output>,
        shell: &mut PowerShell,
    ) -> Output {
        let Some((first, rest)) = tokens.split_first() else {
            return Output::nothing();
        };
        if let Token::Block('{', inner, _) = first {
            return self.statements(inner, shell);
        }
        let value = self.value(first, shell);
        if value.is_many() && value.pieces.contains(&Piece::Fetched) {
            self.raise("download-to-shell", first.span());
        }
        self.named_command(&value, first.span(), rest, input, shell)
    }

    /// The value of one token; blocks in it are run.
    pub(super) fn value(&mut self, token: &Token, shell: &mut PowerShell) -> Value {
        match token {
            Token::Word(value, _) | Token::Text(value, _) => {
                fill(value, &|name| shell.lookup(name))
            }
            Token::Variable(name, _) => shell.lookup(name).unwrap_or_else(|| environment(name)),
            Token::Block(_, inner, _) => {
                let output = self.statements(inner, shell);
                let fetched = output.from.iter().any(|from| FETCHERS.contains(&from.as_str()));
                self.windows.secret |= holds_secret(&output);
                match (output.text, fetched) {
                    (_, true) => Value::of(Piece::Fetched),
                    (Some(text), _) if !text.pieces.is_empty() => text,
                    _ => Value::of(Piece::Unknown),
                }
            }
            Token::Type(..) | Token::Sign(..) => Value::of(Piece::Unknown),
        }
    }

    /// `'a' + 'b'`, `'{0}{1}' -f 'a','b'`, or something whose value is unknown.
    fn expression(&mut self, tokens: &[Token], shell: &mut PowerShell) -> Output {
        if let Some(at) = tokens.iter().position(|token| matches!(token, Token::Sign('>', _))) {
            let (_, writes) = self.arguments(&tokens[at..], shell);
            self.show(&Invocation {
                shell: Shell::PowerShell,
                name: "",
                arguments: &[],
                writes: &writes,
                reads: &[],
                assigns: &[],
                input: None,
                cwd: &Place::start(),
                span: span_of(tokens),
            });
            let output = self.expression(&tokens[..at], shell);
            self.keeps_fetched(&writes, &output);
            return output;
        }
        self.types(tokens, shell);
        self.members(tokens, shell);
        if let Some(output) = self.of_listing(tokens, shell) {
            return output;
        }
        let from = environment_of(tokens);
        let values: Vec<Value> = tokens
            .iter()
            .map(|token| match token {
                Token::Sign(..) => Value::default(),
                token => self.value(token, shell),
            })
            .collect();
        self.methods(tokens, &values);
        let from = match values.iter().any(|value| value.pieces.contains(&Piece::Fetched)) {
            true => [from, vec!["curl".to_owned()]].concat(),
            false => from,
        };
        if let Some(place) = cast(tokens, &values) {
            return Output { text: Some(place.clone()), from };
        }
        let plus = |token: &Token| matches!(token, Token::Sign('+', _));
        let operand = |token: &Token| {
            matches!(token, Token::Text(..) | Token::Variable(..) | Token::Block('(', ..))
        };
        let sum = tokens.iter().enumerate().all(|(at, token)| match at % 2 {
            0 => operand(token),
            _ => plus(token),
        });
        if sum {
            let mut text = Value::default();
            values.iter().for_each(|value| text.extend(value));
            return Output { text: Some(text.bounded()), from };
        }
        if let [Token::Variable(..) | Token::Block('(', ..), Token::Word(member, _)] = tokens
            && is_own_path(member)
        {
            return Output { text: values.into_iter().next(), from };
        }
        let word = |token: &Token| match token {
            Token::Word(value, _) => value.known().map(|text| text.to_lowercase()),
            _ => None,
        };
        if let [Token::Text(..), operator, rest @ ..] = tokens
            && word(operator).as_deref() == Some("-f")
        {
            let mut text = values[0].known().unwrap_or_default().into_owned();
            let arguments = rest.iter().zip(&values[2..]).filter(|(token, _)| operand(token));
            for (number, (_, value)) in arguments.enumerate() {
                text = text.replace(&format!("{{{number}}}"), &value.without_unknown());
            }
            return Output { text: Some(Value::text(text).bounded()), from };
        }
        Output { text: None, from }
    }

    pub(super) fn named_command(
        &mut self,
        name: &Value,
        span: Range<usize>,
        rest: &[Token],
        input: Option<&Output>,
        shell: &mut PowerShell,
    ) -> Output {
        let Some(known) = name.known().filter(|name| !name.is_empty()) else {
            self.raise("unknown-program", span);
            return Output::default();
        };
        if crate::characters::look_alike(&known) {
            self.raise("look-alike", span);
            return Output::default();
        }
        self.starts_file(&Field::new(name.clone(), span.clone()));
        let name = match shell.aliases.get(&known.to_lowercase()) {
            Some(full) => full.clone(),
            None => canonical(&known),
        };
        let outer = self.windows.secret;
        self.windows.secret |= input.is_some_and(holds_secret);
        let (mut arguments, writes) = match (name.as_str(), rest) {
            ("foreach-object", [Token::Block('{', body, span)]) => {
                self.repeats(input, body, span);
                let output = self.each(super::loops::ITEM, input, body, shell);
                self.windows.secret |= holds_secret(&output);
                let fetched = output.from.iter().any(|from| FETCHERS.contains(&from.as_str()));
                let piece = if fetched { Piece::Fetched } else { Piece::Unknown };
                (vec![Field::new(Value::of(piece), span.clone())], Vec::new())
            }
            _ => self.arguments(rest, shell),
        };
        self.tells_secret(&name, rest, span.clone());
        self.windows.secret = outer;
        arguments.extend(listed(&name, &arguments, input, shell.listed.as_ref()));
        let end = arguments.last().map_or(span.end, |field| field.span.end.max(span.end));
        self.show(&Invocation {
            shell: Shell::PowerShell,
            name: &name,
            arguments: &arguments,
            writes: &writes,
            reads: &[],
            assigns: &[],
            input,
            cwd: &Place::start(),
            span: span.start.min(end)..end,
        });
        self.fetches(&name, &arguments);
        self.unpacks(&name, &arguments);
        let compiles = matches!(name.as_str(), "add-type" | "import-module" | "new-module");
        if compiles && arguments.iter().any(|field| field.value.pieces.contains(&Piece::Fetched)) {
            self.raise("download-to-shell", span.clone());
        }
        if name == "stop-process" && arguments.iter().any(is_all) {
            self.raise("end-listed-processes", span.clone());
        }
        self.moves_away(&name, &arguments);
        if STARTERS.contains(&name.as_str()) {
            arguments.iter().for_each(|field| self.starts_file(field));
        }
        match self.portable(&name, &arguments, &writes, input, span.clone()) {
            Some(output) => output,
            None => {
                self.saves(&name, &arguments, input);
                let output = self.runs(&name, &arguments, input, span, shell);
                self.keeps_fetched(&writes, &output);
                self.shows(&arguments, output)
            }
        }
    }

    fn arguments(&mut self, rest: &[Token], shell: &mut PowerShell) -> (Vec<Field>, Vec<Field>) {
        let (mut arguments, mut writes) = (Vec::new(), Vec::new());
        let mut redirected = false;
        for token in rest {
            match token {
                Token::Sign('>', _) => redirected = true,
                Token::Sign(..) => {}
                Token::Type(name, span) => {
                    arguments.push(Field::new(Value::text(format!("[{name}]")), span.clone()));
                }
                token => {
                    let field = Field::new(self.value(token, shell), token.span());
                    if std::mem::take(&mut redirected) {
                        writes.push(field);
                    } else {
                        arguments.push(field);
                    }
                }
            }
        }
        (arguments, writes)
    }
}

impl PowerShell {
    /// Whether a variable is the entry of a listing that a loop is at.
    pub(super) fn is_item(&self, name: &str) -> bool {
        self.listed.is_some() && self.lookup(name) == self.listed
    }

    fn lookup(&self, name: &str) -> Option<Value> {
        self.variables.get(&name.to_lowercase()).cloned()
    }
}

fn is_inside_string(token: &Token) -> bool {
    matches!(token, Token::Block('"', ..))
}

/// `*`, which is every name.
fn is_all(field: &Field) -> bool {
    field.known().is_some_and(|text| !text.is_empty() && text.chars().all(|c| c == '*'))
}

/// The runs between signs of a kind.
fn split(tokens: &[Token], sign: char) -> impl Iterator<Item = &[Token]> {
    tokens
        .split(move |token| matches!(token, Token::Sign(own, _) if *own == sign))
        .filter(|part| !part.is_empty())
}

/// `[Environment]::GetEnvironmentVariables()`, or one of them that is a key.
fn environment_of(tokens: &[Token]) -> Vec<String> {
    let [Token::Type(name, _), Token::Word(member, _), rest @ ..] = tokens else {
        return Vec::new();
    };
    let member = member.without_unknown().to_lowercase();
    let is_secret = |token: &Token| match token {
        Token::Block(_, inner, _) => inner.iter().any(|token| {
            matches!(token, Token::Text(value, _)
                if crate::evaluate::names_secret(&value.without_unknown().to_uppercase()))
        }),
        _ => false,
    };
    match name.to_lowercase().trim_start_matches("system.") == "environment" {
        true if member.starts_with("::getenvironmentvariables") => {
            vec![super::portable::ENVIRONMENT.to_owned()]
        }
        true if member.starts_with("::getenvironmentvariable") && rest.iter().any(is_secret) => {
            vec![crate::evaluate::SECRETS.to_owned()]
        }
        _ => Vec::new(),
    }
}

pub(super) fn span_of(tokens: &[Token]) -> Range<usize> {
    match tokens {
        [] => 0..0,
        [first, ..] => {
            let (first, last) = (first.span(), tokens[tokens.len() - 1].span());
            first.start.min(last.start)..first.end.max(last.end)
        }
    }
}
