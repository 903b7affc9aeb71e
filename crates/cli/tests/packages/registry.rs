//! Against a real registry: Debian's docker-registry, started here on loopback.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::support::{eventually, patience};
use crate::user::{Said, User, text};

pub struct Registry {
    child: Child,
    pub host: String,
}

pub enum Door {
    Open,
    /// For `user` with the password `hunter2`.
    Locked,
}

impl Registry {
    /// None where it is not installed, which is said, or a failure where it is required.
    pub fn start(user: &User, door: Door) -> Option<Registry> {
        let found = Command::new("docker-registry")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if found.is_err() {
            let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|name| name.trim() == "registry"),
                "docker-registry is not installed"
            );
            println!("SKIP: registry: docker-registry is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let root = user.scratch.dir("registry");
        // bcrypt of hunter2.
        let passwords = user.scratch.file(
            "htpasswd",
            "user:$2b$04$kisKPIrVwSL7.XkmZ3kKu.PtktwS6006PqjFtkpJQwBHNCt6etLE.\n",
        );
        let auth = match door {
            Door::Open => String::new(),
            Door::Locked => {
                format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", text(&passwords))
            }
        };
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"127.0.0.1:{port}\"}}\n{auth}",
            text(&root)
        );
        let config = user.scratch.file("registry.yml", &config);
        let child = Command::new("docker-registry")
            .args(["serve", text(&config)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let registry = Registry { child, host: format!("localhost:{port}") };
        assert!(
            eventually(patience(), || TcpStream::connect(("127.0.0.1", port)).is_ok()),
            "it did not start"
        );
        Some(registry)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mcp(user: &User, registry: &Registry, words: &[&str]) -> Said {
    user.command(words).env("MCP_REGISTRY", &registry.host).output().unwrap().into()
}

#[test]
fn pushed_pulled_and_run_from_an_empty_store() {
    crate::require!("userns");
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    let source = user.package("source", "1.0.0", "");
    mcp(&user, &registry, &["push", text(&source), "--latest"]).ok().says("sha256:");
    let other = User::new();
    // In one go: fetched, verified, run, with limits that are there.
    let words =
        ["run", "acme/test@1.0.0", "--max-memory", "64M", "--max-cpu", "100", "--", "rlimits"];
    mcp(&other, &registry, &words).ok().says("67108864");
    let words = ["run", "acme/test@1.0.0", "--max-address-space", "64M", "--", "rlimits"];
    mcp(&other, &registry, &words).ok().says("67108864");
    mcp(&other, &registry, &["inspect", "--tags", "acme/test"]).ok().says("1.0.0").says("latest");
    let listed = mcp(&other, &registry, &["list", "--json"]).ok();
    let digest = serde_json::from_str::<serde_json::Value>(&listed.out).unwrap()[0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    // By digest, by the registry's own name, and by both.
    let third = User::new();
    let oci = format!("oci://{}/acme/test", registry.host);
    for reference in [
        format!("acme/test@{digest}"),
        format!("{oci}:1.0.0"),
        format!("{oci}@{digest}"),
        format!("{oci}:1.0.0@{digest}"),
    ] {
        mcp(&third, &registry, &["pull", &reference]).ok().says(&digest);
        mcp(&third, &registry, &["run", &reference, "--", "getenv", "HOME"]).ok();
    }
    let wrong = format!("{oci}:latest@sha256:{}", "0".repeat(64));
    assert_eq!(mcp(&third, &registry, &["pull", &wrong]).code, 125);
    // Offline: the registry is gone, and the store is enough.
    drop(registry);
    other.mcp(&["run", "acme/test@1.0.0", "--", "getenv", "HOME"]).ok();
    other.mcp(&["run", "acme/test", "--", "getenv", "HOME"]).ok();
}

#[test]
fn a_registry_with_a_password() {
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Locked) else { return };
    let source = user.package("source", "1.0.0", "");
    mcp(&user, &registry, &["push", text(&source)]).fails(125, "mcp login");
    let login = |password: &str| {
        let input = user.scratch.file("password", password);
        let mut command =
            user.command(&["login", &registry.host, "--username", "user", "--password-stdin"]);
        let said: Said = command.stdin(fs::File::open(input).unwrap()).output().unwrap().into();
        said
    };
    login("wrong\n").fails(125, "log in");
    assert!(!user.path("config/mcp/credentials.json").exists());
    login("hunter2\n").ok();
    mcp(&user, &registry, &["push", text(&source)]).ok();
    mcp(&user, &registry, &["pull", "acme/test@1.0.0"]).ok();
    user.mcp(&["logout", &registry.host]).ok();
    mcp(&user, &registry, &["inspect", "--tags", "acme/test"]).fails(125, "mcp login");
    // docker's own file serves as well.
    let docker = user.scratch.file(
        "docker/config.json",
        &format!(r#"{{"auths": {{"{}": {{"auth": "dXNlcjpodW50ZXIy"}}}}}}"#, registry.host),
    );
    let mut command =
        user.command(&["inspect", "--tags", "acme/test", "--registry", &registry.host]);
    let said: Said =
        command.env("DOCKER_CONFIG", docker.parent().unwrap()).output().unwrap().into();
    said.ok().says("1.0.0");
}

#[test]
fn a_credential_helper_of_dockers_is_asked() {
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Locked) else { return };
    let source = user.package("source", "1.0.0", "");
    user.scratch.script(
        "bin/docker-credential-test",
        &format!(
            "#!/bin/sh\nread host\n[ \"$1 $host\" = \"get {}\" ] || exit 1\necho '{{\"Username\": \"user\", \"Secret\": \"hunter2\"}}'\n",
            registry.host
        ),
    );
    let push = |config: &str| -> Said {
        let docker = user.scratch.file("docker/config.json", config);
        let path = format!("{}:{}", text(&user.path("bin")), std::env::var("PATH").unwrap());
        user.command(&["push", text(&source), "--registry", &registry.host])
            .env("DOCKER_CONFIG", docker.parent().unwrap())
            .env("PATH", path)
            .output()
            .unwrap()
            .into()
    };
    push(&format!(r#"{{"credHelpers": {{"{}": "test"}}}}"#, registry.host)).ok();
    push(r#"{"credsStore": "test"}"#).ok();
    // One that knows nothing, one that is not there, one that is no name.
    push(r#"{"credHelpers": {"other.example": "test"}}"#).fails(125, "mcp login");
    push(r#"{"credsStore": "absent"}"#).fails(125, "docker-credential-absent");
    push(r#"{"credsStore": "../bin/evil"}"#).fails(125, "no name of a credential helper");
}

#[test]
fn what_was_tampered_with_is_refused() {
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    let source = user.package("source", "1.0.0", "");
    mcp(&user, &registry, &["push", text(&source)]).ok();
    let other = User::new();
    mcp(&other, &registry, &["pull", "acme/test@1.0.0"]).ok();
    // Somebody moves the tag to other content: whoever has the first is told, with both digests.
    fs::write(source.join("new"), "other").unwrap();
    mcp(&user, &registry, &["push", text(&source)]).ok();
    let said = mcp(&other, &registry, &["pull", "acme/test@1.0.0"]).fails(125, "the tag was moved");
    assert_eq!(said.err.matches("sha256:").count(), 2, "{}", said.err);
    // Somebody changes a blob in the registry's own storage.
    let blobs = user.path("registry/docker/registry/v2/blobs/sha256");
    let mut changed = 0;
    for entry in walk(&blobs).into_iter().filter(|path| path.ends_with("data")) {
        let mut bytes = fs::read(&entry).unwrap();
        if bytes.starts_with(b"PK") {
            bytes[60] ^= 1;
            fs::write(&entry, &bytes).unwrap();
            changed += 1;
        }
    }
    assert!(changed > 0);
    let third = User::new();
    let said = mcp(&third, &registry, &["pull", "acme/test@1.0.0"])
        .fails(125, "is not what was asked for");
    assert_eq!(said.err.matches("sha256:").count(), 2, "{}", said.err);
    third.mcp(&["list", "--json"]).ok().says("[]");
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        match entry.path().is_dir() {
            true => found.extend(walk(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn signatures_bind_name_version_and_digest() {
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    // Made by `minisign -G -W`.
    let secret = user.scratch.file("key", SECRET_KEY);
    let require = ["--require-signature", PUBLIC_KEY];
    let old = user.package("old", "1.0.0", "");
    mcp(&user, &registry, &["push", text(&old), "--sign", text(&secret)]).ok();
    let unsigned = user.package("unsigned", "2.0.0", "");
    mcp(&user, &registry, &["push", text(&unsigned)]).ok();
    let other = User::new();
    mcp(&other, &registry, &[&["pull", "acme/test@1.0.0"], &require[..]].concat()).ok();
    other.mcp(&["verify", "--require-signature", PUBLIC_KEY]).ok();
    mcp(&other, &registry, &[&["pull", "acme/test@2.0.0"], &require[..]].concat())
        .fails(125, "is not signed");
    // Once it is in the store, too.
    let run = |version: &str| {
        let name = format!("acme/test@{version}");
        mcp(&other, &registry, &[&["run", &name], &require[..], &["--", "cwd"]].concat())
    };
    run("1.0.0").ok();
    mcp(&other, &registry, &["pull", "acme/test@2.0.0"]).ok();
    run("2.0.0").fails(125, "is not signed");
    let another = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    mcp(&User::new(), &registry, &["pull", "acme/test@1.0.0", "--require-signature", another])
        .fails(125, "signature is not valid");
    // A tag that says 1.1.0 and holds the old version, well signed as what it is.
    let oci = format!("oci://{}/acme/test:1.1.0", registry.host);
    mcp(&user, &registry, &["push", text(&old), &oci]).ok();
    mcp(&User::new(), &registry, &[&["pull", oci.as_str()], &require[..]].concat())
        .fails(125, "version 1.0.0, and 1.1.0 was asked for");
    mcp(&User::new(), &registry, &["pull", "acme/test@1.1.0"])
        .fails(125, "says that it is version 1.0.0");
}

pub const PUBLIC_KEY: &str = "RWQ0dT/bBfpqqGhoEnFH5mu/ZkNe5rZ20B22C95fFK41y2P5SfwirwpC";
/// Of no use but here.
pub const SECRET_KEY: &str = "untrusted comment: minisign encrypted secret key\n\
    RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAANHU/2wX6aqjQKUn/AMEkHMwYfZxRB5soDNaPuajNhL+njVgeadHnXmhoEnFH5mu/ZkNe5rZ20B22C95fFK41y2P5SfwirwpCAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
