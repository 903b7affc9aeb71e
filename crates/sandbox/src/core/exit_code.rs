//! The exit codes of `mcp`, one table for every command, platform and error.
//!
//! They are those of `timeout`, `env` and POSIX shells, so that scripts need no other table.

use crate::core::report::Ending;

/// `mcp kill` or `mcp stats` names a sandbox that does not run.
pub const NO_SUCH_RUN: u8 = 1;
/// A flag, a policy or a file that the user named is wrong.
pub const USAGE: u8 = 2;
/// The time limit ended the command.
pub const TIMEOUT: u8 = 124;
/// The sandbox could not be set up as asked.
pub const NOT_SET_UP: u8 = 125;
/// The program cannot be executed, or the guard refused the command.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub const NOT_FOUND: u8 = 127;
/// Added to the number of the signal that ended the command.
pub const SIGNAL: u8 = 128;

const SIGINT: u8 = 2;
const SIGKILL: u8 = 9;
const SIGSEGV: u8 = 11;

/// STATUS_CONTROL_C_EXIT of Windows.
const STATUS_CONTROL_C_EXIT: u32 = 0xc000_013a;
/// NTSTATUS values of severity "error": a crash.
const STATUS_ERRORS: std::ops::RangeInclusive<u32> = 0xc000_0000..=0xcfff_ffff;

/// The exit code of `mcp` for a run that ended like this.
#[must_use]
pub fn of(ending: &Ending) -> u8 {
    match ending {
        Ending::Exited(code) => own(code.cast_unsigned()),
        Ending::Signaled(signal) => SIGNAL.wrapping_add(*signal as u8),
        Ending::Timeout => TIMEOUT,
        Ending::MemoryLimit | Ending::SandboxFailed(_) => SIGNAL + SIGKILL,
        Ending::NotStarted(_) => NOT_SET_UP,
    }
}

/// Exit codes of Unix have eight bits; those of Windows have 32, and a crash is one of them. No failure may become 0.
fn own(code: u32) -> u8 {
    match code {
        STATUS_CONTROL_C_EXIT => SIGNAL + SIGINT,
        crash if STATUS_ERRORS.contains(&crash) => SIGNAL + SIGSEGV,
        small => u8::try_from(small).unwrap_or(u8::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_the_code_that_shells_know() {
        for (code, expected) in [
            (0, 0),
            (3, 3),
            (255, 255),
            (256, 255),
            (0x1_0000, 255),
            (0xc000_013a, 130),
            (0xc000_0005, 139),
            (0xc000_00fd, 139),
            (u32::MAX, 255),
        ] {
            assert_eq!(of(&Ending::Exited(code.cast_signed())), expected, "{code:#x}");
        }
        assert_eq!(of(&Ending::Signaled(15)), 143);
        assert_eq!(of(&Ending::Timeout), 124);
        assert_eq!(of(&Ending::MemoryLimit), 137);
        assert_eq!(of(&Ending::SandboxFailed(String::new())), 137);
        assert_eq!(of(&Ending::NotStarted(String::new())), 125);
    }
}
