//! What denied paths mean for the rest of a request: deny wins over read and write.

use std::path::{Path, PathBuf};

use mcp_policy::{Policy, Sourced};

use crate::core::error::Error;
use crate::core::request::{Denied, Place, PlaceKind};
use crate::windows::deny;
use crate::windows::locate::Located;

pub struct Denials {
    pub denied: Vec<Denied>,
    rules: Vec<Sourced<PathBuf>>,
}

impl Denials {
    pub fn find(
        policy: &Policy,
        places: [&Vec<Place>; 3],
        home: Option<&Path>,
    ) -> Result<Denials, Error> {
        let rules = policy.filesystem.deny.clone();
        let home = home.map(|path| Place { path: path.to_owned(), kind: PlaceKind::Directory });
        let places: Vec<&Place> = places.into_iter().flatten().chain(&home).collect();
        let denied = match rules.is_empty() {
            true => Vec::new(),
            false => deny::find(&rules, &places)?,
        };
        Ok(Denials { denied, rules })
    }

    /// The rule that denies a path or something above it.
    fn rule(&self, path: &Path) -> Option<&Sourced<PathBuf>> {
        let over = self.denied.iter().find(|denied| path.starts_with(&denied.path))?;
        self.rules.get(over.rule)
    }

    /// Refuses rules that leave nothing to run: the reason must not come from inside.
    pub fn spare(&self, located: &Located, home: Option<&Path>) -> Result<(), Error> {
        for path in std::iter::once(&located.program).chain(&located.shown) {
            if let Some(rule) = self.rule(path) {
                let why = format!("needed to run the command, but denied by {}", told(rule));
                return Err(Error::NotExecutable { path: path.clone(), why });
            }
        }
        match home.and_then(|home| Some((home, self.rule(home)?))) {
            None => Ok(()),
            Some((home, rule)) => Err(Error::Grant {
                flag: "--home".to_owned(),
                path: home.to_owned(),
                why: format!("denied by {}", told(rule)),
            }),
        }
    }

    /// Takes away what is denied as a whole, and tells which grants that were.
    pub fn withdraw(&self, grants: [&mut Vec<Place>; 2], shown: &mut Vec<Place>) -> Vec<PathBuf> {
        let is_left = |place: &Place| self.rule(&place.path).is_none();
        shown.retain(is_left);
        let mut withdrawn = Vec::new();
        for places in grants {
            let (left, taken): (Vec<Place>, Vec<Place>) =
                std::mem::take(places).into_iter().partition(is_left);
            *places = left;
            withdrawn.extend(taken.into_iter().map(|place| place.path));
        }
        withdrawn.sort();
        withdrawn.dedup();
        withdrawn
    }
}

fn told(rule: &Sourced<PathBuf>) -> String {
    format!("{} {}", deny::flag(&rule.origin), rule.value.display())
}
