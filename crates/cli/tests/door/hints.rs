//! Each hint appears, is true (what it says to add makes the command work), and is absent where all is well.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use crate::person::{Person, is_there, ours};
use crate::require;
use crate::support::Finished;

/// What a hint says to add: after `(add `, `raise with ` or `if that was it: `, up to what is no flag any more.
fn advice(line: &str) -> String {
    let starts = ["(add ", "raise with ", "if that was it: "];
    let rest = starts
        .iter()
        .find_map(|start| line.split_once(start))
        .unwrap_or_else(|| panic!("{line}"))
        .1;
    let end =
        [")", ", ", " to "].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    rest[..end].to_owned()
}

struct Case {
    line: &'static str,
    hint: &'static str,
    works: fn(&Person, &Finished) -> bool,
}

/// The hint is there once, following it works, and then it is gone.
#[track_caller]
fn holds(person: &Person, line: &str, hint: &str, works: impl Fn(&Person, &Finished) -> bool) {
    let wrong = person.types(line);
    assert!(!works(person, &wrong), "{line} works as it is\n{wrong}");
    let said: Vec<String> = ours(&wrong).into_iter().filter(|said| said.contains(hint)).collect();
    assert_eq!(said.len(), 1, "{line}: {hint}\n{wrong}");
    let flags = advice(&said[0]);
    let better = followed(line, &flags);
    let right = person.types(&better);
    assert!(works(person, &right), "{better} does not work\n{right}");
    assert_eq!(ours(&right), [""; 0], "{better}\n{right}");
    let quiet = line.replacen("mcp run", "mcp run --quiet", 1);
    assert_eq!(ours(&person.types(&quiet)), [""; 0], "{quiet}");
}

/// The line with the flags added; one that is there already gets the new value.
fn followed(line: &str, flags: &str) -> String {
    let (flag, value) = flags.split_once(' ').unwrap();
    match line.split_once(&format!("{flag} ")) {
        Some((before, rest)) if flag.starts_with("--max") => {
            format!("{before}{flag} {value} {}", rest.split_once(' ').unwrap().1)
        }
        _ => line.replacen("mcp run", &format!("mcp run {flags}"), 1),
    }
}

fn shows(text: &'static str) -> impl Fn(&Person, &Finished) -> bool {
    move |_, finished| finished.code == 0 && finished.text().contains(text)
}

const CASES: &[Case] = &[
    // An empty HOME as working directory.
    Case {
        line: "mcp run ls",
        hint: "ls starts in an empty HOME",
        works: |_, f| f.text().contains("file.txt"),
    },
    Case {
        line: "mcp run -- find . -name file.txt",
        hint: ". is here, but not visible",
        works: |_, f| f.text().contains("file.txt"),
    },
    Case {
        line: "mcp run touch new",
        hint: "new is made in an empty HOME",
        works: |p, _| p.has("new"),
    },
    Case {
        line: "mcp run sh -c 'echo x > made'",
        hint: "made was written into a HOME that is gone now",
        works: |p, _| p.has("made"),
    },
    Case {
        line: "mcp run sh -c 'cat sub/other.txt; exit'",
        hint: "sh starts in an empty HOME",
        works: |_, f| f.text().contains("other"),
    },
    // Arguments.
    Case {
        line: "mcp run cat file.txt",
        hint: "file.txt is here, but not visible",
        works: |_, f| f.text() == "hello\n",
    },
    Case {
        line: "mcp run cat \"$PWD/sub/other.txt\"",
        hint: "other.txt is here, but not visible",
        works: |_, f| f.text() == "other\n",
    },
    Case {
        line: "mcp run cat './with space.txt'",
        hint: "with space.txt is here, but not visible",
        works: |_, f| f.text() == "spaced\n",
    },
    Case {
        line: "mcp run grep -r --include=*.txt other ./sub",
        hint: "./sub is here, but not visible",
        works: |_, f| f.text().contains("other"),
    },
    // A script needs what lies beside it: its directory is named, not the file.
    Case {
        line: "mcp run sh script.sh",
        hint: "script.sh is here, but not visible",
        works: |_, f| f.text() == "other\n",
    },
    // Writing into what was granted to be read.
    Case {
        line: "mcp run -r . touch fresh",
        hint: "fresh can only be read",
        works: |p, _| p.has("fresh"),
    },
    Case {
        line: "mcp run -r . sed -i s/hello/bye/ file.txt",
        hint: "file.txt can only be read",
        works: |p, _| std::fs::read_to_string(p.project.join("file.txt")).unwrap() == "bye\n",
    },
    Case {
        line: "mcp run -r . cp file.txt copy.txt",
        hint: "copy.txt can only be read",
        works: |p, _| p.has("copy.txt"),
    },
    Case {
        line: "mcp run -r . sh -c 'echo a > file.txt'",
        hint: "sh can read the current directory and not write there",
        works: |p, _| std::fs::read_to_string(p.project.join("file.txt")).unwrap() == "a\n",
    },
    // Limits.
    Case {
        line: "mcp run --max-pids 3 -r . sh -c 'sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & wait'",
        hint: "its limit was 3 processes and threads",
        works: |_, f| f.code == 0,
    },
    // A runtime that gets no memory may wait for ever.
    Case {
        line: "mcp run --max-memory 64M --timeout 2s -r . python3 -c 'import time
try: bytearray(120 << 20)
except MemoryError: time.sleep(60)'",
        hint: "its limit was 64 MiB of memory",
        works: |_, f| f.code == 0,
    },
    Case {
        line: "mcp run --max-tmp 1M dd if=/dev/zero of=/tmp/x bs=1M count=3",
        hint: "the temporary space of 1 MiB (/tmp and HOME) is full",
        works: |_, f| f.code == 0,
    },
    Case {
        line: "mcp run --max-file-size 1M -w . dd if=/dev/zero of=big bs=1M count=3",
        hint: "a file reached the limit 1 MiB",
        works: |_, f| f.code == 0,
    },
    // Limits that no figure tells of.
    Case {
        line: "mcp run --max-file-size 1M -w . python3 -c 'open(\"big\", \"wb\").write(bytes(3 << 20))'",
        hint: "its limit was 1 MiB for each file",
        works: |_, f| f.code == 0,
    },
    Case {
        line: "mcp run --max-fds 16 -r . python3 -c 'files = [open(\"/dev/null\") for _ in range(30)]'",
        hint: "its limit was 16 open files",
        works: |_, f| f.code == 0,
    },
    // A variable that was set and not passed on.
    Case {
        line: "mcp run -r . sh token.sh",
        hint: "DEMO_API_TOKEN is set here and named in the server's files",
        works: |_, f| f.code == 0,
    },
];

#[test]
fn each_hint_is_there_and_is_true() {
    require!("userns");
    for Case { line, hint, works } in CASES {
        holds(&Person::new(), line, hint, works);
    }
}

#[test]
fn a_server_that_dies_of_its_memory_is_told_of_the_limit() {
    require!("userns");
    if !is_there("python3") {
        println!("SKIP: python3: is not installed");
        return;
    }
    let line = "mcp run --max-memory 64M python3 -c 'x = bytearray(100_000_000)'";
    holds(&Person::new(), line, "memory", |_, finished| finished.code == 0);
}

/// A file of the host's that happens to have the name is nothing to the command's own /tmp.
#[test]
fn a_file_of_the_hosts_tmp_is_not_the_commands() {
    require!("userns");
    let file = format!("/tmp/mcp-door-{}", std::process::id());
    std::fs::write(&file, "the host's").unwrap();
    let finished = Person::new().types(&format!("mcp run dd if=/dev/zero of={file} bs=1 count=1"));
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!((finished.code, ours(&finished)), (0, Vec::new()), "{finished}");
    assert_eq!(kept, "the host's");
}

#[test]
fn a_service_of_the_hosts_loopback_is_named() {
    require!("userns");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let line = format!("mcp run mcp-probe connect 127.0.0.1:{port}");
    let reached = |_: &Person, finished: &Finished| finished.text().contains("\"ok\":true");
    holds(
        &Person::new(),
        &line,
        &format!("blocked 127.0.0.1:{port}, a service of this machine"),
        reached,
    );
    // Where no server listens there is no service to name.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let said = Person::new().types(&format!("mcp run mcp-probe connect 127.0.0.1:{free}"));
    assert!(!said.stderr.contains("service of this machine"), "{said}");
}

#[test]
fn a_socket_is_allowed_by_its_own_flag() {
    require!("userns");
    let person = Person::new();
    let _listener = UnixListener::bind(person.project.join("service.sock")).unwrap();
    let line = "mcp run test -S ./service.sock";
    holds(&person, line, "./service.sock is a socket of this machine's", |_, f| f.code == 0);
}

#[test]
fn nothing_is_said_where_all_is_well() {
    require!("userns");
    let person = Person::new();
    for line in [
        "mcp run true",
        "mcp run echo hi",
        "mcp run -- grep foo /dev/null",
        "mcp run cat /dev/null /proc/self/status /etc/passwd /usr/bin/env",
        "mcp run sh -c 'cd /tmp && touch a && rm a'",
        "mcp run -r . cat file.txt",
        "mcp run -r . sh script.sh",
        "mcp run -w . touch new",
        "mcp run -w . cp file.txt sub/copy.txt",
        "mcp run -r . ls",
        "mcp run ls /usr /tmp /dev",
        "mcp run -e DEMO_API_TOKEN -r . sh token.sh",
        "mcp run sh -c 'exit 0' file.txt",
        "mcp run --max-memory 64M true",
        "mcp exec 'cat file.txt && touch made'",
        "mcp exec 'exit 3'",
        "mcp exec --cwd sub 'test -f other.txt'",
        "mcp run -r . -C sub test -f other.txt",
    ] {
        let finished = person.types(line);
        assert_eq!(ours(&finished), [""; 0], "{line}\n{finished}");
    }
}

/// What a text of an agent writes outside of the project, and into a HOME that goes.
#[test]
fn what_an_agent_writes_elsewhere_is_told() {
    require!("userns");
    let person = Person::new();
    person.file("../beside/note.txt", "note\n");
    for (text, hint, flags) in [
        ("echo x > ../beside/new.txt", "../beside/new.txt is not writable", "-w ../beside"),
        ("cp file.txt ../beside/", "../beside/ is not writable", "-w ../beside"),
        ("echo x > ~/saved.txt", "~/saved.txt was written into a HOME that is gone", "--home kept"),
    ] {
        let line = format!("mcp exec '{text}'");
        let said = ours(&person.types(&line));
        assert_eq!(said.len(), 1, "{line}: {said:?}");
        assert!(said[0].contains(hint), "{line}: {said:?}");
        let better = person.types(&format!("mcp exec {flags} '{text}'"));
        assert_eq!((better.code, ours(&better)), (0, Vec::new()), "{better}");
    }
    for silent in ["echo x > made.txt", "cd sub && echo x > ../made.txt", "echo x > /tmp/made.txt"]
    {
        let finished = person.types(&format!("mcp exec '{silent}'"));
        assert_eq!((finished.code, ours(&finished)), (0, Vec::new()), "{silent}");
    }
}

/// A program that is here, and that no grant lets work.
#[test]
fn a_tracer_is_told_what_refuses_it() {
    require!("userns");
    if !is_there("strace") {
        println!("SKIP: strace: is not installed");
        return;
    }
    let person = Person::new();
    for line in
        ["mcp run strace -o /dev/null true", "mcp exec 'cd sub && strace -o /dev/null true'"]
    {
        let said = ours(&person.types(line));
        assert_eq!(said.len(), 1, "{line}: {said:?}");
        assert!(said[0].contains("strace follows other processes"), "{line}: {said:?}");
    }
    let silent = person.types("mcp exec 'echo strace; strace --version'");
    assert_eq!((silent.code, ours(&silent)), (0, Vec::new()), "{silent}");
}

/// A relative path leads nowhere from an empty HOME: what is told to type is the whole path.
#[test]
fn a_file_beside_the_project_is_named_in_full() {
    require!("userns");
    let person = Person::new();
    for (word, works) in [
        ("cat ../beside/note.txt", "note\n"),
        ("sh ../beside/run.sh", "note\n"),
        ("ls ../beside", "note.txt\nrun.sh\n"),
    ] {
        person.file("../beside/note.txt", "note\n");
        person.file("../beside/run.sh", "cat \"$(dirname \"$0\")/note.txt\"\n");
        let line = format!("mcp run {word}");
        let wrong = person.types(&line);
        assert_ne!(wrong.code, 0, "{wrong}");
        let said = ours(&wrong);
        assert_eq!(said.len(), 1, "{wrong}");
        let (flags, rest) =
            said[0].split_once("(add ").unwrap().1.split_once(", and write ").unwrap();
        let (whole, short) = rest.trim_end_matches(')').split_once(" instead of ").unwrap();
        let right = person
            .types(&line.replace("mcp run", &format!("mcp run {flags}")).replace(short, whole));
        assert_eq!((right.code, right.text().as_str()), (0, works), "{right}");
        assert_eq!(ours(&right), [""; 0], "{right}");
    }
}

/// What is less sure is not told beside what is known to have been refused.
#[test]
fn a_guess_is_not_told_beside_what_was_refused() {
    require!("userns");
    let person = Person::new();
    let probe = crate::support::probe_path();
    let asks = format!("{} connect 192.0.2.1:443; exit 1", probe.display());
    let said = ours(&person.types(&format!("mcp run -r . -r {} sh -c '{asks}'", probe.display())));
    assert!(said.iter().any(|line| line.contains("blocked 192.0.2.1:443")), "{said:?}");
    assert!(!said.iter().any(|line| line.contains("not write there")), "{said:?}");
    // Its control: the same failure, with nothing refused.
    let said = ours(&person.types("mcp run -r . sh -c 'exit 1'"));
    assert!(said.iter().any(|line| line.contains("not write there")), "{said:?}");
}

/// The old line: an argument that is there inside, and advice that ended in exit 125.
#[test]
fn advice_is_never_for_what_cannot_be_granted() {
    require!("userns");
    let person = Person::new();
    for path in ["/dev/null", "/dev/tty", "/dev/mem", "/proc/1/environ", "/proc/kcore"] {
        let finished = person.types(&format!("mcp run sh -c 'exit 3' {path}"));
        assert!(!finished.stderr.contains(path), "{path}\n{finished}");
    }
    let denied = person.types("mcp run -r . --deny '**/file.txt' cat file.txt");
    assert!(denied.stderr.contains("file.txt is denied to the command (by --deny"), "{denied}");
    assert!(shows("hello")(&person, &person.types("mcp run -r . cat file.txt")));
}
