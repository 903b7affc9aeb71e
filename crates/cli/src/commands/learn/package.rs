//! The package that is learned about, in the store before the first round.

use std::ffi::OsString;

use crate::args::learn::Subject;
use crate::failure::Failure;
use crate::package_runner::{self, Meaning};
use crate::packages::locate::{self, Located, Looking};

/// A package is fetched once, and its dependencies once more where its bundle leaves them to others.
const MOST_FETCHES: u8 = 2;

/// Fetches the package where the store lacks it, with the lines of an ordinary installation. What cannot be taken for
/// a package is left to the round, which says what is wrong with it.
pub fn install(args: &Subject) -> Result<(), Failure> {
    let Some(word) = named(args) else { return Ok(()) };
    let fetching = &args.package.fetching;
    for fetched in 0..=MOST_FETCHES {
        let looking = Looking { fetching, explain: false, fetched };
        if let Located::Ready(_) = locate::locate(&word, &looking)? {
            break;
        }
    }
    Ok(())
}

fn named(args: &Subject) -> Option<OsString> {
    if args.reference.is_some() {
        return args.reference.clone();
    }
    match package_runner::understand(&args.command) {
        Meaning::Package(line) if line.with.is_empty() => Some(line.reference.into()),
        _ => None,
    }
}
