//! What all connections share.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;

use crate::access_log::AccessLog;
use crate::auth::{Auth, random_hex};
use crate::config::{Config, Limits};
use crate::error::Error;
use crate::events::{Keep, Stream};
use crate::memory::{Budget, Budgets};
use crate::metrics::Metrics;
use crate::principal::Principal;
use crate::sandbox::{Sandbox, Start};
use crate::sandboxes::Pool;
use crate::session::Sessions;
use crate::slots::{Busy, Slots};
use crate::trace::Tracer;
use crate::usage::Usage;

/// A principal that has as many sandboxes as it may loses one that no client has used for so long.
const YIELDS: Duration = Duration::from_secs(5);

pub struct Gateway {
    /// What is executed for every sandbox: this program.
    program: PathBuf,
    current: RwLock<Arc<Current>>,
    pub sessions: Arc<Sessions>,
    pub pool: Pool,
    pub metrics: Arc<Metrics>,
    pub usage: Arc<Usage>,
    pub budgets: Budgets,
    pub tracer: Option<Arc<Tracer>>,
    pub log: AccessLog,
    pub draining: watch::Sender<bool>,
    /// How many connections were put to rest.
    pub rested: AtomicU64,
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
        let budgets = Budgets::new(&config.limits);
        let metrics = Arc::default();
        let tracer = Tracer::start(config.otlp.as_ref(), &metrics);
        Ok(Arc::new(Gateway {
            program,
            current: RwLock::new(Arc::new(Current { config, auth })),
            sessions: Arc::default(),
            pool: Pool::default(),
            metrics,
            usage: Arc::default(),
            budgets,
            tracer,
            log,
            draining: watch::Sender::new(false),
            rested: AtomicU64::new(0),
            slots,
        }))
    }

    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes another configuration. Sandboxes of servers that are as they were go on, but for those of principals whose line in the
    /// file of tokens is gone.
    pub fn reload(&self, config: Config) -> Result<(), Error> {
        let old = self.current();
        let config = config.after(&old.config)?;
        let auth = Auth::read(&config)?;
        let new = Arc::new(Current { config, auth });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        let is_gone = |principal: &str, name: &str| {
            new.config.servers.get(name) != old.config.servers.get(name)
                || (old.auth.lists(principal, name) && !new.auth.lists(principal, name))
        };
        self.sessions.end(is_gone);
        self.pool.end(is_gone);
        Ok(())
    }

    /// Ends every sandbox.
    pub fn end(&self) {
        self.sessions.end(|_, _| true);
        self.pool.end(|_, _| true);
    }

    /// A sandbox for a new session, with the stream for what belongs to no request.
    pub async fn start_session(
        &self,
        current: &Current,
        principal: &Principal,
        server: &str,
    ) -> Result<(Arc<Sandbox>, Arc<Stream>), Busy> {
        let budget = self.budgets.of(&principal.name);
        let own = Stream::new(OWN_STREAM, 0, Keep::Sent, true, &budget);
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
        let start = async || self.start(current, principal, server, None).await;
        let sandbox = self.pool.get(key, wait, start).await?;
        // A reload ends the sandboxes that it finds; one that was being started is seen here.
        if self.current().config.servers.get(server) != current.config.servers.get(server) {
            sandbox.end();
            return Err(Busy);
        }
        Ok(sandbox)
    }

    async fn start(
        &self,
        current: &Current,
        principal: &Principal,
        name: &str,
        own: Option<Arc<Stream>>,
    ) -> Result<Arc<Sandbox>, Busy> {
        let server = current.config.servers.get(name).ok_or(Busy)?;
        let limits = &current.config.limits;
        self.has_memory(limits, &principal.name).await?;
        let slot = self.slots.take(&principal.name, || self.make_room(&principal.name)).await?;
        let start = Start {
            program: &self.program,
            name,
            server,
            limits,
            metrics: Arc::clone(&self.metrics),
            usage: Arc::clone(&self.usage),
            principal: &principal.name,
            budget: self.budget(principal),
            own,
            slot,
        };
        Sandbox::start(start).map_err(|why| {
            eprintln!("mcp serve: {name} cannot be started: {why}");
            Busy
        })
    }

    pub fn budget(&self, principal: &Principal) -> Arc<Budget> {
        self.budgets.of(&principal.name)
    }

    /// Whether the servers that run use less memory than they may in all, and those of this principal.
    async fn has_memory(&self, limits: &Limits, principal: &str) -> Result<(), Busy> {
        if limits.server_memory.is_none() && limits.server_memory_per_principal.is_none() {
            return Ok(());
        }
        self.usage.look().await;
        let (total, own) = self.usage.sums(principal);
        let is_full = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
        if is_full(total, limits.server_memory) || is_full(own, limits.server_memory_per_principal)
        {
            self.metrics.refused("memory");
            return Err(Busy);
        }
        Ok(())
    }

    /// Ends the sandbox of this principal that was not used for the longest time. Many clients never say that they are done
    /// with a session, and would shut their own principal out until `idle` is over.
    fn make_room(&self, principal: &str) -> bool {
        let own = self.sessions.of(principal).into_iter().chain(self.pool.of(principal));
        let unused = own.filter_map(|it| Some((it.unused()?, it)));
        let longest = unused.max_by_key(|(unused, _)| *unused);
        let Some((_, sandbox)) = longest.filter(|(unused, _)| *unused >= YIELDS) else {
            return false;
        };
        self.metrics.yielded();
        sandbox.end();
        true
    }

    /// An id that no program can guess.
    pub fn new_session_id(&self) -> Option<String> {
        random_hex().ok()
    }
}
