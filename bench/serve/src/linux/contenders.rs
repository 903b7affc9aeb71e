//! The gateways, as people start them, each in front of the same server.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Result;
use super::client::Session;

pub struct Contender {
    pub name: &'static str,
    /// Where its endpoint is.
    pub path: &'static str,
    words: Vec<String>,
    port: u16,
}

/// A port that is free now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// This program as the server.
fn server() -> Result<String> {
    Ok(std::env::current_exe()?.to_str().ok_or("a path that is no text")?.to_owned())
}

impl Contender {
    /// Every session has a sandbox of its own, so there may be as many as sessions.
    pub fn mcp(mcp: &Path, sessions: usize) -> Result<Contender> {
        let (port, server) = (free_port()?, server()?);
        let directory = std::env::temp_dir().join(format!("bench-serve-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let file = directory.join("servers.toml");
        let most = sessions + 8;
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\n[limits]\nsandboxes = {most}\nper-principal = {most}\nqueue = {most}\nwait = \"120s\"\n\
             [servers.bench]\nrun = [\"--read\", {server:?}, \"--\", {server:?}, \"server\"]\n"
        );
        std::fs::write(&file, text)?;
        let words = [mcp.display().to_string(), "serve".to_owned(), file.display().to_string()];
        Ok(Contender { name: "mcp serve", path: "/mcp/bench", words: words.to_vec(), port })
    }

    /// With a process for each session, which is what its users need for servers with state.
    pub fn supergateway(script: &Path) -> Result<Contender> {
        let port = free_port()?;
        let words = [
            "node".to_owned(),
            script.display().to_string(),
            "--stdio".to_owned(),
            format!("{} server", server()?),
            "--outputTransport".to_owned(),
            "streamableHttp".to_owned(),
            "--stateful".to_owned(),
            "--logLevel".to_owned(),
            "none".to_owned(),
            "--port".to_owned(),
            port.to_string(),
        ];
        Ok(Contender { name: "supergateway", path: "/mcp", words: words.to_vec(), port })
    }

    /// One process for all sessions: it has no other way.
    pub fn mcp_proxy(program: &Path) -> Result<Contender> {
        let port = free_port()?;
        let words = [
            program.display().to_string(),
            "--port".to_owned(),
            port.to_string(),
            "--log-level".to_owned(),
            "ERROR".to_owned(),
            "--".to_owned(),
            server()?,
            "server".to_owned(),
        ];
        Ok(Contender { name: "mcp-proxy", path: "/mcp/", words: words.to_vec(), port })
    }
}

/// A gateway that answers.
pub struct Running {
    child: Child,
    pub process: u32,
    port: u16,
}

impl Running {
    pub fn start(contender: &Contender) -> Result<Running> {
        let mut command = Command::new(&contender.words[0]);
        command
            .args(&contender.words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().map_err(|why| format!("{}: {why}", contender.words[0]))?;
        let process = child.id();
        let mut running = Running { child, process, port: contender.port };
        let until = Instant::now() + Duration::from_secs(60);
        // It answers when a session begins, not when its socket is there.
        while let Err(why) = Session::begin(&running.address(), contender.path) {
            if let Some(status) = running.child.try_wait()? {
                return Err(format!("{} ended: {status}", contender.name).into());
            }
            if Instant::now() > until {
                return Err(format!("{} does not answer: {why}", contender.name).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.to_string()).status();
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
