//! One thing that the server tries, and what would show that it worked.

use std::path::PathBuf;

/// One row of the table.
pub struct Attempt {
    pub name: &'static str,
    /// The acts, as the probe takes them.
    pub bare: Vec<String>,
    /// Inside, the same acts, or more: the same goal has other ways there.
    pub inside: Vec<String>,
    pub proof: Proof,
    /// The mechanism that is there to stop it.
    pub stopped_by: &'static str,
}

/// What makes an attempt a success.
pub enum Proof {
    /// The system says that one of the acts worked.
    Done,
    /// One of the acts showed this text.
    Shows(String),
    /// One of the acts listed this line among others.
    #[cfg_attr(all(windows, not(test)), expect(dead_code, reason = "processes can be listed"))]
    Lists(String),
    /// It worked, and the server was not killed meanwhile, which would be this exit code.
    #[cfg_attr(
        windows,
        expect(dead_code, reason = "memory is refused there, and no process is killed")
    )]
    Survives(i32),
    /// It got past a request to end (SIGTERM, where there is one), and was not killed, which would be this exit
    /// code.
    Outlives(i32),
    /// After the server is gone, something still writes to this file.
    StaysBehind { bare: PathBuf, inside: PathBuf },
}

/// Attempts that one server makes one after the other, in a sandbox with these flags.
pub struct Session {
    pub flags: Vec<String>,
    pub attempts: Vec<Attempt>,
}

/// One word for each argument.
macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$($word.to_string()),*] };
}
pub(super) use words;

/// The same acts on both sides.
pub fn same(
    name: &'static str,
    acts: Vec<String>,
    proof: Proof,
    stopped_by: &'static str,
) -> Attempt {
    Attempt { name, bare: acts.clone(), inside: acts, proof, stopped_by }
}
