//! `mcp completions`: scripts that their shells can read, and a man page for each verb.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::process::{Command, Stdio};

fn mcp(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn bash_reads_its_completions_and_completes_flags() {
    let script = mcp(&["completions", "bash"])
        + "\nCOMP_WORDS=(mcp run --allow-); COMP_CWORD=2; _mcp mcp --allow- run; printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    let mut bash = match Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Ok(bash) => bash,
        Err(_) => return println!("SKIP: no bash here"),
    };
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    let completed = String::from_utf8(output.stdout).unwrap();
    assert!(completed.lines().any(|line| line == "--allow-net"), "{completed}");
    assert!(!completed.contains("--read"), "{completed}");
}

#[test]
fn every_shell_has_completions_for_every_verb() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = mcp(&["completions", shell]);
        for verb in ["run", "exec", "doctor", "pull", "policy"] {
            assert!(script.contains(verb), "{shell} knows nothing of {verb}");
        }
    }
}

#[test]
fn every_verb_has_a_man_page_and_examples_in_its_help() {
    let directory = std::env::temp_dir().join(format!("mcp-man-{}", std::process::id()));
    mcp(&["completions", "man", "--dir", directory.to_str().unwrap()]);
    let help = mcp(&["help"]);
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs: Vec<&str> = verbs
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
            name.split_whitespace().next()
        })
        .collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in verbs {
        assert!(directory.join(format!("mcp-{verb}.1")).is_file(), "no man page of {verb}");
        assert!(mcp(&[verb, "--help"]).contains("Examples:"), "no examples in the help of {verb}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn words_of_other_tools_work() {
    assert_eq!(mcp(&["version"]), mcp(&["--version"]));
    assert_eq!(mcp(&["help", "run"]), mcp(&["run", "--help"]));
    assert!(mcp(&["ls", "--help"]).contains("mcp list"), "{}", mcp(&["ls", "--help"]));
    assert!(mcp(&["rm", "--help"]).contains("mcp remove"));
}
