//! Modes, owners, times and extended attributes: carried out by the launcher, in writable places only.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::{bare, plain};
use crate::require;
use crate::support::{Scratch, allowed, blocked, euid, has_program, skip};

/// Acts that change a file that belongs to the caller; outside they work.
fn changes(file: &str) -> Vec<Vec<String>> {
    let uid = euid().to_string();
    [
        &["chmod", file, "777"][..],
        &["fchmod", file, "777"],
        &["chown", file, &uid, "-1"],
        &["fchown", file, &uid, "-1"],
        &["utime", file, "1000"],
        &["futime", file, "1000"],
        &["setxattr", file, "user.mcp"],
        &["fsetxattr", file, "user.mcp"],
        &["removexattr", file, "user.mcp"],
    ]
    .into_iter()
    .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    .collect()
}

fn looks(path: &Path) -> (u32, u32, i64, i64) {
    let metadata = std::fs::metadata(path).unwrap();
    (metadata.permissions().mode(), metadata.uid(), metadata.mtime(), metadata.ctime())
}

#[test]
fn of_a_read_grant_cannot_be_changed() {
    require!("plain");
    let scratch = Scratch::new();
    let file = scratch.file("data/file", "text");
    let before = looks(&file);
    for words in changes(file.to_str().unwrap()) {
        blocked(plain().read(scratch.join("data")).probe(&words), &["EPERM", "EACCES"]);
        assert_eq!(looks(&file), before, "{words:?}");
    }
    for words in changes(file.to_str().unwrap()) {
        let run = bare().probe(&words).run();
        let outcome = run.last("change");
        // Not every file system has extended attributes.
        assert!(outcome.ok || outcome.errno() == "EOPNOTSUPP", "{words:?} {run}");
    }
}

#[test]
fn of_what_was_not_granted_cannot_be_changed() {
    require!("plain");
    let scratch = Scratch::new();
    let file = scratch.file("file", "text");
    let before = looks(&file);
    for words in changes(file.to_str().unwrap()) {
        blocked(plain().probe(&words), &["EPERM", "EACCES"]);
        assert_eq!(looks(&file), before, "{words:?}");
    }
}

#[test]
fn of_a_write_grant_can_be_changed() {
    require!("plain", "ordinary-user");
    let scratch = Scratch::new();
    let file = scratch.file("data/file", "text");
    for words in changes(file.to_str().unwrap()) {
        let run = plain().write(scratch.join("data")).probe(&words).run();
        let outcome = run.last("change");
        assert!(outcome.ok || outcome.errno() == "EOPNOTSUPP", "{words:?} {run}");
    }
    assert_eq!(looks(&file).0 & 0o7777, 0o777);
    assert_eq!(looks(&file).2, 1000);
}

/// Names and values of attributes, by path, by link and through what was opened.
fn reads(file: &str, link: &str) -> Vec<Vec<String>> {
    [
        &["getxattr", file, "user.mcp"][..],
        &["getxattr", link, "user.mcp"],
        &["lgetxattr", file, "user.mcp"],
        &["fgetxattr", file, "user.mcp"],
        &["listxattr", file],
        &["listxattr", link],
        &["llistxattr", file],
    ]
    .into_iter()
    .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    .collect()
}

#[test]
fn of_what_was_not_granted_cannot_be_read() {
    require!("plain");
    let scratch = Scratch::new();
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = scratch.file("data/file", "text");
    let link = scratch.join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let (path, link) = (file.to_str().unwrap(), link.to_str().unwrap());
    let set = bare().probe(&["setxattr", path, "user.mcp"]).run();
    if set.last("set").errno() == "EOPNOTSUPP" {
        return skip("xattrs", "this file system has no extended attributes");
    }
    for words in reads(path, link) {
        // As of a file system that has none; what cannot be opened is not.
        let errno = if words[0] == "fgetxattr" { "EACCES" } else { "EOPNOTSUPP" };
        blocked(plain().probe(&words), &[errno]);
        let expected = if words[0].contains("list") { "user.mcp" } else { "value" };
        let outside = allowed(bare().probe(&words));
        assert!(outside.detail.contains(expected), "{outside:?}");
        let granted = allowed(plain().read(scratch.join("data")).probe(&words));
        assert_eq!(granted.detail, outside.detail, "{words:?}");
    }
}

/// A value that is longer than the room for it, the question how long it is, and room that is not there.
#[test]
fn reading_answers_as_the_kernel_does() {
    require!("plain");
    let python = "import ctypes, os, sys; f = sys.argv[1].encode(); c = ctypes.CDLL(None, use_errno=True); \
                  b = ctypes.create_string_buffer(b'#' * 8); \
                  a = lambda *w: print(c.getxattr(f, *w), ctypes.get_errno(), b.raw[:6]); \
                  e = lambda *w: print(c.listxattr(f, *w), ctypes.get_errno()); \
                  a(b'user.mcp', b, 8); a(b'user.mcp', None, 0); a(b'user.mcp', b, 2); a(b'user.no', b, 8); \
                  a(b'user.mcp', ctypes.c_void_p(8), 8); e(None, 0); e(ctypes.c_void_p(8), 99)";
    if !has_program("/usr/bin/python3") {
        return;
    }
    let scratch = Scratch::new();
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = scratch.file("data/file", "text");
    let path = file.to_str().unwrap();
    bare().probe(&["setxattr", path, "user.mcp"]).run();
    let words = ["/usr/bin/python3", "-c", python, path];
    let outside = bare().command(&words).run();
    let inside = plain().read(scratch.join("data")).command(&words).run();
    outside.code_is(0);
    assert_eq!(inside.text(), outside.text(), "{inside}");
}

/// By every spelling that leads from a writable place to one that is not.
#[test]
fn no_name_leads_out_of_a_writable_place() {
    require!("plain");
    let scratch = Scratch::new();
    let file = scratch.file("outside", "text");
    let before = looks(&file);
    let target = file.display();
    let script = format!(
        "cd $HOME; ln -s {target} link; ln -s {} up; mkdir d; \
         chmod 777 link; chmod 777 up/outside; chmod 777 ../../../../../../../..{target}; \
         chmod 777 /proc/self/root{target}; chmod 777 /proc/self/cwd/../../..{target}; \
         (exec 3< link; chmod 777 /proc/self/fd/3; chmod 777 /dev/fd/3); \
         touch -d @9 link; touch -h -d @9 {target}; chown $(id -u) link; echo done",
        scratch.path().display()
    );
    let finished = plain().shell(&script).run();
    assert!(finished.text().contains("done"), "{finished}");
    assert_eq!(looks(&file), before);
    // The same names lead somewhere where they may.
    let finished = plain()
        .shell(
            "cd $HOME; mkdir d; echo x > d/f; ln -s d/f link; chmod 600 link; stat -c %a d/f; \
             chmod 644 /proc/self/cwd/d/f; stat -c %a d/f; exec 3< d/f; chmod 640 /proc/self/fd/3; \
             stat -c %a d/f; touch -h -d @9 link; stat -c %Y link",
        )
        .run();
    assert_eq!(finished.text(), "600\n644\n640\n9\n", "{finished}");
}

/// A thread swaps the name between a file inside and one outside while it is changed.
#[test]
fn a_name_that_changes_meanwhile_leads_nowhere_else() {
    require!("plain");
    let scratch = Scratch::new();
    let file = scratch.file("outside", "text");
    let before = looks(&file);
    let script = format!(
        "cd $HOME; echo x > own; ln -s own a; ln -s {} b; \
         (i=0; while [ $i -lt 150 ]; do mv -T a t; mv -T b a; mv -T t b; i=$((i+1)); done) & \
         i=0; while [ $i -lt 150 ]; do chmod 777 a 2>/dev/null; i=$((i+1)); done; wait; \
         stat -c %a own",
        file.display()
    );
    let finished = plain().shell(&script).run();
    assert_eq!(looks(&file), before, "{finished}");
    assert_eq!(finished.text(), "777\n", "never hit its own file: {finished}");
}

#[test]
fn set_id_modes_are_nobodys_to_give() {
    require!("plain");
    let script = "cd $HOME; echo x > f; chmod 755 f; chmod u+s f; chmod 2755 f; stat -c %a f";
    let finished = plain().shell(script).run();
    assert_eq!(finished.text(), "755\n", "{finished}");
}

#[test]
fn programs_that_change_attributes_work() {
    require!("plain");
    let script = "set -e; cd $HOME; mkdir t; echo x > t/f; chmod 700 t; touch -d @5 t/f; \
                  tar cpf t.tar t; rm -r t; tar xpf t.tar; cp -p t/f g; install -m 640 g h; \
                  stat -c %a:%Y t/f g h | cut -d: -f1 | tr '\\n' ' '; stat -c %Y t/f g";
    let finished = plain().shell(script).run();
    finished.code_is(0);
    assert_eq!(finished.text(), "644 644 640 5\n5\n", "{finished}");
    allowed(plain().probe(&["cwd"]));
}
