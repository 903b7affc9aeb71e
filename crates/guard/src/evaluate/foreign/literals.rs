//! Texts in quotes of a program in another language, and what the calls around them do with them.

use super::LONGEST;
use super::tables::{DELETES, MAKES_PATH, RUNS, WRITES};

/// A text in quotes, and the name of the call it is the first argument of.
pub struct Literal {
    pub text: String,
    pub call: String,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Use {
    /// A text for the shell.
    Shell,
    /// A text that would destroy something if a shell read it; whether one does is not known.
    Perhaps,
    /// A word of a command.
    Word,
}

/// Commands that a text of another language holds: each is a shell text, or words.
pub fn commands(text: &str) -> Vec<Vec<(Use, String)>> {
    let mut found: Vec<Vec<(Use, String)>> = Vec::new();
    let word = |text: &str| (Use::Word, text.to_owned());
    let mut list: Vec<(Use, String)> = Vec::new();
    let mut open_list = false;
    let literals = literals_of(text);
    for (at, literal) in literals.iter().enumerate() {
        // `spawn('rm', ['-rf', '/'])`: the words come in a list of their own.
        if literal.call == "["
            && let Some([(Use::Shell, program)]) = found.last().map(|words| &words[..])
            && !program.contains(char::is_whitespace)
        {
            list = vec![word(program), word(&literal.text)];
            found.pop();
            open_list = true;
            continue;
        }
        let next = literals.get(at + 1).filter(|next| next.call == ",");
        let opened_to_write = literal.call == "open"
            && next
                .is_some_and(|next| next.text.len() < 4 && next.text.starts_with(['a', 'w', 'x']));
        if open_list && literal.call == "," {
            list.push(word(&literal.text));
            continue;
        }
        if !list.is_empty() {
            found.push(std::mem::take(&mut list));
        }
        open_list = false;
        let last = literal.call.trim_end_matches('[');
        if RUNS.contains(&last) {
            if literal.call.ends_with('[') {
                open_list = true;
                list.push(word(&literal.text));
            } else {
                found.push(vec![(Use::Shell, literal.text.clone())]);
            }
        } else if (WRITES.contains(&last) || opened_to_write || text.contains("File.write"))
            && literal.text.contains('/')
            && !literal.text.contains(char::is_whitespace)
        {
            found.push(vec![word("tee"), word("--"), word(&below_home(&literal.text))]);
        } else if DELETES.contains(&last) {
            found.push(vec![word("rm"), word("-rf"), word(&literal.text)]);
        } else if literal.text.contains('/') && !literal.text.contains(char::is_whitespace) {
            // Any path is taken to be read.
            found.push(vec![word("cat"), word("--"), word(&below_home(&literal.text))]);
        } else if literal.text.contains("rm ") || literal.text.contains("dd ") {
            found.push(vec![(Use::Perhaps, literal.text.clone())]);
        }
    }
    if !list.is_empty() {
        found.push(list);
    }
    found
}

/// `HOME + "/.ssh/id_rsa"` is below the home.
fn below_home(path: &str) -> String {
    match path.strip_prefix("/.") {
        Some(rest) => format!("~/.{rest}"),
        None => path.to_owned(),
    }
}

/// Texts in quotes, each with the name before its parenthesis; `,` for a further one of a list.
fn literals_of(text: &str) -> Vec<Literal> {
    let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let text = &text[..end.unwrap_or_default()];
    let mut all = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, quote)) = chars.next() {
        if !matches!(quote, '"' | '\'' | '`') {
            continue;
        }
        let mut literal = String::new();
        let mut closed = false;
        while let Some((_, c)) = chars.next() {
            match c {
                '\\' => literal.extend(chars.next().map(|(_, c)| c)),
                c if c == quote => {
                    closed = true;
                    break;
                }
                c => literal.push(c),
            }
        }
        if closed {
            all.push(Literal { text: literal, call: called(&text[..at]) });
        }
    }
    all
}

/// The last name before `(` or `([` at the end of a text.
fn called(before: &str) -> String {
    let before = before.trim_end_matches([' ', '\t', '\n', 'r', 'b', 'f']);
    if before.ends_with(',') {
        return ",".to_owned();
    }
    let open = before.trim_end();
    let list = open.ends_with('[');
    let open = open.trim_end_matches('[').trim_end();
    let open = open.strip_suffix('(').unwrap_or(open).trim_end();
    let start = after_last(open, |c| !c.is_ascii_alphanumeric() && c != '_');
    let name = &open[start..];
    if MAKES_PATH.contains(&name) {
        let object = after_last(open, |c| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
        return called(&open[..object]);
    }
    format!("{name}{}", if list { "[" } else { "" })
}

/// Where the text after the last such character begins.
fn after_last(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.char_indices().rev().find(|(_, c)| is(*c)).map_or(0, |(at, c)| at + c.len_utf8())
}
