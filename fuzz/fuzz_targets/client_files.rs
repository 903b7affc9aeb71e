//! Files of MCP clients: whatever the bytes, every entry that can be wired is wired without a panic, nothing else
//! is another value afterwards, and taking it back gives the same bytes.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mcp_clients::{Document, Format, Kind, Line, Target, Undone, Wanted, find, propose, undo};

fn understand(words: &[String]) -> Line {
    match words {
        [first, rest @ ..] if first.starts_with('n') && !rest.is_empty() => Line::Package {
            reference: format!("npm:{}", rest[0].len()),
            program: None,
            arguments: rest[1..].to_vec(),
        },
        _ => Line::Original,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let (id, format) = match kind % 4 {
        0 => ("cursor", Format::Json),
        1 => ("codex", Format::Toml),
        2 => ("goose", Format::Yaml),
        _ => ("opencode", Format::Jsonc),
    };
    let (Some(client), Ok(text)) = (find(id), std::str::from_utf8(bytes)) else {
        return;
    };
    let Ok(first) = Document::parse(format, text) else {
        return;
    };
    let Ok(entries) = first.entries(client, &client.servers) else {
        return;
    };
    let none = |_: &str| None;
    let target = Target {
        mcp: "/usr/bin/mcp",
        home: Path::new("/home/nobody-here"),
        base: None,
        environment: client.environment,
        variable: &none,
    };
    let mut document = first;
    let mut done = Vec::new();
    for entry in &entries {
        let Kind::Stdio(stdio) = &entry.kind else {
            continue;
        };
        let Ok(proposal) = propose(stdio, &understand, &|_| Wanted::default(), &target) else {
            continue;
        };
        // Where the editor would not keep the rest, it says so and nothing is written.
        if let Ok((edited, undo)) = document.wire(client, entry, &proposal) {
            document = edited.document;
            done.push(undo);
        }
    }
    for one in done.iter().rev() {
        match undo(&document, client, one) {
            Ok(Undone::Restored { text }) => {
                document = Document::parse(format, &text).unwrap();
            }
            other => panic!("{other:?}\n{}", document.text),
        }
    }
    assert_eq!(document.text, text);
});
