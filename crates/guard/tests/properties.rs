//! What holds for every text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Instant;

use mcp_guard::{Context, Decision, NetworkAccess, Shell, judge};
use proptest::prelude::*;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::PowerShell, Shell::Cmd];

fn context() -> Context {
    Context { network: NetworkAccess::Given, ..Context::default() }
}

/// Judges in every language; spans must be good to slice with.
fn sound(text: &str) {
    let context = context();
    for shell in SHELLS {
        let verdict = judge(text, shell, &context);
        for finding in &verdict.findings {
            assert!(text.get(finding.span.clone()).is_some(), "{shell:?} {text:?} {finding:?}");
            assert!(finding.decision <= verdict.decision);
            assert!(!finding.model.is_empty() && !finding.human.is_empty());
        }
        assert_eq!(verdict.findings.is_empty(), verdict.decision == Decision::Allow);
    }
}

/// Pieces that make parsers stumble.
const SOUP: &[&str] = &[
    "rm",
    " -rf ",
    "/",
    "~",
    "$",
    "${",
    "}",
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "\\",
    "\n",
    ";",
    "&",
    "|",
    "<<E\n",
    "E\n",
    "<<<",
    "<(",
    ">",
    "((",
    "))",
    "[[",
    "]]",
    "{",
    ",",
    "x=",
    "$x",
    "if ",
    "then ",
    "fi",
    "for i in ",
    "do ",
    "done",
    "case ",
    "esac",
    "f()",
    "*",
    "é",
    "\u{202e}",
    "$'",
    "\\x72",
    "#",
    "!",
    " ",
    "@(",
    "eval ",
    "sh -c ",
    "xargs ",
    "alias a=",
    "%",
    "^",
    "-enc ",
    "[",
    "]",
    "=",
    ":",
    "1",
    "function ",
    "coproc ",
    "time ",
    "$((",
    "${x:-",
    "${x/",
    "${x#",
    "&&",
    "||",
    "in ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_judged(text in ".*|\\PC*") {
        sound(&text);
    }

    #[test]
    fn any_soup_is_judged(pieces in proptest::collection::vec(proptest::sample::select(SOUP), 0..40)) {
        sound(&pieces.concat());
    }

    #[test]
    fn quoting_changes_nothing(
        command in proptest::sample::select(DANGEROUS),
        styles in proptest::collection::vec(0..6u8, 64),
    ) {
        let text = disguise(command, &styles);
        let verdict = judge(&text, Shell::Bash, &context());
        prop_assert_eq!(verdict.decision, Decision::Refuse, "{}", text);
    }

    #[test]
    fn wrapping_changes_nothing(
        command in proptest::sample::select(DANGEROUS),
        prefix in proptest::sample::select(PREFIXES),
        wrappers in proptest::collection::vec(proptest::sample::select(WRAPPERS), 1..5),
    ) {
        let mut text = format!("{prefix} {command}");
        for wrapper in wrappers {
            text = match wrapper.split_once("QUOTED") {
                Some((before, after)) => {
                    format!("{before}'{}'{after}", text.replace('\'', "'\\''"))
                }
                None => wrapper.replace("BARE", &text),
            };
        }
        let verdict = judge(&text, Shell::Bash, &context());
        // Deep quoting may go past what is followed; it is never taken for safe.
        prop_assert!(verdict.decision >= Decision::Unknown, "{}", text);
        if text.len() < 200 {
            prop_assert_eq!(verdict.decision, Decision::Refuse, "{}", text);
        }
    }

    #[test]
    fn a_refusal_is_not_lost_in_company(
        before in proptest::sample::select(HARMLESS),
        command in proptest::sample::select(DANGEROUS),
        after in proptest::sample::select(HARMLESS),
        sign in proptest::sample::select(&["; ", " && ", " || ", "\n", " & "][..]),
    ) {
        let text = format!("{before}{sign}{command}{sign}{after}");
        prop_assert_eq!(judge(&text, Shell::Bash, &context()).decision, Decision::Refuse, "{}", text);
    }
}

const DANGEROUS: &[&str] = &[
    "rm -rf /",
    "rm -r -f ~",
    "mkfs.ext4 /dev/sda1",
    "dd if=/dev/zero of=/dev/sda",
    "chmod -R 777 /",
    "shutdown -h now",
    "crontab -r",
    "kill -9 -1",
    "mv /etc /tmp/x",
    "iptables -F",
    "python3 -c pass",
    "nsenter -t 1 sh",
    "chown -R x /usr",
    "rm -rf /etc",
];

const HARMLESS: &[&str] =
    &["ls", "echo 'a b' c", "x=1", "(cd src; make)", "if [ -f a ]; then cat a; fi", "a() { ls; }"];

/// What a program takes as its arguments must be a simple command.
const PREFIXES: &[&str] =
    &["sudo", "env A=1", "nice -n 3", "timeout 5", "command", "busybox", "nohup", "exec -a x"];

const WRAPPERS: &[&str] = &[
    "sh -c QUOTED",
    "bash -ec QUOTED",
    "eval QUOTED",
    "sudo -u x sh -c QUOTED x",
    "trap QUOTED EXIT",
    "bash <<< QUOTED",
    "echo QUOTED | sh",
    "ssh host QUOTED",
    "time BARE",
    "( BARE )",
    "{ BARE; }",
    "if true; then BARE; fi",
    "while :; do BARE; done",
    "true && BARE",
    "echo $( BARE )",
    "! BARE",
    "f() { BARE; }; f",
    "x=$( BARE )",
    "cat <(BARE)",
    "BARE & wait",
    "case x in *) BARE;; esac",
    "for i in 1 2; do BARE; done",
    "alias z=QUOTED\nz",
];

/// The same words, each character spelt in one of the ways a shell has.
fn disguise(command: &str, styles: &[u8]) -> String {
    let mut text = String::new();
    for (c, style) in command.chars().zip(styles.iter().cycle()) {
        // A tilde means home only where it stands bare.
        if c == ' ' || c == '~' || c == '=' {
            text.push(c);
            continue;
        }
        match style {
            0 | 1 => text.push(c),
            2 => text.push_str(&format!("'{c}'")),
            3 => text.push_str(&format!("\"{c}\"")),
            4 => text.push_str(&format!("\\{c}")),
            _ => text.push_str(&format!("$'\\x{:02x}'", u32::from(c))),
        }
    }
    text
}

#[test]
fn depth_and_length_are_bounded() {
    let context = context();
    let deep = [
        "(".repeat(20_000),
        "$(".repeat(20_000),
        "{ ".repeat(20_000),
        "`".repeat(20_000),
        "$((".repeat(20_000),
        "${x:-".repeat(10_000),
        "if true; then ".repeat(4_000),
        "\"$(".repeat(15_000),
        "<(".repeat(20_000),
        "[[ ( ".repeat(10_000),
        "{a,".repeat(20_000),
        "{a,b}".repeat(12_000),
        "a() { ".repeat(9_000),
        "x=$x$x; ".repeat(8_000),
        "cat <<E\n".repeat(8_000),
        "f() { g; g; }; g() { f; f; }; f; ".repeat(1_000),
        "for i in 1 2 3 4 5 6 7 8; do ".repeat(40) + "rm -rf $x" + &"; done".repeat(40),
        "rm -rf ".to_owned() + &"$a/".repeat(20_000),
        "sh -c 'sh -c \"".repeat(4_000),
        "eval ".repeat(12_000) + "ls",
        "alias a=b; alias b=a; a".to_owned(),
        "a | ".repeat(15_000) + "a",
        "a && ".repeat(12_000) + "a",
        "@(".repeat(20_000),
        "[".repeat(60_000),
        "*".repeat(60_000),
        "rm -rf ".to_owned() + &"*a".repeat(30_000),
        "\\".repeat(60_000),
        "^".repeat(60_000),
        "%a".repeat(30_000),
        "(".repeat(30_000) + &")".repeat(30_000),
    ];
    // Deeper than every bound in both; without optimization the whole length takes ten seconds.
    let most = if cfg!(debug_assertions) { 16 << 10 } else { 64 << 10 };
    for text in &deep {
        let text = &text[..text.len().min(most)];
        let start = Instant::now();
        for shell in SHELLS {
            judge(text, shell, &context);
        }
        println!("{:>8} µs for {:?}…", start.elapsed().as_micros(), &text[..text.len().min(24)]);
    }
    let long = "ls; ".repeat(20_000);
    assert_eq!(judge(&long, Shell::Bash, &context).decision, Decision::Unknown);
}

/// Nothing is asserted about time: machines differ. The document quotes what this prints in
/// release builds.
#[test]
fn latency_of_a_kilobyte() {
    let line = "for f in src/*.rs; do if grep -q \"todo $x\" \"$f\"; then sed -i 's/a/b/' \"$f\" && echo $(wc -l < $f); fi; done; ";
    let text = line.repeat(1024 / line.len() + 1);
    let start = Instant::now();
    let context = context();
    println!("reading the rules: {} µs", start.elapsed().as_micros());
    judge(&text, Shell::Bash, &context);
    let rounds = 200;
    let start = Instant::now();
    for _ in 0..rounds {
        judge(&text, Shell::Bash, &context);
    }
    println!("{} bytes: {} µs", text.len(), start.elapsed().as_micros() / rounds);
}
