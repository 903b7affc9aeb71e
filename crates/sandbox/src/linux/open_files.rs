//! The caller's limit of open files. The launcher takes all that it may; the command keeps what it was.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
pub struct Before(Rlimit);

pub fn raise() -> Before {
    let before = getrlimit(Resource::Nofile);
    let Rlimit { current, maximum } = before;
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    Before(before)
}

impl Before {
    pub fn restore(&self) {
        // Less than there is can always be had, and what is open stays open.
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// How many there may be.
pub fn most() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |count| count as usize)
}
