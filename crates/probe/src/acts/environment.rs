//! Acts that look at what the process was given: variables, directory, streams, clock.

use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::spec::{Args, Said};

/// The names of the variables, sorted, one per line; never their values.
pub(crate) fn names(_: Args<'_>) -> Said {
    let mut names: Vec<_> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names.join("\n"))
}

pub(crate) fn value(args: Args<'_>) -> Said {
    let value = args.get(0).and_then(std::env::var_os);
    let value = value.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(value.to_string_lossy().into_owned())
}

pub(crate) fn cwd(_: Args<'_>) -> Said {
    Ok(std::env::current_dir()?.display().to_string())
}

/// Reads stdin to its end and gives the number of bytes.
pub(crate) fn stdin_read(_: Args<'_>) -> Said {
    let mut chunk = [0; 4096];
    let mut length = 0;
    loop {
        match io::stdin().lock().read(&mut chunk)? {
            0 => return Ok(length.to_string()),
            count => length += count,
        }
    }
}

pub(crate) fn write_stdout(args: Args<'_>) -> Said {
    let mut out = io::stdout().lock();
    out.write_all(args.text(0).as_bytes())?;
    out.flush()?;
    Ok(String::new())
}

pub(crate) fn write_stderr(args: Args<'_>) -> Said {
    io::stderr().lock().write_all(args.text(0).as_bytes())?;
    Ok(String::new())
}

/// Seconds since 1970.
pub(crate) fn time(_: Args<'_>) -> Said {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(since.as_secs().to_string())
}
