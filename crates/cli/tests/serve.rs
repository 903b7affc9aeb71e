//! `mcp serve` with its real sandboxes: what is behind HTTP has the walls of `mcp run`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/mod.rs"]
mod support;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::{Scratch, mcp_path};

/// Answers `initialize` (id 0) and one call (id 1), which says whether it sees a file.
const SERVER: &str = r#"while read -r line; do case "$line" in
*initialize*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}';;
*tools/call*) if [ -e "$0" ]; then seen=true; else seen=false; fi; echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"seen\":$seen}}";;
esac; done"#;

struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    fn start(flags: &[&str], file: &Path) -> Gateway {
        let mut words: Vec<&OsStr> = flags.iter().map(OsStr::new).collect();
        words.extend(["sh", "-c", SERVER].map(OsStr::new));
        words.push(file.as_os_str());
        Gateway::serve(&words, |_| {})
    }

    fn serve(words: &[&OsStr], prepare: impl Fn(&mut Command)) -> Gateway {
        let mut command = Command::new(mcp_path());
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(words).stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Gateway { child, address }
    }

    fn post(&self, session: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// What a call answers, in a session of its own.
    fn call(&self) -> String {
        self.call_in(&self.begin())
    }

    /// The header of a new session.
    fn begin(&self) -> String {
        let begun = self.post("", r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        let session = begun.lines().find(|line| line.starts_with("mcp-session-id:"));
        format!("{}\r\n", session.unwrap_or_else(|| panic!("no session: {begun}")))
    }

    fn call_in(&self, session: &str) -> String {
        self.post(
            session,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
        )
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_behind_http_sees_what_it_was_granted_and_no_more() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("secret.txt", "x");
    let walled = Gateway::start(&[], &file).call();
    assert!(walled.contains(r#""seen":false"#), "{walled}");
    let granted = Gateway::start(&["--read", file.to_str().unwrap()], &file).call();
    assert!(granted.contains(r#""seen":true"#), "{granted}");
}

/// The children of a process.
fn children(process: u32) -> Vec<u32> {
    let parent_of = |process: u32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<u32>().ok()
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    all.filter(|it| parent_of(*it) == Some(process)).collect()
}

#[test]
fn whichever_process_of_a_sandbox_is_killed_the_others_go_on() {
    require!("userns");
    let scratch = Scratch::new();
    let gateway = Gateway::start(&[], &scratch.file("x", ""));
    let stays = gateway.begin();
    // The launcher, the sandbox's init, the server.
    for depth in 0..3 {
        let before = children(gateway.child.id());
        let dies = gateway.begin();
        assert!(gateway.call_in(&dies).contains("\"seen\""), "{depth}: before");
        let new = children(gateway.child.id()).into_iter().find(|it| !before.contains(it));
        let mut process = new.unwrap();
        for _ in 0..depth {
            process = children(process)[0];
        }
        let killed = Command::new("kill").args(["-9", &process.to_string()]).status();
        assert!(killed.unwrap().success());
        // What is below a launcher ends a moment after it.
        let is_gone = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !gateway.call_in(&dies).contains("\"seen\"")
        });
        assert!(is_gone, "{depth}");
        assert!(gateway.call_in(&stays).contains("\"seen\""), "{depth}: another session");
        assert!(gateway.call().contains("\"seen\""), "{depth}: a new session");
    }
}

/// A package that answers what is in its memory, then writes there.
const MEMORY: &str = r#"cd "$(dirname "$0")"
while read -r line; do case "$line" in
*initialize*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}';;
*tools/call*) seen=nothing; for file in memory "$HOME/memory"; do [ -e "$file" ] && seen=memory; echo x >"$file" && wrote=yes; done
  echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"seen\":\"$seen\",\"wrote\":\"$wrote\"}}";;
esac; done"#;

/// A user's own directories.
fn place<'a>(command: &'a mut Command, scratch: &Scratch) -> &'a mut Command {
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env(name, scratch.dir(name));
    }
    command
}

#[test]
fn what_a_package_writes_is_gone_for_the_next_principal() {
    require!("userns", "overlay");
    let scratch = Scratch::new();
    scratch.file("memory/server.sh", MEMORY);
    let server = "[server]\ncommand = 'sh'\nargs = ['${__dirname}/server.sh']\n";
    let package = format!("[package]\nname = 'acme/memory'\nversion = '1.0.0'\n{server}");
    scratch.file("memory/mcp.toml", &package);
    let bundle = scratch.join("memory.mcpb");
    let mcp = |words: &[&OsStr]| {
        let mut command = Command::new(mcp_path());
        let output = place(&mut command, &scratch).args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let source = scratch.join("memory");
    mcp(&["pack".as_ref(), source.as_os_str(), "-o".as_ref(), bundle.as_os_str()]);
    mcp(&["pull".as_ref(), bundle.as_os_str()]);
    let alone = || {
        let mut command = Command::new(mcp_path());
        let input = std::fs::File::open(scratch.file("input", "tools/call\n")).unwrap();
        let output = place(&mut command, &scratch).args(["run", "acme/memory"]).stdin(input);
        String::from_utf8(output.output().unwrap().stdout).unwrap()
    };
    assert!(alone().contains(r#""seen":"nothing","wrote":"yes""#));
    assert!(alone().contains(r#""seen":"memory""#), "one user's runs keep it");
    let gateway = Gateway::serve(&["acme/memory".as_ref()], |command| {
        place(command, &scratch);
    });
    for _ in 0..2 {
        let told = gateway.call();
        assert!(told.contains(r#""seen":"nothing","wrote":"yes""#), "{told}");
    }
}

#[test]
fn a_home_that_all_principals_would_share_is_refused() {
    let check = |words: &[&str]| {
        let output = Command::new(mcp_path()).args(["serve", "--check"]).args(words).output();
        output.unwrap().status.code()
    };
    assert_eq!(check(&["--home", "x", "sh"]), Some(2));
    assert_eq!(check(&["--ephemeral", "sh", "--home", "x"]), Some(0), "the command's own words");
}

#[test]
fn a_file_is_judged_with_the_flags_beside_it() {
    let scratch = Scratch::new();
    let servers = "[servers.x]\nrun = [\"true\"]\n";
    let public = scratch.file("public.toml", &format!("listen = \"0.0.0.0:8808\"\n{servers}"));
    let local = scratch.file("local.toml", servers);
    let judge = |listen: &str, file: &Path| {
        let words = ["serve", "--check", "--listen", listen];
        let output = Command::new(mcp_path()).args(words).arg(file).output().unwrap();
        output.status.code()
    };
    assert_eq!(judge("127.0.0.1:8808", &public), Some(0));
    assert_eq!(judge("0.0.0.0:8808", &local), Some(2));
}

#[test]
fn beyond_loopback_somebody_is_asked_who_they_are() {
    let scratch = Scratch::new();
    scratch.file("tokens", "");
    let judge = |text: &str| {
        let file = scratch.file("servers.toml", text);
        let output =
            Command::new(mcp_path()).args(["serve", "--check"]).arg(file).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let servers = "[servers.x]\nrun = [\"true\"]\n";
    let open = "listen = \"0.0.0.0:8808\"\n";
    let refused = [
        (open.to_owned(), "could connect without a token"),
        (format!("{open}hosts = [\"h\"]\n[auth]\ntokens = \"tokens\"\n"), "in the clear"),
        (format!("{open}behind-proxy = true\n[auth]\ntokens = \"tokens\"\n"), "hosts"),
    ];
    for (text, why) in refused {
        let (code, told) = judge(&format!("{text}{servers}"));
        assert!(code == Some(2) && told.contains(why), "{text}: {code:?} {told}");
    }
    let (code, told) = judge(&format!(
        "{open}behind-proxy = true\nhosts = [\"h\"]\n[auth]\ntokens = \"tokens\"\n{servers}"
    ));
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(judge(servers).0, Some(0), "loopback needs nothing");
}
