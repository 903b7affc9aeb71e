//! Which place of the file system a word names, as far as the text tells, and whether it is one of
//! a class of places.
//!
//! An unknown part inside a path is taken to stay where it stands: `build/$x` is something below
//! build, although `x` might hold `..`.

use crate::tri::Tri;
use crate::value::{Piece, Value};
use crate::wildcard;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    Root,
    Home,
    /// The directory the command starts in, or that many levels above it.
    Start {
        up: usize,
    },
    Unknown,
}

/// Steps upwards that most likely end at the root.
const FAR: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Known(String),
    /// A shell pattern that does not match everything.
    Glob(String),
    /// One unknown name.
    Name,
    /// Anything, nothing included.
    Open,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub base: Base,
    pub steps: Vec<Step>,
    /// The directory this was taken from might be another one: a `cd` before may have failed.
    pub otherwise: Option<Box<Place>>,
}

impl Place {
    pub fn start() -> Place {
        Place { base: Base::Start { up: 0 }, steps: Vec::new(), otherwise: None }
    }

    pub fn unknown() -> Place {
        Place { base: Base::Unknown, steps: Vec::new(), otherwise: None }
    }

    /// Perhaps it is the other one.
    pub fn doubt(&mut self, other: &Place) {
        let other = Place { base: other.base, steps: other.steps.clone(), otherwise: None };
        self.otherwise = Some(Box::new(other));
    }

    /// Where a path leads from here.
    pub fn join(&self, path: &Value) -> Place {
        let mut place = self.join_once(path);
        place.otherwise = self.otherwise.as_ref().map(|other| Box::new(other.join_once(path)));
        place
    }

    fn join_once(&self, path: &Value) -> Place {
        let mut place = match path.pieces.first() {
            Some(Piece::Home) => Place { base: Base::Home, steps: Vec::new(), otherwise: None },
            Some(Piece::Text(text)) if text.starts_with('/') => {
                Place { base: Base::Root, steps: Vec::new(), otherwise: None }
            }
            Some(Piece::Unknown | Piece::Many | Piece::Fetched) => Place::unknown(),
            _ => Place { base: self.base, steps: self.steps.clone(), otherwise: None },
        };
        let skip = matches!(
            path.pieces.first(),
            Some(Piece::Home | Piece::Unknown | Piece::Many | Piece::Fetched)
        );
        for name in names(&path.pieces[usize::from(skip)..]) {
            place.enter(name);
        }
        // What everything in a directory is, is the directory.
        while matches!(place.steps.last(), Some(Step::Glob(glob)) if matches_everything(glob)) {
            place.steps.pop();
        }
        place
    }

    fn enter(&mut self, step: Step) {
        match step {
            Step::Known(name) if name.is_empty() || name == "." => {}
            Step::Known(name) if name == ".." => match (self.steps.pop(), self.base) {
                (None, Base::Start { up }) => self.base = Base::Start { up: up + 1 },
                // Homes are at different depths: the worst is meant.
                (None, Base::Home) => self.base = Base::Root,
                // Above an unknown place is an unknown place.
                (Some(Step::Open), _) => self.steps.push(Step::Open),
                _ => {}
            },
            step => self.steps.push(step),
        }
    }

    /// Whether this is a place of the class: `/etc`, `/dev/sd*`, `/etc/**` (all below), `~`, `.`.
    pub fn is(&self, pattern: &Pattern) -> Tri {
        let elsewhere = self.otherwise.as_ref().map_or(Tri::No, |other| other.is_surely(pattern));
        self.is_surely(pattern).or(elsewhere.and(Tri::Maybe))
    }

    fn is_surely(&self, wanted: &Pattern) -> Tri {
        if wanted.base == (Base::Start { up: 1 }) {
            return self.is_above();
        }
        match (self.base, wanted.base) {
            (Base::Unknown, _) => suffix(&self.steps, wanted),
            (Base::Start { up: 0 }, Base::Start { up: 0 }) => steps(&self.steps, wanted),
            (a, b) if a == b && !matches!(a, Base::Start { .. }) => steps(&self.steps, wanted),
            // Above everything that a project is in: no further up there is than the root.
            (Base::Start { up }, Base::Root) if up >= FAR => steps(&self.steps, wanted),
            (Base::Start { up }, Base::Home)
                if up >= FAR - 1
                    && wanted.names.first().is_some_and(|name| name.starts_with('.')) =>
            {
                steps(&self.steps, wanted).and(Tri::Maybe)
            }
            (Base::Root, Base::Home) if !wanted.names.is_empty() => match self.below_a_home() {
                Some(below) => steps(below, wanted),
                None => Tri::No,
            },
            _ => Tri::No,
        }
    }

    /// What comes after `/home/ann`, `/Users/ann` or `/root`: a home by another spelling.
    fn below_a_home(&self) -> Option<&[Step]> {
        let named = |step: &Step, name: &str| matches!(step, Step::Known(own) if own == name);
        match &self.steps[..] {
            [first, rest @ ..] if named(first, "root") => Some(rest),
            [first, _, rest @ ..] if named(first, "home") || named(first, "Users") => Some(rest),
            _ => None,
        }
    }

    /// The start directory's parents.
    fn is_above(&self) -> Tri {
        match self.base {
            Base::Start { up } if up > 0 => Tri::from(self.steps.is_empty()),
            Base::Unknown if self.steps.is_empty() => Tri::Maybe,
            _ => Tri::No,
        }
    }
}

/// A place, or all places of a kind.
#[derive(Debug, Clone)]
pub struct Pattern {
    base: Base,
    names: Vec<String>,
    /// `/**` at the end.
    below: bool,
}

impl Pattern {
    pub fn parse(text: &str) -> Pattern {
        let (base, rest) = match text {
            ".." => (Base::Start { up: 1 }, ""),
            text if text.starts_with('/') => (Base::Root, &text[1..]),
            text if text.starts_with('~') => (Base::Home, &text[1..]),
            text => (Base::Start { up: 0 }, text.strip_prefix('.').unwrap_or(text)),
        };
        let mut names: Vec<String> =
            rest.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let below = names.last().is_some_and(|name| name == "**");
        if below {
            names.pop();
        }
        Pattern { base, names, below }
    }
}

fn steps(own: &[Step], wanted: &Pattern) -> Tri {
    // An open end may be nothing, or something below.
    if let [rest @ .., Step::Open] = own {
        let here = steps(rest, wanted);
        let further = rest.len() < wanted.names.len() || wanted.below;
        let prefix = rest
            .iter()
            .zip(&wanted.names)
            .map(|(step, name)| one(step, name))
            .fold(Tri::Yes, Tri::and);
        return match (here, further && prefix != Tri::No) {
            (Tri::No, false) => Tri::No,
            _ => Tri::Maybe,
        };
    }
    let fits = match wanted.below {
        true => own.len() > wanted.names.len(),
        false => own.len() == wanted.names.len(),
    };
    if !fits {
        return Tri::No;
    }
    own.iter().zip(&wanted.names).map(|(step, name)| one(step, name)).fold(Tri::Yes, Tri::and)
}

/// Whether the last names fit; what is before them is unknown.
fn suffix(own: &[Step], wanted: &Pattern) -> Tri {
    let Some(common) = wanted.names.len().checked_sub(own.len()) else {
        return Tri::No;
    };
    if wanted.below && !own.is_empty() {
        return Tri::No;
    }
    let fits = own.iter().zip(&wanted.names[common..]).map(|(step, name)| one(step, name));
    fits.fold(Tri::Maybe, Tri::and)
}

fn one(step: &Step, name: &str) -> Tri {
    match step {
        Step::Known(own) => wildcard::matches(name, own).into(),
        // Whatever it is.
        Step::Name | Step::Glob(_) if name == "*" => Tri::Yes,
        // `id_*` and `id_r*` are all of `id_*`.
        Step::Glob(glob)
            if name.strip_suffix('*').is_some_and(|start| {
                !start.is_empty() && !start.contains(['*', '?']) && glob.starts_with(start)
            }) =>
        {
            Tri::Yes
        }
        // A pattern of the shell against a plain name; two patterns may meet.
        Step::Glob(_) if name.contains(['*', '?']) => Tri::Maybe,
        Step::Glob(glob) => glob_matches(glob, name).into(),
        Step::Name | Step::Open => Tri::Maybe,
    }
}

/// Brackets and groups are read generously: any one character, anything.
fn glob_matches(glob: &str, name: &str) -> bool {
    let mut pattern = String::new();
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        match c {
            '[' => {
                for inside in chars.by_ref() {
                    if inside == ']' {
                        break;
                    }
                }
                pattern.push('?');
            }
            '(' => {
                pattern.push('*');
                break;
            }
            c => pattern.push(c),
        }
    }
    let hidden = name.starts_with('.') && !glob.starts_with('.');
    !hidden && wildcard::matches(&pattern, name)
}

/// `*`, `.*`, `*.*`, `.[!.]*`, `?*`: whatever is there, more or less.
fn matches_everything(glob: &str) -> bool {
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '*' | '?' | '.' | '(' | ')' => &rest[1..],
            '[' if rest.starts_with("[!") || rest.starts_with("[^") => {
                rest.split_once(']').map_or("", |(_, after)| after)
            }
            _ => return false,
        };
    }
    glob.contains('*')
}

/// The names between the slashes.
fn names(pieces: &[Piece]) -> Vec<Step> {
    let mut all = Vec::new();
    let mut name = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                let mut parts = text.split('/');
                if let Some(first) = parts.next() {
                    name.push(Piece::Text(first.to_owned()));
                }
                for part in parts {
                    all.push(step(&std::mem::take(&mut name)));
                    name.push(Piece::Text(part.to_owned()));
                }
            }
            piece => name.push(piece.clone()),
        }
    }
    all.push(step(&name));
    all
}

fn step(pieces: &[Piece]) -> Step {
    let solid: Vec<&Piece> = pieces
        .iter()
        .filter(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()))
        .collect();
    match &solid[..] {
        [] => Step::Known(String::new()),
        [Piece::Text(text)] => Step::Known(text.clone()),
        [Piece::Unknown | Piece::Many | Piece::Fetched] => Step::Open,
        pieces if pieces.iter().all(|p| matches!(p, Piece::Text(_) | Piece::Glob(_))) => {
            let text = |piece: &&Piece| match piece {
                Piece::Text(text) | Piece::Glob(text) => text.clone(),
                _ => String::new(),
            };
            Step::Glob(pieces.iter().map(text).collect())
        }
        pieces
            if pieces
                .iter()
                .all(|p| matches!(p, Piece::Unknown | Piece::Many | Piece::Fetched)) =>
        {
            Step::Open
        }
        _ => Step::Name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(path: &str, pattern: &str) -> Tri {
        Place::start().join(&Value::text(path)).is(&Pattern::parse(pattern))
    }

    fn value(text: &str) -> Value {
        let mut value = Value::default();
        for (at, part) in text.split('$').enumerate() {
            if at > 0 {
                value.push(Piece::Unknown);
            }
            for (at, part) in part.split('*').enumerate() {
                if at > 0 {
                    value.push(Piece::Glob("*".to_owned()));
                }
                value.push_text(part);
            }
        }
        value
    }

    #[test]
    fn spellings_of_one_place() {
        for path in ["/", "//", "/.", "/..", "/usr/..", "/./../", "/tmp/../.."] {
            assert_eq!(is(path, "/"), Tri::Yes, "{path}");
        }
        for path in ["/usr/bin/..", "//usr/", "/usr/."] {
            assert_eq!(is(path, "/usr"), Tri::Yes, "{path}");
        }
        assert_eq!(is("/usr/local", "/usr"), Tri::No);
        assert_eq!(is("/etc/x/y", "/etc/**"), Tri::Yes);
        assert_eq!(is("/etc", "/etc/**"), Tri::No);
        assert_eq!(is("../..", ".."), Tri::Yes);
        assert_eq!(is("../x", ".."), Tri::No);
        assert_eq!(is("a/..", "."), Tri::Yes);
    }

    #[test]
    fn unknown_parts() {
        let is = |text: &str, pattern: &str| {
            Place::start().join(&value(text)).is(&Pattern::parse(pattern))
        };
        assert_eq!(is("$", "/"), Tri::Maybe);
        assert_eq!(is("/$", "/"), Tri::Maybe);
        assert_eq!(is("$/", "/"), Tri::Maybe);
        assert_eq!(is("$/build", "/usr"), Tri::No);
        assert_eq!(is("$/usr", "/usr"), Tri::Maybe);
        assert_eq!(is("/tmp/$", "/"), Tri::No);
        assert_eq!(is("/usr/$", "/usr"), Tri::Maybe);
        assert_eq!(is("build/$", "."), Tri::No);
        assert_eq!(is("./$", "."), Tri::Maybe);
    }

    #[test]
    fn globs() {
        let is = |text: &str, pattern: &str| {
            Place::start().join(&value(text)).is(&Pattern::parse(pattern))
        };
        assert_eq!(is("/*", "/"), Tri::Yes);
        assert_eq!(is("/u*", "/usr"), Tri::Yes);
        assert_eq!(is("/x*", "/usr"), Tri::No);
        assert_eq!(is("*", "."), Tri::Yes);
        assert_eq!(is("./*", "."), Tri::Yes);
        assert_eq!(is("*.o", "."), Tri::No);
        assert_eq!(is("$/*", "/"), Tri::Maybe);
    }
}
