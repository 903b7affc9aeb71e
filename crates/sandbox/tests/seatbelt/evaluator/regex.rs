//! Regular expressions as the sandbox has them, over bytes: `^ $ . [] [^] () | * + ?` and quoting with
//! a backslash. Anything else is an error, so that no profile comes to rest on more.

#[derive(Debug, Clone)]
enum Step {
    Byte(Box<[bool; 256]>),
    Start,
    End,
    /// Goes on at either place.
    Split(usize, usize),
    Jump(usize),
    Match,
}

#[derive(Debug, Clone)]
pub struct Regex(Vec<Step>);

struct Compiler<'a> {
    rest: &'a [u8],
    steps: Vec<Step>,
}

impl Regex {
    pub fn new(text: &str) -> Result<Regex, String> {
        let mut compiler = Compiler { rest: text.as_bytes(), steps: Vec::new() };
        compiler.alternatives()?;
        if !compiler.rest.is_empty() {
            return Err(format!("unexpected ) in {text}"));
        }
        compiler.steps.push(Step::Match);
        Ok(Regex(compiler.steps))
    }

    /// Whether it matches anywhere.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let mut here = vec![false; self.0.len()];
        for at in 0..=text.len() {
            self.enter(0, at, text, &mut here);
            if here.iter().zip(&self.0).any(|(on, step)| *on && matches!(step, Step::Match)) {
                return true;
            }
            let mut next = vec![false; self.0.len()];
            if let Some(byte) = text.get(at) {
                for (index, _) in here.iter().enumerate().filter(|(_, on)| **on) {
                    if matches!(&self.0[index], Step::Byte(set) if set[usize::from(*byte)]) {
                        self.enter(index + 1, at + 1, text, &mut next);
                    }
                }
            }
            here = next;
        }
        false
    }

    fn enter(&self, step: usize, at: usize, text: &[u8], places: &mut [bool]) {
        if std::mem::replace(&mut places[step], true) {
            return;
        }
        match &self.0[step] {
            Step::Jump(to) => self.enter(*to, at, text, places),
            Step::Split(a, b) => {
                self.enter(*a, at, text, places);
                self.enter(*b, at, text, places);
            }
            Step::Start if at == 0 => self.enter(step + 1, at, text, places),
            Step::End if at == text.len() => self.enter(step + 1, at, text, places),
            _ => {}
        }
    }
}

impl Compiler<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn alternatives(&mut self) -> Result<(), String> {
        let start = self.steps.len();
        self.sequence()?;
        while self.rest.first() == Some(&b'|') {
            self.next();
            // One more step in front of what was said so far: all that it refers to moves on.
            self.insert(start, Step::Jump(0));
            let jump = self.steps.len();
            self.steps.push(Step::Jump(0));
            self.steps[start] = Step::Split(start + 1, self.steps.len());
            self.sequence()?;
            self.steps[jump] = Step::Jump(self.steps.len());
        }
        Ok(())
    }

    fn insert(&mut self, at: usize, step: Step) {
        let shift = |to: &mut usize| *to += usize::from(*to >= at);
        for step in &mut self.steps[at..] {
            match step {
                Step::Split(a, b) => {
                    shift(a);
                    shift(b);
                }
                Step::Jump(to) => shift(to),
                _ => {}
            }
        }
        self.steps.insert(at, step);
    }

    fn sequence(&mut self) -> Result<(), String> {
        while !matches!(self.rest.first(), None | Some(b'|' | b')')) {
            let start = self.steps.len();
            self.one()?;
            while let Some(repeat @ (b'*' | b'+' | b'?')) = self.rest.first().copied() {
                self.next();
                if repeat != b'+' {
                    self.insert(start, Step::Jump(0));
                }
                if repeat != b'?' {
                    let back = self.steps.len();
                    let again = if repeat == b'+' { start } else { start + 1 };
                    self.steps.push(Step::Split(again, back + 1));
                }
                if repeat != b'+' {
                    self.steps[start] = Step::Split(start + 1, self.steps.len());
                }
            }
        }
        Ok(())
    }

    fn one(&mut self) -> Result<(), String> {
        let step = match self.next() {
            Some(b'(') => {
                self.alternatives()?;
                return match self.next() {
                    Some(b')') => Ok(()),
                    _ => Err("a group without an end".to_owned()),
                };
            }
            Some(b'^') => Step::Start,
            Some(b'$') => Step::End,
            Some(b'.') => Step::Byte(Box::new([true; 256])),
            Some(b'[') => self.class()?,
            Some(b'\\') => match self.next() {
                Some(quoted) if !quoted.is_ascii_alphanumeric() => single(quoted),
                other => return Err(format!("cannot quote {other:?}")),
            },
            Some(byte @ (b'*' | b'+' | b'?' | b'{' | b'}' | b']')) => {
                return Err(format!("{:?} must be quoted", char::from(byte)));
            }
            Some(byte) => single(byte),
            None => return Err("nothing to match".to_owned()),
        };
        self.steps.push(step);
        Ok(())
    }

    fn class(&mut self) -> Result<Step, String> {
        let negated = self.rest.first() == Some(&b'^');
        self.rest = &self.rest[usize::from(negated)..];
        let mut set = [negated; 256];
        loop {
            let from = match self.next() {
                Some(b']') => return Ok(Step::Byte(Box::new(set))),
                Some(b'\\') => return Err("backslash in a class".to_owned()),
                Some(byte) => byte,
                None => return Err("a class without an end".to_owned()),
            };
            let mut to = from;
            if let [b'-', end, ..] = self.rest
                && *end != b']'
            {
                to = *end;
                self.rest = &self.rest[2..];
            }
            for byte in from..=to {
                set[usize::from(byte)] = !negated;
            }
        }
    }
}

fn single(byte: u8) -> Step {
    let mut set = [false; 256];
    set[usize::from(byte)] = true;
    Step::Byte(Box::new(set))
}

#[test]
fn matches_as_it_should() {
    for (pattern, text, matches) in [
        ("^/a/b$", "/a/b", true),
        ("^/a/b$", "/a/bc", false),
        ("b", "abc", true),
        ("^b", "abc", false),
        ("^(a|bc|d)*$", "abcda", true),
        ("^(a|bc|d)*$", "abda", false),
        ("^[a-c]+[^/]?$", "abcx", true),
        ("^[a-c]+[^/]?$", "abc/", false),
        (r"^/x\.y(/|$)", "/x.y/z", true),
        (r"^/x\.y(/|$)", "/x.yz", false),
        ("^(/[^/]+)*/n(/|$)", "/a\nb/c/n", true),
        ("^([A-Za-z]?[^ -~]+)+$", "e\u{301}é", true),
        ("^(a|b)?c$", "c", true),
        ("^((a|b)+x)*$", "abxbx", true),
        ("^((a|b)+x)*$", "abxb", false),
    ] {
        assert_eq!(
            Regex::new(pattern).unwrap().is_match(text.as_bytes()),
            matches,
            "{pattern} {text}"
        );
    }
}

#[test]
fn refuses_what_the_sandbox_may_not_know() {
    for pattern in [r"\d", "a{2}", "(a", "[a", "a)", "*a", r"[\n]"] {
        assert!(Regex::new(pattern).is_err(), "{pattern}");
    }
}
