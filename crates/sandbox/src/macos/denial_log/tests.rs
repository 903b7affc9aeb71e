use proptest::prelude::*;

use super::*;

const MARK: &str = "mcp.run.0123abcd";

fn line(message: &str) -> String {
    let timestamp = "2026-09-13 10:08:38.776905-0700";
    serde_json::json!({ "eventMessage": message, "timestamp": timestamp, "processID": 0 })
        .to_string()
}

fn one(message: &str) -> Option<Denial> {
    denials(&line(&format!("{message}\n{MARK}")), MARK).pop()
}

/// Shapes that people copied from the logs of their machines (macOS 14 to 26).
#[test]
fn lines_of_the_kernel_are_read() {
    let cat = one("Sandbox: cat(15505) deny(1) file-read-data /private/etc/hosts").unwrap();
    assert_eq!((cat.process.as_str(), cat.times), ("cat", 1));
    assert_eq!(
        (cat.operation.as_str(), cat.object.as_str()),
        ("file-read-data", "/private/etc/hosts")
    );
    assert_eq!(cat.at, 1_789_319_318.776905);
    let many = "7 duplicate reports for Sandbox: Gradle Worker(10) deny(1) file-read-data /a b/c d";
    let many = one(many).unwrap();
    assert_eq!((many.process.as_str(), many.times), ("Gradle Worker", 7));
    assert_eq!(many.object, "/a b/c d");
    let once =
        one("1 duplicate report for Sandbox: go(7) deny(1) mach-lookup com.apple.x").unwrap();
    assert_eq!((once.times, once.object.as_str()), (1, "com.apple.x"));
    assert_eq!(one("Sandbox: sh(5) deny(1) signal").unwrap().object, "");
    assert_eq!(one("Sandbox: a(b)(5) deny(1) signal").unwrap().process, "a(b)");
}

#[test]
fn lines_of_others_and_nonsense_are_left_out() {
    for message in ["", "Sandbox: ", "Sandbox: x(y) deny(1) file-read-data /x", "x deny(1) y"] {
        assert_eq!(one(message), None, "{message}");
    }
    assert_eq!(one("Sandbox: cat(1) allow(1) file-read-data /x"), None);
    let other = line("Sandbox: cat(1) deny(1) file-read-data /x\nmcp.run.ffffffff");
    let unmarked = line("Sandbox: cat(1) deny(1) file-read-data /mcp.run.0123abcd");
    let banner = "Filtering the log data using \"eventMessage CONTAINS ...\"";
    let text = format!("{banner}\n{other}\n{unmarked}\n{{\"count\":2,\"finished\":1}}\n[");
    assert_eq!(denials(&text, MARK), []);
    // A name with a line break and a mark in it belongs to the run whose mark comes last.
    let planted =
        line(&format!("Sandbox: cat(1) deny(1) file-read-data /x\n{MARK}\nmcp.run.other"));
    assert_eq!(denials(&planted, MARK), []);
}

#[test]
fn times_are_read_in_every_zone() {
    for (text, wanted) in [
        ("1970-01-01 00:00:00.000000+0000", 0.0),
        ("2000-03-01 00:00:00.5+0000", 951_868_800.5),
        ("2024-02-29 23:59:59+0130", 1_709_245_799.0),
        ("2026-11-18 12:00:00.000000-0730", 1_795_030_200.0),
    ] {
        assert_eq!(seconds(text), Some(wanted), "{text}");
    }
    for text in ["", "2026", "2026-11-18 12:00", "2026-11-18 12:00:00"] {
        assert_eq!(seconds(text), None, "{text}");
    }
}

#[test]
fn refusals_become_places() {
    let text = [
        "Sandbox: node(1) deny(1) file-read-data /Users/me/a",
        "2 duplicate reports for Sandbox: node(1) deny(1) file-read-data /Users/me/a",
        "Sandbox: node(1) deny(1) file-read-metadata /Users/me",
        "Sandbox: tee(1) deny(1) file-write-create /usr/local/x",
        "Sandbox: rm(1) deny(1) file-write-unlink /usr/local/y",
        "Sandbox: npm(1) deny(1) file-write-data /Users/me/.npm/x",
        "Sandbox: x(1) deny(1) network-outbound /private/var/run/docker.sock",
        "Sandbox: x(1) deny(1) network-outbound remote:*:443",
        "Sandbox: x(1) deny(1) mach-lookup com.apple.FSEvents",
        "Sandbox: git(1) deny(1) file-read-data /Users/me/.CFUserTextEncoding",
        "Sandbox: git(1) deny(1) file-read-data /dev/autofs_nowait",
    ];
    let text: Vec<String> = text.iter().map(|m| line(&format!("{m}\n{MARK}"))).collect();
    let places = missing(&denials(&text.join("\n"), MARK));
    let shown: Vec<_> = places.iter().map(|p| (p.path.as_str(), p.act, p.times)).collect();
    assert_eq!(
        shown,
        [
            ("/Users/me/a", WatchedAct::Read, 3),
            ("/Users/me", WatchedAct::Look, 1),
            ("/usr/local/x", WatchedAct::Create, 1),
            ("/usr/local/y", WatchedAct::Remove, 1),
            ("/Users/me/.npm/x", WatchedAct::Write, 1),
            ("/private/var/run/docker.sock", WatchedAct::Connect, 1),
        ]
    );
}

#[test]
fn the_tool_is_asked_for_this_run_only() {
    let show = show_arguments(MARK, 12);
    assert!(show.contains(&"12s".to_owned()) && show.contains(&"ndjson".to_owned()));
    for arguments in [show, stream_arguments(MARK)] {
        assert!(arguments.last().is_some_and(|last| last.contains(MARK)), "{arguments:?}");
    }
}

proptest! {
    #[test]
    fn whatever_a_path_is_it_comes_back(path in "/[^\u{0}\r]{0,40}[^\\s]", pid in 1..99_999u32) {
        let found = one(&format!("Sandbox: x({pid}) deny(1) file-read-data {path}")).unwrap();
        prop_assert_eq!(found.object, path);
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,80}", mark in "\\PC{0,8}") {
        let _ = denials(&text, &mark);
        let _ = denials(&line(&text), &mark);
        let _ = seconds(&text);
    }
}
