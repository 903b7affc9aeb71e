//! Expansions: the words that begin with `$` or a backtick.

use super::ast::{Operator, Part, Quoting, Variable, Word};
use super::cursor::{Cursor, Read, read_part};
use super::word::Parts;

impl Cursor<'_> {
    /// At a `$`.
    pub fn dollar(&mut self, parts: &mut Parts, quoting: Quoting) -> Read<()> {
        let next = self.peek_at(1);
        match next {
            Some(b'(') if self.peek_at(2) == Some(b'(') => self.arithmetic_or_list(parts, quoting),
            Some(b'(') => {
                self.at += 2;
                let list = self.nested(|cursor| cursor.list_until_parenthesis())?;
                parts.0.push(Part::Substitution(list, quoting));
                Ok(())
            }
            Some(b'{') => {
                self.at += 2;
                let part = self.nested(|cursor| cursor.braced(quoting))?;
                parts.0.push(part);
                Ok(())
            }
            // Old bash: the same as `$((…))`.
            Some(b'[') => {
                self.at += 2;
                let inner = self.nested(|cursor| cursor.arithmetic(b"]"))?;
                parts.0.push(Part::Arithmetic(inner));
                Ok(())
            }
            Some(b'\'') if quoting == Quoting::Bare => {
                self.at += 2;
                self.ansi_quoted(parts)
            }
            // A text to be translated.
            Some(b'"') if quoting == Quoting::Bare => {
                self.at += 2;
                self.double_quoted(parts, b'"')
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                self.at += 1;
                let name = self.name();
                parts.0.push(Part::Variable(Variable { name, operator: Operator::None }, quoting));
                Ok(())
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 2;
                let variable =
                    Variable { name: char::from(byte).to_string(), operator: Operator::None };
                parts.0.push(Part::Variable(variable, quoting));
                Ok(())
            }
            _ => {
                self.at += 1;
                match quoting {
                    Quoting::Bare => parts.plain("$"),
                    Quoting::Quoted => parts.literal("$"),
                }
                Ok(())
            }
        }
    }

    pub fn name(&mut self) -> String {
        let length = self
            .rest()
            .iter()
            .position(|byte| *byte != b'_' && !byte.is_ascii_alphanumeric())
            .unwrap_or(self.bytes.len() - self.at);
        let name = self.text[self.at..self.at + length].to_owned();
        self.at += length;
        name
    }

    /// `$((` is arithmetic if it ends as arithmetic does, else a list that begins with a subshell.
    fn arithmetic_or_list(&mut self, parts: &mut Parts, quoting: Quoting) -> Read<()> {
        let from = self.at;
        let (bodies, waiting) = (self.heredocs.len(), self.pending.len());
        self.at += 3;
        match self.nested(|cursor| cursor.arithmetic(b"))")) {
            Ok(inner) => {
                parts.0.push(Part::Arithmetic(inner));
                Ok(())
            }
            Err(trouble) if trouble.fatal => Err(trouble),
            Err(_) => {
                self.at = from + 2;
                self.heredocs.truncate(bodies);
                self.pending.truncate(waiting);
                let list = self.nested(|cursor| cursor.list_until_parenthesis())?;
                parts.0.push(Part::Substitution(list, quoting));
                Ok(())
            }
        }
    }

    /// Up to and with `end`: the expansions in it.
    pub fn arithmetic(&mut self, end: &[u8]) -> Read<Vec<Part>> {
        let mut parts = Parts::default();
        let mut depth = 0usize;
        loop {
            self.step()?;
            if depth == 0 && self.rest().starts_with(end) {
                self.at += end.len();
                return Ok(parts.0);
            }
            match self.peek() {
                None => return Err(self.trouble("this arithmetic is never closed")),
                Some(b'(' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b')' | b']') => {
                    depth = match depth.checked_sub(1) {
                        Some(depth) => depth,
                        None => return Err(self.trouble("this closes nothing")),
                    };
                    self.at += 1;
                }
                Some(b'\'' | b'"' | b'\\' | b'$' | b'`') => self.bare_piece(&mut parts)?,
                Some(_) => {
                    let next = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
                    parts.literal(&self.text[self.at..self.at + next]);
                    self.at += next;
                }
            }
        }
    }

    /// At a backtick. What is inside is unescaped first, then read as a text of its own.
    pub fn backticks(&mut self, parts: &mut Parts, quoting: Quoting) -> Read<()> {
        let from = self.at;
        self.at += 1;
        let mut inner = String::new();
        loop {
            self.step()?;
            let Some(c) = self.text[self.at..].chars().next() else {
                self.at = from;
                return Err(self.trouble("this backtick is never closed"));
            };
            self.at += c.len_utf8();
            match c {
                '`' => break,
                '\\' => match self.peek() {
                    Some(b'`' | b'\\' | b'$') => {
                        inner.push(char::from(self.bytes[self.at]));
                        self.at += 1;
                    }
                    Some(b'"') if quoting == Quoting::Quoted => {
                        inner.push('"');
                        self.at += 1;
                    }
                    _ => inner.push('\\'),
                },
                c => inner.push(c),
            }
        }
        let exact = self.text[from + 1..self.at - 1] == inner;
        let origin = if exact {
            self.origin.inner(from + 1)
        } else {
            super::Origin::Within(self.span_from(from))
        };
        let list = self.nested(|cursor| {
            let next = cursor.first_heredoc + cursor.heredocs.len();
            let (list, heredocs) = read_part(&inner, origin, cursor.depth, next)?;
            cursor.heredocs.extend(heredocs);
            Ok(list)
        })?;
        parts.0.push(Part::Substitution(list, quoting));
        Ok(())
    }

    /// After `${`.
    fn braced(&mut self, quoting: Quoting) -> Read<Part> {
        let operator = match (self.peek(), self.peek_at(1)) {
            (Some(b'#'), Some(next)) if next != b'}' => {
                self.at += 1;
                Operator::Length
            }
            (Some(b'!'), Some(next)) if next != b'}' => {
                self.at += 1;
                Operator::Indirect
            }
            _ => Operator::None,
        };
        let mut name = self.name();
        if name.is_empty()
            && let Some(byte) = self.peek()
            && b"@*#?-$!".contains(&byte)
        {
            self.at += 1;
            name = char::from(byte).to_string();
        }
        if name.is_empty() {
            return Err(self.trouble("this is no name of a variable"));
        }
        if self.peek() == Some(b'[') {
            self.at += 1;
            let subscript = self.arithmetic(b"]")?;
            // All elements, or how many there are.
            let all = matches!(&subscript[..], [Part::Literal(text)] if text == "@" || text == "*");
            if all && !matches!(operator, Operator::Indirect) && self.take("}") {
                name.push_str("[@]");
                return Ok(Part::Variable(Variable { name, operator }, quoting));
            }
            return self.unread_rest(subscript);
        }
        if self.take("}") {
            return Ok(Part::Variable(Variable { name, operator }, quoting));
        }
        match operator {
            Operator::None => {}
            _ => return self.unread_rest(Vec::new()),
        }
        let operator = self.operator(quoting)?;
        Ok(Part::Variable(Variable { name, operator }, quoting))
    }

    /// An expansion that is not followed: only what runs inside it is kept.
    fn unread_rest(&mut self, mut inner: Vec<Part>) -> Read<Part> {
        inner.extend(self.until(b"}", Quoting::Quoted)?.parts);
        self.expect("}", "this expansion is never closed")?;
        let variable = Variable { name: String::new(), operator: Operator::Other(inner) };
        Ok(Part::Variable(variable, Quoting::Bare))
    }

    /// After the name in `${name…}`, up to and with the brace.
    fn operator(&mut self, quoting: Quoting) -> Read<Operator> {
        let colon = self.peek() == Some(b':');
        let sign = if colon { self.peek_at(1) } else { self.peek() };
        let past = |cursor: &mut Self| cursor.at += usize::from(colon) + 1;
        let operator = match sign {
            Some(b'-' | b'=') => {
                past(self);
                Operator::Default(self.until(b"}", quoting)?)
            }
            Some(b'+') => {
                past(self);
                Operator::Alternative(self.until(b"}", quoting)?)
            }
            Some(b'?') => {
                past(self);
                let said = self.until(b"}", quoting)?;
                // The message may run something too.
                match said
                    .parts
                    .iter()
                    .all(|part| matches!(part, Part::Plain(_) | Part::Literal(_)))
                {
                    true => Operator::Required,
                    false => Operator::Other(said.parts),
                }
            }
            Some(byte @ (b'#' | b'%')) if !colon => {
                self.at += 1;
                let longest = self.take(char::from(byte).encode_utf8(&mut [0; 4]));
                let pattern = self.until(b"}", Quoting::Bare)?;
                match byte {
                    b'#' => Operator::CutFront { pattern, longest },
                    _ => Operator::CutBack { pattern, longest },
                }
            }
            Some(b'/') if !colon => {
                self.at += 1;
                let all = self.take("/");
                let pattern = self.until(b"/}", Quoting::Bare)?;
                let with = match self.take("/") {
                    true => self.until(b"}", Quoting::Bare)?,
                    false => Word::default(),
                };
                Operator::Replace { pattern, with, all }
            }
            Some(b'^') if !colon && self.starts("^^}") => {
                self.at += 2;
                Operator::Upper
            }
            Some(b',') if !colon && self.starts(",,}") => {
                self.at += 2;
                Operator::Lower
            }
            _ if colon => self.slice()?,
            _ => Operator::Other(self.until(b"}", Quoting::Quoted)?.parts),
        };
        self.expect("}", "this expansion is never closed")?;
        Ok(operator)
    }

    /// `:1` or `:1:2`; anything but plain numbers is not followed.
    fn slice(&mut self) -> Read<Operator> {
        let from = self.at;
        let body = self.until(b"}", Quoting::Quoted)?;
        let text = &self.text[from + 1..self.at];
        let (start, length) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let number = |text: &str| text.trim().parse::<usize>().ok();
        Ok(match (number(start), length.map(number)) {
            (Some(from), None) => Operator::Slice { from, length: None },
            (Some(from), Some(Some(length))) => Operator::Slice { from, length: Some(length) },
            _ => Operator::Other(body.parts),
        })
    }

    /// A word inside `${…}`, up to one of these bytes and without it.
    fn until(&mut self, ends: &[u8], quoting: Quoting) -> Read<Word> {
        let from = self.at;
        let mut parts = Parts::default();
        loop {
            self.step()?;
            match self.peek() {
                None => return Err(self.trouble("this expansion is never closed")),
                Some(byte) if ends.contains(&byte) => break,
                Some(b'\'') if quoting == Quoting::Quoted => {
                    parts.literal("'");
                    self.at += 1;
                }
                Some(b'\'' | b'"' | b'\\' | b'$' | b'`') => self.bare_piece(&mut parts)?,
                Some(_) => {
                    let stop = |byte: &u8| {
                        ends.contains(byte) || matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`')
                    };
                    let length = self.rest().iter().position(stop);
                    let end = length.map_or(self.bytes.len(), |length| self.at + length);
                    let text = &self.text[self.at..end];
                    match quoting {
                        Quoting::Bare => parts.plain(text),
                        Quoting::Quoted => parts.literal(text),
                    }
                    self.at = end;
                }
            }
        }
        Ok(Word { parts: parts.0, span: self.span_from(from) })
    }
}
