//! No more rights than the caller's, and none left behind.

use crate::require;
use crate::support::{READ_ONLY, Run, Scratch, allowed, blocked};

#[test]
fn set_id_files_cannot_be_made() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let file = scratch.file("grant/file", "");
    let grant = file.parent().unwrap();
    let chmod = |mode: &str| {
        Run::new().write(grant).probe(&["chmod".as_ref(), file.as_os_str(), mode.as_ref()])
    };
    allowed(chmod("755"));
    blocked(chmod("4755"), READ_ONLY);
    allowed(Run::bare().probe(&["chmod".as_ref(), file.as_os_str(), "4755".as_ref()]));
}

#[test]
fn set_id_programs_do_not_start() {
    require!("seatbelt");
    let finished = Run::new().command(&["/usr/bin/su", "--help"]).run();
    assert!([126, 125].contains(&finished.code), "{finished}");
}
