//! docs/security/syscalls.md shows the refused calls as the code has them. `UPDATE_DOCS=1` rewrites it.

use std::fs;
use std::path::Path;

use crate::filter::{
    Action, EACCES, EAFNOSUPPORT, ENOSYS, ENOTTY, EOPNOTSUPP, EPERM, EPROTONOSUPPORT,
};
use crate::plain;
use crate::rules::{ALWAYS, ANNOUNCED, NO_NEW_PROCESSES, Refusal};
use crate::watch::WATCHED;

const BEGIN: &str = "<!-- refused-calls:begin -->\n";
const END: &str = "<!-- refused-calls:end -->";

fn answer(name: &str, action: Action, reason: &str) -> &'static str {
    match action {
        Action::Errno(EPERM) => "EPERM",
        Action::Errno(EACCES) => "EACCES",
        Action::Errno(ENOSYS) => "ENOSYS",
        Action::Errno(ENOTTY) => "ENOTTY",
        Action::Errno(EOPNOTSUPP) => "EOPNOTSUPP",
        Action::Errno(EPROTONOSUPPORT) => "EPROTONOSUPPORT",
        Action::Errno(EAFNOSUPPORT) => "EAFNOSUPPORT",
        Action::Notify if reason.contains("proxy") => "the launcher: connects in its place",
        Action::Notify if name == "connect" => "the launcher: goes on",
        Action::Notify if reason.contains("reads") => "the syscall proxy: EOPNOTSUPP",
        Action::Notify if reason.contains("changes") || reason.contains("other processes") => {
            "the syscall proxy: EPERM"
        }
        Action::Notify => "the launcher: EPERM",
        other => panic!("{other:?}"),
    }
}

fn table(refusals: &[Refusal]) -> String {
    let mut text = String::from("| call | when | answer | because |\n|---|---|---|---|\n");
    for Refusal { call, when, action, reason, .. } in refusals {
        let when = if when.is_empty() { "always" } else { when };
        let answer = answer(call.name, *action, reason);
        text += &format!("| `{}` | {when} | {answer} | {reason} |\n", call.name);
    }
    text
}

#[test]
fn security_lists_the_refused_calls() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security/syscalls.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the begin marker");
    let (shown, after) = rest.split_once(END).expect("the end marker");
    let mut wanted = table(ALWAYS);
    for (when, refusals) in [
        ("With `--no-subprocess` also", NO_NEW_PROCESSES),
        ("With rules for networks, or for every port of a host, also", ANNOUNCED),
        ("Without a network namespace, unless `--network host` is given, also", plain::NO_SOCKETS),
        ("Without a network namespace, with TCP rules, instead of that", plain::PROXIED),
        (
            "Without namespaces, with `--network host` and Landlock before 9, also",
            plain::NO_UNIX_SOCKETS,
        ),
        (
            "Without namespaces also (the syscall proxy changes attributes in writable places, and reads them in granted ones)",
            plain::PLAIN,
        ),
        (
            "Without namespaces, where another sandbox has the listener, instead of the syscall proxy",
            plain::NO_ATTRIBUTES,
        ),
        ("Without namespaces, with Landlock before 3, also", plain::BEFORE_TRUNCATE),
        (
            "Without namespaces, with Landlock before 6, also (the syscall proxy sends signals within the run)",
            plain::BEFORE_SCOPES,
        ),
    ] {
        wanted += &format!("\n{when}:\n\n{}", table(refusals));
    }
    let names: Vec<String> =
        WATCHED.iter().map(|watched| format!("`{}`", watched.refusal.call.name)).collect();
    wanted += &format!(
        "\nIn learning mode (`mcp learn`) the launcher hears of these, unless a rule above answers them, notes the path, and lets \
         each go on: {}.\n",
        names.join(", ")
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            shown, wanted,
            "run the tests with UPDATE_DOCS=1 to renew docs/security/syscalls.md"
        );
    }
}
