//! Each act's positive case, without a sandbox: a probe that cannot succeed proves nothing when
//! it fails.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcp-probe-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command<S: AsRef<OsStr>>(words: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-probe"));
    command.args(words).stdin(Stdio::null());
    command
}

/// The lines of JSON that the acts print.
fn lines(words: &[&str]) -> Vec<String> {
    let output = command(words).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Asserts that the last act works, and gives its detail as JSON shows it.
fn works(words: &[&str]) -> String {
    let lines = lines(words);
    let last = lines.last().unwrap_or_else(|| panic!("{words:?} printed nothing"));
    assert!(last.contains("\"ok\":true"), "{words:?}: {last}");
    let (_, detail) = last.split_once("\"detail\":\"").unwrap();
    detail.trim_end_matches("\"}").to_owned()
}

fn fails(words: &[&str], errno: &str) {
    let last = lines(words).pop().unwrap();
    assert!(last.contains(&format!("\"ok\":false,\"errno\":\"{errno}\"")), "{words:?}: {last}");
}

/// Asserts that each act works or that this kernel does not have it.
fn works_where_the_kernel_has_it(words: &[&str]) {
    let last = lines(words).pop().unwrap();
    let absent = ["ENOSYS", "EPERM", "EACCES", "EINVAL", "ENOSPC", "EUSERS"]
        .iter()
        .any(|errno| last.contains(&format!("\"errno\":\"{errno}\"")));
    assert!(last.contains("\"ok\":true") || absent, "{words:?}: {last}");
    if absent {
        println!("SKIP: not here: {last}");
    }
}

#[test]
fn files() {
    let scratch = Scratch::new();
    let (a, b, c) = (scratch.path("a"), scratch.path("b"), scratch.path("c"));
    works(&["create", &a, "one"]);
    fails(&["create", &a], "EEXIST");
    works(&["write", &a, "+two"]);
    assert_eq!(works(&["read", &a]), "one+two");
    works(&["rename", &a, &b]);
    works(&["symlink", &b, &c]);
    works(&["hardlink", &b, &a]);
    assert_eq!(works(&["list", &scratch.path("")]), "a\\nb\\nc");
    works(&["chmod", &a, "640"]);
    assert!(works(&["stat", &c]).starts_with("kind=file size=7 mode=0640 "));
    works(&["unlink", &b]);
    works(&["mkdir", &b]);
    works(&["mknod", &scratch.path("pipe"), "p"]);
    works(&["open-mode", &scratch.path("set-uid"), "4755"]);
    works(&["write-big", &scratch.path("big"), "3000000"]);
    works(&["tmp-fill", &scratch.path(""), "3000000"]);
    fails(&["read", &scratch.path("none")], "ENOENT");
    works_where_the_kernel_has_it(&["open-by-handle", &a]);
}

#[test]
fn network() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    works(&["connect", &address]);
    works_where_the_kernel_has_it(&["fastopen", &address]);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    works(&["udp-send", &udp.local_addr().unwrap().to_string(), "hello"]);
    let mut buffer = [0; 16];
    assert_eq!(udp.recv(&mut buffer).unwrap(), 5);
    works(&["offer", "0"]);
    works(&["listen", "0"]);
    works(&["socket", "1", "1", "0"]);
    works(&["socket", "0x100000001", "1", "0"]);
    works(&["net-ifaces"]);
    assert!(works(&["resolve", "127.0.0.1"]).contains("127.0.0.1"));
    if let Ok(tcp) = TcpListener::bind("[::1]:0") {
        works(&["connect6", &tcp.local_addr().unwrap().to_string()]);
    }
}

#[test]
fn unix_sockets() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    works(&["unix-connect", &path]);
    let name = format!("mcp-probe-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let stream = UnixListener::bind_addr(&address).unwrap();
    works(&["unix-abstract", &name]);
    drop(stream);
    let datagrams = UnixDatagram::bind_addr(&address).unwrap();
    works(&["abstract-dgram-send", &name]);
    assert_eq!(datagrams.recv(&mut [0; 64]).unwrap(), 9);
}

#[test]
fn other_processes() {
    let mut other = command(&["sleep", "20"]).env("CANARY", "seen").spawn().unwrap();
    let pid = other.id().to_string();
    // /proc shows the old image until the exec is done.
    while !lines(&["environ", &pid]).concat().contains("CANARY=seen") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(works(&["cmdline", &pid]).split("\\n").nth(1), Some("sleep"));
    assert!(works(&["proc-list"]).split("\\n").any(|line| line == pid));
    for act in ["mem", "proc-fd", "proc-root", "proc-cwd", "prlimit"] {
        works(&[act, &pid]);
    }
    for act in ["ptrace", "vm-read"] {
        works_where_the_kernel_has_it(&[act, &pid]);
    }
    works_where_the_kernel_has_it(&["pidfd-getfd", &pid, "0"]);
    works(&["kill", &pid, "0"]);
    works(&["kill", &pid, "9"]);
    other.wait().unwrap();
    fails(&["kill", &pid, "0"], "ESRCH");
}

#[test]
fn identity_and_environment() {
    assert_eq!(works(&["caps"]).split("\\n").count(), 5);
    assert_eq!(works(&["uid"]).split(' ').count(), 3);
    works(&["gids"]);
    assert_eq!(works(&["nnp"]), works(&["status-field", "NoNewPrivs"]));
    assert!(works(&["session"]).contains("sid="));
    assert!(!works(&["hostname"]).is_empty());
    assert!(works(&["env"]).contains("PATH"));
    assert!(works(&["getenv", "PATH"]).contains("bin"));
    fails(&["getenv", "MCP_PROBE_NO_SUCH_VARIABLE"], "ENOENT");
    works(&["cwd"]);
    assert_eq!(works(&["stdin-read"]), "0");
    assert!(works(&["time"]).parse::<u64>().unwrap() > 1_700_000_000);
}

#[test]
fn descriptors() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    fs::write(&path, "x").unwrap();
    let run = |words: &[&str]| {
        let input = fs::File::open(&path).unwrap();
        let output = command(words).stdin(input).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["fds"]).contains("0 file r "), "{}", run(&["fds"]));
    assert!(run(&["reopen", "0", "rw"]).contains("\"ok\":true"));
    assert!(run(&["reopen-write", "0", "Y"]).contains("\"ok\":true"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "Y");
    fails(&["isatty", "0"], "ENOTTY");
    fails(&["winsize", "0"], "ENOTTY");
    fails(&["tiocsti", "0", "x"], "ENOTTY");
    fails(&["ioctl", "0", "0x100005412"], "ENOTTY");
    let output = command(&["openat", "0", "file"])
        .stdin(fs::File::open(scratch.path("")).unwrap())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"ok\":true"));
}

#[test]
fn resources() {
    assert!(works(&["rlimits"]).contains("nofile "));
    assert_eq!(works(&["alloc", "5000000"]), "5000000");
    assert_eq!(works(&["alloc-shared", "5000000"]), "5000000");
    assert_eq!(works(&["memfd", "5000000"]), "5000000");
    assert_eq!(works(&["fork", "5"]), "5");
    assert_eq!(works(&["fork-alloc", "3", "1000000"]), "3");
    assert_eq!(works(&["threads", "5"]), "5");
    assert_eq!(works(&["open-files", "5"]), "5");
    works(&["spin", "0.01"]);
    works(&["sleep", "0.01"]);
}

#[test]
fn lifetimes() {
    let scratch = Scratch::new();
    let beat = scratch.path("beat");
    works(&["daemonize", "0.2", &beat]);
    while !Path::new(&beat).exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    works(&["ignore-term", "0.05"]);
    assert_eq!(command(&["exit", "7"]).status().unwrap().code(), Some(7));
    let killed = command(&["signal-self", "15"]).stdout(Stdio::null()).status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed), Some(15));
    let exec = command(&["exec", "/bin/echo", "--then", "x"]).output().unwrap();
    assert_eq!(exec.stdout, b"--then x\n");
    let probe = env!("CARGO_BIN_EXE_mcp-probe");
    works(&["memfd-exec", probe, "cwd"]);
    let mut forever = command(&["loop-heartbeat", &beat, "5"]).spawn().unwrap();
    let before = fs::metadata(&beat).unwrap().len();
    while fs::metadata(&beat).unwrap().len() <= before + 3 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    forever.kill().unwrap();
    forever.wait().unwrap();
}

#[test]
fn namespaces() {
    for act in ["unshare", "enter"] {
        works_where_the_kernel_has_it(&[act, "user,mnt,uts,net,ipc"]);
    }
    if !lines(&["unshare", "user,mnt,uts"]).concat().contains("\"ok\":true") {
        println!("SKIP: no user namespaces");
        return;
    }
    let scratch = Scratch::new();
    let dir = scratch.path("");
    let inside = ["enter", "user,mnt,uts", "--then"];
    works(&[&inside[..], &["mount", &dir]].concat());
    works(&[&inside[..], &["mount", &dir, "--then", "remount-ro", &dir]].concat());
    works(&[&inside[..], &["mount", &dir, "--then", "remount-rw", &dir]].concat());
    works(&[&inside[..], &["mount", &dir, "--then", "umount", &dir]].concat());
    works(&[&inside[..], &["pivot", &dir]].concat());
    works(&[&inside[..], &["chroot", &dir]].concat());
    works(&[&inside[..], &["sethostname", "x"]].concat());
    works(&["clone-user"]);
    works(&["clone-user", "0x100000000"]);
    works_where_the_kernel_has_it(&["clone3-user"]);
    works(&["enter", "user,net", "--then", "setns", "/proc/self/ns/net"]);
}

#[test]
fn kernel_parts() {
    let own = format!("mcp-probe-key-{}", std::process::id());
    for words in [
        &["io-uring"][..],
        &["bpf"],
        &["perf"],
        &["userfaultfd"],
        &["personality", "0xffffffff"],
        &["keyctl-read"],
        &["join-session", "--then", "add-key", &own, "x", "session", "--then", "keyctl-read", &own],
        &["int80", "20"],
        &["syscall", "0x40000027"],
    ] {
        works_where_the_kernel_has_it(words);
    }
    works(&["syscall", if cfg!(target_arch = "x86_64") { "39" } else { "172" }]);
}

#[test]
fn plain_text_is_not_json() {
    let output = command(&["write-stdout", "hello", "--then", "write-stderr", "there"]);
    let output = { output }.output().unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"hello"[..], &b"there"[..]));
}

#[test]
fn usage_errors_leave_with_2() {
    for words in [&["fly"][..], &["read"], &["kill", "x", "9"]] {
        assert_eq!(command(words).output().unwrap().status.code(), Some(2), "{words:?}");
    }
}
