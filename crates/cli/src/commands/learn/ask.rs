//! Asks a person about each proposal: as it is, the files instead of the directory or the other way round, for writing too, or never.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use mcp_learn::{Evidence, Grant, Proposal};

use crate::render;

/// Whether there is a terminal to ask on.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// What a person said to one proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Grant(Vec<(Grant, Evidence)>),
    Never,
}

pub fn about(proposal: &Proposal) -> Answer {
    let Proposal { grant, evidence, files, .. } = proposal;
    let choices = Choices::of(proposal);
    let times =
        if evidence.times == 1 { "once".to_owned() } else { format!("{} times", evidence.times) };
    let many = if files.len() > 1 { format!("{} files, ", files.len()) } else { String::new() };
    let first = render::plain(&evidence.first);
    loop {
        eprint!(
            "{} {}? ({many}{times}, first by {first}) {} ",
            render::prefix(),
            render::plain(&grant.to_string()),
            choices.shown()
        );
        let mut line = String::new();
        if !std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            return Answer::Never;
        }
        if let Some(answer) = choices.taken(line.trim()) {
            return answer;
        }
    }
}

struct Choices {
    own: Grant,
    evidence: Evidence,
    files: Vec<(Grant, Evidence)>,
    directory: Option<Grant>,
    write: Option<Grant>,
}

impl Choices {
    fn of(proposal: &Proposal) -> Choices {
        let directory = proposal.directory.clone();
        let (files, directory, write) = match &proposal.grant {
            Grant::Read(path) => {
                let file = |(path, evidence): (&PathBuf, &Evidence)| {
                    (Grant::Read(path.clone()), evidence.clone())
                };
                (
                    proposal.files.iter().map(file).collect(),
                    directory.map(Grant::Read),
                    Some(Grant::Write(path.clone())),
                )
            }
            Grant::Write(_) => (Vec::new(), directory.map(Grant::Write), None),
            _ => (Vec::new(), None, None),
        };
        // Of files the directory is the other choice, of a directory the files.
        let directory = if files.is_empty() { directory } else { None };
        let (own, evidence) = (proposal.grant.clone(), proposal.evidence.clone());
        Choices { own, evidence, files, directory, write }
    }

    fn shown(&self) -> String {
        let mut shown = vec!["yes"];
        if !self.files.is_empty() {
            shown.push("files");
        }
        if self.directory.is_some() {
            shown.push("directory");
        }
        if self.write.is_some() {
            shown.push("write");
        }
        shown.push("never");
        format!("[{}]", shown.join("/"))
    }

    fn taken(&self, word: &str) -> Option<Answer> {
        let is = |whole: &str| !word.is_empty() && whole.starts_with(word);
        let one = |grant: &Grant| Answer::Grant(vec![(grant.clone(), self.evidence.clone())]);
        if is("yes") {
            return Some(one(&self.own));
        }
        if is("never") {
            return Some(Answer::Never);
        }
        if is("files") && !self.files.is_empty() {
            return Some(Answer::Grant(self.files.clone()));
        }
        if is("directory") {
            return self.directory.as_ref().map(one);
        }
        if is("write") {
            return self.write.as_ref().map(one);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(grant: Grant, files: &[&str], directory: Option<&str>) -> Proposal {
        let files = files.iter().map(|file| (file.into(), Evidence::default())).collect();
        let directory = directory.map(Into::into);
        Proposal { grant, evidence: Evidence::default(), files, directory }
    }

    fn taken(proposal: &Proposal, word: &str) -> Option<Answer> {
        Choices::of(proposal).taken(word)
    }

    #[test]
    fn a_person_chooses() {
        let notes = proposal(
            Grant::Read("/home/ada/notes".into()),
            &["/home/ada/notes/a", "/home/ada/notes/b"],
            Some("/home/ada"),
        );
        let granted = |grants: &[Grant]| {
            let noted = grants.iter().map(|grant| (grant.clone(), Evidence::default()));
            Some(Answer::Grant(noted.collect()))
        };
        let read = |path: &str| Grant::Read(path.into());
        assert_eq!(taken(&notes, "y"), granted(&[read("/home/ada/notes")]));
        assert_eq!(
            taken(&notes, "f"),
            granted(&[read("/home/ada/notes/a"), read("/home/ada/notes/b")])
        );
        assert_eq!(taken(&notes, "write"), granted(&[Grant::Write("/home/ada/notes".into())]));
        assert_eq!(taken(&notes, "n"), Some(Answer::Never));
        assert_eq!(taken(&notes, ""), None);
        assert_eq!(taken(&notes, "d"), None);
        let file = proposal(read("/srv/app/a.toml"), &[], Some("/srv/app"));
        assert_eq!(taken(&file, "d"), granted(&[read("/srv/app")]));
        // The whole home is no choice.
        assert_eq!(taken(&proposal(read("/home/ada/a.toml"), &[], None), "d"), None);
    }
}
