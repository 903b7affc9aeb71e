//! How many bytes of messages the gateway holds at once, in total and for each principal.
//!
//! Stops: a principal (or many) that make the gateway keep more than `memory` of requests that are not whole yet, of messages that a
//! server does not read, and of answers that a client does not fetch. Leaves open: what hyper and the kernel buffer for
//! each connection, which has a bound of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Limits;

/// Entries of principals that are gone are looked for beyond this.
const MANY: usize = 1024;

/// A number of bytes that may be held, perhaps as a part of a larger one.
#[derive(Debug)]
pub struct Budget {
    most: usize,
    used: AtomicUsize,
    total: Option<Arc<Budget>>,
}

impl Budget {
    pub fn new(most: usize, total: Option<Arc<Budget>>) -> Arc<Budget> {
        Arc::new(Budget { most, used: AtomicUsize::new(0), total })
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.most);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            return false;
        }
        if self.total.as_ref().is_none_or(|total| total.take(bytes)) {
            return true;
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        false
    }

    /// Takes them even beyond the bound: for the few bytes of an error that must be told.
    fn take_anyway(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.total.iter().for_each(|total| total.take_anyway(bytes));
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.total.iter().for_each(|total| total.give_back(bytes));
    }
}

/// Bytes that are held as long as this lives.
#[derive(Debug)]
pub struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    pub fn none(budget: &Arc<Budget>) -> Held {
        Held { budget: Arc::clone(budget), bytes: 0 }
    }

    /// None where the bound is reached.
    pub fn take(budget: &Arc<Budget>, bytes: usize) -> Option<Held> {
        let mut held = Held::none(budget);
        held.set(bytes).then_some(held)
    }

    pub fn take_anyway(budget: &Arc<Budget>, bytes: usize) -> Held {
        budget.take_anyway(bytes);
        Held { budget: Arc::clone(budget), bytes }
    }

    /// From now on this many; false, and unchanged, where the bound is reached.
    pub fn set(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes && !self.budget.take(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }

    pub fn add(&mut self, bytes: usize) -> bool {
        self.bytes.checked_add(bytes).is_some_and(|sum| self.set(sum))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

/// The budgets of all principals.
pub struct Budgets {
    total: Arc<Budget>,
    own: Mutex<HashMap<Arc<str>, Arc<Budget>>>,
    each: usize,
}

impl Budgets {
    pub fn new(limits: &Limits) -> Budgets {
        let total = Budget::new(limits.memory, None);
        Budgets { total, own: Mutex::default(), each: limits.memory_per_principal }
    }

    pub fn of(&self, principal: &Arc<str>) -> Arc<Budget> {
        let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > MANY {
            all.retain(|_, it| Arc::strong_count(it) > 1);
        }
        let new = || Budget::new(self.each, Some(Arc::clone(&self.total)));
        Arc::clone(all.entry(Arc::clone(principal)).or_insert_with(new))
    }

    pub fn used(&self) -> usize {
        self.total.used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_cannot_take_all_and_gives_back_what_it_had() {
        let budgets =
            Budgets::new(&Limits { memory: 100, memory_per_principal: 60, ..Limits::default() });
        let (alice, bob) = (budgets.of(&"alice".into()), budgets.of(&"bob".into()));
        let mut held = Held::take(&alice, 50);
        assert!(held.is_some() && Held::take(&alice, 11).is_none(), "beyond her own");
        assert!(Held::take(&bob, 51).is_none(), "beyond the total");
        assert!(Held::take(&bob, 50).is_some());
        assert!(held.as_mut().is_some_and(|it| !it.add(20) && it.set(40)));
        assert_eq!(budgets.used(), 40);
        drop(held);
        assert_eq!((budgets.used(), alice.used()), (0, 0));
    }

    #[test]
    fn an_error_is_told_beyond_the_bound() {
        let budget = Budget::new(10, None);
        let held = Held::take_anyway(&budget, 20);
        assert!(Held::take(&budget, 1).is_none());
        drop(held);
        assert!(Held::take(&budget, 1).is_some());
    }
}
