//! The kinds of the three standard handles. The launcher never hands its console over: a program that has it can put
//! keystrokes into its input, for the shell that reads it next.

use crate::core::error::Error;
use crate::core::request::Stdio;
use crate::windows::sys::handles::{self, Kind};

pub fn inspect() -> Result<[Stdio; 3], Error> {
    let all = [0, 1, 2];
    // A user at a console; with one of them elsewhere, a console of its own would not bring it there.
    if all.iter().all(|number| handles::kind(*number) == Kind::Console) {
        return Ok(all.map(|_| Stdio::Terminal));
    }
    Ok([kind(0)?, kind(1)?, kind(2)?])
}

fn kind(number: i32) -> Result<Stdio, Error> {
    match handles::kind(number.unsigned_abs() as usize) {
        Kind::File | Kind::Pipe => Ok(Stdio::Direct),
        Kind::Console | Kind::Other | Kind::None => Ok(Stdio::Relayed),
        Kind::Directory => Err(Error::Descriptor {
            fd: number,
            kind: "a directory".to_owned(),
            remedy: "use a pipe, a file or NUL".to_owned(),
        }),
    }
}
