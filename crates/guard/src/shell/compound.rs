//! Compound commands: loops, branches, groups, functions, `[[`, `((`.

use std::rc::Rc;

use super::ast::{Command, Item, Kind, List, Word};
use super::cursor::{Cursor, Read};
use super::word::Parts;

impl Cursor<'_> {
    /// A compound command, or nothing where a simple one begins.
    pub fn compound(&mut self) -> Read<Option<Kind>> {
        if self.starts("((") {
            let from = self.at;
            self.at += 2;
            let start = self.at;
            match self.nested(|cursor| cursor.arithmetic(b"))")) {
                Ok(parts) => {
                    let span = self.span_from(start);
                    return Ok(Some(Kind::Arithmetic(Word { parts, span })));
                }
                Err(trouble) if trouble.fatal => return Err(trouble),
                Err(_) => self.at = from,
            }
        }
        if self.take("(") {
            return Ok(Some(Kind::Subshell(self.list_until_parenthesis()?)));
        }
        let Some(word) = self.keyword() else {
            return Ok(None);
        };
        let after = self.at + word.len();
        Ok(Some(match word {
            "{" => {
                self.at = after;
                let list = self.list(&["}"])?;
                self.close("}")?;
                Kind::Group(list)
            }
            "if" => {
                self.at = after;
                self.branches()?
            }
            "while" | "until" => {
                self.at = after;
                let condition = self.list(&["do"])?;
                let body = self.body()?;
                Kind::While { condition, body }
            }
            "for" | "select" => {
                self.at = after;
                self.for_loop()?
            }
            "case" => {
                self.at = after;
                self.case()?
            }
            "[[" => {
                self.at = after;
                self.test()?
            }
            "function" => {
                self.at = after;
                self.function()?
            }
            "coproc" => {
                self.at = after;
                self.skip_blanks();
                match self.compound()? {
                    Some(kind) => kind,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        }))
    }

    fn close(&mut self, word: &'static str) -> Read<()> {
        self.skip_blanks();
        if self.keyword() == Some(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.trouble("a compound command is never closed"))
    }

    /// `do … done`, or the braces that bash takes as well.
    fn body(&mut self) -> Read<List> {
        self.skip_lines()?;
        if self.keyword() == Some("{") {
            self.at += 1;
            let list = self.list(&["}"])?;
            self.close("}")?;
            return Ok(list);
        }
        self.close("do")?;
        let list = self.list(&["done"])?;
        self.close("done")?;
        Ok(list)
    }

    fn branches(&mut self) -> Read<Kind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.list(&["then"])?;
            self.close("then")?;
            let body = self.list(&["elif", "else", "fi"])?;
            branches.push((condition, body));
            match self.keyword() {
                Some("elif") => self.at += 4,
                Some("else") => {
                    self.at += 4;
                    let otherwise = self.list(&["fi"])?;
                    self.close("fi")?;
                    return Ok(Kind::If { branches, otherwise });
                }
                _ => {
                    self.close("fi")?;
                    return Ok(Kind::If { branches, otherwise: List::new() });
                }
            }
        }
    }

    fn for_loop(&mut self) -> Read<Kind> {
        self.skip_blanks();
        if self.take("((") {
            let start = self.at;
            let parts = self.arithmetic(b"))")?;
            let head = Word { parts, span: self.span_from(start) };
            self.skip_blanks();
            self.take(";");
            let body = self.body()?;
            return Ok(Kind::ArithmeticFor { head, body });
        }
        let name = self.name();
        if name.is_empty() {
            return Err(self.trouble("this loop has no variable"));
        }
        self.skip_lines()?;
        let mut words = None;
        if self.keyword() == Some("in") {
            self.at += 2;
            let mut list = Vec::new();
            loop {
                self.skip_blanks();
                match self.word()? {
                    Some(word) => list.push(word),
                    None => break,
                }
            }
            words = Some(list);
        }
        self.skip_blanks();
        self.take(";");
        let body = self.body()?;
        Ok(Kind::For { name, words, body })
    }

    fn case(&mut self) -> Read<Kind> {
        let subject = self.some_word("case needs a word")?;
        self.skip_lines()?;
        self.close("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.keyword() == Some("esac") {
                self.at += 4;
                return Ok(Kind::Case { subject, arms });
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                patterns.push(self.some_word("a pattern is missing here")?);
                self.skip_blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.expect(")", "a pattern ends with a parenthesis")?;
            let mut list = self.list(&["esac"])?;
            // What patterns expand is run as well.
            if patterns.iter().any(|word| word.bare().is_none()) {
                list.insert(0, only(Kind::Test(patterns)));
            }
            arms.push(list);
            self.skip_blanks();
            let _ = self.take(";;&") || self.take(";;") || self.take(";&");
        }
    }

    /// After `[[`: the words up to `]]`, operators left out.
    fn test(&mut self) -> Read<Kind> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.starts("]]") {
                self.at += 2;
                return Ok(Kind::Test(words));
            }
            let from = self.at;
            let mut parts = Parts::default();
            // A regular expression may hold any of these bare.
            if matches!(self.peek(), Some(b'(' | b')' | b'|' | b'&' | b'<' | b'>' | b';')) {
                self.at += 1;
                continue;
            }
            while let Some(byte) = self.peek() {
                if matches!(byte, b' ' | b'\t' | b'\n') {
                    break;
                }
                if super::word::ends_word(byte) {
                    parts.plain(char::from(byte).encode_utf8(&mut [0; 4]));
                    self.at += 1;
                    continue;
                }
                self.bare_piece(&mut parts)?;
            }
            if self.at == from {
                return Err(self.trouble("this test is never closed"));
            }
            words.push(Word { parts: parts.0, span: self.span_from(from) });
        }
    }

    fn function(&mut self) -> Read<Kind> {
        let word = self.some_word("this function has no name")?;
        let name = word.bare().map(str::to_owned);
        let name = name.ok_or_else(|| self.trouble("this function's name cannot be read"))?;
        self.skip_blanks();
        if self.take("(") {
            self.skip_blanks();
            self.expect(")", "this parenthesis cannot stand here")?;
        }
        self.skip_lines()?;
        let from = self.at;
        let kind = self.nested(|cursor| cursor.compound())?;
        let Some(kind) = kind else {
            return Err(self.trouble("this function has no body"));
        };
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => break,
            }
        }
        let body = Rc::new(Command { kind, redirects, span: self.span_from(from) });
        Ok(Kind::Function { name, body })
    }
}

/// A command by itself as a list item.
fn only(kind: Kind) -> Item {
    let command = Command { kind, redirects: Vec::new(), span: 0..0 };
    Item {
        first: super::ast::Pipeline { stages: vec![command] },
        rest: Vec::new(),
        background: false,
    }
}
