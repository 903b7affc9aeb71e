//! What documents name in backticks is there: the files of this repository, and in the pages about security the tests that
//! show a promise.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{documents, top};

/// A path of this repository begins with one of these.
const AT_THE_TOP: &[&str] = &[
    "bench/",
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "packaging/",
    "tools/cross",
    "tools/try",
    "xtask/",
];

/// The words in backticks, each with its line.
fn code_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(number, line)| {
        line.split('`').skip(1).step_by(2).map(move |word| (number + 1, word))
    })
}

/// `a/{b,c}` as `a/b` and `a/c`.
fn spelled_out(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![word.to_owned()] };
    choices.split(',').flat_map(|choice| spelled_out(&format!("{before}{choice}{after}"))).collect()
}

/// `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            rest.is_empty()
                || (0..=tail.len())
                    .any(|at| tail.is_char_boundary(at) && matches(rest, &tail[at..]))
        }),
    }
}

fn exists(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
    let Ok(mut entries) = fs::read_dir(top().join(directory)) else { return false };
    entries.any(|entry| matches(name, &entry.unwrap().file_name().to_string_lossy()))
}

#[test]
fn files_that_documents_name_exist() {
    let mut missing = Vec::new();
    for document in documents()
        .into_iter()
        .chain([top().join("CONTRIBUTING.md"), top().join("bench/README.md")])
    {
        for (line, word) in code_words(&fs::read_to_string(&document).unwrap()) {
            if AT_THE_TOP.iter().any(|start| word.starts_with(start)) && !word.contains([' ', '<'])
            {
                for path in spelled_out(word).iter().filter(|path| !exists(path)) {
                    missing.push(format!("{}:{line}: {path}", document.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The functions of each module, by the module's last name.
fn functions() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut pending = vec![top().join("crates")];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for module in modules(&path, &text) {
                    found.entry(module).or_default().extend(names_after("fn ", &text));
                }
            }
        }
    }
    found
}

/// The names under which what is in a file can be meant: its own, those of its directories, and of modules in it.
fn modules(path: &Path, text: &str) -> Vec<String> {
    let below: PathBuf = path.strip_prefix(top()).unwrap().with_extension("");
    let of_path = below.iter().map(|part| part.to_string_lossy().into_owned());
    of_path.chain(names_after("mod ", text)).collect()
}

fn names_after(keyword: &str, text: &str) -> Vec<String> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.lines()
        .filter_map(|line| line.split_once(keyword))
        .map(|(_, rest)| rest.chars().take_while(|character| is_part(*character)).collect())
        .collect()
}

#[test]
fn tests_that_the_pages_about_security_name_exist() {
    let functions = functions();
    let (mut missing, mut seen) = (Vec::new(), 0);
    for document in
        documents().into_iter().filter(|path| path.to_string_lossy().contains("security/"))
    {
        for (line, word) in code_words(&fs::read_to_string(&document).unwrap()) {
            let is_path_of_rust = word.contains("::")
                && word
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:*{},".contains(c));
            if !is_path_of_rust || word.starts_with("mcp_") || word.starts_with(':') {
                continue;
            }
            for name in spelled_out(word) {
                seen += 1;
                let (path, function) = name.rsplit_once("::").unwrap();
                let module = path.rsplit("::").next().unwrap();
                let is_there = functions.get(module).is_some_and(|names| {
                    names.iter().any(|name| matches(function, name))
                        || functions.contains_key(function)
                });
                if !is_there {
                    missing.push(format!("{}:{line}: {name}", document.display()));
                }
            }
        }
    }
    assert!(seen > 100, "the pages name {seen} tests");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_name_that_is_missing_is_found() {
    assert!(!exists("crates/no-such"));
    assert!(exists("crates/cli/tests/docs/names.rs") && exists("crates/*"));
    assert_eq!(spelled_out("a/{b,c}/d"), ["a/b/d", "a/c/d"]);
    assert!(matches("a_*", "a_b") && matches("*_b", "a_b") && !matches("a_*c", "a_b"));
    assert_eq!(code_words("x `y` z `w`").collect::<Vec<_>>(), [(1, "y"), (1, "w")]);
}
