//! Blocks that run more than once, what their variable stands for, and what is done to it.

use std::ops::Range;

use super::aliases::canonical;
use super::bomb::{is_many, starts_programs};
use super::powershell::{PowerShell, span_of};
use super::tokens::Token;
use crate::evaluate::Evaluator;
use crate::value::Output;

/// The variable of `ForEach-Object`.
pub const ITEM: &str = "_";

/// Members by which a text reaches what no cmdlet gives.
const REFLECTION: &[&str] = &[
    ".invoke",
    ".downloadstring",
    ".downloadfile",
    ".downloaddata",
    "newscriptblock",
    ".assembly",
    ".getfield",
    ".getmethod",
    ".setvalue",
    ".getnetworkcredential",
];

impl Evaluator<'_> {
    /// A statement with blocks: `if`, `foreach ($f in …) { … }`.
    pub(super) fn keyword(
        &mut self,
        keyword: &str,
        span: Range<usize>,
        rest: &[Token],
        shell: &mut PowerShell,
    ) -> Output {
        if starts_without_end(keyword, rest) || super::bomb::defines_bomb(keyword, rest) {
            self.raise("fork-bomb", span);
        }
        let mut output = Output::default();
        let mut item: Option<(&str, Vec<Output>)> = None;
        for token in rest {
            let Token::Block(open, inner, _) = token else {
                continue;
            };
            if let ('(', [Token::Variable(name, _), Token::Word(word, _), of @ ..]) =
                (open, &inner[..])
                && word.known().as_deref() == Some("in")
            {
                let list = texts_of_list(of);
                let all = if list.is_empty() { vec![self.statements(of, shell)] } else { list };
                item = Some((name, all));
                continue;
            }
            let Some((name, all)) = item.take() else {
                output.passed(self.statements(inner, shell).from);
                continue;
            };
            for over in &all {
                output.passed(self.each(name, Some(over), inner, shell).from);
            }
        }
        output
    }

    /// Runs the stages of a pipeline; what the last one gives.
    pub(super) fn stages(
        &mut self,
        stages: &[&[Token]],
        mut fed: Option<Output>,
        shell: &mut PowerShell,
    ) -> Output {
        for stage in stages {
            if !self.spend(1 + stage.len()) {
                self.raise("too-complex", span_of(stage));
                return Output::default();
            }
            let next = self.stage(stage, fed.as_ref(), shell);
            let mut way = fed.unwrap_or_default();
            way.passed(next.from);
            fed = Some(Output { text: next.text, from: way.from });
        }
        fed.unwrap_or_default()
    }

    /// Runs a block for every entry of what it goes over.
    pub(super) fn each(
        &mut self,
        name: &str,
        over: Option<&Output>,
        body: &[Token],
        shell: &mut PowerShell,
    ) -> Output {
        let Some(over) =
            over.filter(|over| over.text.as_ref().is_some_and(|text| !text.pieces.is_empty()))
        else {
            return self.statements(body, shell);
        };
        let place = over.text.clone().unwrap_or_default();
        let listing = super::passed_on::is_listing(over);
        let name = name.to_lowercase();
        // Of anything else than a listing the variable is that thing itself.
        let listed = listing.then(|| place.clone()).or_else(|| shell.listed.clone());
        let before = (std::mem::replace(&mut shell.listed, listed), shell.variables.remove(&name));
        shell.variables.insert(name.clone(), place);
        let output = self.statements(body, shell);
        shell.listed = before.0;
        match before.1 {
            Some(value) => drop(shell.variables.insert(name, value)),
            None => drop(shell.variables.remove(&name)),
        }
        output
    }

    /// What is done over and over: programs started without end, every process ended.
    pub(super) fn repeats(&mut self, input: Option<&Output>, body: &[Token], span: &Range<usize>) {
        let Some(input) = input else {
            return;
        };
        if super::bomb::is_long(input) && starts_programs(body) {
            self.raise("fork-bomb", span.clone());
        }
        if input.from.iter().any(|from| from == "get-process") && super::bomb::ends_programs(body) {
            self.raise("end-listed-processes", span.clone());
        }
    }

    /// Members that reach what no cmdlet gives, and `$_.Delete()`.
    pub(super) fn members(&mut self, tokens: &[Token], shell: &PowerShell) {
        let reaches = |token: &Token| match token {
            Token::Word(value, _) => {
                let text = value.without_unknown().to_lowercase();
                REFLECTION.iter().any(|member| text.contains(member))
            }
            _ => false,
        };
        if tokens.iter().any(reaches) {
            self.raise("dotnet-call", span_of(tokens));
        }
        if let [Token::Variable(name, span), Token::Word(member, _), ..] = tokens
            && shell.is_item(name)
            && member.without_unknown().to_lowercase().starts_with(".delete")
        {
            self.deletes(shell.listed.clone().unwrap_or_default(), span.clone());
        }
    }
}

/// `'bin', 'obj'`: each of the texts. Empty for anything else.
fn texts_of_list(tokens: &[Token]) -> Vec<Output> {
    let listed = tokens.len() > 1
        && tokens.len() % 2 == 1
        && tokens.iter().enumerate().all(|(at, token)| match at % 2 {
            0 => matches!(token, Token::Text(value, _) if value.known().is_some()),
            _ => matches!(token, Token::Sign(',', _)),
        });
    let text = |token: &Token| match token {
        Token::Text(value, _) => Some(Output { text: Some(value.clone()), from: Vec::new() }),
        _ => None,
    };
    if listed { tokens.iter().filter_map(text).collect() } else { Vec::new() }
}

/// What a list of texts hands to `ForEach-Object`, one at a time.
pub fn fed_one_by_one(stages: &[&[Token]]) -> Vec<Output> {
    match stages {
        [list, [Token::Word(name, _), ..], ..]
            if canonical(&name.without_unknown()) == "foreach-object" =>
        {
            texts_of_list(list)
        }
        _ => Vec::new(),
    }
}

/// `while ($true) { Start-Process x }`.
fn starts_without_end(keyword: &str, rest: &[Token]) -> bool {
    let word = |token: &Token, is: &dyn Fn(&str) -> bool| match token {
        Token::Word(value, _) => is(&canonical(&value.without_unknown())),
        Token::Variable(name, _) => is(&name.to_lowercase()),
        _ => false,
    };
    let (mut endless, mut long) = (false, false);
    for token in rest {
        match token {
            Token::Block('(', inner, _) => {
                endless = match (keyword, &inner[..]) {
                    ("while", [only]) => word(only, &|it| matches!(it, "true" | "1")),
                    ("for", inner) => inner.iter().all(|it| matches!(it, Token::Sign(';', _))),
                    _ => false,
                };
                long = matches!(keyword, "for" | "foreach") && inner.iter().any(is_many);
            }
            Token::Block('{', body, _) if long && starts_programs(body) => return true,
            Token::Block('{', body, _) if endless => {
                let starts = |it: &str| matches!(it, "start-process" | "start-job");
                return body.first().is_some_and(|first| word(first, &starts));
            }
            _ => {}
        }
    }
    false
}
