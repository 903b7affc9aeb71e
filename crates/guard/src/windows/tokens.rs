//! Tokens of PowerShell.

use std::ops::Range;

use crate::value::{Piece, Value};

use crate::windows_place as known;

/// Nested blocks; beyond it a text is not read.
const DEEPEST: usize = 32;

#[derive(Debug, Clone)]
pub enum Token {
    /// A bare word, backticks removed.
    Word(Value, Range<usize>),
    /// A string.
    Text(Value, Range<usize>),
    /// `$name`
    Variable(String, Range<usize>),
    /// `( … )`, `{ … }`, `$( … )`, `@( … )`, by the opening character; `"` for one inside of the string before it.
    Block(char, Vec<Token>, Range<usize>),
    /// `[type]`
    Type(String, Range<usize>),
    /// `;` for ends of statements, `|`, `&`, `=`, `,`, `+`, `>`.
    Sign(char, Range<usize>),
}

impl Token {
    pub fn span(&self) -> Range<usize> {
        match self {
            Token::Word(_, span)
            | Token::Text(_, span)
            | Token::Variable(_, span)
            | Token::Block(_, _, span)
            | Token::Type(_, span)
            | Token::Sign(_, span) => span.clone(),
        }
    }

    fn inside_string(self) -> Token {
        match self {
            Token::Block(_, inner, span) => Token::Block('"', inner, span),
            token => token,
        }
    }

    /// `$($env:X)` is `$env:X`, and `$($_.FullName)` is where `$_` is.
    fn plain_variable(&self) -> Option<&str> {
        let Token::Block(_, inner, _) = self else {
            return None;
        };
        match &inner[..] {
            [Token::Variable(name, _)] => Some(name),
            [Token::Variable(name, _), Token::Word(member, _)] if is_own_path(member) => Some(name),
            _ => None,
        }
    }
}

/// The member by which a file says where it is.
pub fn is_own_path(member: &Value) -> bool {
    let path = |text: &str| {
        [".fullname", ".pspath", ".historysavepath"]
            .iter()
            .any(|own| text.eq_ignore_ascii_case(own))
    };
    member.known().is_some_and(|text| path(&text))
}

pub struct Unreadable(pub Range<usize>);

pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Where byte 0 of the text is in the caller's; `None` when it was decoded.
    origin: Option<usize>,
    whole: Range<usize>,
    /// Blocks inside strings: they run too.
    inside: Vec<Token>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str, origin: Option<usize>, whole: Range<usize>) -> Reader<'a> {
        Reader { text, at: 0, depth: 0, origin, whole, inside: Vec::new() }
    }

    pub fn all(mut self) -> Result<Vec<Token>, Unreadable> {
        let tokens = self.tokens(None)?;
        if self.at < self.text.len() {
            return Err(self.here());
        }
        Ok(tokens)
    }

    fn span(&self, from: usize) -> Range<usize> {
        self.origin.map_or_else(|| self.whole.clone(), |base| base + from..base + self.at)
    }

    fn here(&self) -> Unreadable {
        let end = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        let span = self.origin.map(|base| base + self.at..base + self.at + end);
        Unreadable(span.unwrap_or_else(|| self.whole.clone()))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn starts(&self, with: &str) -> bool {
        self.text[self.at..].starts_with(with)
    }

    /// Up to and with the closing character.
    fn tokens(&mut self, close: Option<char>) -> Result<Vec<Token>, Unreadable> {
        let mut tokens = Vec::new();
        loop {
            tokens.append(&mut self.inside);
            let from = self.at;
            let Some(c) = self.peek() else {
                return if close.is_none() { Ok(tokens) } else { Err(self.here()) };
            };
            if Some(c) == close {
                self.next();
                return Ok(tokens);
            }
            match c {
                ' ' | '\t' | '\r' => {
                    self.next();
                }
                '`' if self.starts("`\n") || self.starts("`\r\n") => {
                    self.at += self.text[self.at..].find('\n').unwrap_or(0) + 1;
                }
                '#' => {
                    self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at)
                }
                '<' if self.starts("<#") => {
                    let end = self.text[self.at..].find("#>").ok_or_else(|| self.here())?;
                    self.at += end + 2;
                }
                '\n' | ';' => {
                    self.next();
                    tokens.push(Token::Sign(';', self.span(from)));
                }
                '+' if self.plus_begins_word(&tokens) => {
                    self.next();
                    let mut value = Value::text("+");
                    if let Token::Word(rest, _) = self.word()? {
                        value.extend(&rest);
                    }
                    tokens.push(Token::Word(value, self.span(from)));
                }
                '|' | '&' | '=' | ',' | '+' | '>' => {
                    self.next();
                    let doubled = self.peek() == Some(c);
                    if doubled {
                        self.next();
                    }
                    let sign = if doubled && (c == '|' || c == '&') { ';' } else { c };
                    tokens.push(Token::Sign(sign, self.span(from)));
                }
                '(' | '{' => tokens.push(self.block(c)?),
                '@' if self.starts("@(") || self.starts("@{") => {
                    self.next();
                    let open = if self.starts("(") { '(' } else { '{' };
                    tokens.push(self.block(open)?);
                }
                '@' if self.starts("@'") || self.starts("@\"") => {
                    tokens.push(self.here_string()?);
                }
                '$' => {
                    let token = self.dollar()?;
                    tokens.push(self.path_after(token, from)?);
                }
                '\'' | '"' | '‘' | '’' | '“' | '”' => {
                    let value = self.quoted()?;
                    tokens.push(Token::Text(value, self.span(from)));
                }
                '[' => {
                    let end = self.text[self.at..].find(']').ok_or_else(|| self.here())?;
                    self.at += end + 1;
                    let name = self.text[from + 1..self.at - 1].to_owned();
                    tokens.push(Token::Type(name, self.span(from)));
                }
                ')' | '}' => return Err(self.here()),
                _ => tokens.push(self.word()?),
            }
        }
    }

    /// `git push origin +main`: among the arguments of a command a plus before a name is a part of it.
    fn plus_begins_word(&self, tokens: &[Token]) -> bool {
        let ends = |token: &Token| matches!(token, Token::Sign(';' | '|' | '&' | '=', _));
        let near = &tokens[tokens.len().saturating_sub(64)..];
        let first = near.rsplit(ends).next().and_then(|statement| statement.first());
        let named = |c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '\'' | '"');
        matches!(first, Some(Token::Word(..))) && self.text[self.at + 1..].starts_with(named)
    }

    fn block(&mut self, open: char) -> Result<Token, Unreadable> {
        let from = self.at;
        if self.depth >= DEEPEST {
            return Err(self.here());
        }
        self.next();
        self.depth += 1;
        // What waits belongs to the string around this block.
        let outside = std::mem::take(&mut self.inside);
        let inner = self.tokens(Some(if open == '{' { '}' } else { ')' }))?;
        self.inside = outside;
        self.depth -= 1;
        Ok(Token::Block(open, inner, self.span(from)))
    }

    fn here_string(&mut self) -> Result<Token, Unreadable> {
        let from = self.at;
        let end = if self.starts("@'") { "\n'@" } else { "\n\"@" };
        let body = self.text[self.at..].find('\n').ok_or_else(|| self.here())?;
        let stop = self.text[self.at + body..].find(end).ok_or_else(|| self.here())?;
        let text = self.text[self.at + body..self.at + body + stop].trim_start_matches('\n');
        let expands = end.contains('"') && text.contains('$');
        let value = if expands { Value::of(Piece::Unknown) } else { Value::text(text) };
        let stop = self.at + body + stop;
        // What is run inside of it; its own text is unknown then.
        while let Some(next) = self.text[self.at..stop].find("$(").filter(|_| expands) {
            self.at += next + 1;
            let block = self.block('(')?;
            self.inside.push(block.inside_string());
            if self.at > stop {
                return Err(self.here());
            }
        }
        self.at = stop + end.len();
        Ok(Token::Text(value, self.span(from)))
    }

    fn dollar(&mut self) -> Result<Token, Unreadable> {
        let from = self.at;
        self.next();
        if self.starts("(") {
            return self.block('(');
        }
        Ok(Token::Variable(self.name(), self.span(from)))
    }

    /// `$HOME\.ssh` is one word.
    fn path_after(&mut self, token: Token, from: usize) -> Result<Token, Unreadable> {
        let Token::Variable(name, _) = &token else {
            return Ok(token);
        };
        if !matches!(self.peek(), Some('\\' | '/')) || name.is_empty() {
            return Ok(token);
        }
        let mut value = Value::text(format!("\u{1}{name}\u{2}"));
        if let Token::Word(rest, _) = self.word()? {
            value.extend(&rest);
        }
        Ok(Token::Word(value, self.span(from)))
    }

    /// A variable's name after the `$`.
    fn name(&mut self) -> String {
        if self.starts("{") {
            let end = self.text[self.at..].find('}').map_or(self.text.len(), |end| self.at + end);
            let name = self.text[self.at + 1..end].to_owned();
            self.at = (end + 1).min(self.text.len());
            return name;
        }
        let from = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '?') {
            self.next();
        }
        self.text[from..self.at].to_owned()
    }

    fn quoted(&mut self) -> Result<Value, Unreadable> {
        let from = self.at;
        let single = matches!(self.next(), Some('\'' | '‘' | '’'));
        let closes = |c: char| match single {
            true => matches!(c, '\'' | '‘' | '’'),
            false => matches!(c, '"' | '“' | '”'),
        };
        let mut value = Value::default();
        loop {
            let Some(c) = self.next() else {
                self.at = from;
                return Err(self.here());
            };
            match c {
                c if closes(c) && self.peek().is_some_and(closes) => {
                    self.next();
                    value.push_text(c.encode_utf8(&mut [0; 4]));
                }
                c if closes(c) => return Ok(value),
                '`' if !single => value.push_text(&self.escape()),
                '$' if !single && self.starts("(") => {
                    // Run inside a string: read it, its value is unknown.
                    let block = self.block('(')?;
                    match block.plain_variable() {
                        Some(name) => value.push(Piece::Text(format!("\u{1}{name}\u{2}"))),
                        None => {
                            self.inside.push(block.inside_string());
                            value.push(Piece::Unknown);
                        }
                    }
                }
                '$' if !single => {
                    let name = self.name();
                    match name.is_empty() {
                        true => value.push_text("$"),
                        false => value.push(Piece::Text(format!("\u{1}{name}\u{2}"))),
                    }
                }
                c => value.push_text(c.encode_utf8(&mut [0; 4])),
            }
        }
    }

    fn escape(&mut self) -> String {
        match self.next() {
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            Some('0') | None => String::new(),
            Some(c) => c.to_string(),
        }
    }

    fn word(&mut self) -> Result<Token, Unreadable> {
        let from = self.at;
        let mut value = Value::default();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '(' | ')' | '{' | '}' | ',' | '>' => {
                    break;
                }
                '`' => {
                    self.next();
                    // Before a plain letter it is nothing at all.
                    if let Some(c) = self.next() {
                        value.push_text(c.encode_utf8(&mut [0; 4]));
                    }
                }
                '\'' | '"' | '‘' | '’' | '“' | '”' => {
                    let inner = self.quoted()?;
                    value.extend(&inner);
                }
                '$' => {
                    self.next();
                    let name = self.name();
                    value.push(Piece::Text(format!("\u{1}{name}\u{2}")));
                }
                '=' if from == self.at => break,
                c => {
                    self.next();
                    value.push_text(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
        if self.at == from {
            self.next();
        }
        Ok(Token::Word(value, self.span(from)))
    }
}

/// Puts the values of variables where the reader left their names.
pub fn fill(value: &Value, lookup: &dyn Fn(&str) -> Option<Value>) -> Value {
    let mut filled = Value::default();
    for piece in &value.pieces {
        let Piece::Text(text) = piece else {
            filled.push(piece.clone());
            continue;
        };
        for (at, part) in text.split('\u{1}').enumerate() {
            let rest = match (at > 0, part.split_once('\u{2}')) {
                (true, Some((name, rest))) => {
                    filled.extend(&lookup(name).unwrap_or_else(|| environment(name)));
                    rest
                }
                _ => part,
            };
            filled.push_text(rest);
        }
    }
    filled.bounded()
}

/// `$env:NAME` and the automatic variables.
pub fn environment(name: &str) -> Value {
    let lower = name.to_lowercase();
    known::variable(lower.strip_prefix("env:").unwrap_or(&lower))
}
