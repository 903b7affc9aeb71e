//! Handles of the caller do not get inside, but for the standard three.

use std::fs::File;

use crate::support::{Run, Scratch};

mod sys {
    //! The unsafe part of the test: a handle that every child inherits.
    #![allow(unsafe_code)]

    use std::fs::File;
    use std::os::windows::io::AsRawHandle;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn SetHandleInformation(handle: *mut core::ffi::c_void, mask: u32, flags: u32) -> i32;
    }

    /// Gives its number.
    pub fn make_inheritable(file: &File) -> usize {
        let handle = file.as_raw_handle();
        // SAFETY: the handle is the file's own; HANDLE_FLAG_INHERIT is set on it.
        assert_ne!(unsafe { SetHandleInformation(handle, 1, 1) }, 0);
        handle as usize
    }
}

#[test]
fn a_handle_of_the_caller_stays_outside() {
    let scratch = Scratch::new();
    let path = scratch.file("secret", "canary of the caller");
    let file = File::open(&path).unwrap();
    let number = sys::make_inheritable(&file).to_string();
    let bare = Run::bare().probe(&["read-handle", &number]).run();
    assert_eq!(bare.last()["detail"], "canary of the caller", "the control: {bare:#?}");
    let inside = Run::new().probe(&["read-handle", &number]).run();
    assert_ne!(inside.last()["detail"], "canary of the caller", "{inside:#?}");
    drop(file);
}

#[test]
fn every_run_has_tried_it_itself() {
    let scratch = Scratch::new();
    let report = scratch.join("report.json");
    Run::new().flag("--report").flag(&report).probe(&["exit", "0"]).run().code_is(0);
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("tried to use a handle that was not handed over: refused"), "{report}");
    assert!(report.contains("tried to start a process outside of the job: refused"), "{report}");
    assert!(report.contains("before its first instruction"), "{report}");
}

#[test]
fn only_named_variables_arrive() {
    let with = |run: Run| run.env("MCP_CANARY", "1").probe(&["getenv", "MCP_CANARY"]).run();
    assert_eq!(with(Run::bare()).last()["ok"], true);
    assert_eq!(with(Run::new()).last()["ok"], false);
    let named = Run::new().flag("--env").flag("MCP_CANARY=2");
    assert_eq!(with(named).last()["detail"], "2");
}
