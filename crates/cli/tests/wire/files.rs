//! What is kept of a file beside its bytes, and what is noticed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::place::Home;

const TEXT: &str = "{\"mcpServers\": {\"s\": {\"command\": \"npx\", \"args\": [\"-y\", \"s\"]}}}\n";

#[test]
fn mode_owner_and_links_are_kept() {
    let home = Home::new();
    let real = home.file("dotfiles/cursor.json", TEXT);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = fs::metadata(&real).unwrap().uid() == 0;
    if is_root {
        std::os::unix::fs::chown(&real, Some(1234), Some(2345)).unwrap();
    }
    let before = fs::metadata(&real).unwrap();
    fs::create_dir_all(home.at(".cursor")).unwrap();
    symlink("../dotfiles/cursor.json", home.at(".cursor/mcp.json")).unwrap();
    home.mcp(&["wire", "--yes"]).good();
    let after = fs::metadata(&real).unwrap();
    assert!(fs::read_to_string(&real).unwrap().contains("npm:s"));
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    assert_eq!(
        fs::read_link(home.at(".cursor/mcp.json")).unwrap().to_str(),
        Some("../dotfiles/cursor.json")
    );
    home.mcp(&["unwire"]).good();
    assert_eq!(fs::read_to_string(&real).unwrap(), TEXT);
    assert_eq!(fs::metadata(&real).unwrap().mode(), before.mode());
}

#[test]
fn a_file_with_two_names_is_left_alone() {
    let home = Home::new();
    let file = home.file(".cursor/mcp.json", TEXT);
    fs::hard_link(&file, home.at("second")).unwrap();
    let ran = home.mcp(&["wire", "--yes"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("hard links"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
    fs::remove_file(home.at("second")).unwrap();
    home.mcp(&["wire", "--yes"]).good();
}

#[test]
fn copies_are_for_the_eyes_of_their_owner() {
    let home = Home::new();
    home.file(".cursor/mcp.json", TEXT);
    home.mcp(&["wire", "--yes"]).good();
    let data = home.at(".local/share/mcp/wire");
    let copies: Vec<_> = fs::read_dir(data.join("originals")).unwrap().flatten().collect();
    assert_eq!(copies.len(), 1);
    assert_eq!(fs::read_to_string(copies[0].path()).unwrap(), TEXT);
    assert_eq!(copies[0].metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(data.join("originals")).unwrap().mode() & 0o777, 0o700);
    home.mcp(&["unwire"]).good();
    assert_eq!(fs::read_dir(data.join("originals")).unwrap().count(), 0);
}

/// A file and a client of a project, and several clients that read one file.
#[test]
fn projects() {
    let home = Home::new();
    let text = "{\"mcpServers\": {\"s\": {\"command\": \"npx\", \"args\": [\"-y\", \"s\", \"./data\"]}}, \"servers\": {\"t\": {\"command\": \"t\"}}}\n";
    home.file("work/.mcp.json", text);
    fs::create_dir_all(home.at("work/data")).unwrap();
    // Not of the project: not touched.
    home.file(".cursor/mcp.json", TEXT);
    let ran = home.mcp(&["wire", "--yes", "--project", "work"]).good();
    assert!(ran.err.contains("may be shared"), "{}", ran.err);
    let wired = fs::read_to_string(home.at("work/.mcp.json")).unwrap();
    assert!(
        wired.contains("\"--read\", \"./data\", \"npm:s\"")
            && wired.contains("\"run\", \"--\", \"t\""),
        "{wired}"
    );
    assert_eq!(fs::read_to_string(home.at(".cursor/mcp.json")).unwrap(), TEXT);
    home.mcp(&["unwire", "--project", "work"]).good();
    assert_eq!(fs::read_to_string(home.at("work/.mcp.json")).unwrap(), text);
}

#[test]
fn one_server_of_several_there_and_back() {
    let home = Home::new();
    let text = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" },\n    \"b\": { \"command\": \"npx\", \"args\": [\"b\"] }\n  }\n}\n";
    let file = home.file(".cursor/mcp.json", text);
    home.mcp(&["wire", "--yes", "--server", "b"]).good();
    let only_b = fs::read_to_string(&file).unwrap();
    assert!(
        only_b.contains("\"a\": { \"command\": \"a\" }") && only_b.contains("npm:b"),
        "{only_b}"
    );
    home.mcp(&["wire", "--yes"]).good();
    home.mcp(&["unwire", "--server", "a"]).good();
    assert_eq!(fs::read_to_string(&file).unwrap(), only_b);
    home.mcp(&["unwire"]).good();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert!(home.mcp(&["unwire"]).good().err.contains("nothing to take back"));
}

/// Options that a person added to the wired line go with it, arguments of the server stay.
#[test]
fn what_a_person_changed_in_a_wired_entry() {
    let home = Home::new();
    let file = home.file(".cursor/mcp.json", TEXT);
    home.mcp(&["wire", "--yes"]).good();
    let wired = fs::read_to_string(&file).unwrap();
    fs::write(&file, wired.replace("\"npm:s\"", "\"npm:s\", \"--\", \"more\"")).unwrap();
    home.mcp(&["unwire"]).good();
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        TEXT.replace("\"s\"]", "\"s\", \"--\", \"more\"]")
    );
    fs::write(&file, TEXT).unwrap();
    home.mcp(&["wire", "--yes"]).good();
    fs::write(&file, wired.replace("\"run\"", "\"run\", \"-n\", \"example.com\"")).unwrap();
    let ran = home.mcp(&["unwire"]).good();
    assert!(ran.err.contains("changed after wiring"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
    // An entry that is no longer ours is left alone.
    home.mcp(&["wire", "--yes"]).good();
    let other = TEXT.replace("npx", "other");
    fs::write(&file, &other).unwrap();
    let ran = home.mcp(&["unwire"]).good();
    assert!(ran.err.contains("left alone"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), other);
}
