//! The sandboxes of principals without sessions (2026-07-28).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;
use crate::slots::Busy;

/// One that lived longer than this did not crash at its start.
const SETTLED: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Entries of principals that are gone are looked for beyond this.
const MANY: usize = 1024;

type Key = (Arc<str>, String);

/// Sandboxes by principal and server.
#[derive(Default)]
pub struct Pool {
    entries: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Entry>>>>,
}

#[derive(Default)]
pub struct Entry {
    sandbox: Option<(Arc<Sandbox>, Instant)>,
    crashes: u32,
}

impl Pool {
    /// The sandbox of this principal for this server; `start` makes one where there is none.
    pub async fn get<F>(&self, key: Key, longest: Duration, start: F) -> Result<Arc<Sandbox>, Busy>
    where
        F: AsyncFnOnce() -> Result<Arc<Sandbox>, Busy>,
    {
        let entry = {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            if entries.len() > MANY {
                entries.retain(|_, entry| {
                    Arc::strong_count(entry) > 1 || entry.try_lock().is_ok_and(|it| it.is_live())
                });
            }
            Arc::clone(entries.entry(key).or_default())
        };
        let mut entry = entry.lock().await;
        if let Some((sandbox, started)) = &entry.sandbox {
            if !sandbox.is_ended() {
                return Ok(Arc::clone(sandbox));
            }
            entry.crashes = if started.elapsed() > SETTLED { 0 } else { entry.crashes + 1 };
            entry.sandbox = None;
        }
        if entry.crashes > 0 {
            let pause = Duration::from_millis(100 << entry.crashes.min(7)).min(LONGEST_PAUSE);
            if pause > longest {
                return Err(Busy);
            }
            tokio::time::sleep(pause).await;
        }
        let sandbox = start().await?;
        entry.sandbox = Some((Arc::clone(&sandbox), Instant::now()));
        Ok(sandbox)
    }

    /// The sandbox of this principal for this server, where there is one now.
    pub fn live(&self, key: &Key) -> Option<Arc<Sandbox>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(key)?.try_lock().ok()?;
        entry.sandbox.as_ref().map(|(sandbox, _)| Arc::clone(sandbox)).filter(|it| !it.is_ended())
    }

    /// The sandboxes of a principal.
    pub fn of(&self, principal: &str) -> Vec<Arc<Sandbox>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let own = entries.iter().filter(|((name, _), _)| **name == *principal);
        let live = own.filter_map(|(_, entry)| {
            entry.try_lock().ok()?.sandbox.as_ref().map(|(sandbox, _)| Arc::clone(sandbox))
        });
        live.collect()
    }

    /// Ends those of principals and servers that `is_gone` names.
    pub fn end(&self, is_gone: impl Fn(&str, &str) -> bool) {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for ((principal, server), entry) in entries.iter() {
            if is_gone(principal, server)
                && let Ok(entry) = entry.try_lock()
                && let Some((sandbox, _)) = &entry.sandbox
            {
                sandbox.end();
            }
        }
    }
}

impl Entry {
    fn is_live(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|(sandbox, _)| !sandbox.is_ended())
    }
}
