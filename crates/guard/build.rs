//! Packs the built-in rules into tables that a process uses as they lie in the program.
//!
//! `mcp exec` judges one command and meets few of the rules. The tables say which, so that only those are read.
//! They hold numbers and texts but no pointers: a pointer would have to be set at every start of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

use toml::{Table, Value};

/// One file per concern; the classes are in the first.
const SOURCES: [&str; 6] =
    ["builtin", "sources", "credentials", "services", "persistence", "windows"];

/// Between the fields of a rule: a name, and its values after `VALUE` each.
const FIELD: char = '\u{1e}';
const VALUE: char = '\u{1f}';

/// In the order of their bits in `SHELLS`.
const SHELLS: [&str; 3] = ["bash", "powershell", "cmd"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut text = String::new();
    for name in SOURCES {
        let path = format!("src/rules/{name}.toml");
        println!("cargo::rerun-if-changed={path}");
        text += &fs::read_to_string(path)?;
    }
    let file: Table = toml::from_str(&text).map_err(io::Error::other)?;
    let classes = classes(&file)?;
    let rules = rules(&file)?;
    let code = [class_tables(&classes), rule_tables(&rules)?, index(&rules, &classes)?].concat();
    let directory = env::var_os("OUT_DIR").ok_or_else(|| wrong("no OUT_DIR"))?;
    fs::write(Path::new(&directory).join("rules.rs"), code)
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

type Classes = BTreeMap<String, Vec<String>>;

fn classes(file: &Table) -> io::Result<Classes> {
    let table = file.get("classes").and_then(Value::as_table);
    let table = table.ok_or_else(|| wrong("no [classes]"))?;
    table.iter().map(|(name, list)| Ok((name.clone(), texts(list)?))).collect()
}

fn rules(file: &Table) -> io::Result<Vec<Table>> {
    let rules = file.get("rule").and_then(Value::as_array);
    let rules = rules.ok_or_else(|| wrong("no [[rule]]"))?.iter();
    rules.map(|rule| rule.as_table().cloned().ok_or_else(|| wrong("a rule is no table"))).collect()
}

/// The values of a field. A switch that is on has none.
fn texts(value: &Value) -> io::Result<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) if !text.contains([FIELD, VALUE]) => Ok(text.clone()),
        other => Err(wrong(format!("{other:?} cannot be packed"))),
    };
    match value {
        Value::Array(list) => list.iter().map(text).collect(),
        Value::Boolean(true) => Ok(Vec::new()),
        value => Ok(vec![text(value)?]),
    }
}

fn list(rule: &Table, field: &str) -> io::Result<Vec<String>> {
    rule.get(field).map_or_else(|| Ok(Vec::new()), texts)
}

fn id(rule: &Table) -> io::Result<&str> {
    rule.get("id").and_then(Value::as_str).ok_or_else(|| wrong("a rule has no id"))
}

/// The id comes first, so that it is found without reading the rule. Examples stay in the sources.
fn packed(rule: &Table) -> io::Result<String> {
    let mut line = format!("id{VALUE}{}", id(rule)?);
    for (field, value) in rule {
        let off = value.as_bool() == Some(false);
        if off || matches!(field.as_str(), "id" | "matches" | "passes") {
            continue;
        }
        line.push(FIELD);
        line += field;
        for text in texts(value)? {
            line.push(VALUE);
            line += &text;
        }
    }
    Ok(line)
}

fn class_tables(classes: &Classes) -> String {
    let line = |list: &Vec<String>| {
        list.iter().map(|text| format!("{VALUE}{text}")).collect::<Vec<_>>().concat()
    };
    let lists: Vec<String> = classes.values().map(line).collect();
    table("CLASS_NAMES", classes.keys()) + &table("CLASSES", &lists)
}

fn rule_tables(rules: &[Table]) -> io::Result<String> {
    let lines: Vec<String> = rules.iter().map(packed).collect::<io::Result<_>>()?;
    let mut by_id: Vec<(&str, usize)> = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        by_id.push((id(rule)?, number));
    }
    by_id.sort_unstable();
    let mut shells = Vec::new();
    for rule in rules {
        let named = match rule.get("shell") {
            Some(list) => texts(list)?,
            None => vec![SHELLS[0].to_owned()],
        };
        let known = named.iter().all(|name| SHELLS.contains(&name.as_str()));
        if !known {
            return Err(wrong(format!("{}: unknown shell", id(rule)?)));
        }
        let bits = SHELLS.iter().enumerate().filter(|(_, shell)| named.iter().any(|n| n == *shell));
        shells.push(bits.map(|(bit, _)| 1 << bit).sum::<usize>());
    }
    Ok([
        table("RULES", &lines),
        numbers("BY_ID", "u16", by_id.into_iter().map(|(_, number)| number)),
        numbers("SHELLS", "u8", shells),
    ]
    .concat())
}

/// Which rules could be about a command of a name.
fn index(rules: &[Table], classes: &Classes) -> io::Result<String> {
    let mut by_name: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut patterns: Vec<(String, usize)> = Vec::new();
    let mut about_all = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        if rule.get("raised_by_code").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        let commands = list(rule, "command")?;
        if commands.is_empty() {
            about_all.push(number);
        }
        let written = |name: String| match name.strip_prefix('@').and_then(|c| classes.get(c)) {
            Some(class) => class.clone(),
            None => vec![name],
        };
        for name in commands.into_iter().flat_map(written) {
            if name.contains(['*', '?']) {
                patterns.push((name, number));
            } else {
                by_name.entry(name).or_default().insert(number);
            }
        }
    }
    let ends = by_name.values().scan(0, |end, set| {
        *end += set.len();
        Some(*end)
    });
    Ok([
        table("NAMES", by_name.keys()),
        numbers("NAME_ENDS", "u16", ends),
        numbers("NAME_RULES", "u16", by_name.values().flatten().copied()),
        table("PATTERNS", patterns.iter().map(|(pattern, _)| pattern)),
        numbers("PATTERN_RULES", "u16", patterns.iter().map(|(_, number)| *number)),
        numbers("ABOUT_ALL", "u16", about_all),
    ]
    .concat())
}

fn table<'a>(name: &str, texts: impl IntoIterator<Item = &'a String>) -> String {
    let (mut all, mut ends) = (String::new(), Vec::new());
    for text in texts {
        all += text;
        ends.push(all.len());
    }
    numbers(&format!("{name}_ENDS_OF_TEXTS"), "u32", ends)
        + &format!(
            "static {name}: Texts = Texts {{ text: {all:?}, ends: &{name}_ENDS_OF_TEXTS }};\n"
        )
}

fn numbers(name: &str, kind: &str, numbers: impl IntoIterator<Item = usize>) -> String {
    let numbers: Vec<usize> = numbers.into_iter().collect();
    let mut code = format!("static {name}: [{kind}; {}] = [", numbers.len());
    for number in numbers {
        let _ = write!(code, "{number},");
    }
    code + "];\n"
}
