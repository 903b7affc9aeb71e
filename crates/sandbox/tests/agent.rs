//! The example agent, and the library as an agent uses it. Its own main: this program is its own launcher.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../examples/agent_loop.rs"]
#[allow(dead_code)]
mod agent_loop;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn main() {
    mcp_sandbox::helper::dispatch();
    if !cfg!(target_os = "linux") {
        println!("SKIP: agent: commands run on Linux in this test");
        return;
    }
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.0.join("project/.git/hooks")).unwrap();
    std::fs::write(scratch.0.join("project/.git/config"), "[core]\n").unwrap();
    std::fs::write(scratch.0.join("secret"), "canary").unwrap();
    let project = scratch.0.join("project");
    let Some(()) = can_start(&project) else { return };
    writes_runs_and_reads(&project);
    refusals_are_answers(&project);
    the_kernel_holds(&project, &scratch.0.join("secret"));
    println!("agent: 3 parts passed");
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let name = format!("mcp-agent-{}", std::process::id());
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn talk(project: &Path, calls: &[Value]) -> Vec<Value> {
    let input: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let mut output = Vec::new();
    agent_loop::run(project, input.as_bytes(), &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn can_start(project: &Path) -> Option<()> {
    let said = talk(project, &[json!({"tool": "run", "command": "true"})]).remove(0);
    if said["code"] == 0 {
        return Some(());
    }
    let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == "userns"), "{said}");
    println!("SKIP: userns: {said}");
    None
}

fn writes_runs_and_reads(project: &Path) {
    let said = talk(
        project,
        &[
            json!({"tool": "write", "path": "sum.sh", "text": "echo $((40 + 2)) > answer\n"}),
            json!({"tool": "run", "command": "sh sum.sh && cat answer"}),
            json!({"tool": "read", "path": "answer"}),
        ],
    );
    assert_eq!(said[0], json!({"written": 26}));
    assert_eq!((&said[1]["code"], &said[1]["stdout"]), (&json!(0), &json!("42\n")), "{said:?}");
    assert_eq!(said[2], json!({"text": "42\n"}));
}

fn refusals_are_answers(project: &Path) {
    let said = talk(
        project,
        &[
            json!({"tool": "run", "command": "rm -rf / --no-preserve-root"}),
            json!({"tool": "run", "command": "curl https://example.com"}),
            json!({"tool": "read", "path": "../secret"}),
            json!({"tool": "fly"}),
            json!("nonsense"),
        ],
    );
    assert_eq!(said[0]["refused"], "delete-everything", "{said:?}");
    assert!(said[0]["why"].as_str().unwrap().len() > 20);
    assert!(said[1]["refused"].is_string(), "{said:?}");
    for answer in &said[2..] {
        assert!(answer["error"].is_string(), "{answer}");
    }
}

fn the_kernel_holds(project: &Path, secret: &Path) {
    let said = talk(
        project,
        &[
            json!({"tool": "run", "command": format!("cat {}", secret.display())}),
            json!({"tool": "run", "command": "echo x > .git/hooks/pre-commit"}),
            json!({"tool": "run", "command": "mkdir .vscode && touch .vscode/tasks.json made"}),
            json!({"tool": "run", "command": "ls -A ~"}),
        ],
    );
    assert_ne!(said[0]["code"], 0, "{said:?}");
    assert!(!said[0].to_string().contains("canary"));
    assert_ne!(said[1]["code"], 0, "{said:?}");
    assert_eq!(said[2]["code"], 0, "{said:?}");
    assert!(said[2]["undone"][0].as_str().unwrap().ends_with(".vscode"), "{said:?}");
    assert!(project.join("made").exists() && !project.join(".vscode").exists());
    assert_eq!(said[3]["stdout"], "", "{said:?}");
}
