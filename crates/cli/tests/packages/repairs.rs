//! A store that was damaged, restored or cannot be written.

use std::fs;
use std::process::Command;

use crate::registry::{Door, Registry};
use crate::require;
use crate::support::{is_root, mcp_path};
use crate::user::{Said, User, text};

#[test]
fn what_is_damaged_is_seen_by_verify_and_put_right_by_pull() {
    require!("userns");
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    let mcp = |words: &[&str]| -> Said {
        user.command(words).env("MCP_REGISTRY", &registry.host).output().unwrap().into()
    };
    mcp(&["push", text(&user.package("source", "1.0.0", ""))]).ok();
    mcp(&["pull", "acme/test@1.0.0"]).ok();
    let store = user.path("data/mcp/store");
    let bundle = || {
        let blobs = fs::read_dir(store.join("blobs/sha256")).unwrap().flatten();
        let is_bundle = |path: &std::path::PathBuf| fs::metadata(path).unwrap().len() > 100_000;
        blobs.map(|entry| entry.path()).find(is_bundle).unwrap()
    };
    let damages: [&dyn Fn(); 3] = [
        &|| fs::remove_dir_all(user.unpacked()).unwrap(),
        &|| {
            let file = fs::File::options().write(true).open(bundle()).unwrap();
            std::os::unix::fs::FileExt::write_at(&file, b"damaged", 40).unwrap();
        },
        &|| fs::write(user.unpacked().join("bin/evil"), "x").unwrap(),
    ];
    for damage in damages {
        mcp(&["verify"]).ok();
        damage();
        let said = mcp(&["verify"]);
        assert!(said.code == 1 && said.out.contains("mcp pull it again"), "{}", said.out);
        mcp(&["pull", "acme/test@1.0.0"]).ok();
        mcp(&["verify"]).ok();
        mcp(&["run", "acme/test@1.0.0", "--", "getenv", "HOME"]).ok().says("\"ok\":true");
    }
}

/// Copied, so that no inode is the same, and mounted read-only.
#[test]
fn a_copied_store_that_is_read_only_runs() {
    require!("userns");
    if !is_root() {
        println!("SKIP: root: a read-only mount of another directory needs it");
        return;
    }
    let user = User::new();
    user.stored("1.0.0", "");
    let (store, copy) = (user.path("data/mcp/store"), user.path("data/mcp/copy"));
    let done = Command::new("cp").args(["-a", text(&store), text(&copy)]).status().unwrap();
    assert!(done.success());
    fs::rename(&store, user.path("data/mcp/first")).unwrap();
    fs::rename(&copy, &store).unwrap();
    let script = format!(
        "mount --make-rprivate / && mount --bind {0} {0} && mount -o remount,bind,ro {0} && ! touch {0}/x 2>/dev/null && exec {1} run acme/test -- getenv HOME",
        text(&store),
        mcp_path().display()
    );
    let run = || -> Said {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]);
        user.place(command).output().unwrap().into()
    };
    run().ok().says("\"ok\":true");
    run().ok().says("\"ok\":true");
    fs::write(user.unpacked().join("bin/evil"), "x").unwrap();
    run().fails(125, "bin/evil was added");
}
