//! The listening socket: made here, or made by systemd before this process started (`sd_listen_fds(3)`).
//!
//! With a socket of systemd the gateway needs no network of its own. It has to be the one that the configuration names: whether
//! clients must say who they are was judged by that address.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

pub async fn listening(address: SocketAddr) -> io::Result<TcpListener> {
    match inherited()? {
        None => TcpListener::bind(address).await,
        Some(listener) => {
            let at = listener.local_addr()?;
            if at != address {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "the socket that was handed over is {at}; write ListenStream={address}, or listen = \"{at}\""
                    ),
                ));
            }
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        }
    }
}

/// The first socket that was handed to this very process.
#[cfg(unix)]
fn inherited() -> io::Result<Option<std::net::TcpListener>> {
    let listener = listenfd::ListenFd::from_env().take_tcp_listener(0)?;
    if let Some(listener) = &listener {
        // No sandbox inherits it.
        rustix::io::fcntl_setfd(listener, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(listener)
}

#[cfg(not(unix))]
fn inherited() -> io::Result<Option<std::net::TcpListener>> {
    Ok(None)
}
