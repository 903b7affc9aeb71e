//! The corpora: everyday commands that must pass, dangerous ones that must not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use mcp_guard::{Confined, Context, Decision, NetworkAccess, Shell, Strictness, judge};

/// One entry per line; `⏎` is a newline, `⟨U+202E⟩` a character that should not be in a file.
fn entry(line: &str) -> String {
    let mut text = line.replace('⏎', "\n").replace("⇥", "\t");
    while let Some(start) = text.find("⟨U+") {
        let end = text[start..].find('⟩').expect("closed") + start;
        let code = u32::from_str_radix(&text[start + "⟨U+".len()..end], 16).expect("hex");
        let c = char::from_u32(code).expect("character").to_string();
        text.replace_range(start..end + '⟩'.len_utf8(), &c);
    }
    text
}

struct Dangerous {
    shell: Shell,
    decision: Decision,
    rule: String,
    command: String,
}

fn dangerous() -> Vec<Dangerous> {
    let mut shell = Shell::Bash;
    let mut all = Vec::new();
    for line in include_str!("../corpus/dangerous.txt").lines() {
        match line {
            "" => continue,
            "[bash]" => shell = Shell::Bash,
            "[powershell]" => shell = Shell::PowerShell,
            "[cmd]" => shell = Shell::Cmd,
            line if line.starts_with("# ") => {}
            line => {
                let mut parts = line.splitn(3, ' ');
                let (decision, rule) = (parts.next(), parts.next());
                let decision = match decision {
                    Some("refuse") => Decision::Refuse,
                    Some("unknown") => Decision::Unknown,
                    Some("ask") => Decision::Ask,
                    other => panic!("{other:?} in {line}"),
                };
                all.push(Dangerous {
                    shell,
                    decision,
                    rule: rule.expect("rule").to_owned(),
                    command: entry(parts.next().expect("command")),
                });
            }
        }
    }
    all
}

fn everyday() -> Vec<(Shell, String)> {
    let posix = include_str!("../corpus/everyday.txt").lines().map(|l| (Shell::Bash, entry(l)));
    let windows = include_str!("../corpus/everyday-windows.txt").lines().map(|line| {
        match line.split_once(' ') {
            Some(("powershell", command)) => (Shell::PowerShell, entry(command)),
            Some(("cmd", command)) => (Shell::Cmd, entry(command)),
            _ => panic!("{line}"),
        }
    });
    posix.chain(windows).collect()
}

/// With the network given: whether it is there is the policy's business, not the command's.
#[test]
fn everyday_commands_pass() {
    let context = Context { network: NetworkAccess::Given, ..Context::default() };
    let all = everyday();
    let mut wrong = Vec::new();
    for (shell, command) in &all {
        let verdict = judge(command, *shell, &context);
        if let Some(reason) = verdict.reason() {
            wrong.push(format!("{:?} {} | {command}", reason.decision, reason.rule));
        }
    }
    println!("everyday: {} commands, {} false alarms", all.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all.len() >= 400);
}

/// Behind whole boundaries programs given as text and their like pass, with a note.
#[test]
fn behind_a_sandbox_more_everyday_commands_pass_and_are_noted() {
    let strict = Context { network: NetworkAccess::Given, ..Context::default() };
    let confined = Context { strictness: Strictness::Confined, ..strict.clone() };
    for line in include_str!("../corpus/everyday-confined.txt").lines() {
        let command = entry(line);
        assert_ne!(judge(&command, Shell::Bash, &strict).decision, Decision::Allow, "{command}");
        let verdict = judge(&command, Shell::Bash, &confined);
        assert_eq!(verdict.decision, Decision::Allow, "{command}: {verdict:?}");
        assert!(!verdict.findings.is_empty(), "{command} is not noted");
        assert!(verdict.reason().is_none());
    }
    let offline = Context { network: NetworkAccess::None, ..confined };
    for command in ["curl localhost:3000", "wget -qO- http://127.0.0.1:8000/", "nc -z localhost 80"]
    {
        assert_eq!(judge(command, Shell::Bash, &offline).decision, Decision::Allow, "{command}");
        assert_eq!(judge(command, Shell::Bash, &Context::default()).decision, Decision::Refuse);
    }
    let elsewhere = judge("curl https://example.com", Shell::Bash, &offline);
    assert_eq!(elsewhere.decision, Decision::Refuse);
}

#[test]
fn dangerous_commands_do_not() {
    let strict = Context { network: NetworkAccess::Given, ..Context::default() };
    // What is dangerous is stopped behind a sandbox too, but for the rules that leave it to the sandbox.
    let confined = Context { strictness: Strictness::Confined, ..strict.clone() };
    let all = dangerous();
    let mut wrong = Vec::new();
    let mut figures: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &all {
        let left_to_sandbox =
            strict.rules.get(&entry.rule).is_some_and(|rule| rule.confined == Confined::Note);
        let context = match entry.rule.as_str() {
            rule if rule.starts_with("network-tool") => &Context::default(),
            _ if left_to_sandbox => &strict,
            _ => &confined,
        };
        let verdict = judge(&entry.command, entry.shell, context);
        let by_rule = verdict
            .findings
            .iter()
            .any(|finding| finding.rule == entry.rule && finding.decision == entry.decision);
        if verdict.decision != entry.decision || !by_rule {
            let got = verdict.reason().map(|reason| reason.rule.as_str()).unwrap_or("-");
            wrong.push(format!(
                "{:?} {} but {:?} {got} | {}",
                entry.decision, entry.rule, verdict.decision, entry.command
            ));
        }
        *figures
            .entry(match verdict.decision {
                Decision::Refuse => "refused",
                Decision::Unknown => "unknown",
                Decision::Ask => "asked",
                Decision::Allow => "ALLOWED",
                _ => "of a decision that this test does not know",
            })
            .or_default() += 1;
    }
    println!("dangerous: {} commands, {figures:?}", all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let stopped = all.iter().filter(|e| e.decision != Decision::Ask).count();
    assert!(stopped >= 250, "{stopped}");
}

#[test]
fn no_command_is_in_both_and_none_twice() {
    let mut seen = std::collections::HashSet::new();
    for (_, command) in everyday() {
        assert!(seen.insert(command.clone()), "{command}");
    }
    for entry in dangerous() {
        assert!(seen.insert(entry.command.clone()), "{}", entry.command);
    }
}

/// The figures in the document are those of the corpora.
#[test]
fn document_has_the_figures() {
    let document = include_str!("../../../docs/GUARD.md");
    let all = dangerous();
    let count = |decision| all.iter().filter(|entry| entry.decision == decision).count();
    let wanted = [
        format!("{} everyday commands", everyday().len()),
        format!("{} dangerous commands", all.len()),
        format!("{} refused", count(Decision::Refuse)),
        format!("{} unknown", count(Decision::Unknown)),
        format!("{} asked about", count(Decision::Ask)),
        format!("{} rules", Context::default().rules.iter().count()),
    ];
    for figure in wanted {
        assert!(document.contains(&figure), "docs/GUARD.md should say: {figure}");
    }
}
