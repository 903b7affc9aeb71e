//! The listening socket, its connections, and the signals.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{Config, Tls};
use crate::error::Error;
use crate::flag;
use crate::gateway::Gateway;
use crate::http;

const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const LARGEST_HEAD: usize = 64 << 10;

/// Serves until SIGTERM or SIGINT, then answers what is due. `program` is executed as `program run …` for every sandbox;
/// `source` is read again on SIGHUP; `ready` is told the address.
///
/// # Errors
/// When it cannot start.
pub fn serve(
    program: PathBuf,
    config: Config,
    source: Option<&Path>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    config.judge()?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|why| Error::Config(format!("the runtime does not start: {why}")))?;
    runtime.block_on(listen(program, config, source, ready))
}

async fn listen(
    program: PathBuf,
    config: Config,
    source: Option<&Path>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    let address = config.listen;
    let failed = |why: std::io::Error| Error::Listen { address, why: why.to_string() };
    let tls = config.tls.as_ref().map(acceptor).transpose()?;
    let (most, drain) = (config.limits.connections, config.limits.drain);
    let gateway = Gateway::new(program, config).await?;
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?);
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
        let connection =
            Connection { gateway: Arc::clone(&gateway), peer, _slot: slot, _open: open.clone() };
        tokio::spawn(connection.run(stream, tls.clone()));
    }
    drop(listener);
    drop(open);
    gateway.draining.send_replace(true);
    let _ = tokio::time::timeout(drain, all_closed.recv()).await;
    gateway.end();
    // Servers get the end of their input, and a moment to write down what they have.
    let _ = tokio::time::timeout(Duration::from_secs(3), gateway.sessions.empty()).await;
    Ok(())
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

struct Connection {
    gateway: Arc<Gateway>,
    peer: SocketAddr,
    _slot: OwnedSemaphorePermit,
    _open: mpsc::Sender<()>,
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let _ = stream.set_nodelay(true);
        self.gateway.metrics.connections.fetch_add(1, Ordering::Relaxed);
        match tls {
            None => self.speak(stream).await,
            Some(tls) => match tokio::time::timeout(HANDSHAKE_TIME, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.speak(stream).await,
                _ => self.gateway.metrics.refused("handshake"),
            },
        }
        self.gateway.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }

    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let head_time = self.gateway.current().config.limits.head_time;
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(head_time)
            .max_buf_size(LARGEST_HEAD);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(128)
            .max_header_list_size(u32::try_from(LARGEST_HEAD).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(Duration::from_secs(30)));
        let (gateway, peer) = (Arc::clone(&self.gateway), self.peer);
        let (heard, is_heard) = watch::channel(false);
        let service = service_fn(move |request| {
            heard.send_replace(true);
            let gateway = Arc::clone(&gateway);
            async move { Ok::<_, std::convert::Infallible>(http::handle(gateway, peer, request).await) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut draining: watch::Receiver<bool> = self.gateway.draining.subscribe();
        tokio::select! {
            _ = connection.as_mut() => return,
            () = flag::is_set(&mut draining) => {}
            // hyper waits without end for the bytes that say which HTTP this is.
            () = silence(is_heard, head_time) => return self.gateway.metrics.refused("silence"),
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Ends when no request was heard for so long; never where one was.
async fn silence(heard: watch::Receiver<bool>, longest: Duration) {
    tokio::time::sleep(longest).await;
    if *heard.borrow() {
        std::future::pending::<()>().await;
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
