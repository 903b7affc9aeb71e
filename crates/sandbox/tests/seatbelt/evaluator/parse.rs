//! S-expressions: lists, symbols, strings with escapes, `#"raw strings"`, comments.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    List(Vec<Node>),
    Symbol(String),
    Text(String),
}

/// All expressions of a text, or where it stops being one.
pub fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let mut nodes = Vec::new();
    while reader.skip_to_next() {
        nodes.push(reader.node()?);
    }
    Ok(nodes)
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn skip_to_next(&mut self) -> bool {
        while let Some(c) = self.rest.peek() {
            match c {
                ';' => while self.next().is_some_and(|c| c != '\n') {},
                c if c.is_whitespace() => drop(self.next()),
                _ => return true,
            }
        }
        false
    }

    fn node(&mut self) -> Result<Node, String> {
        let line = self.line;
        let fail = |what: &str| Err(format!("line {line}: {what}"));
        match self.next() {
            Some('(') => {
                let mut nodes = Vec::new();
                loop {
                    if !self.skip_to_next() {
                        return fail("a list without an end");
                    }
                    if self.rest.peek() == Some(&')') {
                        self.next();
                        return Ok(Node::List(nodes));
                    }
                    nodes.push(self.node()?);
                }
            }
            Some(')') => fail("an end without a list"),
            Some('"') => self.text(true).map(Node::Text).map_or_else(|| fail("an open string"), Ok),
            Some('#') if self.rest.peek() == Some(&'"') => {
                self.next();
                self.text(false).map(Node::Text).map_or_else(|| fail("an open string"), Ok)
            }
            Some(first) => {
                let mut symbol = String::from(first);
                while let Some(c) = self.rest.peek() {
                    if c.is_whitespace() || "();\"".contains(*c) {
                        break;
                    }
                    symbol.push(*c);
                    self.next();
                }
                Ok(Node::Symbol(symbol))
            }
            None => fail("nothing"),
        }
    }

    fn text(&mut self, escapes: bool) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                '"' => return Some(text),
                '\\' if escapes => text.push(self.next()?),
                c => text.push(c),
            }
        }
    }
}
