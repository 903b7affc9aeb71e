//! A small file system of FUSE, served by a thread: one fixed tree, whose names count in any case or in one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// How the server compares names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    Exact,
    /// In any case, and each file is one file.
    Folded,
    /// In any case, and each spelling is a file of its own to the kernel, as with most servers.
    FoldedApart,
}

/// Number of the parent, name, and the text of a file; the number of each is its place, from 2 on.
const TREE: [(u64, &str, Option<&str>); 8] = [
    (1, ".git", None),
    (2, "config", Some("[core]\n\tbare = false\n")),
    (2, "HEAD", Some("ref: refs/heads/main\n")),
    (2, "hooks", None),
    (5, "pre-commit", Some("#!/bin/sh\n")),
    (1, ".env", Some("canary")),
    (1, "sub", None),
    (8, ".env", Some("canary")),
];
const FIRST: u64 = 2;
/// Added to the number of a file that was found by another spelling.
const APART: u64 = 1000;

pub struct Fuse {
    at: PathBuf,
    server: Option<JoinHandle<()>>,
}

impl Fuse {
    /// Mounts it; the reason why not, where it cannot be.
    pub fn mount(at: &Path, names: Names) -> Result<Fuse, String> {
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|e| format!("/dev/fuse: {e}"))?;
        let fd = device.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other");
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let options = std::ffi::CString::new(options).unwrap();
        mount("fuse", at, "fuse", flags, options.as_c_str()).map_err(|e| e.to_string())?;
        let server = std::thread::spawn(move || serve(device, names));
        Ok(Fuse { at: at.to_owned(), server: Some(server) })
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        let _ = unmount(&self.at, UnmountFlags::DETACH);
        // It ends with the last user of the mount.
        drop(self.server.take());
    }
}

/// Little-endian numbers, one after another.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u64s(mut self, numbers: &[u64]) -> Bytes {
        numbers.iter().for_each(|number| self.0.extend(number.to_ne_bytes()));
        self
    }

    fn u32s(mut self, numbers: &[u32]) -> Bytes {
        numbers.iter().for_each(|number| self.0.extend(number.to_ne_bytes()));
        self
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn serve(mut device: File, names: Names) {
    let mut buffer = vec![0; 1 << 17];
    while let Ok(size) = device.read(&mut buffer) {
        let (head, body) = buffer[..size].split_at(40);
        let (operation, unique, node) = (u32_at(head, 4), u64_at(head, 8), u64_at(head, 16));
        let answer = match operation {
            // FORGET, BATCH_FORGET and INTERRUPT want none.
            2 | 42 | 36 => continue,
            1 => lookup(node, body, names),
            3 => Ok(Bytes::default().u64s(&[3600, 0]).0)
                .map(|head| [head, attributes(node)].concat()),
            // INIT: version 7.31, as the kernel's own sizes.
            26 => Ok(Bytes::default().u32s(&[7, 31, 0, 0, 0, 1 << 16, 1, 1]).u32s(&[0; 8]).0),
            14 | 27 => Ok(Bytes::default().u64s(&[0, 0]).0),
            15 => Ok(read(node, u64_at(body, 8), u32_at(body, 16))),
            28 => Ok(list(node, u64_at(body, 8))),
            17 => Ok(Bytes::default().u64s(&[1, 1, 1, 1, 1]).u32s(&[4096, 255]).u32s(&[0; 8]).0),
            18 | 25 | 29 | 34 => Ok(Vec::new()),
            _ => Err(libc::ENOSYS),
        };
        let (error, data) = match answer {
            Ok(data) => (0, data),
            Err(errno) => ((-errno) as u32, Vec::new()),
        };
        let head = Bytes::default().u32s(&[16 + data.len() as u32, error]).u64s(&[unique]).0;
        let _ = device.write(&[head, data].concat());
    }
}

fn entry(node: u64) -> Option<&'static (u64, &'static str, Option<&'static str>)> {
    TREE.get((node % APART).checked_sub(FIRST)? as usize)
}

fn lookup(parent: u64, body: &[u8], names: Names) -> Result<Vec<u8>, i32> {
    let wanted = std::str::from_utf8(&body[..body.len() - 1]).map_err(|_| libc::ENOENT)?;
    let is = |name: &str| match names {
        Names::Exact => name == wanted,
        Names::Folded | Names::FoldedApart => name.eq_ignore_ascii_case(wanted),
    };
    let place = TREE.iter().position(|(of, name, _)| *of == parent % APART && is(name));
    let place = place.ok_or(libc::ENOENT)?;
    let is_apart = parent > APART || TREE[place].1 != wanted;
    let node =
        place as u64 + FIRST + if is_apart && names == Names::FoldedApart { APART } else { 0 };
    let head = Bytes::default().u64s(&[node, 0, 3600, 3600]).u32s(&[0, 0]).0;
    Ok([head, attributes(node)].concat())
}

fn attributes(node: u64) -> Vec<u8> {
    let text = entry(node).and_then(|(_, _, text)| *text);
    let (mode, links) = match text {
        Some(_) => (libc::S_IFREG | 0o666, 1),
        None => (libc::S_IFDIR | 0o777, 2),
    };
    let size = text.map_or(0, str::len) as u64;
    let head = Bytes::default().u64s(&[node, size, 1, 0, 0, 0]);
    head.u32s(&[0, 0, 0, mode, links, 0, 0, 0, 4096, 0]).0
}

fn read(node: u64, offset: u64, size: u32) -> Vec<u8> {
    let text = entry(node).and_then(|(_, _, text)| *text).unwrap_or_default();
    text.bytes().skip(offset as usize).take(size as usize).collect()
}

fn list(node: u64, offset: u64) -> Vec<u8> {
    let mut listed = Vec::new();
    let of = TREE.iter().enumerate().filter(|(_, (parent, ..))| *parent == node % APART);
    for (number, (place, (_, name, text))) in of.enumerate().skip(offset as usize) {
        let kind = if text.is_some() { 8 } else { 4 };
        let head = Bytes::default().u64s(&[place as u64 + FIRST, number as u64 + 1]);
        listed.extend(head.u32s(&[name.len() as u32, kind]).0);
        listed.extend(name.bytes());
        listed.resize(listed.len().next_multiple_of(8), 0);
    }
    listed
}
