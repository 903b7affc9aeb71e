//! Asks a person about each proposal: as it is, the files instead of the directory or the other way round, for writing too, or never.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use mcp_learn::{Grant, Proposal, path_reason};

use crate::render;

/// Whether there is a terminal to ask on.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// What a person said to one proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Grant(Vec<Grant>),
    Never,
}

pub fn about(proposal: &Proposal, home: Option<&Path>) -> Answer {
    let Proposal { grant, evidence, files } = proposal;
    let choices = Choices::of(proposal, home);
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
    files: Vec<Grant>,
    directory: Option<Grant>,
    write: Option<Grant>,
}

impl Choices {
    fn of(proposal: &Proposal, home: Option<&Path>) -> Choices {
        let (files, directory, write) = match &proposal.grant {
            Grant::Read(path) => {
                let files = proposal.files.iter().cloned().map(Grant::Read).collect();
                let parent = path.parent().filter(|parent| path_reason(parent, home).is_none());
                (
                    files,
                    parent.map(|parent| Grant::Read(parent.to_owned())),
                    Some(Grant::Write(path.clone())),
                )
            }
            Grant::Write(path) => {
                let parent = path.parent().filter(|parent| path_reason(parent, home).is_none());
                (Vec::new(), parent.map(|parent| Grant::Write(parent.to_owned())), None)
            }
            _ => (Vec::new(), None, None),
        };
        // Of files the directory is the other choice, of a directory the files.
        let directory = if files.is_empty() { directory } else { None };
        Choices { own: proposal.grant.clone(), files, directory, write }
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
        if is("yes") {
            return Some(Answer::Grant(vec![self.own.clone()]));
        }
        if is("never") {
            return Some(Answer::Never);
        }
        if is("files") && !self.files.is_empty() {
            return Some(Answer::Grant(self.files.clone()));
        }
        if is("directory") {
            return self.directory.clone().map(|grant| Answer::Grant(vec![grant]));
        }
        if is("write") {
            return self.write.clone().map(|grant| Answer::Grant(vec![grant]));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use mcp_learn::Evidence;

    use super::*;

    fn proposal(grant: Grant, files: &[&str]) -> Proposal {
        let files = files.iter().map(Into::into).collect();
        Proposal { grant, evidence: Evidence::default(), files }
    }

    fn taken(proposal: &Proposal, word: &str) -> Option<Answer> {
        Choices::of(proposal, Some(Path::new("/home/ada"))).taken(word)
    }

    #[test]
    fn a_person_chooses() {
        let notes = proposal(
            Grant::Read("/home/ada/notes".into()),
            &["/home/ada/notes/a", "/home/ada/notes/b"],
        );
        let read = |path: &str| Grant::Read(path.into());
        assert_eq!(taken(&notes, "y"), Some(Answer::Grant(vec![read("/home/ada/notes")])));
        assert_eq!(
            taken(&notes, "f"),
            Some(Answer::Grant(vec![read("/home/ada/notes/a"), read("/home/ada/notes/b")]))
        );
        assert_eq!(
            taken(&notes, "write"),
            Some(Answer::Grant(vec![Grant::Write("/home/ada/notes".into())]))
        );
        assert_eq!(taken(&notes, "n"), Some(Answer::Never));
        assert_eq!(taken(&notes, ""), None);
        assert_eq!(taken(&notes, "d"), None);
        let file = proposal(read("/srv/app/a.toml"), &[]);
        assert_eq!(taken(&file, "d"), Some(Answer::Grant(vec![read("/srv/app")])));
        // The whole home is no choice.
        assert_eq!(taken(&proposal(read("/home/ada/a.toml"), &[]), "d"), None);
    }
}
