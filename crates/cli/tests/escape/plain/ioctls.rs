//! ioctls on a file that was granted for reading: they would change it, whatever it was opened for.

use super::{bare, plain};
use crate::require;
use crate::support::{Scratch, allowed, blocked, skip};

const GET_FLAGS: &str = "0x80086601";
/// FS_IOC_SETFLAGS (to none), FS_IOC_SETVERSION, FS_IOC_FSSETXATTR, EXT4_IOC_SETVERSION.
const CHANGES: [&str; 4] = ["0x40086602", "0x40087602", "0x401c5820", "0x40086604"];

#[test]
fn nothing_is_changed_through_a_file_that_is_read() {
    require!("plain");
    let scratch = Scratch::new();
    let file = scratch.file("data/file", "text");
    let path = file.to_str().unwrap();
    let inside = || plain().read(scratch.join("data"));
    let before = std::fs::metadata(&file).unwrap();
    let mut tried = 0;
    for command in CHANGES {
        // The upper half of the register has no meaning; the kernel does not look at it.
        let high = format!("0x7{:0>15}", &command[2..]);
        for command in [command, &high] {
            blocked(inside().probe(&["file-ioctl", path, command]), &["ENOTTY"]);
            // As many as this file system has: the control is that it does it, or says why not.
            let outside = bare().probe(&["file-ioctl", path, command]).run();
            tried += usize::from(outside.last("outside").errno() != "ENOTTY");
        }
    }
    if tried == 0 {
        return skip("file-flags", "this file system has no flags");
    }
    use std::os::unix::fs::MetadataExt;
    let after = std::fs::metadata(&file).unwrap();
    assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
}

#[test]
fn what_programs_need_works() {
    require!("plain");
    let scratch = Scratch::new();
    let file = scratch.file("data/file", "text");
    let path = file.to_str().unwrap();
    let inside = || plain().read(scratch.join("data"));
    // FIONREAD: all four bytes are there to be read. FIGETBSZ; FIOCLEX, FIONCLEX, FIONBIO.
    for command in ["0x541b", "0x2", "0x5451", "0x5450", "0x5421"] {
        let words = ["file-ioctl", path, command];
        let outside = allowed(bare().probe(&words));
        assert_eq!(allowed(inside().probe(&words)).detail, outside.detail, "{command}");
    }
    let words = ["file-ioctl", path, GET_FLAGS];
    let outside = bare().probe(&words).run();
    let found = inside().probe(&words).run();
    assert_eq!(found.last("inside").errno(), outside.last("outside").errno());
}
