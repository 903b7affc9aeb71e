//! Processes. The same attack on every system; the caller has checked that the boundary is there.

use crate::support::{Run, allowed};
pub fn programs_may_have_children() {
    assert_eq!(allowed(Run::new().probe(&["fork", "5"])).detail, "5");
    let finished = Run::new().shell("echo one | cat; (sleep 0.1; echo two) & wait").run();
    finished.code_is(0);
    assert_eq!(finished.text(), "one\ntwo\n");
}
