//! Descriptors: all but 0–2 are closed, and 0–2 are no more than what they were given as.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::require;
use crate::support::{
    Finished, Preparation, Run, Scratch, allowed, blocked, is_root, refused, skip,
};

fn path_only(path: &Path) -> File {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).unwrap()
}

#[test]
fn inherited_descriptors_are_closed() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let act = |mut run: Run| {
        for number in 3..=20 {
            let file = OwnedFd::from(File::open(&secret).unwrap());
            run = run.prepare(Preparation::Inherit(file, number));
        }
        allowed(run.probe(&["fds"])).detail
    };
    let numbers = |text: &str| -> Vec<u32> {
        text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    let bare = numbers(&act(Run::bare()));
    assert!((3..=20).all(|number| bare.contains(&number)), "{bare:?}");
    let inside = act(Run::new());
    assert_eq!(numbers(&inside), [0, 1, 2], "{inside}");
}

#[test]
fn read_only_file_cannot_be_reopened_for_writing() {
    require!("userns", "mount-attributes");
    let scratch = Scratch::new();
    let path = scratch.file("input", "original");
    let run = |run: Run, words: &[&str]| {
        run.stdin(File::open(&path).unwrap()).probe(words).run().last("reopen").clone()
    };
    assert_eq!(run(Run::new(), &["stdin-read"]).detail, "8");
    assert!(run(Run::new(), &["reopen", "0", "r"]).ok);
    for words in
        [&["reopen", "0", "w"][..], &["reopen", "0", "rw"], &["reopen-write", "0", "HACKED"]]
    {
        let attack = run(Run::new(), words);
        assert!(!attack.ok, "{words:?}: {attack:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "original");
    }
    assert!(run(Run::bare(), &["reopen-write", "0", "X"]).ok);
    assert_eq!(fs::read_to_string(&path).unwrap(), "Xriginal");
}

#[test]
fn file_on_stdin_is_read_from_where_it_stands() {
    require!("userns");
    let scratch = Scratch::new();
    let path = scratch.file("input", "0123456789");
    for run in [Run::bare(), Run::new()] {
        let mut file = File::open(&path).unwrap();
        file.seek(SeekFrom::Start(4)).unwrap();
        assert_eq!(allowed(run.stdin(file).probe(&["stdin-read"])).detail, "6");
    }
}

#[test]
fn deleted_file_on_stdin_is_readable() {
    require!("userns");
    let scratch = Scratch::new();
    for run in [Run::bare(), Run::new()] {
        // This is how some shells pass a here-document.
        let path = scratch.file("here", "document");
        let file = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(allowed(run.stdin(file).probe(&["stdin-read"])).detail, "8");
    }
}

#[test]
fn output_files_are_shared_as_with_a_plain_command() {
    require!("userns");
    let scratch = Scratch::new();
    for bare in [true, false] {
        let path = scratch.join(format!("output-{bare}"));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"0").unwrap();
        for word in ["1", "2"] {
            let run = if bare { Run::bare() } else { Run::new() };
            run.stdout(file.try_clone().unwrap()).command(&["printf", word]).run().code_is(0);
        }
        file.write_all(b"3").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "0123", "bare: {bare}");
    }
    let path = scratch.file("appended", "0");
    for word in ["1", "2"] {
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        Run::new().stdout(file).command(&["printf", word]).run().code_is(0);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "012");
}

#[test]
fn write_only_file_is_written_by_stderr_too() {
    require!("userns");
    let scratch = Scratch::new();
    let path = scratch.join("errors");
    let run = Run::new().stderr(File::create(&path).unwrap()).flag("--quiet");
    run.probe(&["write-stderr", "problem"]).run().code_is(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "problem");
}

#[test]
fn output_file_is_opened_again_only_as_it_was_opened() {
    require!("userns", "landlock");
    let scratch = Scratch::new();
    let path = scratch.file("output", "canary");
    // Everybody may do everything with it: only the way it was opened counts.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let open = |read| OpenOptions::new().read(read).write(true).open(&path).unwrap();
    let reopen = |run: Run, read, mode| run.stderr(open(read)).probe(&["reopen", "2", mode]);
    for mode in ["r", "rw"] {
        let (attack, bare) = (reopen(Run::new(), false, mode), reopen(Run::bare(), false, mode));
        refused(attack, bare, &["EACCES"]);
        allowed(reopen(Run::new(), true, mode));
    }
    allowed(reopen(Run::new(), false, "w"));
    let read = |run: Run, read| run.stderr(open(read)).probe(&["read", "/dev/stderr"]);
    assert_eq!(allowed(read(Run::bare(), false)).detail, "canary");
    assert_eq!(allowed(read(Run::new(), true)).detail, "canary");
    blocked(read(Run::new(), false), &["EACCES"]);
}

/// What a descriptor opened for appending allows beyond that, each with what it leaves of the file.
#[test]
fn output_file_that_is_appended_to_only_grows() {
    require!("userns");
    let scratch = Scratch::new();
    let acts = [
        "truncate -s 0 /dev/stdout",
        ": > /dev/stdout",
        "perl -e 'truncate(STDOUT, 0)'",
        "perl -MFcntl -e 'fcntl(STDOUT, F_SETFL, 0); sysseek(STDOUT, 0, 0) and syswrite(STDOUT, q(forged))'",
        "chmod 777 /dev/stdout; perl -e 'chmod(0777, *STDOUT)'",
        "touch -d @1 /dev/stdout; perl -e 'utime(1, 1, *STDOUT)'",
    ];
    let state = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        let is_old = found.modified().unwrap() < std::time::UNIX_EPOCH + Duration::from_secs(9);
        (fs::read_to_string(path).unwrap(), found.permissions().mode() & 0o777, is_old)
    };
    for act in acts {
        let [bare, inside] = [Run::bare(), Run::new()].map(|run| {
            let path = scratch.file("log", "old\n");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let file = OpenOptions::new().append(true).open(&path).unwrap();
            run.stdout(file).shell(&format!("echo new; {act}")).run();
            state(&path)
        });
        let whole = ("old\nnew\n".to_owned(), 0o640, false);
        assert_ne!(bare, whole, "no control: {act}");
        assert_eq!(inside, whole, "{act}");
    }
}

#[test]
fn output_and_errors_in_one_appended_file_stay_in_order() {
    require!("userns");
    let scratch = Scratch::new();
    let path = scratch.file("log", "");
    let open = || OpenOptions::new().append(true).open(&path).unwrap();
    let script = "i=0; while [ $i -lt 300 ]; do echo $i; echo $i >&2; i=$((i+1)); done";
    Run::new().stdout(open()).stderr(open()).shell(script).run().code_is(0);
    let expected: String = (0..300).map(|i| format!("{i}\n{i}\n")).collect();
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    // All of it arrives, however much it is, and the limit for files holds.
    let path = scratch.file("log", "");
    let open = || OpenOptions::new().append(true).open(&path).unwrap();
    let size = || fs::metadata(&path).unwrap().len();
    Run::new().stdout(open()).shell("head -c 50000000 /dev/zero").run().code_is(0);
    assert_eq!(size(), 50_000_000);
    let path = scratch.file("log", "");
    let open = || OpenOptions::new().append(true).open(&path).unwrap();
    let run = Run::new().flag("--max-file-size").arg("1M").stdout(open());
    run.shell("head -c 50000000 /dev/zero").run();
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
    // By its name as well.
    let run = Run::new().stderr(open()).flag("--quiet");
    run.shell("echo named > /dev/stderr").run().code_is(0);
}

#[test]
fn output_file_can_be_named() {
    require!("userns");
    let scratch = Scratch::new();
    for name in ["stdout", "stderr"] {
        let path = scratch.file(name, "");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let script = format!("echo one > /dev/{name}; echo two >> /dev/{name}");
        let run = Run::new().shell(&script);
        let run = if name == "stdout" { run.stdout(file) } else { run.stderr(file) };
        run.run().code_is(0);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n", "{name}");
    }
    let null = || OpenOptions::new().write(true).open("/dev/null").unwrap();
    let run = Run::new().stdout(null()).stderr(null());
    run.shell("echo > /dev/stdout && echo > /dev/stderr && cat /dev/stdin").run().code_is(0);
    // A pipe belongs to who made it, and root's stand-in did not.
    if !is_root() {
        let piped = Run::new().input("in").shell("cat /dev/stdin > /dev/stdout").run();
        assert_eq!(piped.text(), "in", "{piped}");
    }
}

#[test]
fn pipes_and_null_pass_as_they_are() {
    require!("userns");
    let outcome = allowed(Run::new().input("hello").probe(&["fds"]));
    assert_eq!(outcome.field("0")[..2], ["pipe", "r"]);
    assert_eq!(outcome.field("1")[..2], ["pipe", "w"]);
    assert_eq!(outcome.field("2")[..2], ["pipe", "w"]);
    assert_eq!(allowed(Run::new().input("hello").probe(&["stdin-read"])).detail, "5");
    let null = allowed(Run::new().probe(&["fds"]));
    assert_eq!(null.field("0")[0], "device");
    assert_eq!(allowed(Run::new().probe(&["stdin-read"])).detail, "0");
}

#[test]
fn unix_stream_sockets_pass() {
    require!("userns");
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"question").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let run = Run::new().stdin(OwnedFd::from(theirs.try_clone().unwrap()));
    run.stdout(OwnedFd::from(theirs)).command(&["cat"]).run().code_is(0);
    let mut answer = String::new();
    ours.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "question");
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn tcp_sockets_are_relayed() {
    require!("userns");
    let (mut ours, theirs) = tcp_pair();
    ours.write_all(b"question").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let run = Run::new().stdin(OwnedFd::from(theirs.try_clone().unwrap()));
    run.stdout(OwnedFd::from(theirs)).command(&["cat"]).run().code_is(0);
    let mut answer = String::new();
    ours.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "question");
}

#[test]
fn tcp_sockets_never_enter() {
    require!("userns");
    let kinds = |run: Run| {
        let (ours, theirs) = tcp_pair();
        ours.shutdown(Shutdown::Write).unwrap();
        let outcome = allowed(run.stdin(OwnedFd::from(theirs)).probe(&["fds"]));
        outcome.field("0")[0].to_owned()
    };
    assert_eq!(kinds(Run::bare()), "inet");
    let inside = kinds(Run::new());
    assert!(["pipe", "unix"].contains(&inside.as_str()), "{inside}");
}

/// Gives `file` as fd 0, 1 or 2 and expects a refusal before anything runs.
#[track_caller]
fn is_turned_away(file: &File, number: i32, named: &str) {
    let file = OwnedFd::from(file.try_clone().unwrap());
    let scratch = Scratch::new();
    let proof = scratch.dir("proof").join("ran");
    let finished: Finished = Run::new()
        .write(proof.parent().unwrap())
        .prepare(Preparation::Inherit(file, number))
        .probe(&["create".as_ref(), proof.as_os_str()])
        .run();
    finished.has_no_panic();
    assert_eq!(finished.code, 125, "fd {number}: {finished}");
    // Without descriptor 2 the message has no place to go.
    assert!(number == 2 || finished.stderr.contains(named), "fd {number}: {finished}");
    assert!(!proof.exists(), "it ran: {finished}");
}

#[test]
fn directories_are_turned_away() {
    require!("userns");
    let scratch = Scratch::new();
    scratch.file("secret", "canary");
    let dir = File::open(scratch.path()).unwrap();
    let bare = Run::bare().stdin(dir.try_clone().unwrap());
    allowed(bare.probe(&["openat", "0", "secret"]));
    for number in 0..=2 {
        is_turned_away(&dir, number, "a directory");
    }
}

#[test]
fn path_descriptors_are_turned_away() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let bare = Run::bare().stdin(path_only(&secret));
    assert_eq!(allowed(bare.probe(&["read", "/proc/self/fd/0"])).detail, "canary");
    for number in 0..=2 {
        is_turned_away(&path_only(&secret), number, "an O_PATH handle");
        is_turned_away(&path_only(scratch.path()), number, "an O_PATH handle");
    }
}

#[test]
fn other_devices_are_turned_away() {
    require!("userns");
    let device = File::open("/dev/zero").unwrap();
    for number in 0..=2 {
        is_turned_away(&device, number, "a device");
    }
}

#[test]
fn block_devices_are_turned_away() {
    require!("userns");
    let entries = std::fs::read_dir("/dev").unwrap().flatten();
    let is_block = |entry: &std::fs::DirEntry| entry.file_type().unwrap().is_block_device();
    let mut opened = entries.filter(is_block).filter_map(|entry| File::open(entry.path()).ok());
    let Some(device) = opened.next() else {
        skip("block-device", "none can be opened here");
        return;
    };
    for number in 0..=2 {
        is_turned_away(&device, number, "of an unknown kind");
    }
}
