//! Room that several parties share, so that none of them can take all of it. Pure.
//!
//! A party may have three times as much as is left free: alone it gets three quarters of all, and
//! the next party still finds room. Parties are the rules of the policy, of which there are as
//! many as the user wrote; names and addresses the command can make up without end.

use std::collections::HashMap;

/// Who takes: the number of a rule, or one of the constants below.
pub type Party = usize;

/// Programs that have not said yet where they want to go.
pub const ASKING: Party = usize::MAX;
/// Programs of the host that connect to a server inside.
pub const HOST: Party = usize::MAX - 1;
/// What no rule is known for.
pub const NOBODY: Party = usize::MAX - 2;

/// How much of what is free one may have.
const TIMES_FREE: usize = 3;

#[derive(Debug)]
pub struct Shares {
    most: usize,
    used: usize,
    parties: HashMap<Party, usize>,
}

impl Shares {
    pub fn new(most: usize) -> Shares {
        Shares { most, used: 0, parties: HashMap::new() }
    }

    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.used
    }

    pub fn used_by(&self, party: Party) -> usize {
        self.parties.get(&party).copied().unwrap_or(0)
    }

    pub fn is_full(&self) -> bool {
        self.used >= self.most
    }

    /// Whether this party may take this much more.
    pub fn has_room(&self, party: Party, more: usize) -> bool {
        let free = self.most.saturating_sub(self.used);
        more <= free && self.used_by(party) + more <= free.saturating_mul(TIMES_FREE)
    }

    pub fn take(&mut self, party: Party, more: usize) {
        self.used += more;
        *self.parties.entry(party).or_default() += more;
    }

    pub fn give_back(&mut self, party: Party, less: usize) {
        self.used = self.used.saturating_sub(less);
        if let Some(used) = self.parties.get_mut(&party) {
            *used = used.saturating_sub(less);
            if *used == 0 {
                self.parties.remove(&party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes one after the other until there is no room.
    fn fill(shares: &mut Shares, party: Party) -> usize {
        (0..10_000)
            .take_while(|_| {
                shares.has_room(party, 1) && {
                    shares.take(party, 1);
                    true
                }
            })
            .count()
    }

    #[test]
    fn one_party_leaves_room_for_others() {
        let mut shares = Shares::new(48);
        assert_eq!(fill(&mut shares, 1), 36);
        assert_eq!(fill(&mut shares, 2), 9);
        assert!(shares.has_room(3, 1));
        shares.give_back(1, 36);
        assert_eq!((shares.used(), shares.used_by(1)), (9, 0));
        // Even the smallest room is of use.
        assert_eq!(fill(&mut Shares::new(1), 1), 1);
    }

    proptest! {
        #[test]
        fn the_books_balance(acts in prop::collection::vec((0usize..4, 0usize..20, any::<bool>()), 0..200)) {
            let mut shares = Shares::new(64);
            let mut taken = [0; 4];
            for (party, amount, takes) in acts {
                if takes && shares.has_room(party, amount) {
                    shares.take(party, amount);
                    taken[party] += amount;
                } else if !takes {
                    let amount = amount.min(taken[party]);
                    shares.give_back(party, amount);
                    taken[party] -= amount;
                }
                prop_assert_eq!(shares.used(), taken.iter().sum::<usize>());
                prop_assert!(shares.used() <= 64);
                prop_assert!((0..4).all(|party| shares.used_by(party) == taken[party]));
            }
        }
    }
}
