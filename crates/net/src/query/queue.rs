//! Names that wait to be looked up. As many as there are connections that wait for one.

use std::collections::BTreeMap;

use mcp_policy::HostName;

use crate::shares::{Party, Shares};

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// For whom, and after how many others it came.
    names: BTreeMap<HostName, (Party, u64)>,
    count: u64,
}

impl Queue {
    pub fn contains(&self, name: &HostName) -> bool {
        self.names.contains_key(name)
    }

    pub fn add(&mut self, name: HostName, party: Party) {
        self.count += 1;
        self.names.insert(name, (party, self.count));
    }

    pub fn remove(&mut self, name: &HostName) {
        self.names.remove(name);
    }

    /// Whose turn it is: who has the fewest lookups, and of its names the first.
    pub fn next(&mut self, shares: &Shares) -> Option<(HostName, Party)> {
        let waiting = self.names.iter().filter(|(_, (party, _))| shares.has_room(*party, 1));
        let first = waiting.min_by_key(|(_, (party, count))| (shares.used_by(*party), *count));
        let name = first.map(|(name, _)| name.clone())?;
        let (party, _) = self.names.remove(&name)?;
        Some((name, party))
    }
}
