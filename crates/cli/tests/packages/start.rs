//! Packed, kept, run: offline, by every name.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::require;
use crate::user::{User, text};

#[test]
fn packing_twice_gives_the_same_bytes() {
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    user.scratch.file("source/.env", "SECRET=1");
    let said = user.mcp(&["pack", text(&source)]).ok().says("sha256:");
    assert!(said.err.contains("left out: .env"), "{}", said.err);
    user.mcp(&["pack", text(&source), "-o", "again.mcpb"]).ok();
    let read = |name: &str| fs::read(user.path("cwd").join(name)).unwrap();
    assert_eq!(read("test-1.0.0.mcpb"), read("again.mcpb"));
}

#[test]
fn a_package_runs_from_a_directory_a_file_and_the_store() {
    require!("userns");
    let user = User::new();
    let bundle = user.stored("1.0.0", "");
    let source = user.path("source-1.0.0");
    for reference in
        [text(&source), text(&bundle), "acme/test@1.0.0", "acme/test", "acme/test@latest"]
    {
        user.mcp(&["run", reference, "--", "getenv", "HOME"]).ok().says("\"ok\":true");
    }
    user.mcp(&["run", "acme/test@1.0.1"]).fails(125, "no registry is set");
    // Whatever is no package is a command.
    user.mcp(&["run", "echo", "hi"]).ok().says("hi");
    user.mcp(&["run", "@acme/test"]).fails(2, "npm:@acme/test");
}

#[test]
fn its_files_are_not_written_in_place_and_limits_of_the_command_line_hold() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "[limits]\nopen_files = 40\n");
    let file = user.unpacked().join("mcp.toml");
    user.mcp(&["run", "acme/test", "--", "read", text(&file)]).ok().says("\"ok\":true");
    user.mcp(&["run", "acme/test", "--", "write", text(&file)]).says("\"ok\":false");
    // The manifest's stricter limit holds, and so does the flag's.
    for (flags, expected) in
        [(&[][..], "40"), (&["--max-fds", "30"], "30"), (&["--max-fds", "500"], "40")]
    {
        let words = [&["run", "acme/test"], flags, &["--", "rlimits"]].concat();
        let said = user.mcp(&words);
        assert!(said.out.contains(expected), "{flags:?}\n{}\n{}", said.out, said.err);
    }
}

#[test]
fn a_changed_file_stops_the_run_by_name() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "");
    user.mcp(&["run", "acme/test", "--", "getenv", "HOME"]).ok();
    user.mcp(&["verify"]).ok().says("acme/test@1.0.0");
    let root = user.unpacked();
    fs::write(root.join("bin/evil"), "x").unwrap();
    user.mcp(&["run", "acme/test", "--", "getenv", "HOME"]).fails(125, "bin/evil was added");
    assert_eq!(user.mcp(&["verify"]).code, 1);
    user.mcp(&["remove", "acme/test@1.0.0"]).ok();
    user.mcp(&["list", "--json"]).ok().says("[]");
    user.mcp(&["pull", text(&user.path("test-1.0.0.mcpb"))]).ok();
    user.mcp(&["run", "acme/test", "--", "getenv", "HOME"]).ok();
}

/// The files are looked at while the sandbox is made: the command must not be faster.
#[test]
fn nothing_of_a_changed_package_runs() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "");
    let trace = user.scratch.dir("given").join("trace");
    let given = user.path("given");
    let run = |first: &[&str]| {
        let words = ["run", "acme/test", "--write", text(&given), "--", "create", text(&trace)];
        user.mcp(&[&words[..2], first, &words[2..]].concat())
    };
    run(&[]).ok();
    fs::remove_file(&trace).unwrap();
    fs::write(user.unpacked().join("bin/evil"), "x").unwrap();
    for _ in 0..5 {
        run(&[]).fails(125, "bin/evil was added");
        assert!(!trace.exists());
    }
    run(&["--explain"]).fails(125, "bin/evil was added");
    // The same bytes in another file are the same package, in the same run.
    fs::remove_file(user.unpacked().join("bin/evil")).unwrap();
    run(&[]).ok();
    assert!(trace.exists());
}

/// Where the first try to make a sandbox fails, in the launcher or in init, while the files are looked at.
#[test]
fn a_package_starts_on_lesser_hosts_as_well() {
    require!("plain", "userns");
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    // As many as make looking at them take longer than init needs to fail.
    for number in 0..3000 {
        user.scratch.file(format!("source/lib/{}/{number}", number % 50), "x");
    }
    let bundle = user.path("test-1.0.0.mcpb");
    user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
    user.mcp(&["pull", text(&bundle)]).ok();
    let given = user.scratch.dir("given");
    let trace = given.join("trace");
    let run = |what: &str| {
        let grant = ["--fallback", "warn", "--write", text(&given)];
        let words = [&["run", "acme/test"], &grant[..], &["--", "create", text(&trace)]].concat();
        user.mcp_without(what, &words)
    };
    if crate::support::is_root() {
        run("user").fails(125, "start mcp as an ordinary user");
        return;
    }
    for what in ["user", "proc"] {
        run(what).ok();
        fs::remove_file(&trace).unwrap();
    }
    fs::write(user.unpacked().join("bin/evil"), "x").unwrap();
    for what in ["user", "proc"] {
        run(what).fails(125, "bin/evil was added");
        assert!(!trace.exists());
    }
}

/// Though it cannot even be planned then.
#[test]
fn a_changed_program_is_told_as_such() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "");
    let run = || user.mcp(&["run", "acme/test", "--", "getenv", "HOME"]);
    run().ok();
    let program = user.unpacked().join("bin/probe");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o600)).unwrap();
    run().fails(125, "bin/probe has another mode");
    fs::remove_file(&program).unwrap();
    run().fails(125, "bin/probe is missing");
}

#[test]
fn a_changed_manifest_is_not_read() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "");
    let manifest = user.unpacked().join("mcp.toml");
    fs::remove_file(&manifest).unwrap();
    fs::write(manifest, "nonsense").unwrap();
    user.mcp(&["run", "acme/test", "--", "getenv", "HOME"])
        .fails(125, "mcp.toml has another length");
    // One that makes sense, and asks for something: nothing is remembered of it.
    let asks = "[filesystem]\nread = ['~']\n";
    let source = user.package("other", "1.0.0", asks);
    fs::copy(source.join("mcp.toml"), user.unpacked().join("mcp.toml")).unwrap();
    let grants = || fs::read_dir(user.path("data/mcp/store/grants")).unwrap().count();
    user.mcp(&["run", "acme/test", "--yes", "--", "getenv", "HOME"])
        .fails(125, "mcp.toml has another length");
    assert_eq!(grants(), 0);
    // The control: of one that is what it was, it is.
    user.mcp(&["run", text(&source), "--yes", "--", "getenv", "HOME"]).ok();
    assert_eq!(grants(), 1);
}

#[test]
fn kills_at_any_moment_leave_a_store_that_works() {
    require!("userns");
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    let bundle = user.path("test.mcpb");
    user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
    for delay in [0, 1, 2, 3, 5, 8, 12, 18, 25, 35, 50] {
        let mut child = user
            .command(&["pull", text(&bundle)])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        let _ = child.kill();
        child.wait().unwrap();
    }
    user.mcp(&["pull", text(&bundle)]).ok();
    user.mcp(&["run", "acme/test", "--", "getenv", "HOME"]).ok().says("\"ok\":true");
    user.mcp(&["gc"]).ok();
    user.mcp(&["verify"]).ok();
    let staging = user.path("data/mcp/store/staging");
    let left: Vec<_> = fs::read_dir(staging)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().join("root").exists())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_runs_is_not_collected() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "");
    let mut running = user.command(&["run", "acme/test", "--", "sleep", "60"]).spawn().unwrap();
    let log = user.path("state/mcp/log.jsonl");
    let has_started = || fs::read_to_string(&log).is_ok_and(|text| text.contains("\"start\""));
    assert!(crate::support::eventually(crate::support::patience(), has_started));
    user.mcp(&["remove", "acme/test@1.0.0"]).fails(125, "is running");
    user.mcp(&["gc", "--older-than", "0s"]).ok();
    user.mcp(&["list"]).ok().says("acme/test@1.0.0");
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(crate::support::eventually(crate::support::patience(), || user
        .mcp(&["remove", "acme/test@1.0.0"])
        .code
        == 0));
}

#[test]
fn the_schema_is_printed() {
    let user = User::new();
    let said = user.mcp(&["schema"]).ok();
    let schema: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(schema["title"], "mcp.toml");
}

#[test]
fn on_a_terminal_a_bar_shows_how_unpacking_goes_and_elsewhere_nothing() {
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    for number in 0..40 {
        user.scratch.file(format!("source/{number}"), &"text\n".repeat(5000));
    }
    let bundle = user.path("test.mcpb");
    user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
    let pty = crate::support::Pty::new();
    let mut command = user.command(&["pull", text(&bundle)]);
    let status = command.stderr(pty.end()).stdout(std::process::Stdio::null()).status().unwrap();
    assert!(status.success());
    pty.expect("unpacking [");
    let other = User::new();
    let said = other.mcp(&["pull", text(&bundle)]).ok();
    assert_eq!(said.err, "");
}
