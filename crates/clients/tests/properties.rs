//! Files made at random: one entry is wired, and nothing else is another file afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use mcp_clients::{
    Client, Document, Entry, Format, Kind, Line, Proposal, Target, Undone, Wanted, find, propose,
    undo,
};
use proptest::prelude::*;

/// Stands in for the command line's own reading of a line.
fn understand(words: &[String]) -> Line {
    match words {
        [npx, yes, package, rest @ ..] if npx == "npx" && yes == "-y" => Line::Package {
            reference: format!("npm:{package}"),
            program: None,
            arguments: rest.to_vec(),
        },
        [uvx, _, _, _, package, rest @ ..] if uvx == "uvx" => Line::Package {
            reference: format!("pypi:{package}"),
            program: None,
            arguments: rest.to_vec(),
        },
        _ => Line::Original,
    }
}

fn proposal(entry: &Entry, client: &Client) -> Option<Proposal> {
    let Kind::Stdio(stdio) = &entry.kind else {
        return None;
    };
    let none = |_: &str| None;
    let target = Target {
        mcp: "/usr/local/bin/mcp",
        home: std::path::Path::new("/home/nobody-here"),
        base: None,
        environment: client.environment,
        variable: &none,
    };
    propose(stdio, &understand, &|_| Wanted::default(), &target).ok()
}

/// A word for a command line, with what formats quote and do not.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z@/.-]{1,12}",
        "--[a-z]{1,6}(=[a-z0-9]{0,4})?",
        Just(String::new()),
        "[ -~]{1,8}",
        "[\\x00-\\x1f\"'\\\\#/,:\\[\\]{}&*!|>%@`\\u{85}\\u{a0}\\u{2028}\\u{feff}äöü🦀\\u{7f}]{1,6}",
    ]
}

/// Blanks, line ends and comments that may stand between two tokens.
fn gap(format: Format) -> BoxedStrategy<String> {
    match format {
        Format::Json => prop_oneof![
            4 => Just(String::new()),
            3 => Just(" ".to_owned()),
            2 => Just("\n    ".to_owned()),
            1 => Just("\r\n\t".to_owned()),
            1 => "[a-z \"\\[\\]{},:]{0,9}".prop_map(|text| format!(" // §{text}\n  ")),
            1 => "[a-z \"\\[\\]{},:]{0,9}".prop_map(|text| format!("/* §{text} */")),
        ]
        .boxed(),
        _ => prop_oneof![
            4 => Just(String::new()),
            3 => Just(" ".to_owned()),
            2 => Just("\n    ".to_owned()),
            1 => "[a-z \"\\[\\]{},:]{0,9}".prop_map(|text| format!(" # §{text}\n  ")),
        ]
        .boxed(),
    }
}

fn quoted(format: Format, word: &str) -> String {
    mcp_clients::document::quoted(format, word)
}

/// A list with gaps between its words.
fn list(format: Format) -> impl Strategy<Value = String> {
    let element = (word(), gap(format), gap(format));
    (prop::collection::vec(element, 0..6), gap(format), any::<bool>()).prop_map(
        move |(elements, last, trailing)| {
            let mut out = String::from("[");
            let count = elements.len();
            for (at, (word, before, after)) in elements.iter().enumerate() {
                let comma = if at + 1 < count || trailing { "," } else { "" };
                out += &format!("{before}{}{after}{comma}", quoted(format, word));
            }
            out + &last + "]"
        },
    )
}

fn command() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("npx".to_owned()),
        Just("uvx".to_owned()),
        "[a-z/.-]{1,9}",
        "[a-zä\"\\\\]{1,5}"
    ]
}

prop_compose! {
    fn json_entry()(
        command in command(), list in list(Format::Json), has_args in any::<bool>(), args_first in any::<bool>(),
        g in prop::collection::vec(gap(Format::Json), 8), extra in "[a-z]{1,4}", value in word(),
    ) -> String {
        let q = |word: &str| quoted(Format::Json, word);
        let command = format!("\"command\"{}:{}{}{}", g[0], g[1], q(&command), g[2]);
        let args = format!("\"args\"{}:{}{list}{}", g[3], g[4], g[5]);
        let extra = format!("\"x{extra}\":{}", q(&value));
        let members = match (has_args, args_first) {
            (false, _) => vec![command, extra],
            (true, true) => vec![args, extra, command],
            (true, false) => vec![command, args, extra],
        };
        format!("{{{}{}{}}}", g[6], members.join(&format!(",{}", g[7])), g[6])
    }
}

prop_compose! {
    fn json_file()(
        entries in prop::collection::vec(json_entry(), 1..5), g in prop::collection::vec(gap(Format::Json), 6),
        other in list(Format::Json), trailing in any::<bool>(),
    ) -> String {
        let entries: Vec<String> =
            entries.iter().enumerate().map(|(at, entry)| format!("{}\"s{at}\":{entry}", g[0])).collect();
        let comma = if trailing { "," } else { "" };
        format!(
            "{}{{\"other\":{other},{}\"mcpServers\":{}{{{}{comma}{}}}{}}}{}",
            g[1], g[2], g[3], entries.join(","), g[4], g[5], g[1]
        )
    }
}

prop_compose! {
    fn toml_entry()(
        command in command(), list in list(Format::Toml), has_args in any::<bool>(), style in 0..3u8,
        comment in "( # §[a-z\"\\[\\]]{0,6})?", extra in word(),
    ) -> (u8, String) {
        let command = quoted(Format::Toml, &command);
        let extra = quoted(Format::Toml, &extra);
        match style {
            0 => {
                let args = if has_args { format!("args  =  {list}{comment}\n") } else { String::new() };
                (0, format!("command = {command}{comment}\n{args}x = {extra}\n"))
            }
            1 => {
                let args = if has_args { format!("args = {list}{comment}\n") } else { String::new() };
                (0, format!("x = {extra}\n{args}  command={command}{comment}\n[mcp_servers.@.env]\nA = {extra}\n"))
            }
            _ => {
                let args = if has_args { format!(", args = {}", list.replace('\n', " ").replace(" #", " ")) } else { String::new() };
                // No comments on one line: only where there were none.
                let args = if list.contains('#') || list.contains('\n') { String::new() } else { args };
                (2, format!("{{ command = {command}{args}, x = {extra} }}{comment}\n"))
            }
        }
    }
}

prop_compose! {
    fn toml_file()(entries in prop::collection::vec(toml_entry(), 1..5), other in list(Format::Toml)) -> String {
        let mut out = format!("other = {other}\n");
        for (at, (style, entry)) in entries.iter().enumerate() {
            let entry = entry.replace('@', &format!("s{at}"));
            match style {
                2 => {
                    out.insert_str(0, &format!("mcp_servers.s{at} = {entry}"));
                }
                _ => out += &format!("\n[mcp_servers.s{at}] # here\n{entry}"),
            }
        }
        out
    }
}

prop_compose! {
    fn yaml_entry()(
        command in command(), words in prop::collection::vec(word(), 0..5), style in 0..3u8,
        comment in "( # §[a-z\"\\[\\]]{0,6})?", deeper in 0..3usize, extra in word(), has_blank in any::<bool>(),
    ) -> String {
        let q = |word: &str| quoted(Format::Yaml, word);
        let mut out = format!("    cmd: {}{comment}\n", q(&command));
        let indent = " ".repeat(4 + deeper);
        match style {
            _ if words.is_empty() => {}
            0 => {
                out += "    args:\n";
                for word in &words {
                    if has_blank {
                        out += &format!("\n{indent}# - {comment}\n");
                    }
                    out += &format!("{indent}-  {}{comment}\n", q(word));
                }
            }
            1 => {
                let words: Vec<String> = words.iter().map(|word| q(word)).collect();
                out += &format!("    args: [{}]{comment}\n", words.join(" , "));
            }
            _ => {
                let words: Vec<String> = words.iter().map(|word| q(word)).collect();
                out += &format!("    args: [\n        {}\n      ]{comment}\n", words.join(",\n        "));
            }
        }
        out + &format!("    x: {}\n", q(&extra))
    }
}

prop_compose! {
    fn yaml_file()(entries in prop::collection::vec(yaml_entry(), 1..5), other in word()) -> String {
        let mut out = format!("# top\nother: {}\nextensions:\n", quoted(Format::Yaml, &other));
        for (at, entry) in entries.iter().enumerate() {
            out += &format!("  s{at}:\n{entry}");
        }
        out + "after: [1, true, ~]\n"
    }
}

/// Wires every entry, one after the other; each time only that one is another. Then all the way back.
fn there_and_back(client: &'static Client, format: Format, text: &str) {
    let Ok(first) = Document::parse(format, text) else {
        panic!(
            "the test made a file that does not parse:\n{text}\n{:?}",
            Document::parse(format, text).err()
        );
    };
    let entries = first.entries(client, &client.servers).unwrap();
    let mut document = first.clone();
    let mut done = Vec::new();
    for entry in &entries {
        let Some(proposal) = proposal(entry, client) else {
            continue;
        };
        let (edited, undo) = document
            .wire(client, entry, &proposal)
            .unwrap_or_else(|why| panic!("{why}:\n{}", document.text));
        let after = edited.document.entries(client, &client.servers).unwrap();
        let before = document.entries(client, &client.servers).unwrap();
        for (one, two) in before.iter().zip(&after) {
            let (Kind::Stdio(one_words), Kind::Stdio(two_words)) = (&one.kind, &two.kind) else {
                panic!("{one:?} {two:?}");
            };
            match one.name == entry.name {
                true => assert_eq!(two_words.words(), proposal.words(one_words), "{text}"),
                false => assert_eq!(two_words.words(), one_words.words(), "{text}"),
            }
        }
        // Every comment is still there.
        assert_eq!(
            document.text.matches('§').count(),
            edited.text.matches('§').count(),
            "{text}\n{}",
            edited.text
        );
        independent(format, &document.text, &edited.text, &entry.name);
        document = edited.document;
        done.push(undo);
    }
    // In the order of the file, not of the work: any order will do.
    for one in &done {
        let text = match undo(&document, client, one)
            .unwrap_or_else(|why| panic!("{why}:\n{}", document.text))
        {
            Undone::Restored { text } => text,
            other => panic!("{other:?}"),
        };
        document = Document::parse(format, &text).unwrap();
    }
    assert_eq!(document.text, text);
}

/// By other parsers than the editor's own: what is not the entry is what it was.
fn independent(format: Format, before: &str, after: &str, name: &str) {
    match format {
        Format::Toml => {
            let parse = |text: &str| {
                let mut table: toml::Table = text.parse().unwrap();
                table.get_mut("mcp_servers").unwrap().as_table_mut().unwrap().remove(name);
                table
            };
            assert_eq!(parse(before), parse(after));
        }
        Format::Json => {
            let parse = |text: &str| -> Option<serde_json::Value> {
                let mut value: serde_json::Value = serde_json::from_str(text).ok()?;
                value["mcpServers"].as_object_mut()?.remove(name);
                Some(value)
            };
            // Where the file is plain JSON, it still is.
            assert_eq!(parse(before), parse(after));
        }
        _ => {}
    }
}

/// Found by fuzzing: wiring the second wrote its words into the first.
#[test]
fn two_servers_of_one_name_are_a_fault() {
    let list = |second: &str| {
        format!(
            "mcpServers:\n  - name: a\n    command: npx\n  - name: {second}\n    command: uvx\n"
        )
    };
    let client = find("continue").unwrap();
    let entries = |second: &str| {
        let document = Document::parse(Format::Yaml, &list(second)).unwrap();
        document.entries(client, &client.servers).map(|entries| entries.len())
    };
    assert_eq!(entries("b"), Ok(2));
    let fault = entries("a").unwrap_err();
    assert_eq!((fault.line, fault.message.as_str()), (4, "two servers are named a"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json(text in json_file()) {
        there_and_back(find("cursor").unwrap(), Format::Json, &text);
    }

    #[test]
    fn toml(text in toml_file()) {
        there_and_back(find("codex").unwrap(), Format::Toml, &text);
    }

    #[test]
    fn yaml(text in yaml_file()) {
        there_and_back(find("goose").unwrap(), Format::Yaml, &text);
    }

    /// A word comes out of every format as it went in.
    #[test]
    fn words(word in word()) {
        for (format, text) in [
            (Format::Json, format!("{{\"a\": {}}}", quoted(Format::Json, &word))),
            (Format::Toml, format!("a = {}\n", quoted(Format::Toml, &word))),
            (Format::Yaml, format!("a: {}\n", quoted(Format::Yaml, &word))),
        ] {
            let document = Document::parse(format, &text).unwrap();
            prop_assert_eq!(document.root.field("a").unwrap().as_text().unwrap(), word.as_str(), "{}", text);
        }
    }

    /// Whatever the bytes: an answer, and no panic.
    #[test]
    fn noise(text in "[\\[\\]{}:,\"#/*\\n\\- a-z0-9&|>'=.]{0,60}") {
        for (id, format) in [("cursor", Format::Json), ("codex", Format::Toml), ("goose", Format::Yaml)] {
            let client = find(id).unwrap();
            if let Ok(document) = Document::parse(format, &text) {
                let _ = document.entries(client, &client.servers);
            }
        }
    }
}
