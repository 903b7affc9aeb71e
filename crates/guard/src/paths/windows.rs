//! Walks a path holding every directory on the way open without delete sharing: while it is held,
//! no process can rename it or put a link in its place. Links of every kind are refused.
//!
//! Checked by the compiler and under Wine only.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::gate::{Gate, Intent, Opened};
use super::refusal::Why;

const FILE_SHARE_READ: u32 = 1;
const FILE_SHARE_WRITE: u32 = 2;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_ATTRIBUTE_REPARSE_POINT: u32 = 0x400;
const FILE_ATTRIBUTE_DIRECTORY: u32 = 0x10;
const FILE_ATTRIBUTE_DEVICE: u32 = 0x40;

#[derive(Debug)]
pub struct Directory(#[allow(dead_code)] File);

impl Directory {
    pub fn open_root(path: &Path) -> io::Result<Directory> {
        held(path).map(Directory)
    }
}

fn held(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)
}

pub fn walk(
    gate: &Gate,
    base: &Path,
    _held: &Directory,
    names: Vec<String>,
    intent: Intent,
) -> Result<Opened, Why> {
    let mut path = base.to_owned();
    let mut so_far: Vec<String> = Vec::new();
    let mut above: Vec<File> = Vec::new();
    gate.check(base, &[])?;
    let last = names.len().saturating_sub(1);
    for (at, name) in names.iter().enumerate() {
        so_far.push(name.clone());
        gate.check(base, &so_far)?;
        path.push(name);
        if at == last {
            let file = open(&path, intent)?;
            return arrived(file, path, intent);
        }
        let directory = held(&path)?;
        let attributes = directory.metadata()?.file_attributes();
        if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
            return Err(Why::Outside);
        }
        if attributes & FILE_ATTRIBUTE_DIRECTORY == 0 {
            return Err(Why::NotA("a directory"));
        }
        above.push(directory);
    }
    let file = held(&path)?;
    arrived(file, path, intent)
}

fn open(path: &Path, intent: Intent) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT);
    match intent {
        Intent::Read | Intent::List => options.read(true),
        Intent::Write => options.read(true).write(true).create(true).truncate(false),
        Intent::Create => options.read(true).write(true).create_new(true),
    };
    options.open(path)
}

fn arrived(file: File, path: PathBuf, intent: Intent) -> Result<Opened, Why> {
    let attributes = file.metadata()?.file_attributes();
    if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        return Err(Why::Outside);
    }
    if attributes & FILE_ATTRIBUTE_DEVICE != 0 {
        return Err(Why::Special);
    }
    match (attributes & FILE_ATTRIBUTE_DIRECTORY != 0, intent == Intent::List) {
        (true, false) => Err(Why::NotA("a file")),
        (false, true) => Err(Why::NotA("a directory")),
        _ => Ok(Opened { file, path }),
    }
}
