//! The listening socket, its connections, and the signals.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::addresses::Addresses;
use crate::config::{Config, Tls};
use crate::connection::Connection;
use crate::error::Error;
use crate::gateway::Gateway;
use crate::socket;

const GIVE_BACK_EVERY: Duration = Duration::from_secs(2);

/// Serves until SIGTERM or SIGINT, then answers what is due. `program` is executed as `program run …` for every sandbox;
/// `source` is read again on SIGHUP; `ready` is told the address. `give_back` is called now and then when connections have been put to
/// rest: it may return memory that is free to the system.
///
/// # Errors
/// When it cannot start.
pub fn serve(
    program: PathBuf,
    config: Config,
    source: Option<&Path>,
    ready: impl FnOnce(SocketAddr),
    give_back: fn(),
) -> Result<(), Error> {
    config.judge()?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|why| Error::Config(format!("the runtime does not start: {why}")))?;
    runtime.block_on(listen(program, config, source, ready, give_back))
}

async fn listen(
    program: PathBuf,
    config: Config,
    source: Option<&Path>,
    ready: impl FnOnce(SocketAddr),
    give_back: fn(),
) -> Result<(), Error> {
    let address = config.listen;
    let failed = |why: std::io::Error| Error::Listen { address, why: why.to_string() };
    let tls = config.tls.as_ref().map(acceptor).transpose()?;
    let (most, drain) = (config.limits.connections, config.limits.drain);
    let of_one = (!config.behind_proxy).then_some(config.limits.connections_per_address);
    let addresses = Addresses::new(of_one);
    let gateway = Gateway::new(program, config).await?;
    let listener = socket::listening(address).await.map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?);
    tokio::spawn(keep_small(Arc::clone(&gateway), give_back));
    let slots = Arc::new(Semaphore::new(most));
    // The last clone goes with the last connection.
    let (open, mut all_closed) = mpsc::channel::<()>(1);
    let mut signals = Signals::new().map_err(failed)?;
    loop {
        // Signals are heard while all connections are taken.
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            signal = signals.next() => match signal {
                Signal::End => break,
                Signal::Reload => {
                    reload(&gateway, source);
                    continue;
                }
            },
        };
        let Some((slot, stream, peer)) = accepted else {
            // Out of descriptors: others must end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(counted) = addresses.count(peer.ip()) else {
            gateway.metrics.refused("address");
            continue;
        };
        let connection = Connection::new(Arc::clone(&gateway), peer, (slot, counted, open.clone()));
        tokio::spawn(connection.run(stream, tls.clone()));
    }
    drop(listener);
    drop(open);
    gateway.draining.send_replace(true);
    let _ = tokio::time::timeout(drain, all_closed.recv()).await;
    gateway.end();
    // Servers get the end of their input, and a moment to write down what they have.
    let _ = tokio::time::timeout(Duration::from_secs(3), gateway.sessions.empty()).await;
    if let Some(tracer) = &gateway.tracer {
        tracer.finish().await;
    }
    Ok(())
}

/// The allocator keeps what is free between what is not, and most of what a connection takes is free while it rests.
async fn keep_small(gateway: Arc<Gateway>, give_back: fn()) {
    let mut before = 0;
    loop {
        tokio::time::sleep(GIVE_BACK_EVERY).await;
        let rested = gateway.rested.load(Ordering::Relaxed);
        if std::mem::replace(&mut before, rested) != rested {
            let _ = tokio::task::spawn_blocking(give_back).await;
        }
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    let (stream, peer) = listener.accept().await.ok()?;
    Some((slot, stream, peer))
}

fn reload(gateway: &Gateway, source: Option<&Path>) {
    let Some(source) = source else { return };
    match Config::read(source).and_then(|config| gateway.reload(config)) {
        Ok(()) => eprintln!("mcp serve: {} read again", source.display()),
        Err(why) => eprintln!("mcp serve: the configuration stays as it was: {why}"),
    }
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&tls.certificate)
        .map_err(|why| Error::file(&tls.certificate, why))?
        .collect();
    let certificates = certificates.map_err(|why| Error::file(&tls.certificate, why))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|why| Error::file(&tls.key, why))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|why| Error::file(&tls.certificate, why))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

enum Signal {
    End,
    #[cfg_attr(not(unix), expect(dead_code, reason = "Windows has no SIGHUP"))]
    Reload,
}

#[cfg(unix)]
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
    hup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.term.recv() => Signal::End,
            _ = self.int.recv() => Signal::End,
            _ = self.hup.recv() => Signal::Reload,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) -> Signal {
        let _ = tokio::signal::ctrl_c().await;
        Signal::End
    }
}

/// A connection and a sandbox take descriptors; the soft limit is often 1024. Sandboxes set their own.
#[cfg(unix)]
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

#[cfg(not(unix))]
fn raise_descriptor_limit() {}
