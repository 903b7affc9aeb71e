//! Reads the beginnings of files that anybody may have put there: never waits for a writer, never
//! reads more than a little.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// More than any version file, `pyvenv.cfg` or `package.json` has before what is looked for.
const LARGEST_TEXT: u64 = 256 * 1024;

/// The first bytes of a regular file; a pipe, a device or a directory has none.
pub fn head(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::with_capacity(most.min(4096) as usize);
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

pub fn text(path: &Path) -> Option<String> {
    String::from_utf8(head(path, LARGEST_TEXT)?).ok()
}
