//! Answers, for as long as they hold.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use mcp_policy::HostName;

use super::Outcome;

const MAX_ENTRIES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: HashMap<HostName, (Instant, Outcome)>,
}

impl Cache {
    pub fn get(&self, now: Instant, name: &HostName) -> Option<Outcome> {
        let (until, outcome) = self.entries.get(name)?;
        (now < *until).then(|| outcome.clone())
    }

    pub fn put(&mut self, now: Instant, name: HostName, outcome: Outcome, life: Duration) {
        if self.entries.len() >= MAX_ENTRIES {
            self.entries.retain(|_, (until, _)| now < *until);
        }
        if self.entries.len() >= MAX_ENTRIES {
            // All of them still hold: any may go, it will be asked for again.
            self.entries.clear();
        }
        self.entries.insert(name, (now + life, outcome));
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
