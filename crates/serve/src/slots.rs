//! How many sandboxes there may be, in total and for each principal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;

/// Entries of principals that are gone are looked for beyond this.
const MANY: usize = 1024;
/// Who waits looks this often for a sandbox of its own that it no longer uses.
const LOOK: Duration = Duration::from_millis(250);

/// Leave to have a sandbox; given back when it has ended.
pub struct Slot {
    _total: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

/// No sandbox can be had within the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

pub struct Slots {
    total: Arc<Semaphore>,
    own: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    waiting: AtomicUsize,
    limits: Limits,
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Slots {
    pub fn new(limits: &Limits) -> Slots {
        Slots {
            total: Arc::new(Semaphore::new(limits.sandboxes)),
            own: Mutex::default(),
            waiting: AtomicUsize::new(0),
            limits: limits.clone(),
        }
    }

    /// `make_room` is called while there is none, until it says that it ended a sandbox.
    pub async fn take(
        &self,
        principal: &Arc<str>,
        make_room: impl Fn() -> bool,
    ) -> Result<Slot, Busy> {
        let own = {
            let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() > MANY {
                all.retain(|_, it| it.available_permits() < self.limits.per_principal);
            }
            let new = || Arc::new(Semaphore::new(self.limits.per_principal));
            Arc::clone(all.entry(Arc::clone(principal)).or_insert_with(new))
        };
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.queue {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Busy);
        }
        let _waiting = Waiting(&self.waiting);
        // The principal's own bound first: who waits for that holds nothing that others need.
        let both = async {
            let own = own.acquire_owned().await.ok()?;
            let total = Arc::clone(&self.total).acquire_owned().await.ok()?;
            Some(Slot { _total: total, _own: own })
        };
        let room = async {
            tokio::pin!(both);
            let mut made = false;
            loop {
                tokio::select! {
                    biased;
                    slot = &mut both => return slot,
                    () = tokio::time::sleep(LOOK), if !made => made = make_room(),
                }
            }
        };
        tokio::time::timeout(self.limits.wait, room).await.ok().flatten().ok_or(Busy)
    }
}
