//! A shell text as a tree. Spans are bytes of the text the caller was given, also where the piece
//! was unescaped on the way.

use std::ops::Range;
use std::rc::Rc;

pub type Span = Range<usize>;

/// What could be read, and where reading stopped if it did. A shell runs the lines before a syntax
/// error, so they are kept.
#[derive(Debug)]
pub struct Script {
    pub list: List,
    /// Bodies of here-documents, by the number their redirections hold.
    pub heredocs: Rc<[Word]>,
    pub trouble: Option<Trouble>,
}

#[derive(Debug, Clone)]
pub struct Trouble {
    pub span: Span,
    pub what: &'static str,
    /// Too deep or too long to read: another reading would be no better.
    pub fatal: bool,
}

pub type List = Vec<Item>;

/// One `a && b || c`, and whether it runs in the background.
#[derive(Debug)]
pub struct Item {
    pub first: Pipeline,
    pub rest: Vec<(Link, Pipeline)>,
    pub background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    And,
    Or,
}

#[derive(Debug)]
pub struct Pipeline {
    pub stages: Vec<Command>,
}

#[derive(Debug)]
pub struct Command {
    pub kind: Kind,
    pub redirects: Vec<Redirect>,
    pub span: Span,
}

#[derive(Debug)]
pub enum Kind {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    Group(List),
    Subshell(List),
    /// `select` as well. No words: over the arguments of the script.
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: List,
    },
    ArithmeticFor {
        head: Word,
        body: List,
    },
    If {
        branches: Vec<(List, List)>,
        otherwise: List,
    },
    /// `until` as well.
    While {
        condition: List,
        body: List,
    },
    Case {
        subject: Word,
        arms: Vec<List>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    /// `[[ … ]]`: only its expansions do anything.
    Test(Vec<Word>),
    Arithmetic(Word),
}

#[derive(Debug)]
pub struct Assignment {
    pub name: String,
    pub value: Assigned,
}

#[derive(Debug)]
pub enum Assigned {
    Word(Word),
    /// `+=`
    Appended(Word),
    /// An array, or one of its elements.
    Array(Vec<Word>),
}

#[derive(Debug)]
pub enum Redirect {
    Read(Word),
    Write(Word),
    /// `>&2`, `<&-`: no file.
    Duplicate,
    HereString(Word),
    HereDocument(usize),
}

#[derive(Debug, Default)]
pub struct Word {
    pub parts: Vec<Part>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    Bare,
    Quoted,
}

/// Whether the command reads from a substituted process or writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    From,
    To,
}

#[derive(Debug)]
pub enum Part {
    /// Bare text: globs, braces and tildes in it still mean something.
    Plain(String),
    /// Text that stands for itself.
    Literal(String),
    Variable(Variable, Quoting),
    /// `$(…)` or backticks.
    Substitution(List, Quoting),
    /// `$((…))`
    Arithmetic(Vec<Part>),
    /// `<(…)` or `>(…)`
    Process(List, Direction),
    /// `@(a|b)` and its like, with what is expanded in it.
    Pattern(Vec<Part>),
    /// Understood to be an expansion, but not which.
    Unreadable,
}

#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub operator: Operator,
}

#[derive(Debug)]
pub enum Operator {
    None,
    /// `${#x}`
    Length,
    /// `${!x}`
    Indirect,
    /// `${x:-w}` and `${x:=w}`
    Default(Word),
    /// `${x:+w}`
    Alternative(Word),
    /// `${x:?w}`: the value, or the shell stops.
    Required,
    /// `${x:1:2}`
    Slice {
        from: usize,
        length: Option<usize>,
    },
    /// `${x#p}`, `${x##p}`
    CutFront {
        pattern: Word,
        longest: bool,
    },
    /// `${x%p}`, `${x%%p}`
    CutBack {
        pattern: Word,
        longest: bool,
    },
    /// `${x/p/r}`, `${x//p/r}`
    Replace {
        pattern: Word,
        with: Word,
        all: bool,
    },
    Upper,
    Lower,
    /// Anything else, with the words in it: they may run something.
    Other(Vec<Part>),
}

impl Word {
    /// The text of a word without anything to expand or unquote.
    pub fn bare(&self) -> Option<&str> {
        match &self.parts[..] {
            [Part::Plain(text)] => Some(text),
            _ => None,
        }
    }
}
