use serde_json::{Value, json};

use super::*;
use crate::digest::Digest;
use crate::scratch::Scratch;
use crate::store::{Descriptor, ImageManifest, MANIFEST, TAR_GZIP};

fn purpose() -> Purpose {
    Purpose {
        reference: "npm:x".to_owned(),
        name: "x".to_owned(),
        version: "1.0.0".to_owned(),
        architecture: "amd64".to_owned(),
    }
}

fn base(config: &Value) -> Base {
    let config = config.to_string().into_bytes();
    let manifest = ImageManifest {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        artifact_type: None,
        config: Descriptor::of(CONFIG, &config),
        layers: vec![Descriptor::of(DOCKER_LAYER, b"layer")],
        subject: None,
        annotations: Default::default(),
    };
    Base::new(Digest::of(b"base"), &manifest, config).unwrap()
}

fn config() -> Value {
    json!({
        "os": "linux", "architecture": "amd64",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["sh"], "Odd": 1},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:00"]},
    })
}

#[test]
fn layers_are_the_same_bytes_whatever_the_times_are() {
    let scratch = Scratch::new();
    let root = scratch.path().join("package");
    std::fs::create_dir_all(root.join("node_modules/a")).unwrap();
    std::fs::write(root.join("node_modules/a/package.json"), r#"{"name":"a","version":"2.0.0"}"#)
        .unwrap();
    std::fs::write(root.join("manifest.json"), "{}").unwrap();
    let first = package_layer(&root, &scratch.path().join("first")).unwrap();
    std::fs::write(root.join("manifest.json"), "{}").unwrap();
    let second = package_layer(&root, &scratch.path().join("second")).unwrap();
    assert_eq!(first.descriptor, second.descriptor);
    assert_eq!(first.diff_id, second.diff_id);
    std::fs::write(root.join("manifest.json"), "{ }").unwrap();
    let third = package_layer(&root, &scratch.path().join("third")).unwrap();
    assert_ne!(first.descriptor.digest, third.descriptor.digest);
    // A reader of others finds what is in it, owned by root and without a time.
    let unpacked = flate2::read::GzDecoder::new(std::fs::File::open(&first.path).unwrap());
    let mut archive = tar::Archive::new(unpacked);
    let mut names = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        assert_eq!((entry.header().uid().unwrap(), entry.header().mtime().unwrap()), (0, 0));
        names.push(entry.path().unwrap().to_string_lossy().into_owned());
    }
    assert!(names.contains(&"opt/mcp/package/node_modules/a/package.json".to_owned()), "{names:?}");
    let document = spdx(&root, &purpose(), &Digest::of(b"i"), &Digest::of(b"b"), "0.1.0");
    assert!(document["packages"].as_array().unwrap().iter().any(|it| it["name"] == "a"));
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_package_is_refused() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new();
    let root = scratch.path().join("package");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    symlink("../lib/x", root.join("bin/x")).unwrap();
    assert!(package_layer(&root, &scratch.path().join("inside")).is_ok());
    for target in ["/etc/passwd", "../../x", "a/../../../x"] {
        std::fs::remove_file(root.join("bin/x")).unwrap();
        symlink(target, root.join("bin/x")).unwrap();
        assert!(package_layer(&root, &scratch.path().join("outside")).is_err(), "{target}");
    }
}

#[test]
fn what_the_base_says_stays_but_for_what_is_started() {
    let scratch = Scratch::new();
    let program = scratch.path().join("mcp");
    std::fs::write(&program, "program").unwrap();
    let layer = program_layer(&program, &scratch.path().join("layer")).unwrap();
    let image = assemble(&base(&config()), std::slice::from_ref(&layer), &purpose()).unwrap();
    let made: Value = serde_json::from_slice(&image.config).unwrap();
    assert_eq!(made["config"]["Env"], json!(["PATH=/bin"]));
    assert_eq!(made["config"]["Odd"], 1);
    assert_eq!(made["config"]["Entrypoint"], json!([PROGRAM]));
    assert_eq!(made["config"]["User"], "10001:10001");
    assert_eq!(made["rootfs"]["diff_ids"].as_array().unwrap().len(), 2);
    let manifest = ImageManifest::read(&image.manifest).unwrap();
    assert_eq!(manifest.layers[0].media_type, TAR_GZIP);
    assert_eq!(manifest.layers[1], layer.descriptor);
    let again = assemble(&base(&config()), &[layer], &purpose()).unwrap();
    assert_eq!(again.digest, image.digest);
}

#[test]
fn a_base_for_another_machine_is_refused() {
    let mut other = config();
    other["architecture"] = json!("arm64");
    assert!(assemble(&base(&other), &[], &purpose()).is_err());
    let mut uneven = config();
    uneven["rootfs"]["diff_ids"] = json!([]);
    assert!(assemble(&base(&uneven), &[], &purpose()).is_err());
    assert!(assemble(&base(&config()), &[], &purpose()).is_ok());
}

#[test]
fn the_image_for_this_machine_is_chosen() {
    let digest = |text: &str| Digest::of(text.as_bytes());
    let entry = |name: &str, os: &str, architecture: &str| {
        json!({"mediaType": MANIFEST, "digest": digest(name), "size": 1,
               "platform": {"os": os, "architecture": architecture}})
    };
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        entry("w", "windows", "amd64"), entry("a", "linux", "arm64"), entry("x", "linux", "amd64"),
    ]});
    let Selected::Within(found) = select(index.to_string().as_bytes(), "amd64").unwrap() else {
        panic!("no index")
    };
    assert_eq!(found.digest, digest("x"));
    assert!(select(index.to_string().as_bytes(), "s390x").is_err());
    let package = ImageManifest::package("x", "1", Vec::new()).to_bytes().unwrap();
    assert!(select(&package, "amd64").is_err(), "a package is no container image");
}

#[test]
fn a_layout_is_read_back() {
    let scratch = Scratch::new();
    let layout = Layout::create(&scratch.path().join("out")).unwrap();
    let base = base(&config());
    layout.put(b"layer").unwrap();
    let program = scratch.path().join("mcp");
    std::fs::write(&program, "program").unwrap();
    let layer = program_layer(&program, &scratch.path().join("layer")).unwrap();
    let image = assemble(&base, std::slice::from_ref(&layer), &purpose()).unwrap();
    layout.finish(&image, &[layer], &[], "x").unwrap();
    let read = Layout::open(&scratch.path().join("out")).unwrap().base("amd64").unwrap();
    assert_eq!(read.digest, image.digest);
    assert_eq!(read.layers.len(), 2);
    assert!(Layout::create(&scratch.path().join("out")).is_err());
    // A blob that was changed is noticed.
    std::fs::write(layout.blob(&image.config_descriptor.digest), "{}").unwrap();
    assert!(layout.base("amd64").is_err());
}
