//! Applies denied paths to the rest of a request: deny wins over read and write.

use std::path::{Path, PathBuf};

use mcp_policy::{Policy, Sourced};

use crate::core::error::Error;
use crate::core::request::{Denied, Place, PlaceKind};
use crate::host_files::walk::walk;
use crate::unix::deny;
use crate::unix::locate::Located;

pub struct Denials<'a> {
    pub denied: Vec<Denied>,
    rules: &'a [Sourced<PathBuf>],
}

impl Denials<'_> {
    pub fn find<'a>(
        policy: &'a Policy,
        read: &[Place],
        write: &[Place],
        shown: &[Place],
        home: Option<&Path>,
    ) -> Result<Denials<'a>, Error> {
        let rules = &policy.filesystem.deny;
        let home = home.map(|path| Place { path: path.to_owned(), kind: PlaceKind::Directory });
        let granted: Vec<&Place> = read.iter().chain(write).chain(&home).collect();
        let shown: Vec<&Place> = shown.iter().collect();
        let denied = match rules.is_empty() {
            true => Vec::new(),
            false => deny::find(rules, &granted, &shown)?,
        };
        Ok(Denials { denied, rules })
    }

    /// The rule that denies a path or something above it.
    pub fn rule(&self, path: &Path) -> Option<&Sourced<PathBuf>> {
        let over = self.denied.iter().find(|denied| path.starts_with(&denied.path))?;
        self.rules.get(over.rule)
    }

    /// Refuses rules that leave nothing to run: the reason must not come from inside.
    pub fn spare(&self, located: &Located, home: Option<&Path>) -> Result<(), Error> {
        if self.denied.is_empty() {
            return Ok(());
        }
        let program = walk(&located.program).map(|walked| walked.real);
        for path in program.iter().chain(&located.shown) {
            if let Some(rule) = self.rule(path) {
                let why = format!("needed to run the command, but denied by {}", told(rule));
                return Err(Error::NotExecutable { path: path.clone(), why });
            }
        }
        if let Some((home, rule)) = home.and_then(|home| Some((home, self.rule(home)?))) {
            let why = format!("denied by {}", told(rule));
            return Err(Error::Grant { flag: "--home".to_owned(), path: home.to_owned(), why });
        }
        Ok(())
    }

    /// Takes away what is denied as a whole, and tells which grants that were.
    pub fn withdraw(&self, grants: [&mut Vec<Place>; 2], shown: &mut Vec<Place>) -> Vec<PathBuf> {
        let is_left = |place: &Place| self.rule(&place.path).is_none();
        shown.retain(is_left);
        let mut withdrawn = Vec::new();
        for places in grants {
            let (left, taken) = std::mem::take(places).into_iter().partition(is_left);
            *places = left;
            withdrawn.extend(Vec::<Place>::into_iter(taken).map(|place| place.path));
        }
        withdrawn.sort();
        withdrawn.dedup();
        withdrawn
    }
}

fn told(rule: &Sourced<PathBuf>) -> String {
    format!("{} {}", deny::flag(&rule.origin), rule.value.display())
}
