//! The attacks of the demo's server on Linux, without and with the sandbox.

use std::io;

use super::attempt::{Attempt, Proof, Session, same, words};
use super::scene::{DemoScene, TOKEN};

/// Long enough that, inside, only the sandbox can be what ends it.
const FOR_LONG: &str = "4";
const MIB: u64 = 1 << 20;

/// All sessions; `launcher` is the pid of an `mcp run` that holds the secret, as a shell's would.
pub fn all(scene: &DemoScene, launcher: u32) -> io::Result<Vec<Session>> {
    let mut boundaries = files(scene);
    boundaries.extend(processes(scene, launcher));
    boundaries.extend(sockets(scene)?);
    let grants = words!["--read", scene.word("docs"), "--write", scene.word("project")];
    Ok(vec![
        Session { flags: grants, attempts: boundaries },
        Session {
            flags: words!["--max-memory", "64M", "--max-pids", "24", "--max-tmp", "4M"],
            attempts: resources(scene),
        },
        Session {
            flags: words!["--timeout", "300ms", "--grace", "100ms"],
            attempts: vec![Attempt {
                name: "outlive the timeout",
                bare: words!["ignore-term", "0.5"],
                inside: words!["ignore-term", FOR_LONG],
                proof: Proof::Outlives(124),
                stopped_by: "timeout: SIGKILL to all",
            }],
        },
        Session {
            flags: words!["--write", scene.word("project")],
            attempts: vec![Attempt {
                name: "stay behind as a daemon",
                bare: words!["daemonize", "0.7", scene.word("project/bare.beat")],
                inside: words!["daemonize", FOR_LONG, scene.word("project/inside.beat")],
                proof: Proof::StaysBehind {
                    bare: scene.path("project/bare.beat"),
                    inside: scene.path("project/inside.beat"),
                },
                stopped_by: "pid namespace ends whole",
            }],
        },
    ])
}

fn files(scene: &DemoScene) -> Vec<Attempt> {
    let shows = || Proof::Shows(scene.secret().to_owned());
    let key = scene.word("home/.ssh/id_ed25519");
    let read =
        |name, path: String, stopped_by| same(name, words!["read", path], shows(), stopped_by);
    let write = |name, path: String, stopped_by| {
        same(name, words!["write", path, "# owned\n"], Proof::Done, stopped_by)
    };
    let etc = words!["write", scene.word("etc/hosts"), "# owned\n"];
    // Nothing is appended to the real one, should it open.
    let own_etc = words!["--then", "write", "/etc/hosts", ""];
    vec![
        read("read ~/.ssh/id_ed25519", key.clone(), "own root: not there"),
        read("read ~/.aws/credentials", scene.word("home/.aws/credentials"), "own root: not there"),
        read(
            "follow a symlink in the project",
            scene.word("project/notes.txt"),
            "own root: not there",
        ),
        read(
            "climb out of the project by ..",
            scene.word("project/../home/.ssh/id_ed25519"),
            "own root: not there",
        ),
        Attempt {
            name: "go through /proc/PID/root",
            bare: words!["read", format!("/proc/{}/root{key}", scene.bystander())],
            inside: words![
                "read",
                format!("/proc/{}/root{key}", scene.bystander()),
                "--then",
                "read",
                format!("/proc/1/root{key}")
            ],
            proof: shows(),
            stopped_by: "pid namespace, hidden init",
        },
        read(
            "use a descriptor left open",
            format!("/proc/self/fd/{}", scene.props.leaked_descriptor()),
            "descriptors are closed",
        ),
        write("add a line to ~/.bashrc", scene.word("home/.bashrc"), "own root: not there"),
        Attempt {
            name: "change /etc/hosts",
            bare: etc.clone(),
            inside: [etc, own_etc].concat(),
            proof: Proof::Done,
            stopped_by: "own /etc, read-only",
        },
        write("change a file granted to read", scene.word("docs/readme.txt"), "read-only mount"),
    ]
}

fn processes(scene: &DemoScene, launcher: u32) -> Vec<Attempt> {
    let shows = || Proof::Shows(scene.secret().to_owned());
    let bystander = scene.bystander();
    vec![
        same("read $GITHUB_TOKEN", words!["getenv", TOKEN], shows(), "own environment"),
        same("read another's environment", words!["environ", bystander], shows(), "pid namespace"),
        Attempt {
            name: "read the launcher's environment",
            bare: words!["environ", launcher],
            inside: words!["environ", launcher, "--then", "environ", 1],
            proof: shows(),
            stopped_by: "pid namespace, hidden init",
        },
        same(
            "list the processes of the host",
            words!["proc-list"],
            Proof::Lists(bystander.to_string()),
            "pid namespace, own /proc",
        ),
        Attempt {
            name: "end a process of the host",
            bare: words!["kill", scene.victim(), 15],
            inside: words!["kill", bystander, 15],
            proof: Proof::Done,
            stopped_by: "pid namespace",
        },
    ]
}

fn sockets(scene: &DemoScene) -> io::Result<Vec<Attempt>> {
    Ok(vec![
        same(
            "connect to a port of the host",
            words!["connect", scene.tcp_address()?],
            Proof::Done,
            "network namespace",
        ),
        same(
            "connect to an abstract socket",
            words!["unix-abstract", scene.props.abstract_name()],
            Proof::Done,
            "network namespace",
        ),
        same(
            "connect to docker.sock",
            words!["unix-connect", scene.word("run/docker.sock")],
            Proof::Done,
            "own root: not there",
        ),
    ])
}

/// Bare amounts that no machine notices; inside they are more than is granted.
fn resources(scene: &DemoScene) -> Vec<Attempt> {
    // An own out-of-memory kill may come instead of a refusal.
    const KILLED: i32 = 137;
    vec![
        same(
            "take 96 MiB, 64 are granted",
            words!["alloc", 96 * MIB],
            Proof::Survives(KILLED),
            "memory limit of a process",
        ),
        same("fork-bomb", words!["fork", 64], Proof::Done, "process limit"),
        Attempt {
            name: "fill the disk",
            bare: words!["tmp-fill", scene.word("tmp"), 8 * MIB],
            inside: words!["tmp-fill", "/tmp", 8 * MIB],
            proof: Proof::Done,
            stopped_by: "sized /tmp of its own",
        },
        Attempt {
            name: "take 96 MiB by four processes",
            bare: words!["fork-alloc", 4, 24 * MIB, 20],
            inside: words!["fork-alloc", 4, 24 * MIB, 2000],
            proof: Proof::Survives(KILLED),
            stopped_by: "memory limit of the tree",
        },
    ]
}
