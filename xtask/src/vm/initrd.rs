//! The first file system of a guest: busybox, the modules that reach the rest, two scripts.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;
use crate::vm::tools;

const INIT: &str = include_str!("../../vm/init");
const GUEST: &str = include_str!("../../vm/guest");

/// Those that the kernel has built in are not needed.
const MODULES: [&str; 9] = [
    "virtio_pci",
    "virtio_blk",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
    "crc32c_generic",
    "crc32c-cryptoapi",
    "ext4",
];

/// `modules`: the kernel's own directory, with depmod's files in it.
pub fn make(modules: &Path) -> Result<Vec<u8>> {
    let busybox = std::fs::read("/bin/busybox")
        .map_err(|e| format!("/bin/busybox: {e}: apt-get install busybox-static"))?;
    let mut archive = CpioArchive::default();
    for directory in ["bin", "dev", "proc", "sys", "host", "layer", "new", "modules"] {
        archive.directory(directory);
    }
    archive.file("bin/busybox", &busybox);
    archive.file("init", INIT.as_bytes());
    archive.file("guest", GUEST.as_bytes());
    let dependencies = std::fs::read_to_string(modules.join("modules.dep"))?;
    let mut order = String::new();
    for path in in_order(&dependencies, &MODULES) {
        let name = module_name(&path);
        archive.file(&format!("modules/{name}"), &tools::expanded(&modules.join(&path))?);
        order += &format!("{name}\n");
    }
    archive.file("modules/order", order.as_bytes());
    Ok(archive.finish())
}

/// The files of these modules and of all that they need, each after what it needs.
fn in_order(dependencies: &str, wanted: &[&str]) -> Vec<String> {
    let needs: BTreeMap<&str, Vec<&str>> = dependencies
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| (path, needs.split_whitespace().collect()))
        .collect();
    fn visit<'a>(path: &'a str, needs: &BTreeMap<&'a str, Vec<&'a str>>, order: &mut Vec<String>) {
        if order.iter().any(|seen| seen == path) {
            return;
        }
        for need in needs.get(path).into_iter().flatten() {
            visit(need, needs, order);
        }
        order.push(path.to_owned());
    }
    let mut order = Vec::new();
    for name in wanted {
        if let Some(path) = needs.keys().find(|path| module_name(path) == *name) {
            visit(path, &needs, &mut order);
        }
    }
    order
}

fn module_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split_once(".ko").map_or(file, |(name, _)| name)
}

/// A cpio archive in the format that kernels read ("newc").
#[derive(Default)]
struct CpioArchive {
    bytes: Vec<u8>,
    count: u32,
}

impl CpioArchive {
    fn directory(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_755, content);
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.count += 1;
        let fields = [
            self.count,
            mode,
            0,
            0,
            1,
            0,
            content.len() as u32,
            0,
            0,
            0,
            0,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_after_what_it_needs() {
        let dependencies = "kernel/a.ko.xz: kernel/b.ko.xz kernel/c.ko.xz\n\
                            kernel/b.ko.xz: kernel/c.ko.xz\nkernel/c.ko.xz:\nkernel/d.ko.xz:\n";
        let order = in_order(dependencies, &["a", "built-in", "c"]);
        assert_eq!(order, ["kernel/c.ko.xz", "kernel/b.ko.xz", "kernel/a.ko.xz"]);
    }

    #[test]
    fn entries_are_aligned_and_the_archive_ends() {
        let mut archive = CpioArchive::default();
        archive.file("name", b"12345");
        let bytes = archive.finish();
        assert!(bytes.starts_with(b"070701"));
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[116..121], b"12345");
        assert!(bytes.windows(10).any(|window| window == b"TRAILER!!!"));
    }
}
