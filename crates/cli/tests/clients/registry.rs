//! The real world, as far as this machine reaches it: package registries.

use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::place::missing;
use crate::support::{self, mcp_path};

const PATIENCE: Duration = Duration::from_secs(5);

/// Variables that say where certificates and indexes are.
const VARIABLES: [&str; 4] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "PIP_INDEX_URL"];

/// Runs a script that fetches something from `hosts`: it works with rules for them, and does not
/// without, by itself. Skips where they cannot be reached.
#[track_caller]
pub fn check(programs: &[&str], hosts: &[&str], script: &str, said: &str) {
    if !support::available("userns") {
        return;
    }
    if let Some(reason) = missing(programs).or_else(|| unreachable(hosts)) {
        println!("SKIP: {reason}");
        return;
    }
    let mut rules: Vec<String> = hosts.iter().map(|host| format!("{host}:443")).collect();
    let mut output = run(&rules, script);
    // A mirror in a private network answers for them: then its address has to be named as well.
    while let Some(rule) = private_address(&output).filter(|rule| !rules.contains(rule)) {
        rules.push(rule);
        output = run(&rules, script);
    }
    assert!(succeeded(&output, said), "does not reach {hosts:?}: {}", shown(&output));
    let addresses: Vec<String> =
        rules.into_iter().filter(|rule| !hosts.iter().any(|host| rule.starts_with(host))).collect();
    let output = run(&[&["other.test:443".to_owned()], &addresses[..]].concat(), script);
    assert!(!succeeded(&output, said), "reaches {hosts:?} without a rule: {}", shown(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(&format!("--allow-net {}", hosts[0])), "{}", shown(&output));
}

fn run(rules: &[String], script: &str) -> Output {
    let mut command = Command::new(mcp_path());
    command.arg("run");
    for rule in rules {
        command.args(["--allow-net", rule]);
    }
    for name in VARIABLES {
        if std::env::var_os(name).is_some() {
            command.args(["--env", name]);
        }
    }
    command.args(["--timeout", "120s", "--", "sh", "-c", script]).stdin(Stdio::null());
    command.output().unwrap()
}

fn unreachable(hosts: &[&str]) -> Option<String> {
    let reach = |host: &str| {
        let mut addresses = (host, 443).to_socket_addrs().ok()?;
        addresses.find_map(|address| TcpStream::connect_timeout(&address, PATIENCE).ok())
    };
    let host = hosts.iter().find(|host| reach(host).is_none())?;
    Some(format!("{host} cannot be reached from here"))
}

/// The rule that the launcher says would allow where a name leads.
fn private_address(output: &Output) -> Option<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = stderr.lines().find(|line| line.contains(", for its address "))?;
    let rule = line.split_once("(add --allow-net ")?.1;
    Some(rule.trim_end_matches(')').trim_matches('\'').to_owned())
}

fn succeeded(output: &Output, said: &str) -> bool {
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains(said)
}

fn shown(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}
