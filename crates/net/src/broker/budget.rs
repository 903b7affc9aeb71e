//! How many bytes of the command's the broker holds, all connections and flows together.
//!
//! The command decides what is sent where no server answers, and what is never read: without a bound
//! the launcher would hold it all, outside of the command's own limit. The whole is a part of that
//! limit and has three parts, so that nothing of one kind takes the room of another:
//!
//! - datagrams that wait for a name: those beyond are dropped, as datagrams may be;
//! - heads and hellos that are not complete: the oldest is closed;
//! - what a receiver does not take yet: beyond, nothing is taken from the sender before it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::shares::Shares;

/// As much as many connections need at their best, and little for a launcher.
const MOST: usize = 8 << 20;
/// Less than this would not hold a single large message.
const LEAST: usize = 1 << 20;
/// This part of the run's own limit.
const PART: u64 = 8;

#[derive(Debug)]
pub struct Budget {
    /// By the rule that allows them.
    pub datagrams: Shares,
    pub heads: Gauge,
    pub relayed: Gauge,
}

impl Budget {
    /// `limit`: how much memory the run may have, where it has a limit.
    pub fn of(limit: Option<u64>) -> Budget {
        let part = limit.map_or(MOST, |limit| usize::try_from(limit / PART).unwrap_or(MOST));
        let most = part.clamp(LEAST, MOST);
        Budget {
            datagrams: Shares::new(most / 4),
            heads: Gauge::new(most / 4),
            relayed: Gauge::new(most / 2),
        }
    }
}

/// How much is held, of how much may be.
#[derive(Debug, Clone)]
pub struct Gauge(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    used: AtomicUsize,
    most: usize,
}

impl Gauge {
    pub fn new(most: usize) -> Gauge {
        Gauge(Arc::new(Inner { used: AtomicUsize::new(0), most }))
    }

    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    pub fn free(&self) -> usize {
        self.0.most.saturating_sub(self.used())
    }

    pub fn has_room(&self, more: usize) -> bool {
        more <= self.free()
    }

    pub fn is_over(&self) -> bool {
        self.used() > self.0.most
    }

    /// Something that holds nothing yet.
    pub fn hold(&self) -> Hold {
        Hold { gauge: self.clone(), bytes: 0 }
    }
}

/// What one holds. It is given back with it, however it comes to its end.
#[derive(Debug)]
pub struct Hold {
    gauge: Gauge,
    bytes: usize,
}

impl Hold {
    pub fn set(&mut self, bytes: usize) {
        let used = &self.gauge.0.used;
        used.fetch_add(bytes, Ordering::Relaxed);
        used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_goes_with_its_holder() {
        let gauge = Gauge::new(100);
        let (mut one, mut other) = (gauge.hold(), gauge.hold());
        one.set(60);
        other.set(40);
        assert!(gauge.has_room(0) && !gauge.has_room(1) && !gauge.is_over());
        other.set(41);
        assert!(gauge.is_over());
        drop(one);
        assert_eq!(gauge.used(), 41);
        drop(other);
        assert_eq!(gauge.used(), 0);
    }

    #[test]
    fn the_whole_is_a_part_of_the_limit() {
        let whole = |limit| {
            let budget = Budget::of(limit);
            budget.heads.0.most * 2 + budget.relayed.0.most
        };
        assert_eq!(whole(None), MOST);
        assert_eq!(whole(Some(512 << 20)), MOST);
        assert_eq!(whole(Some(32 << 20)), 4 << 20);
        assert_eq!(whole(Some(1)), LEAST);
    }
}
