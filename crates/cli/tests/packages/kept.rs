//! What a package keeps between its runs: its HOME, and a layer over its own files. It is the package's own, and
//! nothing that `mcp` reads.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use crate::require;
use crate::user::{Said, User, text};

/// A package whose server does what its argument says, beside its own files.
fn stored(user: &User, name: &str) {
    stored_version(user, name, "1.0.0");
}

fn stored_version(user: &User, name: &str, version: &str) {
    let directory = format!("source-{name}");
    user.scratch.file(
        format!("{directory}/mcp.toml"),
        &format!(
            "[package]\nname = 'acme/{name}'\nversion = '{version}'\n[server]\ncommand = 'sh'\nargs = ['${{__dirname}}/server.sh']\n"
        ),
    );
    user.scratch.file(format!("{directory}/server.sh"), "cd \"${0%/*}\"; eval \"$1\"\n");
    user.scratch.file(format!("{directory}/lib/code.txt"), "as packed\n");
    let bundle = user.path(&format!("{name}.mcpb"));
    user.mcp(&["pack", text(&user.path(&directory)), "-o", text(&bundle)]).ok();
    user.mcp(&["pull", text(&bundle)]).ok();
}

fn run(user: &User, script: &str) -> Said {
    user.mcp(&["run", "--raw", "acme/one", "--", script])
}

fn user() -> User {
    let user = User::new();
    stored(&user, "one");
    user
}

#[test]
fn what_one_run_writes_is_there_in_the_next() {
    require!("userns", "overlay");
    let user = user();
    let first = run(&user, "echo fact > lib/memory.json && echo note > ~/note && cat lib/code.txt");
    let first = first.ok().says("as packed");
    assert!(first.err.contains("mcp data show acme/one"), "{}", first.err);
    let second = run(&user, "cat lib/memory.json ~/note; echo more >> lib/memory.json").ok();
    assert_eq!(second.out, "fact\nnote\n");
    assert!(!second.err.contains("mcp data"), "told twice: {}", second.err);
    run(&user, "cat lib/memory.json").ok().says("more");

    // The store has none of it, and holds.
    let unpacked = user.unpacked();
    assert!(unpacked.join("lib/code.txt").exists() && !unpacked.join("lib/memory.json").exists());
    user.mcp(&["verify"]).ok().says("acme/one@1.0.0");
    // Another package sees none of it.
    stored(&user, "two");
    let other =
        user.mcp(&["run", "--raw", "acme/two", "--", "ls lib ~; ls lib/memory.json ~/note"]);
    assert!(other.code != 0 && other.out == "/home/mcp:\n\nlib:\ncode.txt\n", "{}", other.out);

    // Another version has its HOME, and starts without what it did not write; that is said once.
    stored_version(&user, "one", "1.0.1");
    for is_news in [true, false] {
        let next = run(&user, "cat ~/note; test -e lib/memory.json || echo none");
        let next = next.ok().says("note\nnone");
        assert_eq!(next.err.contains("another version of acme/one"), is_news, "{}", next.err);
    }
    user.mcp(&["run", "--raw", "acme/one@1.0.0", "--", "cat lib/memory.json"]).ok().says("more");

    user.mcp(&["data"]).ok().says("acme/one");
    user.mcp(&["data", "show", "acme/one"]).ok().says("new lib/memory.json");
    user.mcp(&["data", "--json"]).ok().says("\"files\": 1");
    user.mcp(&["data", "remove", "acme/one"]).ok().says("removed what acme/one kept");
    assert_ne!(user.mcp(&["run", "--raw", "acme/one@1.0.0", "--", "cat lib/memory.json"]).code, 0);
    user.mcp(&["data", "remove", "acme/none"]).fails(1, "nothing is kept for acme/none");
}

#[test]
fn nothing_is_kept_where_nothing_should_be() {
    require!("userns", "overlay");
    let user = user();
    run(&user, "echo fact > lib/memory.json; echo x > ~/note").ok();
    for flag in ["--ephemeral", "--strict"] {
        let words = [
            "run",
            "--raw",
            flag,
            "acme/one",
            "--",
            "cat lib/memory.json ~/note; echo x > lib/new",
        ];
        let said = user.mcp(&words);
        // --strict may find that this host lacks a limit.
        assert_ne!(said.code, 0, "{flag}\n{}\n{}", said.out, said.err);
        assert!(!said.out.contains("fact") && !said.out.contains('x'), "{flag}\n{}", said.out);
    }
    run(&user, "cat lib/memory.json ~/note && ! test -e lib/new").ok().says("fact");
}

/// Its own code is its own affair, and is told; what `mcp` reads is in the store.
#[test]
fn a_changed_manifest_is_not_read_and_changed_code_is_told() {
    require!("userns", "overlay");
    let user = user();
    let evil = "[package]\\nname = 'acme/one'\\nversion = '1.0.0'\\n[server]\\ncommand = 'echo'\\nargs = ['EVIL']\\n\
                [filesystem]\\nread = ['/']\\n";
    run(
        &user,
        &format!("rm mcp.toml lib/code.txt && printf \"{evil}\" > mcp.toml && grep EVIL mcp.toml"),
    )
    .ok();
    let next = run(&user, "cat mcp.toml; test -e lib/code.txt || echo gone");
    let next = next.ok().says("args = ['EVIL']").says("gone");
    assert!(next.out.starts_with("[package]"), "the manifest's command ran: {}", next.out);
    assert!(next.err.contains("changed its own files in an earlier run"), "{}", next.err);
    assert!(next.err.contains("mcp.toml") && next.err.contains("lib/code.txt"), "{}", next.err);
    user.mcp(&["verify"]).ok().says("2 of its files changed by itself");
    user.mcp(&["inspect", "acme/one"]).ok().says("server.sh");
    // The store is compared all the same.
    fs::write(user.unpacked().join("planted"), "x").unwrap();
    run(&user, "true").fails(125, "planted was added");
    fs::remove_file(user.unpacked().join("planted")).unwrap();
    user.mcp(&["data", "remove", "acme/one"]).ok();
    run(&user, "cat lib/code.txt").ok().says("as packed");
}

/// Neither links that it leaves nor the way the layer is made lead out.
#[test]
fn a_layer_leads_nowhere_else() {
    require!("userns", "overlay");
    let user = user();
    let theirs = user.scratch.dir("theirs");
    fs::write(theirs.join("secret"), "canary").unwrap();
    let at = text(&theirs);
    run(&user, &format!("ln -s {at} lib/out && ln -s {at}/secret lib/file && ln -s / ~/root")).ok();
    let said = run(&user, "cat lib/file lib/out/secret; echo x > lib/out/planted; ls -a /");
    assert!(!said.out.contains("canary") && !theirs.join("planted").exists(), "{}", said.out);
    assert!(!said.out.contains(".mcp-layer"), "{}", said.out);
    // Where it is granted, the same links work.
    let words =
        ["run", "--raw", "--write", at, "acme/one", "--", "cat lib/file; echo x > lib/out/planted"];
    user.mcp(&words).ok().says("canary");
    assert!(theirs.join("planted").exists());

    // What is kept is not seen at its place, and its marks are out of reach.
    let data = user.path("data/mcp/data");
    let kept = fs::read_dir(&data).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
    let kept = kept.path();
    assert!(kept.join("about.json").exists());
    let said =
        run(&user, &format!("ls {0}/ {0}/layers ~/.. ; echo x > {0}/about.json", text(&kept)));
    assert!(!said.out.contains("about.json") && !said.out.contains("upper"), "{}", said.out);

    // Neither a listing nor a removal follows the links.
    user.mcp(&["data", "show", "acme/one"]).ok().says("new lib/out");
    user.mcp(&["data", "remove", "acme/one"]).ok();
    assert!(theirs.join("secret").exists() && !kept.exists());
}

#[test]
fn one_of_two_runs_writes_and_both_read() {
    require!("userns", "overlay");
    let user = user();
    run(&user, "echo fact > lib/memory.json").ok();
    let mut first = Held::start(&user);
    let second = run(&user, "cat lib/memory.json; echo new > lib/new");
    assert_ne!(second.code, 0, "{}", second.out);
    assert!(second.out.contains("fact") && second.err.contains("Read-only"), "{}", second.err);
    assert!(second.err.contains("another run of acme/one"), "{}", second.err);
    user.mcp(&["data", "remove", "acme/one"]).fails(125, "is running");
    first.end();
    run(&user, "cat lib/memory.json; echo new > lib/new").ok().says("fact");
    // A run that was killed leaves no lock.
    let mut first = Held::start(&user);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let again = || run(&user, "cat lib/new && echo newer > lib/new");
    let mut said = again();
    for _ in 0..50 {
        if said.code == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        said = again();
    }
    said.ok().says("new");
}

/// A run that waits until it is told to end.
struct Held(Child);

impl Held {
    fn start(user: &User) -> Held {
        let mut command =
            user.command(&["run", "--raw", "acme/one", "--", "echo ready; read line"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Held(child)
    }

    fn end(&mut self) {
        self.0.stdin.take().unwrap().write_all(b"end\n").unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

/// Without namespaces there is no overlay: HOME is kept, the files stay read-only, and a failure says so.
#[test]
fn a_lesser_host_keeps_home_only() {
    require!("userns", "plain", "ordinary-user");
    let user = user();
    let run = |script: &str| {
        user.mcp_without("user", &["run", "--raw", "--fallback", "warn", "acme/one", "--", script])
    };
    run("echo note > ~/note").ok();
    run("cat ~/note").ok().says("note");
    run("echo x > lib/memory.json").fails(2, "the package's own files are read-only here");
    assert!(!user.unpacked().join("lib/memory.json").exists());
}
