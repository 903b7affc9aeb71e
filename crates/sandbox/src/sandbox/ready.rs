//! Whether this program becomes a launcher when it is started as a helper.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_READY: AtomicBool = AtomicBool::new(false);

/// It asked whether it was, and was not.
pub fn set() {
    IS_READY.store(true, Ordering::Relaxed);
}

pub fn is_set() -> bool {
    IS_READY.load(Ordering::Relaxed)
}
