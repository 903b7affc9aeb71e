//! What surprises people: each is said, and nothing is broken by it.

use std::fs;

use crate::place::Home;

const CURSOR: &str = ".cursor/mcp.json";

fn one(command: &str, args: &str) -> String {
    format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"{command}\", \"args\": {args}}}}}}}\n")
}

/// The words after wiring, as `--json` has them.
fn after(home: &Home, client: &str) -> Vec<String> {
    let value = home.json(&["wire", "--dry-run", "--json", "--client", client]);
    let words =
        value["files"][0]["servers"][0]["after"].as_array().unwrap_or_else(|| panic!("{value}"));
    words.iter().skip(1).map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn lines_become_what_mcp_run_takes() {
    let home = Home::new();
    let notes = home.at("notes").display().to_string();
    let work = home.at("work").display().to_string();
    let cases: &[(&str, String, Vec<&str>)] = &[
        ("npx", "[\"-y\", \"some-server\"]".into(), vec!["run", "npm:some-server"]),
        (
            "npx",
            "[\"-y\", \"some-server@1.2.3\", \"--flag\"]".into(),
            vec!["run", "npm:some-server@1.2.3", "--", "--flag"],
        ),
        (
            "npx",
            format!("[\"-y\", \"s\", \"{notes}\"]"),
            vec!["run", "--read", &notes, "npm:s", "--", &notes],
        ),
        (
            "npx",
            format!("[\"-y\", \"s\", \"--dir={notes}\"]"),
            vec!["run", "--read", &notes, "npm:s", "--", "@0"],
        ),
        (
            "npx",
            "[\"-p\", \"@a/b\", \"tool\", \"x\"]".into(),
            vec!["run", "--bin", "tool", "npm:@a/b", "--", "x"],
        ),
        ("uvx", "[\"mcp-server-time\"]".into(), vec!["run", "pypi:mcp-server-time"]),
        // The recipe of a well-known server names its host.
        (
            "npx",
            "[\"-y\", \"@modelcontextprotocol/server-github@2025.4.8\"]".into(),
            vec![
                "run",
                "--allow-net",
                "api.github.com",
                "npm:@modelcontextprotocol/server-github@2025.4.8",
            ],
        ),
        ("cmd", "[\"/c\", \"npx\", \"-y\", \"s\"]".into(), vec!["run", "npm:s"]),
        ("my-server", "[\"--port\", \"3\"]".into(), vec!["run", "--", "my-server", "--port", "3"]),
        (
            "node",
            format!("[\"{work}/build/index.js\"]"),
            vec!["run", "--read", &work, "--", "node", "@1"],
        ),
        // The Python SDK has a program of our name: it is a server like any other.
        ("mcp", "[\"run\", \"server.py\"]".into(), vec!["run", "--", "mcp", "run", "server.py"]),
    ];
    for (command, args, expected) in cases {
        home.file(CURSOR, one(command, args));
        if *command == "mcp" {
            // Another mcp comes first.
            let other = home.file("other/mcp", "#!/bin/sh\n");
            let path = format!("{}:/usr/bin:/bin", other.parent().unwrap().display());
            let mut run = home.command(&["wire", "--dry-run", "--json"]);
            let output = run.env("PATH", path).output().unwrap();
            let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let words = &value["files"][0]["servers"][0]["after"];
            let words: Vec<&str> =
                words.as_array().unwrap().iter().skip(1).map(|w| w.as_str().unwrap()).collect();
            assert_eq!(&words, expected);
            continue;
        }
        let given: Vec<String> = serde_json::from_str(args).unwrap();
        let expected: Vec<String> = expected
            .iter()
            .map(|word| match *word {
                "@0" => given[2].clone(),
                "@1" => given[0].clone(),
                word => word.to_owned(),
            })
            .collect();
        assert_eq!(after(&home, "cursor"), expected, "{command} {args}");
    }
}

/// What we write is what `mcp run` reads: the plan of the wired line can be shown.
#[test]
fn the_wired_line_is_one_that_mcp_run_takes() {
    let home = Home::new();
    let notes = home.at("notes").display().to_string();
    home.file(CURSOR, format!(
        "{{\"mcpServers\": {{\"s\": {{\"command\": \"cat\", \"args\": [\"{notes}\", \"--read\", \"x\"], \"env\": {{\"TOKEN\": \"t\"}}}}}}}}"
    ));
    home.mcp(&["wire", "--yes"]).good();
    let value: serde_json::Value =
        serde_json::from_slice(&fs::read(home.at(CURSOR)).unwrap()).unwrap();
    let entry = &value["mcpServers"]["s"];
    assert_eq!(entry["command"], home.mcp_path().to_str().unwrap());
    assert_eq!(entry["env"]["TOKEN"], "t");
    let mut words: Vec<&str> =
        entry["args"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    words.splice(1..1, ["--explain", "--json"]);
    let plan = home.mcp(&words).good();
    assert!(plan.out.contains(&notes), "{}", plan.out);
}

#[test]
fn without_a_terminal_nothing_is_written_and_that_is_said() {
    let home = Home::new();
    let file = home.file(CURSOR, one("npx", "[\"-y\", \"s\"]"));
    let before = fs::read(&file).unwrap();
    let ran = home.mcp(&["wire"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("--yes"), "{}", ran.err);
    assert_eq!(fs::read(&file).unwrap(), before);
    // The control.
    home.mcp(&["wire", "--yes"]).good();
    assert_ne!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_file_that_does_not_parse_is_left_alone_with_its_place() {
    let home = Home::new();
    for (path, text, place) in [
        (CURSOR, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": npx}\n  }\n}\n", "3:22"),
        (CURSOR, "{\"mcpServers\": {\"a\": {}, \"a\": {}}}", "1:26"),
        (CURSOR, "{\"mcpServers\": 3.5, \"x\"", "1:"),
        (".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\nargs = []\n", "2:"),
        (".config/goose/config.yaml", "extensions:\n  a: [1, 2\n", "3:"),
    ] {
        let file = home.file(path, text);
        let good = home.file(".gemini/settings.json", one("npx", "[\"-y\", \"s\"]"));
        for words in [&["wire", "--yes"][..], &["wire", "--check"], &["wire", "--status"]] {
            let ran = home.mcp(words);
            assert_eq!(ran.code, 1, "{text}: {}{}", ran.out, ran.err);
            let all = ran.out + &ran.err;
            let name = file.display().to_string();
            assert!(all.contains(&format!("{name}:{place}")), "{text}: {all}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        // Other files are wired all the same.
        assert!(fs::read_to_string(&good).unwrap().contains("npm:s"));
        home.mcp(&["unwire"]).good();
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn allowlists_that_compare_commands_are_said_before_writing() {
    let home = Home::new();
    home.file(".claude.json", one("npx", "[\"-y\", \"s\"]"));
    let quiet = home.mcp(&["wire", "--dry-run"]).good();
    assert!(!quiet.err.contains("allowedMcpServers"), "{}", quiet.err);
    home.file(
        ".claude/settings.json",
        "{\"allowedMcpServers\": [{\"serverCommand\": [\"npx\", \"-y\", \"s\"]}]}",
    );
    let told = home.mcp(&["wire", "--dry-run"]).good();
    assert!(
        told.err.contains("allowedMcpServers") && told.err.contains("settings.json"),
        "{}",
        told.err
    );
}

#[test]
fn no_secret_is_shown_in_a_diff() {
    let home = Home::new();
    let entry = r#"{"mcpServers": {"one": {"command": "npx", "args": ["-y", "s"], "env": {"KEY": "sk-secret"}}}}"#;
    home.file(CURSOR, entry);
    let diff = home.mcp(&["wire", "--dry-run"]).good();
    assert!(diff.out.contains("npm:s") && !diff.out.contains("sk-secret"), "{}", diff.out);
    home.mcp(&["wire", "--yes"]).good();
    let diff = home.mcp(&["unwire", "--dry-run"]).good();
    assert!(diff.out.contains("npm:s") && !diff.out.contains("sk-secret"), "{}", diff.out);
}

#[test]
fn a_sandbox_of_the_client_and_variables_of_the_client() {
    let home = Home::new();
    home.file(".config/Code/User/mcp.json", "{\"servers\": {\"s\": {\"command\": \"npx\", \"args\": [\"-y\", \"s\", \"${workspaceFolder}\"], \"env\": {\"T\": \"${input:t}\"}, \"envFile\": \"${workspaceFolder}/.env\", \"sandboxEnabled\": true}}}");
    let ran = home.mcp(&["wire", "--yes"]).good();
    assert!(ran.err.contains("sandboxEnabled"), "{}", ran.err);
    let text = fs::read_to_string(home.at(".config/Code/User/mcp.json")).unwrap();
    for part in [
        "\"--env\", \"T\"",
        "\"--env-file\", \"${workspaceFolder}/.env\"",
        "\"--read\", \"${workspaceFolder}\"",
        "\"${input:t}\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn clients_that_pass_little_on_are_told_what_to_pass() {
    let home = Home::new();
    home.file(".copilot/mcp-config.json", one("npx", "[\"-y\", \"s\"]"));
    home.mcp(&["wire", "--yes"]).good();
    let text = fs::read_to_string(home.at(".copilot/mcp-config.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["mcpServers"]["s"]["env"]["HOME"], home.path().to_str().unwrap(), "{text}");
    // And it goes with the rest, where the file has changed since.
    fs::write(home.at(".copilot/mcp-config.json"), format!("\n{text}")).unwrap();
    home.mcp(&["unwire"]).good();
    let back = fs::read_to_string(home.at(".copilot/mcp-config.json")).unwrap();
    assert_eq!(back, format!("\n{}", one("npx", "[\"-y\", \"s\"]")));
}

#[test]
fn what_is_not_covered_is_listed() {
    let home = Home::new();
    home.file(CURSOR, "{\"mcpServers\": {\"far\": {\"url\": \"https://key@mcp.example.com/x?token=secret\"}, \"d\": {\"command\": \"docker\", \"args\": [\"run\", \"x\"]}}}");
    home.file(".cursor/plugins/cache/p/mcp.json", "{}");
    let ran = home.mcp(&["wire", "--yes"]).good();
    for part in ["far is remote", ".cursor/plugins/cache/p/mcp.json", "d stays as it is"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let status = home.mcp(&["wire", "--status"]).good();
    assert!(
        status.out.contains("mcp.example.com") && !status.out.contains("secret"),
        "{}",
        status.out
    );
    for id in ["msty", "perplexity", "zed"] {
        assert!(status.out.contains(id), "{id}: {}", status.out);
    }
}

#[test]
fn check_speaks_of_what_is_not_behind_the_walls() {
    let home = Home::new();
    let mcp = home.mcp_path().display().to_string();
    assert_eq!(home.mcp(&["wire", "--check"]).code, 0);
    for (text, word) in [
        (one("npx", "[\"-y\", \"s\"]"), "not wired: npx -y s"),
        (one(&mcp, "[\"run\", \"--network\", \"host\", \"--\", \"x\"]"), "--network host"),
        (one(&mcp, "[\"run\", \"--network=host\", \"x\"]"), "--network host"),
        (one(&mcp, "[\"run\", \"-q\", \"-w\", \"/\", \"x\"]"), "--write /"),
        (one(&mcp, &format!("[\"run\", \"-r{}\", \"x\"]", home.path().display())), "--read "),
        (one("/gone/mcp", "[\"run\", \"x\"]"), "wired to /gone/mcp"),
    ] {
        home.file(CURSOR, &text);
        let ran = home.mcp(&["wire", "--check"]);
        assert_eq!((ran.code, ran.out.lines().count()), (1, 1), "{text}: {}", ran.out);
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
    // The controls: the same options where they mean nothing of the kind.
    for args in [
        "[\"run\", \"--\", \"x\", \"--network\", \"host\"]",
        "[\"run\", \"--env\", \"--network\", \"x\"]",
    ] {
        home.file(CURSOR, one(&mcp, args));
        assert_eq!(home.mcp(&["wire", "--check"]).code, 0, "{args}");
    }
}

#[test]
fn an_mcp_that_moved_is_written_anew() {
    let home = Home::new();
    home.file(CURSOR, one("/gone/bin/mcp", "[\"run\", \"--read\", \"/x\", \"npm:s\"]"));
    home.mcp(&["wire", "--yes"]).good();
    let text = fs::read_to_string(home.at(CURSOR)).unwrap();
    assert_eq!(
        text,
        one(&home.mcp_path().display().to_string(), "[\"run\", \"--read\", \"/x\", \"npm:s\"]")
    );
}

#[test]
fn what_a_person_leaves_stays_while_its_command_does() {
    let home = Home::new();
    home.file(CURSOR, one("docker", "[\"run\", \"x\"]"));
    assert_eq!(home.mcp(&["wire", "--check"]).code, 1);
    home.mcp(&["wire", "--leave", "--server", "s"]).good();
    assert_eq!(home.mcp(&["wire", "--check"]).code, 0);
    home.file(CURSOR, one("docker", "[\"run\", \"--privileged\", \"x\"]"));
    assert_eq!(home.mcp(&["wire", "--check"]).code, 1);
}

#[test]
fn mistakes_are_named() {
    let home = Home::new();
    home.file(CURSOR, one("npx", "[\"-y\", \"s\"]"));
    for (words, part) in [
        (&["wire", "--client", "cursr"][..], "no such client"),
        (&["wire", "--client", "claude"], "claude-desktop, claude-code"),
        (&["wire", "--server", "nope"], "no client has a server"),
        (&["wire", "--project", "/no/such/place"], "/no/such/place"),
        (&["wire", "--binary", "/no/mcp"], "/no/mcp"),
        (&["wire", "--yes", "--check"], "cannot be used"),
        (&["add", "not a package", "--client", "cursor"], "not a package"),
        (&["add", "npm:x", "--client", "msty"], "in no file"),
    ] {
        let ran = home.mcp(words);
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{words:?}: {}", ran.err);
    }
}

/// A path with stars in a home of others cannot make the program search for ever; and home is never given whole.
#[test]
fn the_whole_home_is_not_given() {
    let home = Home::new();
    let whole = home.path().display().to_string();
    for arg in [whole.as_str(), "/", "/tmp/..", "$HOME", "~"] {
        home.file(".gemini/settings.json", one("npx", &format!("[\"-y\", \"s\", \"{arg}\"]")));
        let words = after(&home, "gemini-cli");
        assert!(!words.contains(&"--read".to_owned()), "{arg}: {words:?}");
    }
    home.file(".gemini/settings.json", one("npx", "[\"-y\", \"s\", \"$HOME/notes\"]"));
    assert!(after(&home, "gemini-cli").contains(&"$HOME/notes".to_owned()));
}
