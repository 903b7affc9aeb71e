//! One question for each server.

use std::io::{BufRead, IsTerminal, Write};

use mcp_clients::{Access, Proposal};

use crate::render;

pub enum WireAnswer {
    Yes(Vec<Access>),
    No,
    Quit,
}

pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks until the answer can be understood.
pub fn server(proposal: &Proposal) -> WireAnswer {
    let open: Vec<&str> = proposal
        .grants
        .iter()
        .filter(|grant| grant.is_open)
        .map(|grant| grant.text.as_str())
        .collect();
    let question = match open.as_slice() {
        [] => "wire it? [Y/n/q]".to_owned(),
        [one] => format!("wire it, and let it (r)ead or (w)rite {}? [R/w/n/q]", render::plain(one)),
        many => format!(
            "wire it, and let it (r)ead or (w)rite {}? one letter for all, or one for each such as {} [R/w/n/q]",
            render::plain(&many.join(", ")),
            "rw".repeat(many.len()).chars().take(many.len()).collect::<String>()
        ),
    };
    loop {
        match line(&question).map(|line| understood(&line, open.len())) {
            Some(Some(answer)) => return answer,
            Some(None) => {
                render::say("answer with the letters in brackets; Enter means the capital letter")
            }
            None => return WireAnswer::Quit,
        }
    }
}

/// A plain question; the default is yes.
pub fn yes(question: &str) -> Option<bool> {
    loop {
        match line(&format!("{question} [Y/n/q]"))?.trim() {
            "" | "y" | "Y" | "yes" => return Some(true),
            "n" | "N" | "no" => return Some(false),
            "q" | "Q" => return None,
            _ => render::say("answer y, n or q"),
        }
    }
}

fn line(question: &str) -> Option<String> {
    eprint!("{} {question} ", render::prefix());
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer) {
        Ok(length) if length > 0 => Some(answer),
        _ => {
            eprintln!();
            None
        }
    }
}

fn understood(line: &str, open: usize) -> Option<WireAnswer> {
    let word = line.trim().to_ascii_lowercase();
    let access = |letter: char| match letter {
        'r' => Some(Access::Read),
        'w' => Some(Access::Write),
        _ => None,
    };
    match word.as_str() {
        "" | "y" | "yes" => Some(WireAnswer::Yes(vec![Access::Read])),
        "n" | "no" | "s" => Some(WireAnswer::No),
        "q" | "quit" => Some(WireAnswer::Quit),
        letters if open > 0 && (letters.len() == 1 || letters.len() == open) => {
            letters.chars().map(access).collect::<Option<Vec<_>>>().map(WireAnswer::Yes)
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let chosen = |line: &str, open| match understood(line, open) {
            Some(WireAnswer::Yes(access)) => access,
            _ => panic!("{line}"),
        };
        assert_eq!(chosen("\n", 2), [Access::Read]);
        assert_eq!(chosen("w", 2), [Access::Write]);
        assert_eq!(chosen(" RW\n", 2), [Access::Read, Access::Write]);
        assert!(matches!(understood("n", 1), Some(WireAnswer::No)));
        assert!(matches!(understood("q", 1), Some(WireAnswer::Quit)));
        for (line, open) in [("rww", 2), ("x", 1), ("w", 0), ("rx", 2)] {
            assert!(understood(line, open).is_none(), "{line}");
        }
    }
}
