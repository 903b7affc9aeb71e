//! A request in the spelling of the disk. The file system finds `/users/ME`, and Seatbelt compares
//! with `/Users/me`: a grant in another spelling would give nothing, a denial close nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mcp_policy::Subprocess;

use crate::core::request::Request;
use crate::macos::sys;
use crate::unix::locate::{MOST_INTERPRETERS, shebang};

pub fn as_stored(mut request: Request) -> Request {
    let places = request.read.iter_mut().chain(&mut request.write).chain(&mut request.shown);
    let places = places.chain(&mut request.unix);
    for path in
        places.map(|place| &mut place.path).chain(request.denied.iter_mut().map(|d| &mut d.path))
    {
        *path = stored(path);
    }
    if request.policy.process.subprocess.value == Subprocess::Refused {
        name_interpreters(&mut request);
    }
    request
}

fn stored(path: &Path) -> PathBuf {
    sys::as_stored(path).unwrap_or_else(|_| path.to_owned())
}

/// The kernel would execute a script's interpreter, which the profile does not know: so it is
/// named as the program, with the script as its argument.
fn name_interpreters(request: &mut Request) {
    for _ in 0..MOST_INTERPRETERS {
        let Some(line) = shebang(&request.program) else { return };
        let line = line.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (name, rest) = (&line[..end], line[end..].trim_ascii());
        if name.is_empty() {
            return;
        }
        let interpreter = PathBuf::from(OsStr::from_bytes(name));
        let argument = (!rest.is_empty()).then(|| OsStr::from_bytes(rest).to_owned());
        let given = request.argv.iter().skip(1).cloned();
        let words = [interpreter.clone().into_os_string()].into_iter().chain(argument);
        let script: OsString = request.program.clone().into();
        request.argv = words.chain([script]).chain(given).collect();
        request.program = interpreter;
    }
}
