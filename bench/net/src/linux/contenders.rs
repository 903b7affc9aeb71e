//! The sandboxes that are compared, as plain command lines around the same client.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bench_common::programs::find;
use rustix::process::{Pid, Signal, kill_process_group};

use super::Result;
use super::client::{CLIENT, Done, Job, Route};
use super::server::Ports;

const LOOPBACK: &str = "127.0.0.1";
/// A name that only the file of [`with_hosts`] knows.
const NAME: &str = "server.bench.test";

const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";

/// Seconds for one job of one contender.
const LIMIT: &str = "120";

/// One contender: how its command line begins, and where its client finds the server.
pub struct Contender {
    pub name: &'static str,
    before: Vec<OsString>,
    host: &'static str,
    route: Route,
}

/// A contender, or why it is not there.
pub enum Entry {
    Ready(Contender),
    Skipped { name: &'static str, why: String },
}

impl Entry {
    pub fn ready(&self) -> Option<&Contender> {
        match self {
            Self::Ready(contender) => Some(contender),
            Self::Skipped { .. } => None,
        }
    }

    /// Makes one connection, because a sandbox that fails would be fast.
    fn try_out(contender: Contender, ports: Ports) -> Self {
        match contender.run(Job::Sequence, ports.echo, 1) {
            Ok(done) if done.good == 1 => Self::Ready(contender),
            Ok(_) => Self::Skipped { name: contender.name, why: "its connection was lost".into() },
            Err(error) => Self::Skipped { name: contender.name, why: error.to_string() },
        }
    }
}

impl Contender {
    fn new(name: &'static str, before: Vec<OsString>) -> Self {
        Self { name, before, host: LOOPBACK, route: Route::Plain }
    }

    pub fn is_ours(&self) -> bool {
        self.name.starts_with("mcp")
    }

    pub fn is_peer(&self) -> bool {
        !self.is_ours() && self.name != "bare"
    }

    /// To the end, with a limit: a sandbox that hangs is to be skipped, not waited for.
    pub fn run(&self, job: Job, port: u16, count: u32) -> Result<Done> {
        let limit = words(["timeout", "-k", "5", LIMIT]);
        self.finish(self.start(limit, job, port, count)?)
    }

    /// Without a limit, and as a child of this process itself.
    pub fn spawn(&self, job: Job, port: u16, count: u32) -> Result<Child> {
        self.start(Vec::new(), job, port, count)
    }

    fn start(&self, mut line: Vec<OsString>, job: Job, port: u16, count: u32) -> Result<Child> {
        let own = std::env::current_exe()?;
        let (port, count) = (port.to_string(), count.to_string());
        line.extend(self.before.iter().cloned());
        line.push(own.into_os_string());
        line.extend(words([CLIENT, job.word(), self.host, &port, &count, self.route.word()]));
        let (program, arguments) = line.split_first().ok_or("empty command line")?;
        let mut command = Command::new(program);
        // Files, because a pipe ends only with the last process that a sandbox left behind.
        let (stdout, stderr) = (File::create(said(STDOUT)?)?, File::create(said(STDERR)?)?);
        command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        command.process_group(0);
        // Ours follows the user's proxy, the others' clients would too.
        for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(variable).env_remove(variable.to_ascii_lowercase());
        }
        command.spawn().map_err(|error| format!("{}: {error}", program.display()).into())
    }

    pub fn finish(&self, mut child: Child) -> Result<Done> {
        let status = child.wait()?;
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let (stdout, stderr) = (fs::read(said(STDOUT)?)?, fs::read(said(STDERR)?)?);
        let stdout = String::from_utf8_lossy(&stdout);
        let last = stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).map_err(|_| {
            let stderr = String::from_utf8_lossy(&stderr);
            let why = stderr.lines().last().unwrap_or("no message");
            format!("{status}: {why}").into()
        })
    }
}

pub fn all(launcher: &Path, ports: Ports, no_peers: bool) -> Result<Vec<Entry>> {
    let bare = Contender::new("bare", Vec::new());
    bare.run(Job::Sequence, ports.echo, 1)?;
    let mut entries = vec![Entry::Ready(bare)];
    entries.push(Entry::try_out(Contender::new("mcp", mcp(launcher, ports, &[])), ports));
    let named =
        Contender { host: NAME, ..Contender::new("mcp by name", with_hosts(launcher, ports)?) };
    entries.push(Entry::try_out(named, ports));
    if !no_peers {
        entries.extend([pasta(ports), srt()?, sandlock(ports)?].into_iter().map(
            |peer| match peer {
                Ok(contender) => Entry::try_out(contender, ports),
                Err((name, why)) => Entry::Skipped { name, why: why.into() },
            },
        ));
    }
    Ok(entries)
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

fn mcp(launcher: &Path, ports: Ports, names: &[&str]) -> Vec<OsString> {
    let mut line = vec![launcher.as_os_str().to_owned(), "run".into()];
    for host in [LOOPBACK].iter().chain(names) {
        for port in [ports.echo, ports.source] {
            line.extend(["--allow-net".into(), format!("{host}:{port}").into()]);
        }
    }
    line.push("--".into());
    line
}

/// The launcher in a mount namespace where `/etc/hosts` knows [`NAME`]. It may lead to the
/// loopback because rules for that address are given too.
fn with_hosts(launcher: &Path, ports: Ports) -> Result<Vec<OsString>> {
    let hosts = scratch()?.join("hosts");
    fs::write(&hosts, format!("{LOOPBACK} {NAME}\n"))?;
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    let mut line = words(["unshare", "-m"]);
    if !rustix::process::getuid().is_root() {
        line.extend(words(["--map-current-user", "--keep-caps"]));
    }
    line.extend(words(["--", "sh", "-c", script]));
    line.push(hosts.into_os_string());
    line.extend(mcp(launcher, ports, &[NAME]));
    Ok(line)
}

type Peer = std::result::Result<Contender, (&'static str, &'static str)>;

/// The namespace's loopback ports are forwarded to the host's.
fn pasta(ports: Ports) -> Peer {
    let program = find("pasta").ok_or(("pasta", "not installed (apt: passt)"))?;
    let forwarded = format!("{},{}", ports.echo, ports.source);
    let mut line = vec![program.into_os_string()];
    line.extend(words(["--config-net", "--quiet", "-T", &forwarded]));
    if rustix::process::getuid().is_root() {
        // As root it becomes "nobody", and then never starts the client.
        line.extend(words(["--runas", "0"]));
    }
    line.push("--".into());
    Ok(Contender::new("pasta", line))
}

/// Its programs get out by a proxy only.
fn srt() -> Result<Peer> {
    let Some(program) = find("srt") else {
        return Ok(Err(("srt", "not installed (npm: @anthropic-ai/sandbox-runtime)")));
    };
    let settings = scratch()?.join("srt.json");
    let text = serde_json::json!({
        "network": { "allowedDomains": ["localhost", LOOPBACK], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": ["/tmp"], "denyWrite": [] },
    });
    fs::write(&settings, text.to_string())?;
    let line = vec![program.into_os_string(), "--settings".into(), settings.into_os_string()];
    let contender = Contender::new("srt", line);
    Ok(Ok(Contender { route: Route::Proxy, host: "localhost", ..contender }))
}

/// By its Python library: it comes without a program.
fn sandlock(ports: Ports) -> Result<Peer> {
    const SCRIPT: &str = "import json, sys
from sandlock import Sandbox
result = Sandbox(**json.loads(sys.argv[1])).run(sys.argv[2:], timeout=300)
sys.stdout.buffer.write(result.stdout)
sys.stderr.buffer.write(result.stderr)
";
    let missing = Ok(Err(("sandlock", "not installed (PyPI: sandlock)")));
    let Some(python) = find("python3") else { return missing };
    let probe = Command::new(&python).args(["-c", "import sandlock"]).output()?;
    if !probe.status.success() {
        return missing;
    }
    let own = std::env::current_exe()?;
    let system = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/dev"].map(Path::new);
    let readable: Vec<&Path> = system.into_iter().chain(own.parent()).collect();
    let reachable = [ports.echo, ports.source].map(|port| format!("{LOOPBACK}:{port}"));
    let options = serde_json::json!({
        "fs_readable": readable,
        "net_allow": reachable,
    });
    let mut line = vec![python.into_os_string()];
    line.extend(words(["-c", SCRIPT, &options.to_string()]));
    Ok(Ok(Contender::new("sandlock", line)))
}

/// Where the client's words go. One client runs at a time.
fn said(stream: &str) -> Result<PathBuf> {
    Ok(scratch()?.join(stream))
}

fn scratch() -> Result<PathBuf> {
    let path = scratch_path();
    fs::create_dir_all(&path)?;
    Ok(path)
}

fn scratch_path() -> PathBuf {
    std::env::temp_dir().join(format!("bench-net-{}", std::process::id()))
}

/// Leaves nothing behind.
pub fn tidy() {
    let _ = fs::remove_dir_all(scratch_path());
}
