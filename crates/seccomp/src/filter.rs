//! A filter: for each system call an action, or a test of its arguments.

use std::collections::BTreeMap;

use serde::Serialize;

pub const EPERM: u16 = 1;
pub const EACCES: u16 = 13;
pub const ENOTTY: u16 = 25;
pub const ENOSYS: u16 = 38;
pub const EPROTONOSUPPORT: u16 = 93;
pub const EOPNOTSUPP: u16 = 95;
pub const EAFNOSUPPORT: u16 = 97;

/// The architectures that filters are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// x86-64, its 32-bit and x32 calls refused.
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Arch {
    /// From what `uname` calls the machine.
    #[must_use]
    pub fn named(machine: &str) -> Option<Arch> {
        match machine {
            "x86_64" => Some(Arch::X86_64),
            "aarch64" => Some(Arch::Aarch64),
            _ => None,
        }
    }

    /// The kernel's name for the table of calls that a native program uses.
    #[must_use]
    pub fn audit(self) -> u32 {
        match self {
            Arch::X86_64 => 0xc000_003e,
            Arch::Aarch64 => 0xc000_00b7,
        }
    }

    /// Numbers from here on belong to another table (x32), with the same architecture.
    #[must_use]
    pub fn foreign_numbers(self) -> Option<u32> {
        match self {
            Arch::X86_64 => Some(0x4000_0000),
            Arch::Aarch64 => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Allow,
    /// The call fails with this error and has no effect.
    Errno(u16),
    /// The launcher is asked.
    Notify,
}

/// How much of a register the kernel looks at. A filter that looked at more could be led past:
/// `ioctl(fd, 0x1_0000_5412)` is TIOCSTI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// `int`, `unsigned int`, modes, and legacy clone flags.
    Low32,
    /// `long` and `unsigned long`.
    Full64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    OneOf(&'static [u64]),
    Masked { mask: u64, value: u64 },
    AnyBit(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    Do(Action),
    If { argument: u8, width: Width, test: Test, then: Box<Rule>, otherwise: Box<Rule> },
}

/// A call that has no rule is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub arch: Arch,
    pub rules: BTreeMap<u32, Rule>,
}

impl Filter {
    /// The same where there is no listener to ask.
    pub fn without_asking(mut self) -> Filter {
        self.rules.values_mut().for_each(Rule::refuse_instead);
        self
    }
}

impl Rule {
    fn refuse_instead(&mut self) {
        match self {
            Rule::Do(Action::Notify) => *self = Rule::Do(Action::Errno(EPERM)),
            Rule::Do(_) => {}
            Rule::If { then, otherwise, .. } => {
                then.refuse_instead();
                otherwise.refuse_instead();
            }
        }
    }
}

/// Foreign tables answer as a kernel does that was built without them, so that a program that
/// tries one goes on. Killing it would tell less and break more.
pub const FOREIGN: Action = Action::Errno(ENOSYS);
