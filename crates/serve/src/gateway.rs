//! What all connections share.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::access_log::AccessLog;
use crate::auth::{Auth, random_hex};
use crate::config::Config;
use crate::error::Error;
use crate::events::{Keep, Stream};
use crate::metrics::Metrics;
use crate::principal::Principal;
use crate::sandbox::{Sandbox, Start};
use crate::sandboxes::Pool;
use crate::session::Sessions;
use crate::slots::{Busy, Slots};

pub struct Gateway {
    /// What is executed for every sandbox: this program.
    program: PathBuf,
    current: RwLock<Arc<Current>>,
    pub sessions: Arc<Sessions>,
    pub pool: Pool,
    pub metrics: Arc<Metrics>,
    pub log: AccessLog,
    pub draining: watch::Sender<bool>,
    slots: Slots,
}

/// What is configured now.
pub struct Current {
    pub config: Config,
    pub auth: Auth,
}

/// Where messages that belong to no request go, within a session.
pub const OWN_STREAM: u64 = 0;

impl Gateway {
    pub async fn new(program: PathBuf, config: Config) -> Result<Arc<Gateway>, Error> {
        let auth = Auth::read(&config)?;
        let log = AccessLog::open(config.access_log.as_deref()).await?;
        let slots = Slots::new(&config.limits);
        Ok(Arc::new(Gateway {
            program,
            current: RwLock::new(Arc::new(Current { config, auth })),
            sessions: Arc::default(),
            pool: Pool::default(),
            metrics: Arc::default(),
            log,
            draining: watch::Sender::new(false),
            slots,
        }))
    }

    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes another configuration. Sandboxes of servers that are as they were go on.
    pub fn reload(&self, config: Config) -> Result<(), Error> {
        let old = self.current();
        let config = config.after(&old.config)?;
        let auth = Auth::read(&config)?;
        let new = Arc::new(Current { config, auth });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        let is_gone = |name: &str| new.config.servers.get(name) != old.config.servers.get(name);
        self.sessions.end(is_gone);
        self.pool.end(is_gone);
        Ok(())
    }

    /// Ends every sandbox.
    pub fn end(&self) {
        self.sessions.end(|_| true);
        self.pool.end(|_| true);
    }

    /// A sandbox for a new session, with the stream for what belongs to no request.
    pub async fn start_session(
        &self,
        current: &Current,
        principal: &Principal,
        server: &str,
    ) -> Result<(Arc<Sandbox>, Arc<Stream>), Busy> {
        let own = Stream::new(OWN_STREAM, 0, Keep::Sent, true);
        let sandbox = self.start(current, principal, server, Some(Arc::clone(&own))).await?;
        Ok((sandbox, own))
    }

    /// The sandbox of a principal without sessions.
    pub async fn shared(
        &self,
        current: &Current,
        principal: &Principal,
        server: &str,
    ) -> Result<Arc<Sandbox>, Busy> {
        let key = (Arc::clone(&principal.name), server.to_owned());
        let wait = current.config.limits.wait;
        self.pool.get(key, wait, async || self.start(current, principal, server, None).await).await
    }

    async fn start(
        &self,
        current: &Current,
        principal: &Principal,
        name: &str,
        own: Option<Arc<Stream>>,
    ) -> Result<Arc<Sandbox>, Busy> {
        let server = current.config.servers.get(name).ok_or(Busy)?;
        let slot = self.slots.take(&principal.name).await?;
        let metrics = Arc::clone(&self.metrics);
        let limits = &current.config.limits;
        let start = Start { program: &self.program, name, server, limits, metrics, own, slot };
        Sandbox::start(start).map_err(|why| {
            eprintln!("mcp serve: {name} cannot be started: {why}");
            Busy
        })
    }

    /// An id that no program can guess.
    pub fn new_session_id(&self) -> Option<String> {
        random_hex().ok()
    }
}
