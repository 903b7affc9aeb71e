//! The editors of clients' files: read or refused; an edit changes one entry; taking it back gives the same bytes.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mcp_clients::{
    Bytes, Client, Document, Entry, Kind, Line, NewServer, Target, Undone, Wanted, all, propose, undo,
};

/// Stands in for the command line's own reading of a line.
fn understand(words: &[String]) -> Line {
    match words {
        [npx, package, rest @ ..] if npx == "npx" => Line::Package {
            reference: format!("npm:{package}"),
            program: None,
            arguments: rest.to_vec(),
        },
        [uv, rest @ ..] if uv == "uv" && !rest.is_empty() => Line::Program { words: rest.to_vec() },
        _ => Line::Original,
    }
}

fn words(entry: &Entry) -> Option<Vec<String>> {
    match &entry.kind {
        Kind::Stdio(stdio) => Some(stdio.words()),
        _ => None,
    }
}

fn wire_and_back(client: &Client, document: &Document, at: usize, entries: &[Entry]) {
    let entry = &entries[at];
    let Kind::Stdio(stdio) = &entry.kind else { return };
    let variable = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
    let target = Target {
        mcp: "/usr/bin/mcp",
        home: Path::new("/home/nobody-here"),
        base: None,
        environment: client.environment,
        variable: &variable,
    };
    let Ok(proposal) = propose(stdio, &understand, &|_| Wanted::default(), &target) else { return };
    // An edit that cannot be made is refused, and nothing is written.
    let Ok((edited, taken_back)) = document.wire(client, entry, &proposal) else { return };
    let after = edited.document.entries(client, &client.servers).expect("entries after the edit");
    assert_eq!(after.len(), entries.len());
    for (other, (before, after)) in entries.iter().zip(&after).enumerate() {
        match other == at {
            true => assert_eq!(words(after), Some(proposal.words(stdio))),
            false => assert_eq!(words(after), words(before)),
        }
    }
    if let Ok(Undone::Restored { text }) = undo(&edited.document, client, &taken_back) {
        assert_eq!(text, document.text);
    }
}

fn add_and_back(client: &Client, document: &Document, entries: &[Entry]) {
    let Some(keys) = client.servers.first() else { return };
    let server = NewServer::new(
        "added by mcp".to_owned(),
        "/usr/bin/mcp".to_owned(),
        vec!["run".to_owned(), "npm:x".to_owned()],
        vec![("A".to_owned(), "é\"\\".to_owned())],
    );
    let Ok((edited, _)) = document.add(client, keys, &server) else { return };
    let after = edited.document.entries(client, &client.servers).expect("entries after adding");
    for before in entries {
        assert!(after.iter().any(|after| after.name == before.name && words(after) == words(before)));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let client = &all()[usize::from(*first) % all().len()];
    let Some(bytes) = Bytes::new(rest) else { return };
    assert_eq!(bytes.with(bytes.text), rest);
    let Ok(document) = Document::parse(client.format, bytes.text) else { return };
    let Ok(entries) = document.entries(client, &client.servers) else { return };
    for at in 0..entries.len().min(4) {
        wire_and_back(client, &document, at, &entries);
    }
    add_and_back(client, &document, &entries);
});
