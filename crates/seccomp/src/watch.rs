//! Calls that name a file: in learning mode the launcher hears of each, notes the path, and always lets it go on.
//!
//! Watching changes no decision. A call that a rule refuses stays refused, one that a rule leaves to the launcher is answered
//! as in every run, and only what would be allowed is announced first. The launcher reads a path that may change before the
//! kernel reads it, so nothing may depend on what it read but a proposal.

use crate::filter::{Action, Arch, Filter, Rule, Test};
use crate::rules::{Number, Refusal, Sense, asked, both, int, same, x86};

/// What a call wants with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Its attributes, or whether it is there. `NotFollowed` for a link itself.
    Look(Links),
    /// To open it; the argument with this number has the flags.
    Open {
        /// Which argument has the flags.
        flags: u8,
    },
    /// To execute it, or to make it the current directory.
    Use,
    /// To change its contents.
    Write,
    /// To make an entry of a directory.
    Create,
    /// To make a directory.
    MakeDirectory,
    /// To take an entry from a directory.
    Remove,
    /// To connect to a socket; the path is in an address of this length.
    Connect {
        /// Which argument has the length of the address.
        length: u8,
    },
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Always.
    Followed,
    /// Never.
    NotFollowed,
    /// Unless the argument with this number has AT_SYMLINK_NOFOLLOW.
    ByFlags(u8),
}

/// A path among the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathArgument {
    /// Which argument is the directory that a relative path begins at; without one, the current directory.
    pub directory: Option<u8>,
    /// Which argument points to the path.
    pub path: u8,
    /// What is wanted with it.
    pub act: Act,
}

/// A call that is announced.
#[derive(Debug)]
pub struct Watched {
    /// The call, and when it is announced.
    pub(crate) refusal: Refusal,
    /// Its paths.
    pub paths: &'static [PathArgument],
}

const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EMPTY_PATH: u64 = 0x1000;
const REASON: &str = "its path is noted";

const fn at(path: u8, act: Act) -> PathArgument {
    PathArgument { directory: None, path, act }
}

const fn below(directory: u8, path: u8, act: Act) -> PathArgument {
    PathArgument { directory: Some(directory), path, act }
}

const fn watched(call: Number, paths: &'static [PathArgument]) -> Watched {
    Watched { refusal: asked(call, &[], "", REASON), paths }
}

const LOOK: Act = Act::Look(Links::Followed);
const LOOK_AT_LINK: Act = Act::Look(Links::NotFollowed);

/// The calls, with the path of each.
pub const WATCHED: &[Watched] = &[
    watched(x86("open", 2), &[at(0, Act::Open { flags: 1 })]),
    watched(both("openat", 257, 56), &[below(0, 1, Act::Open { flags: 2 })]),
    watched(x86("creat", 85), &[at(0, Act::Create)]),
    watched(x86("stat", 4), &[at(0, LOOK)]),
    watched(x86("lstat", 6), &[at(0, LOOK_AT_LINK)]),
    // What looks at an open descriptor has no path, and programs do it all the time.
    Watched {
        refusal: asked(
            both("newfstatat", 262, 79),
            &[int(3, Test::AnyBit(AT_EMPTY_PATH), Sense::Not)],
            "flags are without AT_EMPTY_PATH",
            REASON,
        ),
        paths: &[below(0, 1, Act::Look(Links::ByFlags(3)))],
    },
    Watched {
        refusal: asked(
            both("statx", 332, 291),
            &[int(2, Test::AnyBit(AT_EMPTY_PATH), Sense::Not)],
            "flags are without AT_EMPTY_PATH",
            REASON,
        ),
        paths: &[below(0, 1, Act::Look(Links::ByFlags(2)))],
    },
    watched(x86("access", 21), &[at(0, LOOK)]),
    watched(both("faccessat", 269, 48), &[below(0, 1, LOOK)]),
    watched(same("faccessat2", 439), &[below(0, 1, LOOK)]),
    watched(x86("readlink", 89), &[at(0, LOOK_AT_LINK)]),
    watched(both("readlinkat", 267, 78), &[below(0, 1, LOOK_AT_LINK)]),
    watched(both("execve", 59, 221), &[at(0, Act::Use)]),
    watched(both("execveat", 322, 281), &[below(0, 1, Act::Use)]),
    watched(both("chdir", 80, 49), &[at(0, Act::Use)]),
    watched(x86("mkdir", 83), &[at(0, Act::MakeDirectory)]),
    watched(both("mkdirat", 258, 34), &[below(0, 1, Act::MakeDirectory)]),
    watched(x86("mknod", 133), &[at(0, Act::Create)]),
    watched(both("mknodat", 259, 33), &[below(0, 1, Act::Create)]),
    watched(x86("symlink", 88), &[at(1, Act::Create)]),
    watched(both("symlinkat", 266, 36), &[below(1, 2, Act::Create)]),
    watched(x86("link", 86), &[at(0, LOOK_AT_LINK), at(1, Act::Create)]),
    watched(both("linkat", 265, 37), &[below(0, 1, LOOK_AT_LINK), below(2, 3, Act::Create)]),
    watched(x86("rmdir", 84), &[at(0, Act::Remove)]),
    watched(x86("unlink", 87), &[at(0, Act::Remove)]),
    watched(both("unlinkat", 263, 35), &[below(0, 1, Act::Remove)]),
    watched(x86("rename", 82), &[at(0, Act::Remove), at(1, Act::Create)]),
    watched(both("renameat", 264, 38), &[below(0, 1, Act::Remove), below(2, 3, Act::Create)]),
    watched(both("renameat2", 316, 276), &[below(0, 1, Act::Remove), below(2, 3, Act::Create)]),
    watched(both("truncate", 76, 45), &[at(0, Act::Write)]),
    watched(both("connect", 42, 203), &[at(1, Act::Connect { length: 2 })]),
];

impl Links {
    /// Whether a link at the end is followed by a call with these arguments.
    #[must_use]
    pub fn are_followed(self, arguments: &[u64; 6]) -> bool {
        match self {
            Links::Followed => true,
            Links::NotFollowed => false,
            Links::ByFlags(argument) => arguments[usize::from(argument)] & AT_SYMLINK_NOFOLLOW == 0,
        }
    }
}

/// The paths of a call that is announced.
#[must_use]
pub fn paths(arch: Arch, number: u32) -> &'static [PathArgument] {
    let found = WATCHED.iter().find(|watched| watched.refusal.call.on(arch) == Some(number));
    found.map_or(&[], |watched| watched.paths)
}

/// Announces, of what the filter allows, the calls of [`WATCHED`]. A call that some rule leaves to the launcher stays as it is.
pub(crate) fn add(filter: &mut Filter) -> Vec<u32> {
    let mut added = Vec::new();
    for Watched { refusal, .. } in WATCHED {
        let Some(number) = refusal.call.on(filter.arch) else { continue };
        let rule = filter.rules.remove(&number).unwrap_or(Rule::Do(Action::Allow));
        let rule = match rule.asks() {
            true => rule,
            false => {
                added.push(number);
                rule.instead_of_allowing(&refusal.rule(Rule::Do(Action::Allow)))
            }
        };
        filter.rules.insert(number, rule);
    }
    added.sort_unstable();
    added
}

impl Rule {
    fn asks(&self) -> bool {
        match self {
            Rule::Do(action) => *action == Action::Notify,
            Rule::If { then, otherwise, .. } => then.asks() || otherwise.asks(),
        }
    }

    fn instead_of_allowing(self, other: &Rule) -> Rule {
        match self {
            Rule::Do(Action::Allow) => other.clone(),
            Rule::Do(_) => self,
            Rule::If { argument, width, test, then, otherwise } => Rule::If {
                argument,
                width,
                test,
                then: Box::new(then.instead_of_allowing(other)),
                otherwise: Box::new(otherwise.instead_of_allowing(other)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decide::Call;
    use crate::{
        Connects, Ground, NewProcesses, Sockets, SyscallProxy, Watching, filter_of, watched_numbers,
    };

    fn settings() -> impl Strategy<Value = (NewProcesses, Connects, Sockets, Ground)> {
        let plain = Ground::Plain { landlock: 1, syscall_proxy: SyscallProxy::Asked };
        (
            prop_oneof![Just(NewProcesses::Allowed), Just(NewProcesses::Refused)],
            prop_oneof![Just(Connects::Free), Just(Connects::Announced)],
            prop_oneof![Just(Sockets::All), Just(Sockets::Proxied), Just(Sockets::None)],
            prop_oneof![Just(Ground::Namespaces), Just(plain)],
        )
    }

    proptest! {
        /// What is watched is never judged by it: a call that is refused in a run is refused, one that is asked about is
        /// asked about, and one that is allowed is allowed or announced.
        #[test]
        fn watching_changes_no_decision(
            (processes, connects, sockets, ground) in settings(),
            at in 0..WATCHED.len(),
            other in 0..500_u32,
            arguments: [u64; 6],
            is_arm: bool,
        ) {
            let arch = if is_arm { Arch::Aarch64 } else { Arch::X86_64 };
            let run = filter_of(arch, processes, connects, sockets, ground, Watching::Off);
            let learning = filter_of(arch, processes, connects, sockets, ground, Watching::Paths);
            let only = watched_numbers(arch, processes, connects, sockets, ground);
            for number in [WATCHED[at].refusal.call.on(arch).unwrap_or(other), other] {
                let call = Call { number, arch: arch.audit(), arguments };
                let (before, after) = (run.decide(&call), learning.decide(&call));
                let listens = WATCHED.iter().all(|watched| watched.refusal.call.on(arch) != Some(number));
                match before {
                    Action::Allow if only.binary_search(&number).is_ok() => {
                        prop_assert!(matches!(after, Action::Allow | Action::Notify));
                    }
                    // Only one may listen, and that is the launcher.
                    Action::Allow if listens && after != Action::Allow => {
                        prop_assert_eq!(Number { name: "", x86_64: Some(317), aarch64: Some(277) }.on(arch), Some(number));
                        prop_assert_eq!(after, Action::Errno(crate::filter::EPERM));
                    }
                    before => prop_assert_eq!(after, before, "call {}", number),
                }
            }
        }
    }

    #[test]
    fn files_are_announced() {
        let (allowed, free, all) = (NewProcesses::Allowed, Connects::Free, Sockets::All);
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let filter = filter_of(arch, allowed, free, all, Ground::Namespaces, Watching::Paths);
            for Watched { refusal, .. } in WATCHED {
                let Some(number) = refusal.call.on(arch) else { continue };
                let call = Call { number, arch: arch.audit(), arguments: [0; 6] };
                assert_eq!(filter.decide(&call), Action::Notify, "{}", refusal.call.name);
            }
        }
        // Set-uid modes stay refused, and descriptors are looked at unheard.
        let filter =
            filter_of(Arch::X86_64, allowed, free, all, Ground::Namespaces, Watching::Paths);
        let decide = |number, arguments| {
            filter.decide(&Call { number, arch: Arch::X86_64.audit(), arguments })
        };
        assert_eq!(decide(83, [0, 0o4755, 0, 0, 0, 0]), Action::Errno(crate::filter::EPERM));
        assert_eq!(decide(262, [3, 0, 0, AT_EMPTY_PATH, 0, 0]), Action::Allow);
        assert_eq!(decide(437, [0; 6]), Action::Errno(crate::filter::ENOSYS));
    }
}
