//! Archives made byte by byte, and what becomes of them.

mod against_crates;
mod hostile;
mod packing;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

mod many;

use super::*;
use crate::scratch::Scratch;

/// One entry for the makers below.
#[derive(Clone)]
struct Made {
    name: Vec<u8>,
    mode: u32,
    content: Vec<u8>,
}

fn file(name: &str, content: &str) -> Made {
    Made { name: name.into(), mode: 0o100_644, content: content.into() }
}

fn with_mode(name: &str, mode: u32, content: &str) -> Made {
    Made { mode, ..file(name, content) }
}

/// A zip with stored entries.
fn zip(entries: &[Made]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let mut crc = flate2::Crc::new();
        crc.update(&entry.content);
        let mut common = vec![20, 0, 0, 8, 0, 0, 0, 0, 33, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend((entry.content.len() as u32).to_le_bytes());
        common.extend((entry.content.len() as u32).to_le_bytes());
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(&entry.name);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(&entry.name);
        out.extend(&entry.content);
    }
    let at = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn tar_header(name: &str, mode: u32, length: usize, kind: u8, link: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
    block[124..136].copy_from_slice(format!("{length:011o}\0").as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn tar_entry(name: &str, mode: u32, kind: u8, link: &str, content: &[u8]) -> Vec<u8> {
    let mut out = tar_header(name, mode, content.len(), kind, link);
    out.extend(content);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut out = entries.concat();
    out.extend([0; 1024]);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Unpacks into a directory of its own, with a neighbour that must stay as it is.
fn unpack_with(bytes: &[u8], limits: &ArchiveLimits) -> Result<(Scratch, Vec<PathBuf>)> {
    let scratch = Scratch::new();
    let archive = scratch.file("archive", bytes);
    let root = scratch.dir("box/root");
    let outcome =
        read(&mut fs::File::open(archive).unwrap(), limits, &mut Unpack::into(&root).unwrap());
    let neighbours: Vec<_> = fs::read_dir(scratch.join("box")).unwrap().collect();
    assert_eq!(neighbours.len(), 1, "something was written outside: {neighbours:?}");
    outcome?;
    let tree = scratch.tree(&root);
    Ok((scratch, tree))
}

fn unpack(bytes: &[u8]) -> Result<Vec<PathBuf>> {
    unpack_with(bytes, &ArchiveLimits::DEFAULT).map(|(_, tree)| tree)
}

#[track_caller]
fn refused(bytes: &[u8], said: &str) {
    match unpack(bytes) {
        Ok(tree) => panic!("taken: {tree:?}"),
        Err(error) => assert!(error.to_string().contains(said), "{error}"),
    }
}
