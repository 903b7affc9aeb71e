//! Adds learned lines to the text of an existing policy file, whose own text and comments stay as they are.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use mcp_policy::toml_text::{comment, key, quoted};
use toml::de::{DeTable, DeValue};

use crate::draft::Draft;
use crate::grant::Grant;

/// Why lines cannot be added to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmergeable {
    /// It is no TOML; the reason.
    Syntax(String),
    /// The value of this key has another form than a policy's.
    Form(String),
}

impl std::fmt::Display for Unmergeable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unmergeable::Syntax(why) => write!(f, "is no TOML: {why}"),
            Unmergeable::Form(key) => {
                write!(f, "the value of {key} is not written as a policy writes it")
            }
        }
    }
}

/// The text with the grants of `draft` that `given` does not hold, and the paths that it closes. Limits stay as they are.
///
/// # Errors
///
/// When the text is no policy.
pub fn insert(text: &str, given: &Draft, draft: &Draft) -> Result<String, Unmergeable> {
    let is_new = |grant: &Grant| !given.grants().any(|kept| kept.covers(grant));
    let mut lists: BTreeMap<(&str, &str), Vec<(String, String)>> = BTreeMap::new();
    for (grant, note) in draft.noted().filter(|(grant, _)| is_new(grant)) {
        let Some(value) = grant.value() else { continue };
        let at = match grant {
            Grant::Secret(_) => ("env.secrets", ""),
            _ => grant.key(),
        };
        lists.entry(at).or_default().push((value, note.to_owned()));
    }
    for (path, note) in draft.denied() {
        if !given.denied().any(|(closed, _)| closed == path) {
            let denied = lists.entry(("filesystem", "deny")).or_default();
            denied.push((path.to_owned(), note.to_owned()));
        }
    }
    let mut text = text.to_owned();
    for ((table, name), items) in lists {
        text = match name {
            "" => add_members(&text, table, &items)?,
            _ => add_items(&text, table, name, &items)?,
        };
    }
    Ok(text)
}

/// To the end of an array, or as a new one.
fn add_items(
    text: &str,
    table: &str,
    name: &str,
    items: &[(String, String)],
) -> Result<String, Unmergeable> {
    let form = || Unmergeable::Form(format!("{table}.{name}"));
    let document = parse(text)?;
    let found = match document.get(table).map(|table| table.get_ref()) {
        Some(DeValue::Table(table)) => table.get(name),
        Some(_) => return Err(Unmergeable::Form(table.to_owned())),
        None => None,
    };
    let Some(found) = found else {
        let mut lines = format!("{name} = [\n");
        lines.push_str(&written(items));
        lines.push_str("]\n");
        return add_to_table(text, table, &lines);
    };
    let DeValue::Array(array) = found.get_ref() else { return Err(form()) };
    let Range { end, .. } = found.span();
    let close = end.checked_sub(1).filter(|at| text[*at..].starts_with(']')).ok_or_else(form)?;
    let last = array.iter().map(|item| item.span().end).max();
    let (head, tail) = text.split_at(close);
    let (head, comma) = match last {
        // The comma may be there already, and a comment behind it.
        Some(last) => {
            let has_comma = without_comments(&head[last..]).contains(',');
            let (before, after) = head.split_at(last);
            (format!("{before}{}{}", if has_comma { "" } else { "," }, after), "")
        }
        None => (head.to_owned(), ""),
    };
    let newline = if head.trim_end_matches(' ').ends_with('\n') { "" } else { "\n" };
    Ok(format!("{}{comma}{newline}{}{tail}", head.trim_end_matches(' '), written(items)))
}

/// Keys of a table of their own.
fn add_members(text: &str, table: &str, items: &[(String, String)]) -> Result<String, Unmergeable> {
    let mut lines = String::new();
    for (name, note) in items {
        // Writing to a String cannot fail.
        let _ = writeln!(
            lines,
            "{} = {} # {}",
            key(name),
            quoted(&format!("env:{name}")),
            comment(note)
        );
    }
    add_to_table(text, table, &lines)
}

/// Behind the head of a table, or with a new head at the end.
fn add_to_table(text: &str, table: &str, lines: &str) -> Result<String, Unmergeable> {
    let head = format!("[{table}]");
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if without_comments(line).split_whitespace().collect::<String>() == head {
            let newline = if line.ends_with('\n') { "" } else { "\n" };
            let text = format!("{}{newline}{lines}{}", &text[..at], &text[at..]);
            return checked(text, table);
        }
    }
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let space = if text.is_empty() { "" } else { "\n" };
    checked(format!("{text}{newline}{space}{head}\n{lines}"), table)
}

/// An inline table (`env = { … }`) has no head, and a second one of its name is no TOML.
fn checked(text: String, table: &str) -> Result<String, Unmergeable> {
    match parse(&text) {
        Ok(_) => Ok(text),
        Err(_) => Err(Unmergeable::Form(table.to_owned())),
    }
}

fn parse(text: &str) -> Result<DeTable<'_>, Unmergeable> {
    let table = DeTable::parse(text);
    table.map(|table| table.into_inner()).map_err(|e| Unmergeable::Syntax(e.message().to_owned()))
}

fn written(items: &[(String, String)]) -> String {
    let line =
        |(value, note): &(String, String)| format!("    {}, # {}\n", quoted(value), comment(note));
    items.iter().map(line).collect()
}

/// Good enough between values, where no string can stand.
fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests;
