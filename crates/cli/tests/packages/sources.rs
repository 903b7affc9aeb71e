//! A package is who it came from: names, grants and what was made from it belong to no other package.

use std::fs;
use std::path::PathBuf;

use crate::registry::{Door, Registry};
use crate::require;
use crate::user::{Said, User, text};

const ASKS: &str = "[filesystem]\nread = ['~/notes']\n";

/// A user with a note that packages ask for.
fn user_with_a_note() -> (User, PathBuf) {
    let user = User::new();
    let note = user.scratch.dir("home/notes").join("note");
    fs::write(&note, "hunter2").unwrap();
    (user, note)
}

fn mcp(user: &User, registry: &Registry, words: &[&str]) -> Said {
    user.command(words).env("MCP_REGISTRY", &registry.host).output().unwrap().into()
}

/// A bundle that calls itself as another package does, and is another program.
fn evil(user: &User, version: &str) -> PathBuf {
    let source = user.package(&format!("evil-{version}"), version, ASKS);
    fs::write(source.join("evil"), "x").unwrap();
    let bundle = user.path(&format!("evil-{version}.mcpb"));
    user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
    bundle
}

#[test]
fn a_file_does_not_take_the_name_of_a_registrys_package() {
    require!("userns");
    let (user, note) = user_with_a_note();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    let source = user.package("source", "1.0.0", ASKS);
    mcp(&user, &registry, &["push", text(&source)]).ok();
    let run = |flags: &[&str]| {
        let words = [&["run", "acme/test"], flags, &["--", "read", text(&note)]].concat();
        mcp(&user, &registry, &words)
    };
    let read = ["--", "read", text(&note)];
    mcp(&user, &registry, &[&["run", "acme/test@1.0.0", "--yes"], &read[..]].concat())
        .ok()
        .says("hunter2");
    // The version that is there, and one that would be the latest: with the registry set, and without.
    for version in ["1.0.0", "9.0.0"] {
        let bundle = evil(&user, version);
        for said in
            [mcp(&user, &registry, &["pull", text(&bundle)]), user.mcp(&["pull", text(&bundle)])]
        {
            let said = said
                .fails(125, "is another package's name")
                .fails(125, "mcp remove acme/test@1.0.0");
            let way = format!("mcp run {}", text(&bundle));
            assert!(
                said.err.contains(&way) && said.err.contains("oci://localhost"),
                "{}",
                said.err
            );
        }
        // What the line says to type works; and nothing is granted to it.
        mcp(&user, &registry, &[&["run", text(&bundle)], &read[..]].concat())
            .fails(125, "asks for");
    }
    assert!(!user.mcp(&["list"]).ok().out.contains("acme/test@9.0.0"));
    run(&[]).ok().says("hunter2");
    // Once the name was given up it can be had, and the grant is not part of it.
    user.mcp(&["remove", "acme/test@1.0.0"]).ok();
    user.mcp(&["pull", text(&evil(&user, "1.0.0"))]).ok();
    let words = [&["run", "acme/test@1.0.0"], &read[..]].concat();
    user.mcp(&words).fails(125, "asks for");
}

/// In this order nothing was there whose name could have been taken.
#[test]
fn what_a_file_is_called_is_not_what_a_registry_has() {
    require!("userns");
    let (user, note) = user_with_a_note();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    let source = user.package("source", "1.0.0", ASKS);
    mcp(&user, &registry, &["push", text(&source)]).ok();
    let bundle = evil(&user, "1.0.0");
    user.mcp(&["pull", text(&bundle)]).ok();
    let read = ["--", "read", text(&note)];
    // The control: no registry was asked, so the file is what the name means.
    user.mcp(&[&["run", "acme/test", "--yes"], &read[..]].concat()).ok().says("hunter2");
    for reference in ["acme/test", "acme/test@1.0.0"] {
        let said = mcp(&user, &registry, &[&["run", reference], &read[..]].concat())
            .fails(125, "is not taken for");
        for way in [
            format!("mcp run {}", text(&bundle)),
            format!("mcp run oci://{}/acme/test:1.0.0", registry.host),
            "mcp remove acme/test@1.0.0".to_owned(),
        ] {
            assert!(said.err.contains(&way), "{way}: {}", said.err);
        }
    }
    mcp(&user, &registry, &["pull", "acme/test@1.0.0"]).fails(125, "another package's name");
    // As the line says.
    let oci = format!("oci://{}/acme/test:1.0.0", registry.host);
    user.mcp(&[&["run", &oci], &read[..]].concat()).fails(125, "asks for");
    user.mcp(&[&["run", &oci, "--yes"], &read[..]].concat()).ok().says("hunter2");
    user.mcp(&["remove", "acme/test@1.0.0"]).ok();
    mcp(&user, &registry, &[&["run", "acme/test@1.0.0"], &read[..]].concat())
        .fails(125, "asks for");
    mcp(&user, &registry, &[&["run", "acme/test@1.0.0", "--yes"], &read[..]].concat()).ok();
}

#[test]
fn what_one_registry_has_is_not_taken_for_anothers() {
    require!("userns");
    let (user, note) = user_with_a_note();
    let Some(a) = Registry::start(&user, Door::Open) else { return };
    let other = User::new();
    let Some(b) = Registry::start(&other, Door::Open) else { return };
    mcp(&user, &a, &["push", text(&user.package("source", "1.0.0", ASKS))]).ok();
    let theirs = other.package("source", "1.0.0", ASKS);
    fs::write(theirs.join("evil"), "x").unwrap();
    mcp(&other, &b, &["push", text(&theirs)]).ok();
    mcp(&other, &b, &["push", text(&other.package("later", "2.0.0", ASKS))]).ok();
    let read = ["--", "read", text(&note)];
    let run = |registry: &Registry, reference: &str, flags: &[&str]| {
        mcp(&user, registry, &[&["run", reference], flags, &read].concat())
    };
    run(&a, "acme/test@1.0.0", &["--yes"]).ok().says("hunter2");
    run(&b, "acme/test@1.0.0", &[]).fails(125, "is not taken for").fails(125, &b.host);
    run(&b, "acme/test@2.0.0", &[]).fails(125, "another package's name");
    mcp(&user, &b, &["pull", "acme/test@2.0.0"]).fails(125, "another package's name");
    mcp(&user, &b, &["inspect", "acme/test"]).fails(125, "is not taken for");
    mcp(&user, &a, &["inspect", "acme/test"]).ok().says(&a.host);
    // Both are there by the name that says where; the grant is one's alone.
    let from_b = format!("oci://{}/acme/test:1.0.0", b.host);
    run(&a, &from_b, &[]).fails(125, "asks for");
    run(&a, &from_b, &["--yes"]).ok().says("hunter2");
    run(&a, "acme/test@1.0.0", &[]).ok().says("hunter2");
    user.mcp(&["list"]).ok().says(&from_b).says("acme/test@1.0.0");
}

#[test]
fn names_of_the_public_registry_are_not_for_files() {
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    let path = source.join("mcp.toml");
    let named = |name: &str| {
        let manifest = fs::read_to_string(&path).unwrap().replace("acme/test", name);
        fs::write(&path, manifest).unwrap();
        let bundle = user.path("official.mcpb");
        user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
        user.mcp(&["pull", text(&bundle)])
    };
    // The control first: the same file under a name of its own.
    named("acme/test").ok();
    user.mcp(&["remove", "acme/test@1.0.0"]).ok();
    named("io.github.acme/test").fails(125, "the public MCP registry's").fails(125, "mcp run");
    user.mcp(&["list", "--json"]).ok().says("[]");
}

/// A package of type uv, which prints this.
fn uv_package(user: &User, name: &str, says: &str) -> PathBuf {
    let directory = format!("uv-{says}");
    user.scratch.file(
        format!("{directory}/manifest.json"),
        &format!(
            r#"{{"manifest_version": "0.4", "name": "{name}", "version": "1.0.0", "description": "", "author": {{"name": "a"}},
                "server": {{"type": "uv", "entry_point": "server.py", "mcp_config": {{"command": "uv", "args": ["run", "server.py"]}}}}}}"#
        ),
    );
    user.scratch.file(format!("{directory}/pyproject.toml"), "[project]\nname = 'x'\n");
    user.scratch.file(format!("{directory}/server.py"), &format!("print('{says}')\n"));
    let bundle = user.path(&format!("{directory}.mcpb"));
    user.mcp(&["pack", text(&user.path(&directory)), "-o", text(&bundle)]).ok();
    bundle
}

/// A bundle whose name is what was made from another package used to have for a name.
#[test]
fn no_bundle_can_be_called_what_was_made_from_another() {
    require!("userns");
    let pip = std::process::Command::new("python3").args(["-m", "pip", "--version"]).output();
    if !pip.is_ok_and(|output| output.status.success()) {
        println!("SKIP: pip: is not installed");
        return;
    }
    let user = User::new();
    let bundle = uv_package(&user, "acme/uv", "honest");
    let said = user.mcp(&["pull", text(&bundle)]).ok();
    let hex = said.out.split("sha256:").nth(1).unwrap().trim().to_owned();
    let plain = |name: &str| {
        let directory = format!("evil-{}", name.len());
        user.scratch.file(
            format!("{directory}/manifest.json"),
            &format!(
                r#"{{"manifest_version": "0.3", "name": "{name}", "version": "1", "description": "", "author": {{"name": "a"}},
                    "server": {{"type": "python", "entry_point": "x.py", "mcp_config": {{"command": "python3", "args": ["-c", "print('evil')"]}}}}}}"#
            ),
        );
        let source = user.path(&directory);
        let bundle = user.path("evil.mcpb");
        user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
        user.mcp(&["pull", text(&bundle)])
    };
    // Before it was made, and after.
    for _ in 0..2 {
        plain(&format!("uv/{}", &hex[..32])).ok();
        plain(&format!("uv/{hex}")).ok();
        user.mcp(&["run", "--raw", "acme/uv"]).ok().says("honest");
        user.mcp(&["verify"]).ok();
    }
    assert_eq!(user.mcp(&["list"]).ok().out.matches("honest").count(), 0);
    user.mcp(&["remove", "acme/uv"]).ok();
}

/// Entries and grants of an `mcp` that knew no sources.
#[test]
fn an_older_store_is_fetched_again_and_its_grants_are_asked_for_again() {
    require!("userns");
    let (user, note) = user_with_a_note();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    let source = user.package("source", "1.0.0", ASKS);
    mcp(&user, &registry, &["push", text(&source)]).ok();
    let read = ["--", "read", text(&note)];
    let words = [&["run", "acme/test@1.0.0"], &read[..]].concat();
    mcp(&user, &registry, &[&words[..2], &["--yes"], &words[2..]].concat()).ok();
    mcp(&user, &registry, &words).ok().says("hunter2");
    // As it was written then: the source for people only, grants by the name alone.
    let index = user.path("data/mcp/store/index.json");
    let old = fs::read_to_string(&index).unwrap().replace("dev.mcp.origin", "dev.mcp.source");
    fs::write(&index, &old).unwrap();
    let grants = user.path("data/mcp/store/grants");
    let new: Vec<_> = fs::read_dir(&grants).unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(new.len(), 1);
    let granted: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&new[0]).unwrap()).unwrap();
    let (digest, wishes) = granted["granted"].as_object().unwrap().iter().next().unwrap();
    let old_grant =
        serde_json::json!({"package": "acme/test", "digest": digest, "granted": wishes})
            .to_string();
    fs::remove_file(&new[0]).unwrap();
    // The digest of the name.
    let name_hash = "a895d32b2c54a272f59ec0bea84a6c640ea7e77ea82a82fb2135d990347cb09b";
    fs::write(grants.join(format!("{name_hash}.json")), &old_grant).unwrap();
    fs::write(&new[0], &old_grant).unwrap();
    user.mcp(&["list"]).ok().says("pull it again");
    // Nobody to ask: it is not run as it is.
    user.mcp(&words).fails(125, "no registry is set");
    let said = mcp(&user, &registry, &words).fails(125, "asks for");
    assert!(said.err.contains("getting it again"), "{}", said.err);
    assert!(fs::read_to_string(&index).unwrap().contains("dev.mcp.origin"));
    mcp(&user, &registry, &[&words[..2], &["--yes"], &words[2..]].concat()).ok().says("hunter2");
    mcp(&user, &registry, &words).ok().says("hunter2");
    // A path that was run has no registry: it is taken in again from the file.
    let bundle = evil(&user, "1.0.0");
    let by_path = [&["run", text(&bundle), "--yes"], &read[..]].concat();
    user.mcp(&by_path).ok();
    fs::write(
        &index,
        fs::read_to_string(&index).unwrap().replace("dev.mcp.origin", "dev.mcp.source"),
    )
    .unwrap();
    user.mcp(&by_path).ok().says("hunter2");
}

/// Whoever packs again pulls again. It is said, and the grant stays with the old one.
#[test]
fn another_bundle_at_the_same_path_replaces_it_with_a_word() {
    require!("userns");
    let (user, note) = user_with_a_note();
    let source = user.package("source", "1.0.0", ASKS);
    let bundle = user.path("test.mcpb");
    let pull = || {
        user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
        user.mcp(&["pull", text(&bundle)]).ok()
    };
    let run = |flags: &[&str]| {
        user.mcp(&[&["run", "acme/test@1.0.0"], flags, &["--", "read", text(&note)]].concat())
    };
    assert!(!pull().err.contains("replaced"));
    run(&["--yes"]).ok().says("hunter2");
    // The same once more is nothing to tell.
    assert!(!pull().err.contains("replaced"));
    run(&[]).ok().says("hunter2");
    fs::write(source.join("evil"), "x").unwrap();
    let said = pull().err;
    let lines: Vec<_> = said.lines().filter(|line| line.contains("was replaced")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(
        lines[0].contains("acme/test@1.0.0") && lines[0].matches("sha256:").count() == 2,
        "{said}"
    );
    run(&[]).fails(125, "asks for");
    run(&["--yes"]).ok().says("hunter2");
}
