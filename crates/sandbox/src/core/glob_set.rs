//! Many globs at once, followed name by name on the way down a tree.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::path::Path;
use std::rc::Rc;

use mcp_policy::glob::{Glob, Part};

/// A glob, by its number, and how many of its parts the path so far has matched.
type GlobState = (usize, usize);

pub struct GlobSet {
    /// With the number of the rule that each came from.
    globs: Vec<(usize, Glob)>,
    /// Most directories are in the same position as their neighbours.
    known: RefCell<HashMap<Vec<GlobState>, Rc<Position>>>,
}

/// Asking for more names than this takes longer than a listing.
const FEW: usize = 4;

/// How far the globs have come in a directory.
pub struct Position {
    states: Vec<GlobState>,
    /// What a name in here must be to be denied, and by which rule.
    last: Vec<(Part, usize)>,
    /// All that can be denied here if there are no directories, where it is little enough to
    /// ask for each.
    #[cfg_attr(
        windows,
        allow(dead_code, reason = "directories are listed there, names are not asked for")
    )]
    pub in_leaf: Option<Vec<(CString, usize)>>,
}

impl GlobSet {
    pub fn new(globs: Vec<(usize, Glob)>) -> GlobSet {
        GlobSet { globs, known: RefCell::default() }
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Glob)> {
        self.globs.iter().enumerate().map(|(number, (_, glob))| (number, glob))
    }

    /// The position of one glob in a directory below its head. Where the glob matches that
    /// directory or one on the way: how many names down, and the rule.
    pub fn descend(&self, glob: usize, below: &Path) -> Result<Rc<Position>, (usize, usize)> {
        let mut states = Vec::new();
        self.enter((glob, 0), &mut states);
        let mut position = self.position(states);
        for (depth, name) in below.iter().enumerate() {
            if let Some(rule) = position.denies(name.as_encoded_bytes()) {
                return Err((depth + 1, rule));
            }
            position = self.below(&position, name.as_encoded_bytes());
        }
        Ok(position)
    }

    #[cfg(any(unix, test))]
    pub fn joined(&self, positions: &[Rc<Position>]) -> Rc<Position> {
        self.position(positions.iter().flat_map(|position| position.states.clone()).collect())
    }

    /// The position in a directory of this name.
    pub fn below(&self, position: &Rc<Position>, name: &[u8]) -> Rc<Position> {
        let mut states = Vec::new();
        for &(glob, part) in &position.states {
            match &self.globs[glob].1.tail[part] {
                Part::AnyDepth => self.enter((glob, part), &mut states),
                wanted if wanted.matches(name) => self.enter((glob, part + 1), &mut states),
                _ => {}
            }
        }
        states.sort_unstable();
        states.dedup();
        if states == position.states { position.clone() } else { self.position(states) }
    }

    /// Adds a state and what it stands for as well: any number of names may be none.
    fn enter(&self, (glob, part): GlobState, states: &mut Vec<GlobState>) {
        let tail = &self.globs[glob].1.tail;
        if part < tail.len() {
            states.push((glob, part));
            if tail[part] == Part::AnyDepth {
                states.push((glob, part + 1));
            }
        }
    }

    fn position(&self, mut states: Vec<GlobState>) -> Rc<Position> {
        states.sort_unstable();
        states.dedup();
        if let Some(known) = self.known.borrow().get(&states) {
            return known.clone();
        }
        let last = states.iter().filter_map(|&(glob, part)| {
            let (rule, Glob { tail, .. }) = &self.globs[glob];
            (part + 1 == tail.len()).then(|| (tail[part].clone(), *rule))
        });
        let last: Vec<_> = last.collect();
        let name = |(part, rule): &(Part, usize)| match part {
            Part::Name(name) => Some((CString::new(name.as_slice()).ok()?, *rule)),
            _ => None,
        };
        let in_leaf =
            if last.len() > FEW { None } else { last.iter().map(name).collect::<Option<_>>() };
        let position = Rc::new(Position { last, in_leaf, states: states.clone() });
        self.known.borrow_mut().insert(states, position.clone());
        position
    }

    /// One of the rules that are still on their way.
    pub fn a_rule(&self, position: &Position) -> usize {
        position.states.first().map_or(0, |(glob, _)| self.globs[*glob].0)
    }

    /// The only names that can match here or lead to a match; `None` when any name might.
    #[cfg(any(unix, test))]
    pub fn names(&self, position: &Position) -> Option<Vec<&[u8]>> {
        let name = |&(glob, part): &GlobState| match &self.globs[glob].1.tail[part] {
            Part::Name(name) => Some(name.as_slice()),
            _ => None,
        };
        position.states.iter().map(name).collect()
    }
}

impl Position {
    /// The rule that denies this name.
    pub fn denies(&self, name: &[u8]) -> Option<usize> {
        self.last.iter().find(|(part, _)| part.matches(name)).map(|(_, rule)| *rule)
    }

    pub fn is_dead(&self) -> bool {
        self.states.is_empty()
    }
}

#[cfg(test)]
mod tests;
