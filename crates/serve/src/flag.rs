//! A flag that is set once, and that many wait for.

use tokio::sync::watch;

/// Until the flag is set, or its owner is gone.
pub async fn is_set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|set| *set).await;
}
