//! How many dangerous commands pass and how many everyday ones are stopped, in each mode.
//!
//! A corpus has one command per line, after one word for its class: `everyday` must pass, every other class must not.
//! `powershell:` or `cmd:` before the class says which shell reads the line; it is bash where neither is there.
//! `⏎` is a newline, `⟨U+202E⟩` a character that should not be in a file, `# ` begins a comment.
//! To measure a corpus of your own, with every wrong verdict shown:
//! `MCP_GUARD_CORPUS=$PWD/file.txt cargo test -p mcp-guard --test rates -- --nocapture measure`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use mcp_guard::{Context, Decision, NetworkAccess, Shell, Strictness, judge};

/// The bounds that the project sets itself, in per cent.
const DANGEROUS_PASSED: f64 = 3.0;
const EVERYDAY_STOPPED: f64 = 2.0;

struct Entry {
    shell: Shell,
    class: String,
    command: String,
}

fn corpus(text: &str) -> Vec<Entry> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| {
            let (class, command) = line.split_once(' ').expect("a class and a command");
            let (shell, class) = match class.split_once(':') {
                Some(("powershell", class)) => (Shell::PowerShell, class),
                Some(("cmd", class)) => (Shell::Cmd, class),
                _ => (Shell::Bash, class),
            };
            Entry { shell, class: class.to_owned(), command: characters(command) }
        })
        .collect()
}

fn characters(line: &str) -> String {
    let mut text = line.replace('⏎', "\n").replace('⇥', "\t");
    while let Some(start) = text.find("⟨U+") {
        let end = text[start..].find('⟩').expect("closed") + start;
        let code = u32::from_str_radix(&text[start + "⟨U+".len()..end], 16).expect("hex");
        let character = char::from_u32(code).expect("character").to_string();
        text.replace_range(start..end + '⟩'.len_utf8(), &character);
    }
    text
}

/// `mcp check --network` (what `mcp exec` asks behind whole boundaries) and `mcp check --network --strict`.
fn modes() -> [(&'static str, Context); 2] {
    let strict = Context { network: NetworkAccess::Given, ..Context::default() };
    let confined = Context { strictness: Strictness::Confined, ..strict.clone() };
    [("confined", confined), ("strict", strict)]
}

#[derive(Default)]
struct Rates {
    dangerous: usize,
    passed: Vec<String>,
    everyday: usize,
    stopped: Vec<String>,
    by_class: BTreeMap<String, (usize, usize)>,
}

impl Rates {
    fn measure(entries: &[Entry], context: &Context) -> Rates {
        let mut rates = Rates::default();
        for entry in entries {
            let verdict = judge(&entry.command, entry.shell, context);
            let allowed = verdict.decision == Decision::Allow;
            if entry.class == "everyday" {
                rates.everyday += 1;
                // Strict mode refuses by design what a whole sandbox only notes; that is no false alarm.
                let by_design = |rule: &str| {
                    context.rules.get(rule).is_some_and(|r| r.confined == mcp_guard::Confined::Note)
                };
                if let Some(reason) = verdict.reason().filter(|reason| !by_design(&reason.rule)) {
                    rates
                        .stopped
                        .push(format!("{:?} {} | {}", reason.decision, reason.rule, entry.command));
                }
            } else {
                rates.dangerous += 1;
                let class = rates.by_class.entry(entry.class.clone()).or_default();
                class.1 += 1;
                if allowed {
                    class.0 += 1;
                    rates.passed.push(format!("{} | {}", entry.class, entry.command));
                }
            }
        }
        rates
    }

    fn per_cent(part: usize, whole: usize) -> f64 {
        100.0 * part as f64 / whole.max(1) as f64
    }

    fn passed(&self) -> f64 {
        Rates::per_cent(self.passed.len(), self.dangerous)
    }

    fn stopped(&self) -> f64 {
        Rates::per_cent(self.stopped.len(), self.everyday)
    }

    fn line(&self) -> String {
        format!(
            "dangerous passed {} of {} ({:.1} %), everyday stopped {} of {} ({:.1} %)",
            self.passed.len(),
            self.dangerous,
            self.passed(),
            self.stopped.len(),
            self.everyday,
            self.stopped()
        )
    }
}

fn within_bounds(name: &str, text: &str) {
    let entries = corpus(text);
    for (mode, context) in modes() {
        let rates = Rates::measure(&entries, &context);
        println!("{name}, {mode}: {}", rates.line());
        assert!(rates.dangerous >= 200 && rates.everyday >= 250, "{name} is too small");
        assert!(rates.passed() <= DANGEROUS_PASSED, "{mode} {}", rates.passed.join("\n"));
        assert!(rates.stopped() <= EVERYDAY_STOPPED, "{mode} {}", rates.stopped.join("\n"));
    }
}

#[test]
fn the_corpus_the_rules_were_tuned_on() {
    within_bounds("tuned", include_str!("../corpus/fresh/tuned.txt"));
}

#[test]
fn the_corpus_that_was_held_out() {
    within_bounds("held out", include_str!("../corpus/fresh/held-out.txt"));
}

#[test]
fn the_corpus_that_others_wrote() {
    within_bounds("by others", include_str!("../corpus/fresh/blind-2026-11-first-viewed.txt"));
}

/// PowerShell and cmd alone.
#[test]
fn the_windows_corpus_that_was_written_blind() {
    within_bounds(
        "Windows",
        include_str!("../corpus/fresh/blind-windows-2026-11-first-viewed.txt"),
    );
}

/// All three shells, by a third author.
#[test]
fn the_second_corpus_that_others_wrote() {
    within_bounds(
        "by others, second",
        include_str!("../corpus/fresh/blind-second-2026-11-first-viewed.txt"),
    );
}

/// All three shells, by a third one.
#[test]
fn the_third_corpus_that_others_wrote() {
    within_bounds(
        "by others, third",
        include_str!("../corpus/fresh/blind-third-2026-11-first-viewed.txt"),
    );
}

/// All three shells, by a fourth one, with its second list for PowerShell and cmd.
#[test]
fn the_fourth_corpus_that_was_written_blind() {
    let fourth = include_str!("../corpus/fresh/blind-fourth-2026-11-first-viewed.txt");
    let fifth = include_str!("../corpus/fresh/blind-fifth-windows-2026-11-first-viewed.txt");
    within_bounds("written blind, fourth", fourth);
    within_bounds("written blind, fourth and fifth", &format!("{fourth}{fifth}"));
}

/// All three shells, by a fifth one, with its second list of rarer spellings.
#[test]
fn the_sixth_and_seventh_corpus_that_were_written_blind() {
    let sixth = include_str!("../corpus/fresh/blind-sixth-2026-11-first-viewed.txt");
    let seventh = include_str!("../corpus/fresh/blind-seventh-2026-11-first-viewed.txt");
    within_bounds("written blind, sixth", sixth);
    within_bounds("written blind, seventh", seventh);
}

/// Holds what is not caught by design as well (a program in the background, a push of an image), so it has a bound
/// of its own; it is what PowerShell and cmd are measured by.
#[test]
fn the_corpus_by_class() {
    let entries = corpus(include_str!("../corpus/fresh/tuned-by-class.txt"));
    for (mode, context) in modes() {
        let rates = Rates::measure(&entries, &context);
        println!("by class, {mode}: {}", rates.line());
        assert!(rates.passed() <= 8.0, "{mode} {}", rates.passed.join("\n"));
        assert!(rates.stopped() <= EVERYDAY_STOPPED, "{mode} {}", rates.stopped.join("\n"));
    }
}

/// A measure of commands that a person brings; it shows and does not judge.
#[test]
fn measure() {
    let Some(path) = std::env::var_os("MCP_GUARD_CORPUS") else {
        println!("MCP_GUARD_CORPUS names no corpus: nothing to measure");
        return;
    };
    let entries = corpus(&std::fs::read_to_string(path).expect("a corpus"));
    for (mode, context) in modes() {
        let rates = Rates::measure(&entries, &context);
        println!("\n== {mode}: {}", rates.line());
        for (class, (passed, all)) in &rates.by_class {
            println!("   {class}: {passed} of {all} passed");
        }
        rates.passed.iter().for_each(|line| println!("   PASSED  {line}"));
        rates.stopped.iter().for_each(|line| println!("   STOPPED {line}"));
    }
}
