//! `mcp image`: a package on a base, from a directory and from a real registry.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use mcp_package::Digest;
use mcp_package::image::{self, Assembled, Layout};
use mcp_package::store::Descriptor;
use serde_json::{Value, json};

use crate::registry::{Door, Registry, SECRET_KEY};
use crate::user::{User, text};

/// A base with one layer, in the layout of OCI.
fn base(user: &User) -> PathBuf {
    let directory = user.scratch.join("base");
    let layout = Layout::create(&directory).unwrap();
    let content = user.scratch.file("content", "of the base");
    let layer = image::program_layer(&content, &user.scratch.join("base-layer")).unwrap();
    let architecture = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let config = json!({
        "os": "linux", "architecture": architecture, "config": {"Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
    });
    let config = config.to_string().into_bytes();
    let config_descriptor = Descriptor::of(image::CONFIG, &config);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config_descriptor, "layers": [layer.descriptor],
    });
    let manifest = manifest.to_string().into_bytes();
    let digest = Digest::of(&manifest);
    let made = Assembled { config, config_descriptor, manifest, digest };
    layout.finish(&made, &[layer], &[], "base").unwrap();
    directory
}

fn get(registry: &Registry, path: &str) -> Value {
    let port = registry.host.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let request = format!(
        "GET /v2/{path} HTTP/1.0\r\nHost: localhost\r\nAccept: {}\r\n\r\n",
        image::ACCEPTED
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{path}: {answer}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn the_same_input_gives_the_same_image() {
    let user = User::new();
    let (base, source) = (base(&user), user.package("source", "1.0.0", ""));
    let program = user
        .scratch
        .file("mcp", "a small stand-in: the program itself is large without optimisation");
    let make = |out: &str| {
        let out = user.scratch.join(out);
        let words = ["image", text(&source), "--base", text(&base), "--output", text(&out)];
        user.mcp(&[&words[..], &["--mcp", text(&program)]].concat()).ok().out
    };
    let first = make("first");
    assert!(first.starts_with("sha256:"), "{first}");
    assert_eq!(make("second"), first);
    let index = |name: &str| fs::read(user.scratch.join(name).join("index.json")).unwrap();
    assert_eq!(index("first"), index("second"));
    let read = Layout::open(&user.scratch.join("first")).unwrap();
    let image = read.base(if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" }).unwrap();
    assert_eq!(image.layers.len(), 3);
    assert_eq!(image.digest.to_string(), first.trim());
    for layer in &image.layers {
        assert!(read.blob(&layer.digest).is_file());
    }
    // The same files elsewhere are the same image: no path of this machine is in it.
    let elsewhere = User::new();
    let (base, moved) = (self::base(&elsewhere), elsewhere.package("moved", "1.0.0", ""));
    let out = elsewhere.scratch.join("out");
    let words = [
        "image",
        text(&moved),
        "--base",
        text(&base),
        "--output",
        text(&out),
        "--mcp",
        text(&program),
    ];
    assert_eq!(elsewhere.mcp(&words).ok().out, first);
    // Another package, another digest; and what is there is not written over.
    fs::write(source.join("more"), "more").unwrap();
    assert_ne!(make("third"), first);
    user.mcp(&[
        "image",
        text(&source),
        "--base",
        text(&base),
        "--output",
        text(&user.scratch.join("third")),
    ])
    .fails(2, "is not empty");
}

#[test]
fn pushed_with_what_refers_to_it_and_used_as_a_base() {
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    let (base, source) = (base(&user), user.package("source", "1.0.0", ""));
    let secret = user.scratch.file("key", SECRET_KEY);
    let program = user.scratch.file("mcp", "a small stand-in");
    let to = format!("{}/team/test:1", registry.host);
    let words = [
        "image",
        text(&source),
        "--base",
        text(&base),
        "--push",
        &to,
        "--sbom",
        "--sign",
        text(&secret),
    ];
    let said = user.mcp(&words).ok().out;
    let digest = said.trim().rsplit('@').next().unwrap().to_owned();
    let manifest = get(&registry, &format!("team/test/manifests/{digest}"));
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 3);
    let tag = digest.replace(':', "-");
    let referrers = get(&registry, &format!("team/test/manifests/{tag}"));
    let listed = referrers["manifests"].as_array().unwrap();
    assert_eq!(listed.len(), 2, "{referrers}");
    for one in listed {
        let path = format!("team/test/manifests/{}", one["digest"].as_str().unwrap());
        assert_eq!(get(&registry, &path)["subject"]["digest"], digest.as_str());
    }
    // The same from the registry: pushed again it is the same, and it is a base as good as another.
    assert_eq!(user.mcp(&words).ok().out, said);
    let other = format!("{}/team/other:1", registry.host);
    let from = said.trim().to_owned();
    let words = [
        "image",
        text(&source),
        "--base",
        &from,
        "--push",
        &other,
        "--json",
        "--mcp",
        text(&program),
    ];
    let made: Value = serde_json::from_str(&user.mcp(&words).ok().out).unwrap();
    let digest = made["digest"].as_str().unwrap();
    let manifest = get(&registry, &format!("team/other/manifests/{digest}"));
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 5);
}

#[test]
fn what_is_no_base_is_refused() {
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    let out = user.scratch.join("out");
    for (base, said) in
        [("debian:12", "docker.io/library/debian:12"), (text(&source), "without oci-layout")]
    {
        user.mcp(&["image", text(&source), "--base", base, "--output", text(&out)]).fails(2, said);
    }
    assert!(!out.exists());
}
