//! `cargo xtask api`: what the library crates promise, item by item, in docs/api/CRATE.txt.
//!
//! It is read from the pages that stable rustdoc makes, so it is what the compiler takes for public and not hidden, with
//! signatures, and needs neither nightly (as rustdoc's JSON does) nor a published version to compare with (as
//! cargo-semver-checks does). A change of the API shows as a change of these files in review.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::Result;

const CRATES: [&str; 12] = [
    "mcp-clients",
    "mcp-export",
    "mcp-files",
    "mcp-guard",
    "mcp-learn",
    "mcp-net",
    "mcp-package",
    "mcp-policy",
    "mcp-protocol",
    "mcp-sandbox",
    "mcp-seccomp",
    "mcp-serve",
];

/// Compare the public API of the library crates with docs/api; fail where they differ
#[derive(clap::Args)]
pub struct Args {
    /// Write docs/api anew
    #[arg(long)]
    write: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let top = crate::workspace();
    let pages = document()?;
    let mut code = ExitCode::SUCCESS;
    for name in CRATES {
        let text = described(&pages.join(name.replace('-', "_")))?;
        let file = top.join("docs/api").join(format!("{name}.txt"));
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        if known == text {
            continue;
        }
        if args.write {
            std::fs::create_dir_all(top.join("docs/api"))?;
            std::fs::write(&file, text)?;
            println!("{} is renewed", file.display());
        } else {
            report(name, &known, &text);
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Has rustdoc make the pages, without warnings; where they are.
fn document() -> Result<PathBuf> {
    let about = Command::new("rustc").arg("-vV").output()?;
    let about = String::from_utf8(about.stdout)?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV names no host")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["doc", "--no-deps", "--quiet", "--target", host]);
    cargo.args(CRATES.iter().flat_map(|name| ["-p", name]));
    cargo.env("RUSTDOCFLAGS", "-D warnings").current_dir(crate::workspace());
    if !cargo.status()?.success() {
        return Err("cargo doc failed".into());
    }
    Ok(crate::target_directory().join(host).join("doc"))
}

fn report(name: &str, known: &str, found: &str) {
    eprintln!("the public API of {name} is not what docs/api/{name}.txt says:");
    for line in known.lines().filter(|line| !found.lines().any(|found| found == *line)) {
        eprintln!("  - {line}");
    }
    for line in found.lines().filter(|line| !known.lines().any(|known| known == *line)) {
        eprintln!("  + {line}");
    }
    eprintln!("write it with: cargo xtask api --write");
}

/// All items of a crate, by name.
fn described(directory: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let all = read("all.html")?;
    let mut items = BTreeMap::new();
    let links = between_all(&all, "<li><a href=\"", "\"");
    for link in links.filter(|link| link.ends_with(".html")) {
        items.insert(link.trim_end_matches(".html").replace('/', "::"), item(&read(link)?));
    }
    if items.is_empty() {
        return Err(format!("{} lists no items", directory.display()).into());
    }
    Ok(items.iter().map(|(name, text)| format!("# {name}\n{text}\n")).collect())
}

/// The declaration, its own functions, and the traits it has by an `impl` of ours.
fn item(page: &str) -> String {
    let mut lines = Vec::new();
    for declaration in between_all(page, "<pre class=\"rust item-decl\"><code>", "</code></pre>") {
        lines.extend(plain(declaration).lines().map(str::to_owned));
    }
    let own = section(page, "id=\"implementations\"");
    lines.extend(between_all(own, "<h4 class=\"code-header\">", "</h4>").map(one_line));
    let traits = section(page, "id=\"trait-implementations\"");
    let mut traits: Vec<String> =
        between_all(traits, "<h3 class=\"code-header\">", "</h3>").map(one_line).collect();
    traits.sort();
    lines.extend(traits);
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n") + "\n"
}

/// From a heading to the next of its kind; empty where there is none.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let Some((_, rest)) = page.split_once(heading) else { return "" };
    [
        "id=\"trait-implementations\"",
        "id=\"synthetic-implementations\"",
        "id=\"blanket-implementations\"",
    ]
    .iter()
    .filter_map(|next| rest.find(next))
    .min()
    .map_or(rest, |end| &rest[..end])
}

fn between_all<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(open)
        .skip(1)
        .filter_map(move |rest| rest.split_once(close).map(|(inside, _)| inside))
}

fn one_line(html: &str) -> String {
    plain(html).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text without tags; what is only there to be folded is left out.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text += before;
        rest = match tag.starts_with("summary") {
            true => tag.split_once("</summary>").map_or("", |(_, after)| after),
            false => tag.split_once('>').map_or("", |(_, after)| after),
        };
    }
    text += rest;
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text, |text, (coded, plain)| text.replace(coded, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_comes_to_its_declaration_functions_and_traits() {
        let page = "<pre class=\"rust item-decl\"><code>pub struct <a href=\"x\">A</a>&lt;'a&gt; {\
            <details><summary class=\"hideme\"><span>Show 2 fields</span></summary>\n    pub b: u8,</details>\n}</code></pre>\
            <h2 id=\"implementations\">I</h2><h4 class=\"code-header\">pub fn <a>new</a>()\n -&gt; A</h4>\
            <h2 id=\"trait-implementations\">T</h2><h3 class=\"code-header\">impl Debug for A</h3>\
            <h2 id=\"synthetic-implementations\">S</h2><h3 class=\"code-header\">impl Send for A</h3>";
        let expected =
            "pub struct A<'a> {\n    pub b: u8,\n}\npub fn new() -> A\nimpl Debug for A\n";
        assert_eq!(item(page), expected);
    }
}
