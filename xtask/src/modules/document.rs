//! What docs/ARCHITECTURE.md and the pages beside it say about files, held against the tree.

use std::path::{Path, PathBuf};

use super::DOCUMENT;

const MOST_FILES: usize = 20;
/// Where a module path of the documents may begin.
const ROOTS: [&str; 3] = ["crates/sandbox/src", "crates/guard/src", "crates/cli/src"];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn section(title: &str) -> String {
    let text = std::fs::read_to_string(top().join(DOCUMENT)).unwrap();
    let (_, rest) = text.split_once(&format!("\n## {title}\n")).expect(title);
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn the_walk_names_files_and_functions_that_exist() {
    let section = section("The walk of a run");
    let is_numbered =
        |line: &&str| line.split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
    let lines: Vec<&str> = section.lines().filter(is_numbered).collect();
    assert!((10..=MOST_FILES).contains(&lines.len()), "{} files", lines.len());
    for line in lines {
        let (named, _) = line.split_once(": ").expect(line);
        let mut words = code(named);
        let file = words.next().expect(line);
        let source = std::fs::read_to_string(top().join(file)).expect(file);
        let functions: Vec<&str> = words.collect();
        assert!(!functions.is_empty(), "{line}");
        for function in functions {
            let is_defined = [format!("fn {function}("), format!("fn {function}<")]
                .iter()
                .any(|text| source.contains(text))
                || source.contains(&format!("::{function};"));
            assert!(is_defined, "{file} has no function {function}");
        }
    }
}

#[test]
fn the_glossary_is_sorted_and_says_each_word_once() {
    let section = section("Glossary");
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| word"));
    let words: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
    assert!(words.len() > 30, "{words:?}");
    assert!(words.is_sorted_by(|a, b| a < b), "{words:?}");
}

/// `linux/plan` or `windows::deny` as the documents name modules.
fn module(word: &str) -> Option<Vec<PathBuf>> {
    let path = word.replace("::", "/");
    let path = path.trim_end_matches(".rs").trim_end_matches(['/', '*']);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_/".contains(c);
    let (first, rest) = path.split_once('/')?;
    if rest.is_empty() || !path.chars().all(is_plain) {
        return None;
    }
    match first {
        "net" => Some(vec![top().join("crates/net/src").join(rest)]),
        "linux" | "macos" | "windows" | "unix" => {
            Some(ROOTS.iter().map(|root| top().join(root).join(path)).collect())
        }
        _ => None,
    }
}

fn documents(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn modules_that_the_documents_name_exist() {
    let mut pages = vec![top().join("CONTRIBUTING.md")];
    documents(&top().join("docs"), &mut pages);
    let (mut missing, mut seen) = (Vec::new(), 0);
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for word in text.lines().flat_map(code) {
            let Some(places) = module(word) else { continue };
            seen += 1;
            if !places.iter().any(|place| place.is_dir() || place.with_extension("rs").is_file()) {
                missing.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(seen > 30, "{seen}");
    assert!(missing.is_empty(), "{missing:#?}");
}
