//! The listening socket, its connections, and the signals.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

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

use crate::addresses::{Addresses, Counted};
use crate::config::{Config, Tls};
use crate::error::Error;
use crate::flag;
use crate::gateway::Gateway;
use crate::write_time::WriteTime;
use crate::{http, socket};

const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const LARGEST_HEAD: usize = 64 << 10;
/// Bytes of bodies that HTTP/2 takes before they are asked for, of a connection and of each request.
const WINDOW: u32 = 256 << 10;
/// Bytes of an answer that HTTP/2 keeps until the client takes them.
const UNSENT: usize = 64 << 10;

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
    let of_one = (!config.behind_proxy).then_some(config.limits.connections_per_address);
    let addresses = Addresses::new(of_one);
    let gateway = Gateway::new(program, config).await?;
    let listener = socket::listening(address).await.map_err(failed)?;
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
        let Some(counted) = addresses.count(peer.ip()) else {
            gateway.metrics.refused("address");
            continue;
        };
        let connection = Connection {
            gateway: Arc::clone(&gateway),
            peer,
            _counted: (slot, counted),
            _open: open.clone(),
        };
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
    _counted: (OwnedSemaphorePermit, Counted),
    _open: mpsc::Sender<()>,
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let _ = stream.set_nodelay(true);
        let write_time = self.gateway.current().config.limits.write_time;
        detect_gone_peers(&stream, write_time);
        let stream = WriteTime::new(stream, write_time);
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
            .initial_connection_window_size(WINDOW)
            .initial_stream_window_size(WINDOW)
            .max_send_buf_size(UNSENT)
            .max_header_list_size(u32::try_from(LARGEST_HEAD).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(Duration::from_secs(30)));
        let (gateway, peer) = (Arc::clone(&self.gateway), self.peer);
        let (heard, last) = watch::channel(None);
        let service = service_fn(move |request| {
            heard.send_replace(Some(Instant::now()));
            let gateway = Arc::clone(&gateway);
            async move { Ok::<_, std::convert::Infallible>(http::handle(gateway, peer, request).await) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut draining: watch::Receiver<bool> = self.gateway.draining.subscribe();
        tokio::select! {
            _ = connection.as_mut() => return,
            () = flag::is_set(&mut draining) => {}
            // hyper waits without end for the bytes that say which HTTP this is, and for another request of HTTP/2.
            () = silence(&last, head_time) => {
                if last.borrow().is_none() {
                    return self.gateway.metrics.refused("silence");
                }
            }
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Ends when no request began for so long.
async fn silence(last: &watch::Receiver<Option<Instant>>, longest: Duration) {
    let began = Instant::now();
    loop {
        let since = last.borrow().unwrap_or(began);
        let left = longest.saturating_sub(since.elapsed());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

/// A peer that vanished without a word: the kernel asks whether it is there, and gives it up after `longest`.
#[cfg(target_os = "linux")]
fn detect_gone_peers(stream: &TcpStream, longest: Duration) {
    use rustix::net::sockopt;
    let milliseconds = u32::try_from(longest.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, longest.max(Duration::from_secs(1)));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15));
    let _ = sockopt::set_tcp_user_timeout(stream, milliseconds);
}

#[cfg(not(target_os = "linux"))]
fn detect_gone_peers(_stream: &TcpStream, _longest: Duration) {}

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
