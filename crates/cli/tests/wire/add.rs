//! `mcp add` and `mcp add --remove`.

use std::fs;

use mcp_clients::Format;

use crate::place::{Home, Ran};

/// What files have before anything is added: a new file, an empty one, one without servers, one with some.
fn kept(format: Format) -> &'static [Option<&'static str>] {
    match format {
        Format::Toml => &[None, Some(""), Some("model = 'x'"), Some("# c\n[a]\nb = 1 # d\n\n")],
        Format::Yaml => &[Some("# mine\na: 1\n")],
        _ => &[
            None,
            Some(""),
            Some("{}"),
            Some("{ /* c */ }\n"),
            Some("{\n    \"a\": 1, // one\n    \"b\": [2] // two\n}\n"),
            Some("{\"a\":{}}"),
        ],
    }
}

/// Adds a server with everything that one can have.
fn add(home: &Home, id: &str) -> Ran {
    home.mcp(&[
        "add",
        "npm:@scope/my-server@1.0.0",
        "--client",
        id,
        "--env",
        "TOKEN=se\"cret",
        "-n",
        "example.com",
        "--read",
        "notes",
        "--",
        "--flag",
        "ü",
    ])
}

/// Asserts that the client has that server alone, wired, with the words that were asked for.
#[track_caller]
fn has_added(home: &Home, id: &str, before: Option<&str>) {
    let status = home.json(&["wire", "--status", "--json", "--client", id]);
    let servers = status["files"][0]["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1, "{id} {before:?}: {status}");
    assert_eq!(servers[0]["state"], "wired", "{id}: {status}");
    let words: Vec<&str> = servers[0]["before"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|w| w.as_str().unwrap())
        .collect();
    let notes = home.at("notes").display().to_string();
    assert_eq!(
        words,
        [
            "run",
            "--env",
            "TOKEN",
            "--read",
            &notes,
            "--allow-net",
            "example.com",
            "npm:@scope/my-server@1.0.0",
            "--",
            "--flag",
            "ü"
        ],
        "{id}"
    );
}

#[test]
fn to_every_client_with_a_file_and_out_again() {
    let home = Home::new();
    let none = |path: &std::path::Path| !path.exists();
    for client in mcp_clients::all() {
        let id = client.id.as_str();
        let Some(path) = home.file_of(client) else {
            continue;
        };
        for before in kept(client.format) {
            if let Some(before) = before {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, before).unwrap();
            }
            let ran = add(&home, id);
            if client.format == Format::Yaml {
                assert_eq!(ran.code, 1, "{id}");
                assert!(
                    ran.err.contains("my-server") && ran.err.contains("by hand"),
                    "{id}: {}",
                    ran.err
                );
                assert_eq!(fs::read_to_string(&path).unwrap(), before.unwrap());
                fs::remove_file(&path).unwrap();
                continue;
            }
            assert_eq!(ran.code, 0, "{id} {before:?}: {}", ran.err);
            has_added(&home, id, *before);
            // Twice is an error that names the way out.
            let again = home.mcp(&["add", "npm:@scope/my-server", "--client", id]);
            assert_eq!(again.code, 1, "{id}: {}", again.err);
            assert!(again.err.contains("--name"), "{id}: {}", again.err);
            home.mcp(&["add", "--remove", "npm:@scope/my-server", "--client", id]).good();
            match before {
                Some(before) => assert_eq!(&fs::read_to_string(&path).unwrap(), before, "{id}"),
                None => assert!(none(&path), "{id}: {:?}", fs::read_to_string(&path)),
            }
            let _ = fs::remove_file(&path);
        }
    }
}

#[test]
fn beside_others_and_out_by_structure() {
    let home = Home::new();
    let file = home.file(
        ".cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" } // the first\n  }\n}\n",
    );
    home.mcp(&["add", "npm:b", "--client", "cursor"]).good();
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(
            "\"a\": { \"command\": \"a\" }, // the first\n    \"b\": {\n      \"command\""
        ),
        "{text}"
    );
    fs::write(&file, text.replace("// the first", "// the very first")).unwrap();
    home.mcp(&["add", "--remove", "b"]).good();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("the very first") && !text.contains("npm:b"), "{text}");
    assert_eq!(
        home.json(&["wire", "--status", "--json"])["files"][0]["servers"].as_array().unwrap().len(),
        1
    );
    let codex = home.file(".codex/config.toml", "[mcp_servers.a]\ncommand = \"a\"\n");
    home.mcp(&["add", "npm:b", "--client", "codex"]).good();
    let text = fs::read_to_string(&codex).unwrap();
    fs::write(&codex, format!("# top\n{text}\n[other]\nx = 1\n")).unwrap();
    home.mcp(&["add", "--remove", "b"]).good();
    assert_eq!(
        fs::read_to_string(&codex).unwrap(),
        "# top\n[mcp_servers.a]\ncommand = \"a\"\n\n[other]\nx = 1\n"
    );
}

/// The line of a README, behind our own options.
#[test]
fn the_line_of_a_package_runner() {
    let home = Home::new();
    let words = ["add", "--client", "cursor", "npx", "-y", "@scope/my-server", "notes", "-x"];
    home.mcp(&words).good();
    let status = home.json(&["wire", "--status", "--json", "--client", "cursor"]);
    let server = &status["files"][0]["servers"][0];
    let words: Vec<&str> =
        server["before"].as_array().unwrap().iter().skip(1).map(|w| w.as_str().unwrap()).collect();
    assert_eq!(words, ["run", "npm:@scope/my-server", "--", "notes", "-x"], "{status}");
    let ran = home.mcp(&["add", "--client", "cursor", "uvx", "--from", "pkg", "tool"]).good();
    assert!(ran.err.contains("pkg is in"), "{}", ran.err);
    let text = fs::read_to_string(home.at(".cursor/mcp.json")).unwrap();
    assert!(text.contains("--bin") && text.contains("tool"), "{text}");
    // What people write at the end is refused with where it goes, and nothing is written.
    let ran = home.mcp(&["add", "npx", "-y", "other", "--client", "cursor"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("write it before npx: mcp add --client"), "{}", ran.err);
    let ran = home.mcp(&["add", "--client", "cursor", "npx", "--registry", "https://x", "other"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert_eq!(fs::read_to_string(home.at(".cursor/mcp.json")).unwrap(), text);
}

/// As clients' own commands have it: a name, and the line behind it.
#[test]
fn a_name_before_the_line() {
    let home = Home::new();
    for (name, words) in [
        ("one", &["add", "--client", "cursor", "one", "--", "npx", "-y", "@scope/my-server"][..]),
        ("two", &["add", "two", "--client", "cursor", "npx", "-y", "@scope/my-server"][..]),
        ("my-server", &["add", "--client", "cursor", "--", "npx", "-y", "@scope/my-server"][..]),
        (
            "four",
            &["add", "four", "--client", "cursor", "-n", "a.example", "--", "npx @scope/my-server"]
                [..],
        ),
    ] {
        let ran = home.mcp(words).good();
        assert!(ran.err.contains(&format!("{name} is in")), "{}", ran.err);
        home.mcp(&["add", "--remove", name, "--client", "cursor"]).good();
    }
    // A program of one's own is told where it belongs, and nothing is written.
    let ran = home.mcp(&["add", "five", "--client", "cursor", "--", "node", "server.js"]);
    assert!(ran.err.contains("then type: mcp wire"), "{}", ran.err);
    assert!(!fs::read_to_string(home.at(".cursor/mcp.json")).unwrap_or_default().contains("five"));
}

#[test]
fn without_a_client_or_a_terminal() {
    let home = Home::new();
    home.file(".cursor/mcp.json", "{}");
    let ran = home.mcp(&["add", "npm:b"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert_eq!(fs::read_to_string(home.at(".cursor/mcp.json")).unwrap(), "{}");
    home.mcp(&["add", "npm:b", "--yes"]).good();
    assert!(fs::read_to_string(home.at(".cursor/mcp.json")).unwrap().contains("npm:b"));
}

/// A recipe proposes what is missing, and grants nothing.
#[test]
fn what_a_known_server_needs_is_proposed() {
    let home = Home::new();
    let github = "npm:@modelcontextprotocol/server-github";
    let proposal =
        "usually needs --allow-net api.github.com --env GITHUB_PERSONAL_ACCESS_TOKEN=VALUE;";
    let ran = home.mcp(&["add", github, "--client", "cursor"]).good();
    assert!(ran.err.contains(proposal), "{}", ran.err);
    let text = fs::read_to_string(home.at(".cursor/mcp.json")).unwrap();
    assert!(!text.contains("api.github.com"), "{text}");
    let given = ["--env", "GITHUB_PERSONAL_ACCESS_TOKEN=x", "-n", "api.github.com", "--name", "g"];
    let words = [&["add", github, "--client", "cursor"], given.as_slice()].concat();
    let ran = home.mcp(&words).good();
    assert!(!ran.err.contains("usually needs"), "{}", ran.err);
}
