//! Acts on files, in std's own words.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::spec::{Args, Failure, Said};

/// Enough to recognise a file by, without flooding the report.
const SHOWN: u64 = 4096;
const CHUNK: usize = 1 << 20;
const TEXT: &str = "mcp-probe\n";

pub(crate) fn read(args: Args<'_>) -> Said {
    let mut content = Vec::new();
    fs::File::open(args.path(0))?.take(SHOWN).read_to_end(&mut content)?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

/// Appends to a file that exists.
pub(crate) fn write(args: Args<'_>) -> Said {
    let text = args.text_or(1, TEXT);
    OpenOptions::new().append(true).open(args.path(0))?.write_all(text.as_bytes())?;
    Ok(format!("{} bytes", text.len()))
}

pub(crate) fn create(args: Args<'_>) -> Said {
    let text = args.text_or(1, TEXT);
    let mut file = OpenOptions::new().write(true).create_new(true).open(args.path(0))?;
    file.write_all(text.as_bytes())?;
    Ok(format!("{} bytes", text.len()))
}

pub(crate) fn list(args: Args<'_>) -> Said {
    names(args.path(0))
}

/// The names in a directory, sorted, one per line.
pub(crate) fn names(dir: &Path) -> Said {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names.join("\n"))
}

pub(crate) fn stat(args: Args<'_>) -> Said {
    let metadata = fs::metadata(args.path(0))?;
    let kind = if metadata.is_dir() {
        "directory"
    } else if metadata.is_file() {
        "file"
    } else {
        "other"
    };
    Ok(format!("kind={kind} size={}{}", metadata.len(), ownership(&metadata)))
}

#[cfg(unix)]
fn ownership(metadata: &fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    let (mode, uid, gid) = (metadata.mode() & 0o7777, metadata.uid(), metadata.gid());
    format!(" mode={mode:04o} uid={uid} gid={gid}")
}

#[cfg(not(unix))]
fn ownership(_metadata: &fs::Metadata) -> String {
    String::new()
}

pub(crate) fn unlink(args: Args<'_>) -> Said {
    fs::remove_file(args.path(0))?;
    Ok("removed".into())
}

pub(crate) fn mkdir(args: Args<'_>) -> Said {
    fs::create_dir(args.path(0))?;
    Ok("made".into())
}

pub(crate) fn rmdir(args: Args<'_>) -> Said {
    fs::remove_dir(args.path(0))?;
    Ok("removed".into())
}

pub(crate) fn rename(args: Args<'_>) -> Said {
    fs::rename(args.path(0), args.path(1))?;
    Ok("renamed".into())
}

pub(crate) fn symlink(args: Args<'_>) -> Said {
    #[cfg(unix)]
    std::os::unix::fs::symlink(args.path(0), args.path(1))?;
    #[cfg(windows)]
    std::os::windows::fs::symlink_file(args.path(0), args.path(1))?;
    Ok("linked".into())
}

pub(crate) fn hardlink(args: Args<'_>) -> Said {
    fs::hard_link(args.path(0), args.path(1))?;
    Ok("linked".into())
}

/// Grows one file; where it stops is how far it came.
pub(crate) fn write_big(args: Args<'_>) -> Said {
    // The default of SIGXFSZ would end the probe before it can tell.
    #[cfg(target_os = "linux")]
    crate::sys::ignore(libc::SIGXFSZ);
    let mut file = fs::File::create(args.path(0))?;
    let mut written = 0;
    pour(&mut file, args.count(1)?, &mut written)
        .map_err(|error| Failure::after(&error, written.to_string()))?;
    Ok(written.to_string())
}

/// Fills a directory with files of a megabyte, then removes them.
pub(crate) fn fill(args: Args<'_>) -> Said {
    let total = args.count(1)?;
    let mut made = Vec::new();
    let mut written = 0;
    let mut result = Ok(());
    while written < total && result.is_ok() {
        let path = args.path(0).join(format!("mcp-probe-fill-{}", made.len()));
        result =
            OpenOptions::new().write(true).create_new(true).open(&path).and_then(|mut file| {
                made.push(path);
                pour(&mut file, CHUNK.min(total - written), &mut written)
            });
    }
    for path in made {
        fs::remove_file(path)?;
    }
    result.map_err(|error| Failure::after(&error, written.to_string()))?;
    Ok(written.to_string())
}

fn pour(file: &mut fs::File, bytes: usize, written: &mut usize) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    let goal = *written + bytes;
    while *written < goal {
        let chunk = &zeros[..CHUNK.min(goal - *written)];
        *written += file.write(chunk)?;
    }
    Ok(())
}
