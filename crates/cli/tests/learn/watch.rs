//! Watching: what is noted, that it decides nothing, and that a flood ends in a sentence.

use serde_json::Value;

use crate::require;
use crate::user::User;

fn watched(user: &User, flags: &[&str], script: &str) -> Value {
    let mut words = vec!["run", "-q", "--watch-paths", "--report", "report.json"];
    words.extend(flags);
    words.extend(["--", "python3", "-c", script]);
    user.mcp(&words).ok();
    let text = std::fs::read_to_string(user.path("report.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["watched"].clone()
}

fn missing(watched: &Value, path: &str) -> Vec<String> {
    let paths = watched["missing"].as_array().unwrap().iter();
    let mut acts: Vec<String> = paths
        .filter(|missing| missing["path"] == path)
        .map(|missing| missing["act"].as_str().unwrap().to_owned())
        .collect();
    acts.sort();
    acts
}

#[test]
fn every_way_to_look_for_a_file_is_noted() {
    require!("userns");
    let user = User::new();
    for (call, act) in [
        ("open(P)", "read"),
        ("os.open(P, os.O_RDWR)", "write"),
        ("open(P, 'w')", "create"),
        ("os.stat(P)", "look"),
        ("os.lstat(P)", "look"),
        ("os.access(P, os.R_OK)", "look"),
        ("os.readlink(P)", "look"),
        ("os.listdir(P)", "read"),
        ("os.chdir(P)", "read"),
        ("os.execv(P, ['x'])", "read"),
        ("os.mkdir(P)", "create"),
        ("os.unlink(P)", "remove"),
        ("os.rmdir(P)", "remove"),
        ("os.rename(P, '/srv/nowhere/b')", "remove"),
        ("os.symlink('x', P)", "create"),
        ("os.link(P, '/srv/nowhere/c')", "look"),
        ("os.truncate(P, 0)", "write"),
        ("socket.socket(socket.AF_UNIX).connect(P)", "connect"),
        (
            "os.stat('a', dir_fd=os.open('/srv', os.O_PATH)) if 0 else os.stat('/srv/../srv/nowhere/a')",
            "look",
        ),
    ] {
        let script = format!(
            "import os, socket\nP = '/srv/nowhere/a'\ntry:\n    {call}\nexcept OSError: pass"
        );
        let seen = watched(&user, &[], &script);
        assert_eq!(missing(&seen, "/srv/nowhere/a"), [act], "{call}\n{seen}");
    }
}

/// A relative path begins where the command is, or at the directory it names.
#[test]
fn relative_paths_are_resolved() {
    require!("userns");
    let user = User::new();
    let base = user.scratch.dir("base");
    user.scratch.dir("base/below");
    let base = base.to_str().unwrap();
    let script = format!(
        "import os\nos.chdir({base:?})\nfd = os.open('below', os.O_RDONLY)\n\
         for at, fd in (('x', None), ('y', fd)):\n    try: os.stat(at, dir_fd=fd)\n    except OSError: pass"
    );
    let seen = watched(&user, &["--read", base], &script);
    assert_eq!(missing(&seen, &format!("{base}/x")), ["look"], "{seen}");
    assert_eq!(missing(&seen, &format!("{base}/below/y")), ["look"], "{seen}");
}

/// The control of the first test: what is there is not missing, and what can only be read is missing for writing.
#[test]
fn what_is_there_is_not_missing() {
    require!("userns");
    let user = User::new();
    let file = user.scratch.file("base/a", "x");
    let (base, file) = (user.path("base"), file.to_str().unwrap().to_owned());
    let script = format!("open({file:?}).read()\ntry: open({file:?}, 'a')\nexcept OSError: pass");
    let seen = watched(&user, &["--read", base.to_str().unwrap()], &script);
    assert_eq!(missing(&seen, &file), ["create"], "{seen}");
    assert_eq!(seen["used"][0]["path"].as_str(), base.to_str(), "{seen}");
    assert_eq!(seen["used"][0]["written"], false);
}

#[test]
fn a_flood_is_cut_off_and_the_program_goes_on() {
    require!("userns");
    let user = User::new();
    let script = "import os\nfor n in range(30000):\n    try: os.stat(f'/srv/nowhere/{n}')\n    except OSError: pass\nprint('done')";
    let said =
        user.mcp(&["learn", "--plain", "--patience", "120", "--", "python3", "-S", "-c", script]);
    assert!(said.err.contains("looked for more than 20000 places"), "{}", said.err);
    assert!(said.err.contains("1 of 1 answered"), "{}", said.err);
    // What was not looked at may be missing.
    let said = said.exits(1);
    assert!(said.err.contains("not proved: ") && !said.err.contains("\nproved"), "{}", said.err);
}

/// A race between the look and the call changes what is proposed, not what is allowed.
#[test]
fn a_path_that_changes_opens_nothing() {
    require!("userns");
    let user = User::new();
    let secret = user.scratch.file("secret/key", "canary");
    user.scratch.file("open/key", "public");
    let (open, secret) = (user.path("open"), secret.to_str().unwrap().to_owned());
    let script = format!(
        "import ctypes, threading\nlibc = ctypes.CDLL(None)\n\
         good, bad = b'{}/key', b'{secret}'\n\
         size = max(len(good), len(bad)) + 1\npath = ctypes.create_string_buffer(good, size)\nrun = True\n\
         def flip():\n    while run:\n        ctypes.memmove(path, bad + b'\\0', len(bad) + 1)\n        ctypes.memmove(path, good + b'\\0', len(good) + 1)\n\
         thread = threading.Thread(target=flip)\nthread.start()\nseen = set()\n\
         for _ in range(3000):\n    fd = libc.open(path, 0)\n    if fd >= 0:\n        buffer = ctypes.create_string_buffer(16)\n        libc.read(fd, buffer, 15)\n        libc.close(fd)\n        seen.add(buffer.value)\n\
         run = False\nthread.join()\nprint(sorted(seen))",
        open.display()
    );
    let flags = [
        "run",
        "-q",
        "--watch-paths",
        "--read",
        open.to_str().unwrap(),
        "--",
        "python3",
        "-c",
        &script,
    ];
    let said = user.mcp(&flags).ok();
    assert_eq!(said.out, "[b'public']\n", "{}", said.err);
}
