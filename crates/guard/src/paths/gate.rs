//! What may be opened, and the walk to it.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use super::deny::Deny;
use super::forms::{self, Style};
use super::platform::{self, Directory};
use super::refusal::{Refusal, Why};

/// What a file is to be opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Read a file.
    Read,
    /// Read the names in a directory.
    List,
    /// Change a file, or make it; what it holds is kept until the caller truncates it.
    Write,
    /// Make a file that is not there yet.
    Create,
}

/// What absolute paths may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Absolute {
    /// Nothing: only relative paths are taken.
    Refused,
    /// What is below a root.
    #[default]
    InRoots,
    /// Anything that no deny rule closes (`allow_absolute`).
    Anywhere,
}

/// Makes a [`Gate`].
#[derive(Debug, Clone)]
pub struct GateBuilder {
    roots: Vec<PathBuf>,
    start: Option<PathBuf>,
    deny: Vec<String>,
    absolute: Absolute,
}

/// Opens files below its roots. Relative paths begin at the first root, or where the builder says.
#[derive(Debug)]
pub struct Gate {
    roots: Vec<Root>,
    deny: Deny,
    absolute: Absolute,
}

#[derive(Debug)]
pub(super) struct Root {
    /// Without links, as it was when the gate was made.
    pub path: PathBuf,
    pub directory: Directory,
}

/// An open file, and where it is.
#[derive(Debug)]
pub struct Opened {
    /// The file, open.
    pub file: File,
    /// Without links.
    pub path: PathBuf,
}

impl GateBuilder {
    /// Closes what a glob matches, in every root.
    pub fn deny(mut self, pattern: impl Into<String>) -> GateBuilder {
        self.deny.push(pattern.into());
        self
    }

    /// Opens one more directory.
    pub fn root(mut self, root: impl Into<PathBuf>) -> GateBuilder {
        self.roots.push(root.into());
        self
    }

    /// Relative paths begin at this directory, which has to lie in a root, instead of at the first root.
    pub fn start_at(mut self, directory: impl Into<PathBuf>) -> GateBuilder {
        self.start = Some(directory.into());
        self
    }

    /// Whether absolute paths are taken.
    pub fn absolute(mut self, absolute: Absolute) -> GateBuilder {
        self.absolute = absolute;
        self
    }

    /// Opens the roots; they stay the same directories whatever happens to their names.
    pub fn build(self) -> Result<Gate, Refusal> {
        let open = |root: &PathBuf| {
            let open = || -> Result<Root, Why> {
                let path = root.canonicalize()?;
                let directory = Directory::open_root(&path)?;
                Ok(Root { path, directory })
            };
            open().map_err(|why| Refusal::new(&root.to_string_lossy(), why))
        };
        let mut roots = self.roots.iter().map(open).collect::<Result<Vec<Root>, Refusal>>()?;
        if let Some(start) = &self.start {
            let first = open(start)?;
            if !roots.iter().any(|root| first.path.starts_with(&root.path)) {
                return Err(Refusal::new(&start.to_string_lossy(), Why::Outside));
            }
            roots.insert(0, first);
        }
        let deny = Deny::new(&self.deny)
            .map_err(|why| Refusal::new(&why, Why::Form("cannot be a deny rule")))?;
        Ok(Gate { roots, deny, absolute: self.absolute })
    }
}

impl Gate {
    /// A gate with one root; more are added to the builder.
    pub fn builder(root: impl Into<PathBuf>) -> GateBuilder {
        GateBuilder {
            roots: vec![root.into()],
            start: None,
            deny: Vec::new(),
            absolute: Absolute::default(),
        }
    }

    /// Opens what a path names, or says why not.
    pub fn resolve(&self, path: &str, intent: Intent) -> Result<Opened, Refusal> {
        self.walk(path, intent).map_err(|why| Refusal::new(path, why))
    }

    fn walk(&self, path: &str, intent: Intent) -> Result<Opened, Why> {
        if let Some(what) = forms::judge(path, Style::native()) {
            return Err(Why::Form(what));
        }
        if intent != Intent::List && path.ends_with(['/', std::path::MAIN_SEPARATOR]) {
            return Err(Why::NotA("a file"));
        }
        match self.place(Path::new(path))? {
            Start::Root(number, names) => {
                let root = &self.roots[number];
                platform::walk(self, &root.path, &root.directory, names, intent)
            }
            Start::Top(top, names) => {
                let directory = Directory::open_root(&top)?;
                platform::walk(self, &top, &directory, names, intent)
            }
        }
    }

    /// The root a path is below, and the names from there on.
    fn place(&self, path: &Path) -> Result<Start, Why> {
        let absolute = path.has_root() || path.is_absolute();
        match (absolute, self.absolute) {
            (false, _) if self.roots.is_empty() => Err(Why::Outside),
            (false, _) => Ok(Start::Root(0, names_of(path)?)),
            (true, Absolute::Refused) => {
                Err(Why::Form("absolute paths are refused; write it from the root"))
            }
            (true, _) => match self.below_a_root(path) {
                Some((number, names)) => Ok(Start::Root(number, names)),
                None if self.anywhere() => {
                    let top = path.ancestors().last().unwrap_or(path).to_owned();
                    Ok(Start::Top(top, names_of(path)?))
                }
                None => Err(Why::Outside),
            },
        }
    }

    /// The deepest root that an absolute path is below.
    pub(super) fn below_a_root(&self, path: &Path) -> Option<(usize, Vec<String>)> {
        let below = |(number, root): (usize, &Root)| {
            let rest = path.strip_prefix(&root.path).ok()?;
            Some((number, names_of(rest).ok()?, root.path.components().count()))
        };
        let found = self.roots.iter().enumerate().filter_map(below);
        let found = found.max_by_key(|(_, _, depth)| *depth);
        found.map(|(number, names, _)| (number, names))
    }

    /// Whether absolute paths may leave the roots.
    pub(super) fn anywhere(&self) -> bool {
        self.absolute == Absolute::Anywhere
    }

    #[cfg(unix)]
    pub(super) fn root(&self, number: usize) -> &Root {
        &self.roots[number]
    }

    /// Refuses what a rule closes: the last of the names below a root.
    pub(super) fn check(&self, root: &Path, names: &[String]) -> Result<(), Why> {
        match self.deny.rule(root, names) {
            Some(rule) => Err(Why::Denied { rule: rule.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Where a walk begins: at a root, or at the top of the file system.
enum Start {
    Root(usize, Vec<String>),
    Top(PathBuf, Vec<String>),
}

/// The names of a path. What is no text cannot be judged by rules that are.
pub(super) fn names_of(path: &Path) -> Result<Vec<String>, Why> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => {
                let name = name.to_str().ok_or(Why::Form("is not valid UTF-8"))?;
                names.push(name.to_owned());
            }
            Component::ParentDir => names.push("..".to_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(names)
}
