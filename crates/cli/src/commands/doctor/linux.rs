//! The lines of `doctor` about a Linux host.

use mcp_sandbox::{Fact, LinuxFacts};

use super::{Findings, Line, Mark, linux_advice};

impl Findings for LinuxFacts {
    fn mechanisms(&self) -> Vec<Line> {
        mechanisms(self)
    }

    fn recommendations(&self, starts: bool) -> Vec<String> {
        linux_advice::recommendations(self, starts, self.leaves_open())
    }

    fn is_plain(&self) -> bool {
        is_plain(self)
    }

    fn leaves_open(&self) -> bool {
        is_plain(self) || !self.own_proc.usable()
    }
}

fn mechanisms(host: &LinuxFacts) -> Vec<Line> {
    let needed = |topic: &str, fact: &Fact, works: &str| match fact {
        Fact::Works => Line::new(topic, Mark::Holds, works),
        Fact::Fails { why } => Line::new(topic, Mark::Fails, format!("refused: {why}")),
        Fact::Assumed => Line::new(topic, Mark::Less, "not tried"),
    };
    let replaced = |topic: &str, fact: &Fact, works: &str, instead: &str| match fact {
        Fact::Fails { why } if has_walls(host) => {
            Line::new(topic, Mark::Less, format!("refused: {why}; {instead}"))
        }
        fact => needed(topic, fact, works),
    };
    let mut lines = vec![
        Line::new(
            "system",
            Mark::Holds,
            format!("{} {} on {}", host.system, host.kernel, host.architecture),
        ),
        replaced(
            "namespaces",
            &host.namespaces,
            "user, mount, pid, ipc, uts and cgroup in one step, without privilege",
            "Landlock and a stricter filter take their place",
        ),
    ];
    if host.namespaces.usable() {
        lines.extend([
            replaced(
                "private root",
                &host.private_root,
                "pivot_root with a /dev of its own",
                "Landlock takes its place",
            ),
            replaced(
                "own /proc",
                &host.own_proc,
                "of the sandbox's processes alone",
                "the host's is shown, and Landlock closes it",
            ),
            replaced(
                "own network",
                &host.network_namespace,
                "a network namespace with nothing in it",
                "the filter refuses every socket",
            ),
        ]);
    }
    if host.caller.is_root() {
        lines.push(match &host.mapped_trees {
            Fact::Fails { why } => {
                Line::new("owner mapping", Mark::Less, format!("refused: {why}"))
            }
            _ => Line::new(
                "owner mapping",
                Mark::Holds,
                "started as root: files keep their owner outside",
            ),
        });
    }
    lines.push(needed("seccomp", &host.seccomp, "a filter was accepted and refused a call"));
    lines.push(landlock(host));
    lines.push(cgroup(host));
    lines
}

fn landlock(host: &LinuxFacts) -> Line {
    match host.landlock_abi {
        0 if is_plain(host) => Line::new("landlock", Mark::Fails, "not offered by this kernel"),
        0 => Line::new("landlock", Mark::Less, "not offered by this kernel; the mounts hold alone"),
        1 if !is_plain(host) => Line::new(
            "landlock",
            Mark::Less,
            "version 1 is not used, it refuses to move files between directories; the mounts \
             hold alone",
        ),
        abi => {
            let place = match is_plain(host) {
                true => "the wall around files and processes of every run",
                false => "behind the mounts of every run",
            };
            let text = format!("version {abi}, a file was closed to a process; {place}");
            Line::new("landlock", Mark::Holds, text)
        }
    }
}

/// Whether a run here has neither namespaces nor a root of its own.
fn is_plain(host: &LinuxFacts) -> bool {
    !host.namespaces.usable() || !host.private_root.usable()
}

/// What stands in for namespaces.
fn has_walls(host: &LinuxFacts) -> bool {
    host.landlock_abi > 0 && host.seccomp.usable()
}

/// Made in a child and removed again; the limits in it are tried below.
fn cgroup(host: &LinuxFacts) -> Line {
    let facts = &host.cgroup;
    let topic = "cgroups v2";
    match (&facts.held, &facts.mount) {
        (Some(held), Some(mount)) => Line::new(
            topic,
            Mark::Holds,
            format!(
                "at {}, one of its own was made ({}) with {}",
                mount.display(),
                held.means.name(),
                held.controllers.join(", ")
            ),
        ),
        (_, mount) => {
            let at = mount.as_ref().map(|at| format!("at {}, ", at.display())).unwrap_or_default();
            let why = facts.why_not.as_deref().unwrap_or("not tried");
            Line::new(topic, Mark::Less, format!("{at}not used: {why}"))
        }
    }
}
