//! docs/FLAGS.md shows the help of every verb as the program prints it. `UPDATE_DOCS=1` rewrites it.

use std::process::Command;

use crate::support::mcp_path;
use crate::top;

fn help(words: &[&str]) -> String {
    let output = Command::new(mcp_path()).args(words).env("COLUMNS", "110").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn verbs() -> Vec<String> {
    let lines = help(&["--help"]);
    let lines = lines.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_page_of_flags_is_the_help() {
    let mut page = String::from(
        "# Flags\n\nThe help of every verb, as `mcp VERB --help` prints it. \
         Made by `UPDATE_DOCS=1 cargo test -p mcp-cli --test docs`.\n",
    );
    for verb in verbs().iter().filter(|verb| *verb != "help") {
        let text = help(&[verb, "--help"]);
        let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        page.push_str(&format!("\n## mcp {verb}\n\n```text\n{}\n```\n", text.trim_end()));
    }
    let path = top().join("docs/FLAGS.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        there, page,
        "run `UPDATE_DOCS=1 cargo test -p mcp-cli --test docs` to renew docs/FLAGS.md"
    );
}

#[test]
fn the_page_of_recipes_is_made_of_them() {
    let file = top().join("docs/RECIPES.md");
    let page = mcp_package::recipes::page().unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == page,
        "UPDATE_DOCS=1 makes it again"
    );
}
