//! Lists, pipelines and simple commands.

use std::rc::Rc;

use super::ast::{Assigned, Assignment, Command, Item, Kind, Link, List, Part, Pipeline, Word};
use super::cursor::{Cursor, Read};
use super::word::ends_word;

/// Words that end a list where a compound command waits for them.
const CLOSING: &[&str] = &["then", "do", "done", "fi", "elif", "else", "esac", "}"];

impl Cursor<'_> {
    /// A list up to one of the given words, `)`, `;;` or the end; none of them is consumed.
    pub fn list(&mut self, until: &[&str]) -> Read<List> {
        let mut list = List::new();
        self.list_into(&mut list, until)?;
        Ok(list)
    }

    /// What was read before an error stays in `list`.
    pub fn list_into(&mut self, list: &mut List, until: &[&str]) -> Read<()> {
        loop {
            self.step()?;
            self.skip_lines()?;
            match self.peek() {
                None | Some(b')') => return Ok(()),
                Some(b';') if self.starts(";;") || self.starts(";&") => return Ok(()),
                _ => {}
            }
            if let Some(word) = self.keyword() {
                if until.contains(&word) {
                    return Ok(());
                }
                if CLOSING.contains(&word) {
                    return Err(self.trouble("this closes nothing"));
                }
            }
            let mut item = self.item()?;
            self.skip_blanks();
            match self.peek() {
                Some(b'&') if self.peek_at(1) != Some(b'&') => {
                    self.at += 1;
                    item.background = true;
                }
                Some(b';') if !self.starts(";;") && !self.starts(";&") => self.at += 1,
                None | Some(b'\n' | b')' | b';') => {}
                Some(_) => {
                    list.push(item);
                    return Err(self.trouble("this cannot stand here"));
                }
            }
            list.push(item);
        }
    }

    /// After `(`: a list and its `)`.
    pub fn list_until_parenthesis(&mut self) -> Read<List> {
        let list = self.list(&[])?;
        self.expect(")", "a parenthesis is never closed")?;
        Ok(list)
    }

    fn item(&mut self) -> Read<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let link = if self.take("&&") {
                Link::And
            } else if self.take("||") {
                Link::Or
            } else {
                return Ok(Item { first, rest, background: false });
            };
            self.skip_lines()?;
            rest.push((link, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Read<Pipeline> {
        loop {
            self.skip_blanks();
            match self.keyword() {
                Some("!") => self.at += 1,
                Some("time") => {
                    let from = self.at;
                    self.at += 4;
                    self.skip_blanks();
                    // With other options it is the program of that name.
                    if self.peek() == Some(b'-') && self.keyword() != Some("-p") {
                        self.at = from;
                        break;
                    }
                    if self.keyword() == Some("-p") {
                        self.at += 2;
                    }
                    self.skip_blanks();
                    // Alone it measures nothing.
                    if self.peek().is_none_or(|byte| matches!(byte, b'\n' | b';' | b')' | b'&')) {
                        return Ok(Pipeline { stages: Vec::new() });
                    }
                }
                _ => break,
            }
        }
        let mut stages = vec![self.nested(|cursor| cursor.command())?];
        loop {
            self.skip_blanks();
            if self.starts("||") || !(self.take("|&") || self.take("|")) {
                return Ok(Pipeline { stages });
            }
            self.skip_lines()?;
            stages.push(self.nested(|cursor| cursor.command())?);
        }
    }

    /// The bare word at the cursor, which stays where it is.
    pub fn keyword(&self) -> Option<&'static str> {
        const KEYWORDS: &[&str] = &[
            "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case",
            "esac", "select", "function", "{", "}", "!", "[[", "time", "in", "coproc", "-p",
        ];
        let rest = self.rest();
        KEYWORDS.iter().copied().find(|word| {
            rest.starts_with(word.as_bytes())
                && rest.get(word.len()).is_none_or(|byte| ends_word(*byte))
        })
    }

    fn command(&mut self) -> Read<Command> {
        let from = self.at;
        let kind = match self.compound()? {
            Some(kind) => kind,
            None => return self.simple(from),
        };
        let mut redirects = Vec::new();
        // A function's redirections belong to its body.
        if !matches!(kind, Kind::Function { .. }) {
            loop {
                self.skip_blanks();
                match self.redirect()? {
                    Some(redirect) => redirects.push(redirect),
                    None => break,
                }
            }
        }
        Ok(Command { kind, redirects, span: self.span_from(from) })
    }

    fn simple(&mut self, from: usize) -> Read<Command> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        let mut end;
        loop {
            end = self.at;
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                assignments.push(assignment);
                continue;
            }
            let Some(word) = self.word()? else {
                break;
            };
            // `declare -a list=(…)`
            let array = matches!(word.parts.last(), Some(Part::Plain(text)) if text.ends_with('='));
            if array && self.peek() == Some(b'(') && !words.is_empty() {
                self.at += 1;
                let items = self.nested(|cursor| cursor.array())?;
                words.push(word);
                words.extend(items);
                continue;
            }
            let named = words.is_empty() && assignments.is_empty() && redirects.is_empty();
            words.push(word);
            if named
                && self.parenthesis_follows()
                && let Some(function) = self.function_after_name(&words[0])?
            {
                return Ok(Command {
                    kind: function,
                    redirects: Vec::new(),
                    span: self.span_from(from),
                });
            }
        }
        if words.is_empty() && assignments.is_empty() && redirects.is_empty() {
            return Err(self.trouble("a command is missing here"));
        }
        let span = self.origin.span(from, end);
        Ok(Command { kind: Kind::Simple { assignments, words }, redirects, span })
    }

    /// Goes to the `(` of `f()` or `f ()` if that is what follows.
    fn parenthesis_follows(&mut self) -> bool {
        let blanks = self.rest().iter().take_while(|byte| **byte == b' ').count();
        let follows = self.peek_at(blanks) == Some(b'(');
        if follows {
            self.at += blanks;
        }
        follows
    }

    /// `f()` followed by its body.
    fn function_after_name(&mut self, word: &Word) -> Read<Option<Kind>> {
        let Some(name) = word.bare() else {
            return Ok(None);
        };
        self.at += 1;
        self.skip_blanks();
        self.expect(")", "this parenthesis cannot stand here")?;
        self.skip_lines()?;
        let body = Rc::new(self.nested(|cursor| cursor.command())?);
        Ok(Some(Kind::Function { name: name.to_owned(), body }))
    }

    /// `name=`, `name+=` or `name[…]=` with its value.
    fn assignment(&mut self) -> Read<Option<Assignment>> {
        let from = self.at;
        let starts = self.peek().is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic());
        if !starts {
            return Ok(None);
        }
        let name = self.name();
        let mut subscript = None;
        if self.peek() == Some(b'[') {
            // Only an assignment if a `=` follows the bracket.
            let close = self.rest().iter().position(|byte| *byte == b']');
            let assigned = close.is_some_and(|close| {
                let after = &self.rest()[close + 1..];
                after.starts_with(b"=") || after.starts_with(b"+=")
            });
            if assigned {
                self.at += 1;
                let parts = self.arithmetic(b"]")?;
                subscript = Some(Word { parts, span: self.span_from(from) });
            }
        }
        let append = self.starts("+=");
        if !append && !self.starts("=") {
            self.at = from;
            return Ok(None);
        }
        self.at += 1 + usize::from(append);
        if self.take("(") {
            let items = self.nested(|cursor| cursor.array())?;
            let value = Assigned::Array(items);
            return Ok(Some(Assignment { name, value }));
        }
        let start = self.at;
        let word = self
            .word()?
            .unwrap_or_else(|| Word { parts: Vec::new(), span: self.origin.span(start, start) });
        let value = match (subscript, append) {
            (Some(subscript), _) => Assigned::Array(vec![subscript, word]),
            (None, true) => Assigned::Appended(word),
            (None, false) => Assigned::Word(word),
        };
        Ok(Some(Assignment { name, value }))
    }

    /// After `name=(`: words and the closing parenthesis.
    fn array(&mut self) -> Read<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take(")") {
                return Ok(words);
            }
            words.push(self.some_word("this array is never closed")?);
        }
    }
}
