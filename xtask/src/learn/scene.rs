//! The home directory of one server's trial: a private key, and what servers read, write and connect to.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{process, thread};

/// What the private key holds.
pub const CANARY: &str = "canary of a private key";
/// What the page says.
pub const PAGE: &str = "a page of the host";

/// Removed when dropped.
pub struct Scene {
    root: PathBuf,
}

impl Scene {
    pub fn new(place: &Path) -> io::Result<Scene> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = place.join(format!("{}-{count}", process::id()));
        fs::create_dir(&root)?;
        let scene = Scene { root };
        scene.file(".ssh/id_ed25519", CANARY)?;
        Ok(scene)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn dir(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.at(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    pub fn file(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.at(name);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&path, text)?;
        Ok(path)
    }

    pub fn program(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.file(name, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// A service on a unix socket, which says one word to everybody.
    pub fn service(&self, name: &str) -> io::Result<()> {
        let listener = UnixListener::bind(self.at(name))?;
        thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = stream.and_then(|mut stream| stream.write_all(b"served"));
            }
        });
        Ok(())
    }

    /// A web server on the loopback with one page.
    pub fn web(&self) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = stream.and_then(|mut stream| {
                    let mut request = [0; 4096];
                    let read = stream.read(&mut request)?;
                    let is_robots = request[..read].starts_with(b"GET /robots.txt");
                    let status = if is_robots { "404 Not Found" } else { "200 OK" };
                    write!(
                        stream,
                        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{PAGE}",
                        PAGE.len()
                    )
                });
            }
        });
        Ok(address)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("xtask: {} stays behind: {error}", self.root.display());
        }
    }
}
