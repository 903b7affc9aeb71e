//! What Markdown shows: fenced blocks, the commands in them, links.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Shell,
    Json,
    Toml,
    Other,
}

/// A fenced block, and the line at which its text begins.
pub struct Block {
    pub language: Language,
    pub line: usize,
    pub text: String,
}

/// An entry of a client's configuration.
#[derive(serde::Deserialize)]
pub struct ClientEntry {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: std::collections::BTreeMap<String, String>,
}

pub fn blocks(document: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in document.lines().enumerate() {
        if let Some(fence) = line.strip_prefix("```") {
            open = !open;
            if open {
                let language = match fence.trim() {
                    "sh" => Language::Shell,
                    "json" => Language::Json,
                    "toml" => Language::Toml,
                    _ => Language::Other,
                };
                found.push(Block { language, line: number + 2, text: String::new() });
            }
        } else if open && let Some(block) = found.last_mut() {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    assert!(!open, "a block is never closed");
    found
}

/// A line of a shell block.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Counted from the beginning of the block.
    pub number: usize,
    pub command: &'a str,
    /// What it has to end with: 0, or what its comment says (`# exit 1`).
    pub exit: i32,
}

/// The commands of a shell block, a line each, comments taken off.
pub fn commands(block: &str) -> Vec<Line<'_>> {
    let lines = block.lines().enumerate().map(|(number, line)| {
        let (command, comment) = line.split_once("  #").unwrap_or((line, ""));
        let exit = comment.split_once("exit ").and_then(|(_, code)| code.trim().parse().ok());
        Line { number, command: command.trim(), exit: exit.unwrap_or(0) }
    });
    lines.filter(|line| !line.command.is_empty() && !line.command.starts_with('#')).collect()
}

pub fn client_entry(block: &str) -> Option<ClientEntry> {
    serde_json::from_str(block).ok()
}

/// The targets of all `[text](target)`.
pub fn links(document: &str) -> Vec<&str> {
    document
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .collect()
}

#[test]
fn a_document_is_read_as_people_read_it() {
    let document = "a\n```sh\nmcp ps   # what runs\n# only words\nmcp x  # refused: exit 1\n```\n[x](y.md#z)\n```json\n{\"command\":\"mcp\"}\n```\n";
    let found = blocks(document);
    let line = |number, command, exit| Line { number, command, exit };
    assert_eq!(commands(&found[0].text), [line(0, "mcp ps", 0), line(2, "mcp x", 1)]);
    assert_eq!(found[0].line, 3);
    assert_eq!(client_entry(&found[1].text).unwrap().command, "mcp");
    assert_eq!(links(document), ["y.md#z"]);
}
