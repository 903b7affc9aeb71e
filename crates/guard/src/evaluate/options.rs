//! Finds the words after a program's own options.

use crate::value::{Field, Piece};

/// How a program that starts another one reads its own options.
pub struct Wrapper {
    pub name: &'static str,
    /// Short options that take a value.
    pub short: &'static str,
    /// Long options that take a value in the next word.
    pub long: &'static [&'static str],
    /// Words before the command: timeout's duration, chroot's directory.
    pub operands: usize,
    /// `NAME=value` before the command.
    pub assigns: Assigns,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Assigns {
    Yes,
    No,
}

const fn plain(name: &'static str, short: &'static str) -> Wrapper {
    Wrapper { name, short, long: &[], operands: 0, assigns: Assigns::No }
}

const fn with(name: &'static str, short: &'static str, long: &'static [&'static str]) -> Wrapper {
    Wrapper { name, short, long, operands: 0, assigns: Assigns::No }
}

const fn after(
    name: &'static str,
    short: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { name, short, long, operands, assigns: Assigns::No }
}

/// Programs whose remaining words are a command.
pub const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "sudo",
        short: "CDghpRrTtUu",
        long: &["--user", "--group", "--host", "--prompt", "--chdir", "--role", "--type"],
        operands: 0,
        assigns: Assigns::Yes,
    },
    Wrapper { name: "doas", short: "uC", long: &[], operands: 0, assigns: Assigns::Yes },
    Wrapper {
        name: "env",
        short: "uC",
        long: &["--unset", "--chdir"],
        operands: 0,
        assigns: Assigns::Yes,
    },
    plain("nohup", ""),
    plain("setsid", ""),
    plain("command", ""),
    plain("builtin", ""),
    plain("exec", "a"),
    plain("eatmydata", ""),
    plain("fakeroot", "lsib"),
    plain("unbuffer", ""),
    plain("rlwrap", "afHs"),
    plain("caffeinate", "tw"),
    plain("proxychains", "f"),
    plain("proxychains4", "f"),
    plain("torsocks", "aupP"),
    plain("dbus-run-session", ""),
    plain("xvfb-run", "efns"),
    plain("cpulimit", "lpe"),
    plain("pkexec", ""),
    plain("gosu", ""),
    plain("catchsegv", ""),
    plain("chronic", ""),
    plain("ld.so", ""),
    plain("ld-linux-x86-64.so.2", ""),
    plain("ld-linux-aarch64.so.1", ""),
    plain("ld-linux.so.2", ""),
    plain("ld-musl-x86_64.so.1", ""),
    plain("ld-musl-aarch64.so.1", ""),
    plain("proot", "rbwqkS"),
    plain("cgexec", "g"),
    plain("tsocks", ""),
    plain("with-contenv", ""),
    plain("dumb-init", ""),
    plain("tini", "pv"),
    plain("catatonit", ""),
    plain("heaptrack", "o"),
    after("faketime", "f", &[], 1),
    plain("ltrace", "aeloprsu"),
    with("nice", "n", &["--adjustment"]),
    with("ionice", "cnpPu", &["--class", "--classdata", "--pid"]),
    with("time", "fo", &["--format", "--output"]),
    with("stdbuf", "ioe", &["--input", "--output", "--error"]),
    with("unshare", "RSGw", &["--root", "--wd", "--setuid", "--setgid"]),
    with("nsenter", "tSGN", &["--target", "--setuid", "--setgid"]),
    with("setpriv", "", &["--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set"]),
    with("strace", "abeEIoOpPsSuUX", &["--output", "--trace", "--attach"]),
    with("systemd-run", "EMptuG", &["--unit", "--property", "--uid", "--gid", "--setenv"]),
    with("valgrind", "", &[]),
    with("prlimit", "", &["--pid"]),
    with("firejail", "", &[]),
    with("entr", "", &[]),
    after("timeout", "sk", &["--signal", "--kill-after"], 1),
    after("gtimeout", "sk", &["--signal", "--kill-after"], 1),
    after("chroot", "", &["--userspec", "--groups"], 1),
    after("taskset", "", &[], 1),
    after("chrt", "TPD", &[], 1),
    after("setarch", "", &[], 1),
    after("numactl", "NCmip", &["--cpunodebind", "--membind", "--interleave"], 0),
    after("su-exec", "", &[], 1),
];

pub fn wrapper(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

impl Wrapper {
    /// Where the command begins among the words; `None` where an unknown word hides it.
    pub fn command_at(&self, words: &[Field]) -> Option<usize> {
        let mut at = 0;
        let mut operands = self.operands;
        let mut options = true;
        while let Some(field) = words.get(at) {
            let Some(text) = field.known() else {
                let starts = match field.value.pieces.first() {
                    Some(Piece::Text(text)) => is_assignment(text),
                    _ => false,
                };
                if self.assigns == Assigns::Yes && starts {
                    at += 1;
                    continue;
                }
                // An unknown value of an operand hides nothing, an unknown option might.
                if operands > 0 && !field.value.is_many() {
                    operands -= 1;
                    at += 1;
                    continue;
                }
                return None;
            };
            if options && text == "--" {
                options = false;
                at += 1;
            } else if options && text.starts_with('-') {
                at += 1 + usize::from(self.takes_value(&text));
            } else if self.assigns == Assigns::Yes && is_assignment(&text) {
                at += 1;
            } else if operands > 0 {
                operands -= 1;
                at += 1;
            } else {
                return Some(at);
            }
        }
        Some(words.len())
    }

    fn takes_value(&self, option: &str) -> bool {
        if option.starts_with("--") {
            return self.long.contains(&option);
        }
        crate::options::takes_next(option, self.short)
    }
}

pub fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    })
}

/// The value of an option: in the same word or the next one. The place of the word it is in.
pub fn value_of(words: &[Field], short: char, long: &str) -> Option<(usize, String)> {
    for (at, field) in words.iter().enumerate() {
        let Some(text) = field.known() else {
            continue;
        };
        if text == "--" {
            return None;
        }
        if !long.is_empty() && text == long {
            return words.get(at + 1)?.known().map(|value| (at + 1, value.into_owned()));
        }
        if !long.is_empty()
            && let Some(value) = text.strip_prefix(long).and_then(|rest| rest.strip_prefix('='))
        {
            return Some((at, value.to_owned()));
        }
        if text.starts_with("--") || !text.starts_with('-') {
            continue;
        }
        if let Some((_, value)) = text[1..].split_once(short) {
            if value.is_empty() {
                return words.get(at + 1)?.known().map(|value| (at + 1, value.into_owned()));
            }
            return Some((at, value.to_owned()));
        }
    }
    None
}
