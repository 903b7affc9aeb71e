//! Packages: packed, kept, looked at, run, and found out where they were changed.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Finished, Scratch, mcp, missing, probe};

struct User {
    home: Scratch,
}

impl User {
    fn new() -> User {
        User { home: Scratch::new() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(mcp());
        for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
            command.env(name, self.home.dir(name));
        }
        command.current_dir(self.home.dir("cwd")).stdin(Stdio::null());
        command
    }

    fn mcp(&self, words: &[&str]) -> Finished {
        finished(self.command().args(words))
    }

    /// A package whose server is the probe.
    fn package(&self) -> PathBuf {
        let manifest = "[package]\nname = 'acme/test'\nversion = '1.0.0'\n\
                        [server]\ncommand = './bin/probe.exe'\n";
        self.home.file(r"source\mcp.toml", manifest);
        std::fs::create_dir_all(self.home.join(r"source\bin")).unwrap();
        std::fs::copy(probe(), self.home.join(r"source\bin\probe.exe")).unwrap();
        self.home.join("source")
    }

    fn words<'a>(&self, reference: &'a str, act: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["run", "--no-log"];
        if missing("container").is_some() {
            words.extend(["--fallback", "warn"]);
        }
        words.extend([reference, "--"]);
        words.extend(act);
        words
    }

    fn run(&self, reference: &str, act: &[&str]) -> Finished {
        self.mcp(&self.words(reference, act))
    }
}

fn finished(command: &mut Command) -> Finished {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Finished {
        code: output.status.code().unwrap(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_package_is_packed_kept_run_and_removed() {
    let user = User::new();
    let source = user.package();
    user.mcp(&["pack", text(&source)]).code_is(0);
    user.mcp(&["pack", text(&source), "-o", "again.mcpb"]).code_is(0);
    let bundle = user.home.join(r"cwd\test-1.0.0.mcpb");
    let again = user.home.join(r"cwd\again.mcpb");
    assert!(std::fs::read(&bundle).unwrap() == std::fs::read(again).unwrap());
    user.mcp(&["pull", text(&bundle)]).code_is(0);
    let listed = user.mcp(&["list"]);
    assert!(listed.stdout.contains("acme/test"), "{listed:#?}");
    user.mcp(&["verify"]).code_is(0);
    let shown = user.mcp(&["inspect", "acme/test"]);
    assert!(shown.stdout.contains("1.0.0"), "{shown:#?}");
    for reference in [text(&source), text(&bundle), "acme/test@1.0.0"] {
        let finished = user.run(reference, &["exit", "7"]);
        finished.code_is(7);
    }
    // What was added to its files is found at the next start.
    let unpacked = user.home.join(r"LOCALAPPDATA\mcp\store\unpacked");
    let root = std::fs::read_dir(unpacked).unwrap().next().unwrap().unwrap().path().join("root");
    std::fs::write(root.join(r"bin\evil"), "x").unwrap();
    let finished = user.run("acme/test@1.0.0", &["exit", "7"]);
    finished.code_is(125);
    assert!(finished.stderr.contains("bin/evil was added"), "{finished:#?}");
    user.mcp(&["remove", "acme/test@1.0.0"]).code_is(0);
    let finished = user.run("acme/test@1.0.0", &["exit", "7"]);
    finished.code_is(125);
}

/// An OCI registry on loopback with one package: this bundle, as acme/test 1.0.0.
fn oci_registry(bundle: Vec<u8>, digest: &str) -> String {
    const NOTHING: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let size = bundle.len();
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
        "artifactType":"application/vnd.mcp.package.v1",
        "config":{{"mediaType":"application/vnd.oci.empty.v1+json","digest":"{NOTHING}","size":2}},
        "layers":[{{"mediaType":"application/vnd.mcp.bundle.v1+zip","digest":"{digest}","size":{size}}}]}}"#
    );
    let digest = digest.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let mut request = String::new();
            reader.read_line(&mut request).unwrap();
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let (status, body) = match &request {
                _ if request.contains(&digest) => ("200 OK", &bundle[..]),
                _ if request.contains(NOTHING) => ("200 OK", &b"{}"[..]),
                _ if request.contains("/manifests/1.0.0") => ("200 OK", manifest.as_bytes()),
                _ => ("404 Not Found", &b""[..]),
            };
            let kind = "content-type: application/vnd.oci.image.manifest.v1+json";
            let head =
                format!("content-length: {}\r\n{kind}\r\nconnection: close\r\n\r\n", body.len());
            let _ = (&stream).write_all(format!("HTTP/1.1 {status}\r\n{head}").as_bytes());
            let _ = (&stream).write_all(body);
        }
    });
    host
}

/// Not "run it again": the run that fetches a package runs it.
#[test]
fn the_first_run_of_a_package_runs() {
    let user = User::new();
    let source = user.package();
    let packed = user.mcp(&["pack", text(&source), "--json"]);
    packed.code_is(0);
    let packed: serde_json::Value = serde_json::from_str(&packed.stdout).unwrap();
    let digest = packed["digest"].as_str().unwrap();
    let bundle = std::fs::read(user.home.join(r"cwd\test-1.0.0.mcpb")).unwrap();
    let host = oci_registry(bundle, digest);
    for _ in ["fetched", "from the store"] {
        let mut command = user.command();
        command.env("MCP_REGISTRY", &host);
        command.args(user.words("acme/test@1.0.0", &["exit", "7"]));
        finished(&mut command).code_is(7);
    }
}
