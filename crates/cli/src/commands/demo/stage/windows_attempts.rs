//! What the server tries on Windows, on both sides. What Windows cannot close is not among them: whoever runs there
//! sees the names of processes, and the size of its TEMP has no limit.

use std::io;

use super::attempt::{Attempt, Proof, Session, same, words};
use super::scene::{DemoScene, TOKEN};

/// Long enough that, inside, only the sandbox can be what ends it.
const FOR_LONG: &str = "4";
const MIB: u64 = 1 << 20;

/// All sessions; `launcher` is the pid of an `mcp run`.
pub fn all(scene: &DemoScene, launcher: u32) -> io::Result<Vec<Session>> {
    let mut boundaries = files(scene);
    boundaries.extend(processes(scene, launcher));
    boundaries.push(same(
        "connect to a port of the host",
        words!["connect", scene.tcp_address()?],
        Proof::Done,
        "AppContainer: no network",
    ));
    let grants = words!["--read", scene.word("docs"), "--write", scene.word("project")];
    Ok(vec![
        Session { flags: grants, attempts: boundaries },
        Session {
            flags: words!["--max-memory", "64M", "--max-pids", "6"],
            attempts: vec![
                same(
                    "take 96 MiB, 64 are granted",
                    words!["alloc", 96 * MIB],
                    Proof::Done,
                    "job: memory of the tree",
                ),
                same("start 16 processes", words!["fork", 16], Proof::Done, "job: processes"),
            ],
        },
        Session {
            flags: words!["--timeout", "1s", "--grace", "100ms"],
            attempts: vec![Attempt {
                name: "outlive the timeout",
                bare: words!["ignore-term", "1.5"],
                inside: words!["ignore-term", FOR_LONG],
                proof: Proof::Outlives(124),
                stopped_by: "timeout: the job is ended",
            }],
        },
        Session {
            flags: words!["--write", scene.word("project")],
            attempts: vec![Attempt {
                name: "stay behind as a daemon",
                bare: words!["daemonize", "3", scene.word(r"project\bare.beat")],
                inside: words!["daemonize", "6", scene.word(r"project\inside.beat")],
                proof: Proof::StaysBehind {
                    bare: scene.path(r"project\bare.beat"),
                    inside: scene.path(r"project\inside.beat"),
                },
                stopped_by: "job: ends whole",
            }],
        },
    ])
}

fn files(scene: &DemoScene) -> Vec<Attempt> {
    const CLOSED: &str = "AppContainer: no entry";
    let shows = || Proof::Shows(scene.secret().to_owned());
    let read = |name, path: &str| same(name, words!["read", scene.word(path)], shows(), CLOSED);
    let write = |name, path: &str, stopped_by| {
        same(name, words!["write", scene.word(path), "# owned\n"], Proof::Done, stopped_by)
    };
    vec![
        read(r"read ~\.ssh\id_ed25519", r"home\.ssh\id_ed25519"),
        read(r"read ~\.aws\credentials", r"home\.aws\credentials"),
        read("climb out of the project by ..", r"project\..\home\.ssh\id_ed25519"),
        write("add a line to profile.ps1", r"home\profile.ps1", CLOSED),
        write("change a file granted to read", r"docs\readme.txt", "entry to read only"),
    ]
}

fn processes(scene: &DemoScene, launcher: u32) -> Vec<Attempt> {
    const CLOSED: &str = "AppContainer: not to be opened";
    vec![
        same(
            "read %GITHUB_TOKEN%",
            words!["getenv", TOKEN],
            Proof::Shows(scene.secret().to_owned()),
            "own environment",
        ),
        Attempt {
            name: "end a process of the host",
            bare: words!["kill", scene.victim(), 15],
            inside: words!["kill", scene.bystander(), 15],
            proof: Proof::Done,
            stopped_by: CLOSED,
        },
        // Opened to be ended, and not ended: it is still needed.
        same("open the launcher to end it", words!["kill", launcher, 0], Proof::Done, CLOSED),
        same("leave the job", words!["break-away"], Proof::Done, "job: no breakaway"),
    ]
}
