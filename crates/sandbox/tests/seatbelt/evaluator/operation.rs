//! Operations, how they are ordered, and what is asked about one.

/// Every operation that a profile of ours may name. A misspelt one would be an error on a Mac.
pub const KNOWN: &[&str] = &[
    "default",
    "dynamic-code-generation",
    "file*",
    "file-clone",
    "file-ioctl",
    "file-link",
    "file-map-executable",
    "file-mount",
    "file-read*",
    "file-read-data",
    "file-read-metadata",
    "file-read-xattr",
    "file-write*",
    "file-write-create",
    "file-write-data",
    "file-write-flags",
    "file-write-mode",
    "file-write-owner",
    "file-write-setugid",
    "file-write-times",
    "file-write-unlink",
    "file-write-xattr",
    "iokit-get-properties",
    "iokit-open",
    "ipc-posix-sem",
    "ipc-posix-shm*",
    "ipc-posix-shm-read-data",
    "ipc-posix-shm-write-create",
    "ipc-posix-shm-write-data",
    "ipc-posix-shm-write-unlink",
    "job-creation",
    "lsopen",
    "appleevent-send",
    "mach-host*",
    "mach-lookup",
    "mach-priv-task-port",
    "mach-register",
    "network*",
    "network-bind",
    "network-inbound",
    "network-outbound",
    "nvram*",
    "nvram-get",
    "process*",
    "process-exec*",
    "process-exec",
    "process-exec-interpreter",
    "process-fork",
    "process-info*",
    "process-info-pidinfo",
    "process-info-listpids",
    "process-info-rusage",
    "pseudo-tty",
    "signal",
    "sysctl-read",
    "sysctl-write",
    "system-socket",
    "user-preference-read",
];

/// What `(deny default)` does not reach.
const OUTSIDE: [&str; 5] = [
    "dynamic-code-generation",
    "file-map-executable",
    "iokit-get-properties",
    "nvram",
    "process-info",
];

pub fn is_outside_default(operation: &str) -> bool {
    OUTSIDE.iter().any(|outside| {
        operation == *outside
            || operation
                .strip_prefix(outside)
                .is_some_and(|rest| rest.starts_with('-') || rest == "*")
    })
}

/// The operation itself and those that stand for it, the most particular first.
pub fn levels(operation: &str) -> Vec<String> {
    let mut levels = vec![operation.to_owned()];
    let mut rest = operation.trim_end_matches('*');
    if rest == operation {
        levels.push(format!("{operation}*"));
    }
    while let Some((shorter, _)) = rest.rsplit_once('-') {
        rest = shorter;
        levels.push(format!("{rest}*"));
    }
    if is_outside_default(operation) {
        levels.retain(|level| is_outside_default(level));
    } else {
        levels.push("default".to_owned());
    }
    levels
}

/// One end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Ip { host: String, port: u16 },
    Unix(String),
}

impl End {
    pub fn ip(host: &str, port: u16) -> End {
        End::Ip { host: host.to_owned(), port }
    }
}

/// What a program wants to do.
#[derive(Debug, Clone, Default)]
pub struct Question {
    pub operation: String,
    pub path: Option<String>,
    /// A service, a sysctl, a semaphore.
    pub name: Option<String>,
    pub local: Option<End>,
    pub remote: Option<End>,
    /// Whether the other process is of the same sandbox.
    pub is_same_sandbox: bool,
}

impl Question {
    pub fn new(operation: &str) -> Question {
        Question { operation: operation.to_owned(), ..Question::default() }
    }

    pub fn path(operation: &str, path: &str) -> Question {
        Question { path: Some(path.to_owned()), ..Question::new(operation) }
    }

    pub fn name(operation: &str, name: &str) -> Question {
        Question { name: Some(name.to_owned()), ..Question::new(operation) }
    }

    /// A connection to there; its own end is any free port.
    pub fn outbound(to: End) -> Question {
        let local = match &to {
            End::Ip { .. } => End::ip("192.0.2.7", 50_000),
            End::Unix(_) => End::Unix(String::new()),
        };
        Question { local: Some(local), remote: Some(to), ..Question::new("network-outbound") }
    }

    pub fn bind(at: End) -> Question {
        Question { local: Some(at), ..Question::new("network-bind") }
    }

    /// A connection that arrives at this address.
    pub fn inbound(at: End) -> Question {
        Question { local: Some(at), ..Question::new("network-inbound") }
    }

    pub fn other_process(operation: &str) -> Question {
        Question::new(operation)
    }

    pub fn same_sandbox(operation: &str) -> Question {
        Question { is_same_sandbox: true, ..Question::new(operation) }
    }
}
