//! Names that neither `/etc/hosts` nor DNS know, but the host's other sources do (mDNS, LDAP, the
//! machine's own name): asked of `getent`, since a static program cannot load the C library's modules.
//!
//! Only where `/etc/nsswitch.conf` has such a source. `getent` is a program of the host's and runs on
//! the host, with nothing of the caller's environment, for a while, and what it says is bounded.

use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use mcp_policy::HostName;

pub const SWITCH: &str = "/etc/nsswitch.conf";

/// Where systems have it. Never by `PATH`.
const PLACES: [&str; 3] = ["/usr/bin/getent", "/bin/getent", "/run/current-system/sw/bin/getent"];

/// A machine nearby answers at once; programs lose patience too.
const PATIENCE: Duration = Duration::from_secs(4);
const LARGEST_ANSWER: u64 = 16 << 10;
/// Addresses of one name that are worth trying.
const MAX_ADDRESSES: usize = 16;

/// Whether a name is also tried with the host's own domains behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domains {
    /// As the host's own programs do.
    #[cfg(target_os = "linux")]
    Tried,
    /// A rule names a host in full.
    Ignored,
}

/// Whether hosts have a source beside the file and DNS.
pub fn has_more(switch: &str) -> bool {
    let lines = switch.lines().map(|line| line.split('#').next().unwrap_or(""));
    lines.filter_map(|line| line.trim_start().strip_prefix("hosts:")).any(|sources| {
        // What to do after a source is in brackets: `[!UNAVAIL=return]`.
        let mut rest = sources;
        let mut more = false;
        while !rest.is_empty() {
            let (plain, after) = rest.split_once('[').unwrap_or((rest, ""));
            more |= plain.split_ascii_whitespace().any(|source| !matches!(source, "files" | "dns"));
            rest = after.split_once(']').map_or("", |(_, rest)| rest);
        }
        more
    })
}

/// What `getent ahosts` has printed: a line for each address and kind of socket.
pub fn read(said: &[u8]) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(said).lines() {
        // An address with a zone (fe80::1%eth0) means nothing without its interface.
        let ip = line.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
        found.extend(ip.filter(|ip| !found.contains(ip)));
    }
    found.truncate(MAX_ADDRESSES);
    found
}

/// Asks, and waits for the answer; none is empty.
pub fn ask(name: &HostName, domains: Domains) -> Vec<IpAddr> {
    let Some(mut child) = start(name, domains) else {
        return Vec::new();
    };
    let said = listen(&mut child);
    // It has ended, or has had its time.
    let _ = child.kill();
    let _ = child.wait();
    said.map(|said| read(&said)).unwrap_or_default()
}

fn start(name: &HostName, domains: Domains) -> Option<Child> {
    let program = PLACES.into_iter().find(|place| Path::new(place).is_file())?;
    let mut getent = Command::new(program);
    getent.args(["ahosts", name.as_str()]).env_clear().env("LC_ALL", "C").current_dir("/");
    if domains == Domains::Ignored {
        // The C library's own list of domains: the root alone.
        getent.env("LOCALDOMAIN", ".");
    }
    getent.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

/// All that it says, if it ends in time.
fn listen(child: &mut Child) -> Option<Vec<u8>> {
    let stdout = child.stdout.take()?;
    let (tell, heard) = mpsc::channel();
    let reader = move || {
        let mut said = Vec::new();
        let read = stdout.take(LARGEST_ANSWER).read_to_end(&mut said);
        let _ = tell.send(read.map(|_| said));
    };
    std::thread::Builder::new().spawn(reader).ok()?;
    heard.recv_timeout(PATIENCE).ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources() {
        for more in [
            "hosts: files mdns4_minimal [NOTFOUND=return] dns",
            "passwd: files\n  hosts:\tfiles resolve [!UNAVAIL=return] dns myhostname # all",
            "hosts: files dns [NOTFOUND=continue] ldap",
        ] {
            assert!(has_more(more), "{more}");
        }
        for none in [
            "",
            "hosts: files dns",
            "hosts: files [NOTFOUND=continue SUCCESS=return] dns",
            "passwd: files ldap\nhosts: dns files # mdns",
            "#hosts: files mdns",
            "hosts: files [broken mdns",
        ] {
            assert!(!has_more(none), "{none}");
        }
    }

    #[test]
    fn answers() {
        let said =
            b"10.1.2.3        STREAM box.local\n10.1.2.3        DGRAM\n10.1.2.3        RAW\n\
                     fe80::1%eth0    STREAM\n2001:db8::7     STREAM\nnonsense\n\n";
        let found: Vec<String> = read(said).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.1.2.3", "2001:db8::7"]);
        assert!(read(b"\xff\xfe 1").is_empty());
        let many: String = (0..100).map(|n| format!("10.0.0.{n} STREAM\n")).collect();
        assert_eq!(read(many.as_bytes()).len(), MAX_ADDRESSES);
    }
}
