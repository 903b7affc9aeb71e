//! The checks of `mcp doctor --full` on each system. The lists are data: all of them compile everywhere, and the documents
//! name what no machine has confirmed yet from the same lists.

mod macos;
mod unix;
mod windows;

use super::check::Expect::{DiesWithLauncher, Exit, Refused, Serves, Works};
use super::check::Program::Guest;
use super::check::{Expect, FullCheck, Program};

const fn check(
    id: &'static str,
    what: &'static str,
    program: Program,
    flags: &'static [&'static str],
    expect: Expect,
) -> FullCheck {
    FullCheck { id, what, program, flags, expect }
}

const WRITE: &[&str] = &["--write", "{dir}/grant", "--cwd", "{dir}/grant"];

/// The boundaries and endings, the same on every system.
const EVERYWHERE: &[FullCheck] = &[
    check(
        "files.read",
        "a file that was not granted is not read",
        Guest(&["read", "{dir}/secret"]),
        &[],
        Refused,
    ),
    check(
        "files.create",
        "nothing is created where nothing was granted",
        Guest(&["create", "{dir}/new"]),
        &[],
        Refused,
    ),
    check(
        "files.read-grant",
        "a read grant is not written to",
        Guest(&["create", "{dir}/read/new"]),
        &["--read", "{dir}/read"],
        Refused,
    ),
    check(
        "files.grant",
        "a read grant is read",
        Guest(&["read", "{dir}/read/file"]),
        &["--read", "{dir}/read"],
        Works,
    ),
    check(
        "files.odd-path",
        "a granted path with spaces, quotes and other letters",
        Guest(&["read", "{dir}/odd name \u{fc} 'x'/file"]),
        &["--read", "{dir}/odd name \u{fc} 'x'"],
        Works,
    ),
    check(
        "files.deny",
        "a denied file in a write grant is not read",
        Guest(&["read", "{dir}/grant/secret"]),
        &["--write", "{dir}/grant", "--deny", "**/secret"],
        Refused,
    ),
    check(
        "files.links",
        "files are created, linked and renamed in a write grant",
        Guest(&[
            "hardlink",
            "{dir}/grant/x.c",
            "{dir}/grant/y.c",
            "--then",
            "rename",
            "{dir}/grant/y.c",
            "{dir}/grant/z.c",
        ]),
        &["--write", "{dir}/grant"],
        Works,
    ),
    check(
        "network.none",
        "a port of this machine is out of reach",
        Guest(&["connect", "127.0.0.1:{port}"]),
        &[],
        Refused,
    ),
    check(
        "network.listen",
        "a server inside is reached with --listen",
        Guest(&["serve", "{free}", "50"]),
        &["--listen", "{free}"],
        Serves,
    ),
    check(
        "process.fork",
        "--no-subprocess refuses a process",
        Guest(&["fork", "1"]),
        &["--no-subprocess"],
        Refused,
    ),
    check(
        "process.threads",
        "threads work under --no-subprocess",
        Guest(&["threads", "8"]),
        &["--no-subprocess"],
        Works,
    ),
    check(
        "process.daemon",
        "a daemon dies when the launcher is killed",
        Guest(&["daemonize", "60", "{dir}/grant/beat", "--then", "sleep", "60"]),
        &["--write", "{dir}/grant"],
        DiesWithLauncher,
    ),
    check(
        "environment.unnamed",
        "a variable that was not named does not arrive",
        Guest(&["getenv", "MCP_DOCTOR_CANARY"]),
        &[],
        Refused,
    ),
    check(
        "limits.memory",
        "--max-memory stops a program that takes more",
        Guest(&["alloc-shared", "268435456", "300"]),
        &["--max-memory", "64M"],
        Refused,
    ),
    check(
        "limits.timeout",
        "--timeout ends with 124",
        Guest(&["sleep", "30"]),
        &["--timeout", "300ms", "--grace", "100ms"],
        Exit(124),
    ),
    check("ending.code", "an exit code passes through", Guest(&["exit", "42"]), &[], Exit(42)),
];

/// Checks that a summary from a real machine has shown to pass, by system: they are not told as unverified any more.
#[cfg(test)]
const SEEN: &[(&str, &str)] = &[];

/// What no check of ours can tell, by system.
#[cfg(test)]
const BEYOND: &[(&str, &str)] = &[
    (
        "macos",
        "whether another machine of the network reaches a server that listens on every address under `--listen`: others \
         measured that no profile prevents it, and the report says so",
    ),
    ("macos", "whether an account without administrator's rights can read the log of refusals"),
    ("windows", "whether Ctrl-C and Ctrl-Break reach a program in a console of its own"),
    (
        "windows",
        "what a firewall or a policy of an organisation closes between two programs of one container",
    ),
    ("windows", "how long entries take on a tree of 50,000 files: each object is written once"),
];

/// The checks of one system, by the name that Rust has for it.
pub fn of(system: &str) -> Vec<&'static FullCheck> {
    let own: &[&[FullCheck]] = match system {
        "macos" => &[unix::UNIX, macos::MACOS],
        "windows" => &[windows::WINDOWS],
        _ => &[unix::UNIX, unix::LINUX],
    };
    EVERYWHERE.iter().chain(own.iter().copied().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn unseen(system: &str) -> Vec<&'static FullCheck> {
        of(system).into_iter().filter(|check| !SEEN.contains(&(system, check.id))).collect()
    }

    fn beyond(system: &str) -> String {
        let own = BEYOND.iter().filter(|(of, _)| *of == system);
        own.map(|(_, what)| format!("- {what}\n")).collect()
    }

    fn table(system: &str) -> String {
        let rows = unseen(system).into_iter().map(|c| format!("| `{}` | {} |\n", c.id, c.what));
        let rows: String = rows.collect();
        format!(
            "| check | what it shows |\n|---|---|\n{rows}\nNo check can tell:\n\n{}",
            beyond(system)
        )
    }

    /// One line for each area: what begins with the same word.
    fn areas(system: &str) -> String {
        let mut areas: Vec<(&str, Vec<&str>)> = Vec::new();
        for check in unseen(system) {
            let area = check.id.split('.').next().unwrap_or_default();
            match areas.iter_mut().find(|(known, _)| *known == area) {
                Some((_, what)) => what.push(check.what),
                None => areas.push((area, vec![check.what])),
            }
        }
        let line = |(area, what): (&str, Vec<&str>)| format!("- `{area}`: {}\n", what.join("; "));
        let lines: String = areas.into_iter().map(line).collect();
        format!(
            "Not verified on a real machine, by the checks of `mcp doctor --full` ({} of {}):\n\n{lines}\nNo check can \
             tell:\n\n{}",
            unseen(system).len(),
            of(system).len(),
            beyond(system)
        )
    }

    /// The documents name what no real machine has confirmed from these very lists. `UPDATE_DOCS=1` writes them.
    #[test]
    fn documents_name_every_check() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut stale = Vec::new();
        for (file, system, text) in [
            ("FIRST-CONTACT.md", "macos", table("macos")),
            ("FIRST-CONTACT.md", "windows", table("windows")),
            ("security/macos.md", "macos", areas("macos")),
            ("security/windows.md", "windows", areas("windows")),
        ] {
            let path = docs.join(file);
            let have = std::fs::read_to_string(&path).unwrap();
            let (open, close) = (format!("<!-- checks: {system} -->\n"), "<!-- end of checks -->");
            let start = have.find(&open).unwrap() + open.len();
            let end = start + have[start..].find(close).unwrap();
            let mut wanted = have.clone();
            wanted.replace_range(start..end, &text);
            if std::env::var_os("UPDATE_DOCS").is_some() {
                std::fs::write(&path, &wanted).unwrap();
            }
            if have != wanted {
                stale.push(file);
            }
        }
        assert!(
            stale.is_empty(),
            "{stale:?} say not what the lists say: UPDATE_DOCS=1 cargo test -p mcp-cli"
        );
    }

    #[test]
    fn what_was_seen_is_a_check() {
        for (system, id) in SEEN {
            assert!(of(system).iter().any(|check| check.id == *id), "{system} {id}");
        }
    }

    #[test]
    fn every_system_has_25_checks_with_names_of_their_own() {
        for system in ["linux", "macos", "windows"] {
            let checks = of(system);
            assert!(checks.len() >= 25, "{system}: {}", checks.len());
            let ids: BTreeSet<&str> = checks.iter().map(|check| check.id).collect();
            assert_eq!(ids.len(), checks.len(), "{system}");
        }
    }
}
