//! Landlock behind the mounts: it is on, it stops what mounts cannot, and it does not stop what is allowed.
//! What it does for files on the standard descriptors is in `fds`.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use serde_json::Value;

use crate::require;
use crate::support::{Run, Scratch, allowed, blocked, has_program, landlock_abi, refused};

/// A directory that root's stand-in may write to as well.
fn grant(scratch: &Scratch) -> std::path::PathBuf {
    let grant = scratch.dir("grant");
    fs::set_permissions(&grant, fs::Permissions::from_mode(0o777)).unwrap();
    grant
}

#[test]
fn report_names_the_version() {
    require!("userns", "landlock");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    Run::new().flag("--report").arg(&file).probe(&["cwd"]).run().code_is(0);
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let filesystem = &report["controls"]["filesystem"];
    assert_eq!(filesystem["status"], "enforced", "{report:#}");
    let seen = filesystem["seen"].as_array().unwrap();
    let expected = format!("Landlock version {}, ", landlock_abi());
    let is_named = |text: &Value| text.as_str().unwrap().starts_with(&expected);
    assert!(seen.iter().any(is_named), "{report:#}");
}

/// A directory that a friend outside hands over by a socket, as a D-Bus service would.
#[test]
fn descriptor_handed_in_opens_nothing() {
    require!("userns", "landlock");
    if !has_program("python3") {
        return;
    }
    let script = "import os, socket\n\
                  friend = socket.socket(fileno=0)\n\
                  _, [directory], _, _ = socket.recv_fds(friend, 1, 1)\n\
                  file = os.open('canary', os.O_RDONLY, dir_fd=directory)\n\
                  print(os.read(file, 99))";
    let hand_over = "import os, socket, sys\n\
                     directory = os.open(sys.argv[1], os.O_RDONLY)\n\
                     socket.send_fds(socket.socket(fileno=1), [b'!'], [directory])";
    let scratch = Scratch::new();
    let canary = scratch.file("canary", "secret");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(canary, fs::Permissions::from_mode(0o644)).unwrap();
    let receive = |run: Run| {
        let (friend, inside) = UnixStream::pair().unwrap();
        let words = ["/usr/bin/python3", "-c", hand_over, scratch.path().to_str().unwrap()];
        let given = Run::bare().stdout(std::os::fd::OwnedFd::from(friend)).command(&words).run();
        given.code_is(0);
        let inside = std::os::fd::OwnedFd::from(inside);
        run.stdin(inside).command(&["/usr/bin/python3", "-c", script]).run()
    };
    let bare = receive(Run::bare());
    assert!(bare.text().contains("secret"), "{bare}");
    let inside = receive(Run::new());
    assert!(inside.stderr.contains("PermissionError"), "{inside}");
    assert!(!inside.text().contains("secret"), "{inside}");
    // Where it was granted, it lies beneath a rule.
    let granted = receive(Run::new().write(scratch.path()));
    assert!(granted.text().contains("secret"), "{granted}");
}

#[test]
fn init_gets_no_signals() {
    require!("userns", "landlock-scopes");
    let own = ["kill", "0", "0"];
    refused(Run::new().probe(&["kill", "1", "0"]), Run::new().probe(&own), &["EPERM"]);
}

#[test]
fn abstract_sockets_of_the_host_are_no_network() {
    require!("userns", "landlock-scopes");
    let name = format!("mcp-landlock-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let words = ["unix-abstract", name.as_str()];
    let attack = Run::new().flag("--network").arg("host").probe(&words);
    refused(attack, Run::bare().probe(&words), &["EPERM"]);
}

#[test]
fn sockets_of_the_host_in_a_grant_are_closed() {
    require!("userns", "landlock-sockets");
    let scratch = Scratch::new();
    let path = grant(&scratch).join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let words = ["unix-connect", path.to_str().unwrap()];
    allowed(Run::bare().probe(&words));
    blocked(Run::new().read(path.parent().unwrap()).probe(&words), &["EACCES"]);
    blocked(Run::new().write(path.parent().unwrap()).probe(&words), &["EACCES"]);
}

#[test]
fn few_descriptors_are_enough() {
    require!("userns");
    let run = Run::new().flag("--max-fds").arg("4").shell("echo ok").run();
    assert_eq!(run.text(), "ok\n", "{run}");
}

/// Everything that can be done with files in a writable place.
const FILE_WORK: &str = "set -e; cd \"$1\"
    mkdir -p a/deep b; echo one > a/file
    mv a/file b/moved; ln b/moved a/linked; mv a/deep b/deep; mv b/deep c
    echo two > b/moved; echo three >> a/linked; [ \"$(cat b/moved | tr '\\n' ' ')\" = 'two three ' ]
    truncate -s 1 b/moved; [ \"$(wc -c < a/linked)\" -eq 1 ]
    ln -s ../b/moved a/soft; [ -L a/soft ]; cat a/soft > b/copy
    mkfifo pipe; (echo through > pipe &); [ \"$(cat pipe)\" = through ]
    cp /bin/true run; ./run; printf '#!/bin/sh\\nexit 0\\n' > script; chmod 755 script; ./script
    touch -t 200001010000 run; chmod 600 script; ls -la > listing; find . > found
    rm -r a b; rmdir c; rm run script pipe listing found
    [ -z \"$(ls)\" ]";

#[test]
fn files_are_worked_with_in_every_writable_place() {
    require!("userns");
    let scratch = Scratch::new();
    let grant = grant(&scratch);
    let grant = grant.to_str().unwrap();
    let work = |run: Run, place: &str| {
        let finished = run.command(&["sh", "-ec", FILE_WORK, "sh", place]).run();
        finished.code_is(0);
        assert_eq!(finished.stderr, "", "{place}");
    };
    work(Run::bare(), grant);
    work(Run::new().write(grant), grant);
    for place in ["/tmp", "/dev/shm", "/home/mcp"] {
        work(Run::new(), place);
    }
}

#[test]
fn programs_meet_by_unix_sockets() {
    require!("userns");
    if !has_program("python3") {
        return;
    }
    let scratch = Scratch::new();
    let grant = grant(&scratch);
    let script = "import os, socket, sys\n\
                  for where in [sys.argv[1], '/tmp', '/dev/shm', '\\0abstract']:\n\
                  \x20   path = where if where[0] == '\\0' else where + '/socket'\n\
                  \x20   for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:\n\
                  \x20       server = socket.socket(socket.AF_UNIX, kind)\n\
                  \x20       server.bind(path)\n\
                  \x20       if kind == socket.SOCK_STREAM: server.listen()\n\
                  \x20       if os.fork() == 0:\n\
                  \x20           client = socket.socket(socket.AF_UNIX, kind)\n\
                  \x20           client.connect(path)\n\
                  \x20           client.send(b'hello')\n\
                  \x20           os._exit(0)\n\
                  \x20       end = server.accept()[0] if kind == socket.SOCK_STREAM else server\n\
                  \x20       assert end.recv(9) == b'hello'\n\
                  \x20       assert os.wait()[1] == 0\n\
                  \x20       server.close()\n\
                  \x20       if where[0] != '\\0': os.unlink(path)\n\
                  print('met')";
    let words = ["/usr/bin/python3", "-c", script, grant.to_str().unwrap()];
    let finished = Run::new().write(&grant).command(&words).run();
    assert_eq!(finished.text(), "met\n", "{finished}");
}

#[test]
fn python_has_terminals_temporary_files_and_children() {
    require!("userns");
    if !has_program("python3") {
        return;
    }
    let script = "import os, pty, signal, subprocess, tempfile, termios\n\
                  child, end = pty.fork()\n\
                  if child == 0: os.execvp('tty', ['tty'])\n\
                  termios.tcgetattr(end)\n\
                  assert os.read(end, 99).startswith(b'/dev/pts/')\n\
                  os.waitpid(child, 0)\n\
                  for where in ['/tmp', '/dev/shm', os.environ['HOME']]:\n\
                  \x20   nameless = tempfile.TemporaryFile(dir=where)\n\
                  \x20   nameless.write(b'x' * 5000); nameless.flush(); nameless.truncate(3)\n\
                  \x20   again = open('/proc/self/fd/%d' % nameless.fileno(), 'rb')\n\
                  \x20   assert again.read() == b'xxx'\n\
                  memory = os.memfd_create('m'); os.write(memory, b'm')\n\
                  assert open('/proc/self/fd/%d' % memory, 'rb').read() == b'm'\n\
                  sleeper = subprocess.Popen(['sleep', '100'])\n\
                  sleeper.send_signal(signal.SIGTERM)\n\
                  assert sleeper.wait() == -signal.SIGTERM\n\
                  os.listdir('/'); os.listdir('/dev'); os.listdir('/proc/self/fd')\n\
                  open('/dev/full', 'rb+', 0); open('/dev/urandom', 'rb').read(1)\n\
                  print('worked')";
    let finished = Run::new().command(&["/usr/bin/python3", "-c", script]).run();
    assert_eq!(finished.text(), "worked\n", "{finished}");
}

#[test]
fn node_starts_and_works() {
    require!("userns");
    if !has_program("node") {
        return;
    }
    let script = "const fs = require('fs'), net = require('net');\
                  fs.mkdirSync('/tmp/a/b', { recursive: true });\
                  fs.writeFileSync('/tmp/a/b/c', 'x'); fs.renameSync('/tmp/a/b/c', '/tmp/a/c');\
                  fs.cpSync('/tmp/a', '/tmp/d', { recursive: true });\
                  require('child_process').execFileSync('/bin/true');\
                  const server = net.createServer(s => s.end('hello')).listen(0, '127.0.0.1', () =>\
                    net.connect(server.address().port, '127.0.0.1').on('data', d => {\
                      console.log(String(d)); server.close(); }));";
    let finished = Run::new().command(&["/usr/bin/node", "-e", script]).run();
    assert_eq!(finished.text(), "hello\n", "{finished}");
}

#[test]
fn git_commits_in_a_grant() {
    require!("userns");
    if !has_program("git") {
        return;
    }
    let scratch = Scratch::new();
    let grant = grant(&scratch);
    let script = "set -e; cd \"$1\"; git init -q . && git config user.name n && \
                  git config user.email e@example.com; echo one > file; git add file; \
                  git commit -qm one; git mv file other; git commit -qm two; git gc -q; \
                  git stash list; git clone -q . copy; git -C copy log --oneline | wc -l";
    let run = Run::new().write(&grant).command(&["sh", "-ec", script, "sh"]);
    let finished = run.command(&[grant.as_os_str()]).run();
    finished.code_is(0);
    assert_eq!(finished.text().trim(), "2", "{finished}");
}

#[test]
fn compiled_programs_run_where_they_were_made() {
    require!("userns");
    if !has_program("gcc") {
        return;
    }
    let scratch = Scratch::new();
    let grant = grant(&scratch);
    let script = "set -e; for place in \"$1\" /tmp /home/mcp; do cd \"$place\"; \
                  echo 'int main(void) { return 42; }' > main.c; gcc -O1 main.c -o main; \
                  code=0; ./main || code=$?; [ $code -eq 42 ]; done; echo made";
    let run = Run::new().write(&grant).command(&["sh", "-ec", script, "sh"]);
    let finished = run.command(&[grant.as_os_str()]).run();
    assert_eq!(finished.text(), "made\n", "{finished}");
}
