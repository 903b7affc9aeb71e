//! The twelve servers, each with calls that need something of the host.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::scene::{CANARY, PAGE, Scene};
use crate::Result;
use crate::servers::exercise::make_repository;
use crate::servers::install::Installed;

/// Those of the tests of `mcp learn`, and the same in JavaScript.
const PYTHON_SERVER: &str = include_str!("../../../crates/cli/tests/learn/server.py");
const NODE_SERVER: &str = include_str!("../../learn/server.mjs");

/// Where a subject is set up.
pub struct Places<'a> {
    pub scene: &'a Scene,
    pub installed: &'a Installed,
}

pub struct Subject {
    pub name: &'static str,
    /// What follows `mcp run`.
    pub words: Vec<OsString>,
    pub calls: Vec<Call>,
    pub environment: Vec<(&'static str, OsString)>,
    /// The lines that it cannot do without.
    pub needs: usize,
    /// Whether what it reaches is proposed with `--sensitive` only.
    pub is_sensitive: bool,
}

pub struct Call {
    pub tool: &'static str,
    pub arguments: Value,
    /// Part of the answer.
    pub expected: &'static str,
    /// A file of the host that the call makes, and part of what it holds.
    pub makes: Option<(PathBuf, &'static str)>,
}

impl Call {
    fn new(tool: &'static str, arguments: Value, expected: &'static str) -> Call {
        Call { tool, arguments, expected, makes: None }
    }

    fn making(self, path: PathBuf, text: &'static str) -> Call {
        Call { makes: Some((path, text)), ..self }
    }
}

impl Subject {
    fn new<W: Into<OsString>>(
        name: &'static str,
        words: impl IntoIterator<Item = W>,
        calls: Vec<Call>,
    ) -> Subject {
        let words = words.into_iter().map(Into::into).collect();
        Subject { name, words, calls, environment: Vec::new(), needs: 0, is_sensitive: false }
    }

    fn needing(self, needs: usize) -> Subject {
        Subject { needs, ..self }
    }
}

type Make = fn(&Places<'_>) -> Result<Subject>;

pub const ALL: [Make; 12] = [
    everything,
    sequential_thinking,
    time,
    filesystem,
    filesystem_program,
    memory,
    git,
    git_program,
    sqlite,
    fetch,
    node_script,
    python_script,
];

fn everything(_: &Places<'_>) -> Result<Subject> {
    let calls = vec![Call::new("echo", json!({ "message": "hello" }), "hello")];
    Ok(Subject::new("everything", ["npx", "-y", "@modelcontextprotocol/server-everything"], calls))
}

fn sequential_thinking(_: &Places<'_>) -> Result<Subject> {
    let thought = json!({ "thought": "one", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false });
    let calls = vec![Call::new("sequentialthinking", thought, "thoughtNumber")];
    let words = ["npx", "-y", "@modelcontextprotocol/server-sequential-thinking"];
    Ok(Subject::new("sequential-thinking", words, calls))
}

fn time(_: &Places<'_>) -> Result<Subject> {
    let calls = vec![Call::new("get_current_time", json!({ "timezone": "UTC" }), "UTC")];
    Ok(Subject::new("time", ["uvx", "mcp-server-time"], calls))
}

fn filesystem_calls(scene: &Scene) -> Result<Vec<Call>> {
    let note = scene.file("notes/a.md", "a note")?;
    let new = scene.at("notes/new.md");
    Ok(vec![
        Call::new("read_text_file", json!({ "path": note }), "a note"),
        Call::new("write_file", json!({ "path": new, "content": "written" }), "Successfully")
            .making(new, "written"),
    ])
}

fn filesystem(places: &Places<'_>) -> Result<Subject> {
    let calls = filesystem_calls(places.scene)?;
    let words = ["npx", "-y", "@modelcontextprotocol/server-filesystem"].map(OsString::from);
    let words = words.into_iter().chain([places.scene.at("notes").into()]);
    Ok(Subject::new("filesystem", words, calls).needing(1))
}

fn filesystem_program(places: &Places<'_>) -> Result<Subject> {
    let calls = filesystem_calls(places.scene)?;
    let program = places.installed.node_program("mcp-server-filesystem");
    let words = ["--".into(), program, places.scene.at("notes")];
    Ok(Subject::new("filesystem-program", words, calls).needing(1))
}

fn memory(places: &Places<'_>) -> Result<Subject> {
    let file = places.scene.dir("memory")?.join("memory.jsonl");
    let entity = json!({ "name": "sandbox", "entityType": "thing", "observations": ["remembers"] });
    let calls = vec![
        Call::new("create_entities", json!({ "entities": [entity] }), "")
            .making(file.clone(), "remembers"),
        Call::new("read_graph", json!({}), "remembers"),
    ];
    let words = ["npx", "-y", "@modelcontextprotocol/server-memory"];
    let environment = vec![("MEMORY_FILE_PATH", file.into())];
    Ok(Subject { environment, ..Subject::new("memory", words, calls).needing(2) })
}

fn git_calls(places: &Places<'_>) -> Result<(PathBuf, Vec<Call>)> {
    let repository = places.scene.dir("repository")?;
    make_repository(&repository)?;
    // A reset writes the index each time, however often it is called.
    let calls = vec![
        Call::new("git_log", json!({ "repo_path": repository }), "the first commit"),
        Call::new("git_status", json!({ "repo_path": repository }), "untracked.txt"),
        Call::new("git_reset", json!({ "repo_path": repository }), "reset"),
    ];
    Ok((repository, calls))
}

fn git(places: &Places<'_>) -> Result<Subject> {
    let (repository, calls) = git_calls(places)?;
    let words = ["uvx", "mcp-server-git", "--repository"].map(OsString::from);
    Ok(Subject::new("git", words.into_iter().chain([repository.into()]), calls).needing(1))
}

fn git_program(places: &Places<'_>) -> Result<Subject> {
    let (repository, calls) = git_calls(places)?;
    let program = places.installed.python_program("mcp-server-git");
    let words = ["--".into(), program, "--repository".into(), repository];
    Ok(Subject::new("git-program", words, calls).needing(1))
}

fn sqlite(places: &Places<'_>) -> Result<Subject> {
    let file = places.scene.dir("data")?.join("test.db");
    let table = json!({ "query": "CREATE TABLE IF NOT EXISTS visits (page TEXT)" });
    let calls = vec![
        Call::new("create_table", table, "success").making(file.clone(), "SQLite format 3"),
        Call::new("list_tables", json!({}), "visits"),
    ];
    // The server was not carried on when its SDK changed.
    let words = ["uvx", "--with", "mcp<2", "mcp-server-sqlite", "--db-path"].map(OsString::from);
    Ok(Subject::new("sqlite", words.into_iter().chain([file.into()]), calls).needing(1))
}

fn fetch(places: &Places<'_>) -> Result<Subject> {
    let url = format!("http://{}/page", places.scene.web()?);
    let calls = vec![Call::new("fetch", json!({ "url": url, "raw": true }), PAGE)];
    // The loopback is a private network: nothing proposes it by itself.
    let subject =
        Subject::new("fetch", ["uvx", "mcp-server-fetch", "--allow-private-ips"], calls).needing(1);
    Ok(Subject { is_sensitive: true, ..subject })
}

/// What both scripts find on the host. `BASE/home` is the home whose private key they look for.
fn furnish(scene: &Scene) -> Result<()> {
    scene.file("base/etc/config.json", r#"{ "greeting": "hello" }"#)?;
    // Only a description tells of it: no line for it may be learned.
    scene.file("base/etc/zone", "UTC")?;
    scene.dir("base/cache")?;
    scene.program("base/bin/hello", "#!/bin/sh\necho hello from a child\n")?;
    scene.dir("base/run")?;
    scene.service("base/run/service.sock")?;
    scene.file("base/home/.ssh/id_ed25519", CANARY)?;
    Ok(())
}

fn script_calls(scene: &Scene) -> Result<Vec<Call>> {
    furnish(scene)?;
    let notes = scene.file("notes/a.md", "a note")?;
    Ok(vec![
        Call::new("greet", json!({}), "hello"),
        Call::new("read", json!({ "path": notes }), "a note"),
        Call::new("write", json!({}), "written").making(scene.at("base/cache/entry"), "x"),
        Call::new("mode", json!({}), "fast"),
        Call::new("child", json!({}), "hello from a child"),
        Call::new("service", json!({}), "served"),
        Call::new("steal", json!({}), "nothing"),
    ])
}

fn script(
    name: &'static str,
    interpreter: &str,
    script: PathBuf,
    scene: &Scene,
) -> Result<Subject> {
    let words = ["--".into(), PathBuf::from(interpreter), script, scene.at("base")];
    let environment = vec![("LEARN_MODE", "fast".into())];
    Ok(Subject { environment, ..Subject::new(name, words, script_calls(scene)?).needing(6) })
}

fn node_script(places: &Places<'_>) -> Result<Subject> {
    let path = places.scene.file("app/server.mjs", NODE_SERVER)?;
    script("node-script", "node", path, places.scene)
}

fn python_script(places: &Places<'_>) -> Result<Subject> {
    let path = places.scene.file("app/server.py", PYTHON_SERVER)?;
    script("python-script", "python3", path, places.scene)
}
