//! Archives: every entry that reaches a sink has a name that stays inside, once, and no more
//! comes out than was announced.
#![no_main]

use std::collections::HashSet;
use std::io::{Read, Write};

use libfuzzer_sys::fuzz_target;
use mcp_package::Result;
use mcp_package::fuzzing::{self as archive, Content, Entry, ArchiveLimits, Sink};

#[derive(Default)]
struct Watch(HashSet<String>);

impl Sink for Watch {
    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
        let path = entry.path.as_str();
        assert!(!path.starts_with('/') && path.split('/').all(|part| !["", ".", ".."].contains(&part)));
        assert!(self.0.insert(path.to_lowercase()), "{path} twice");
        if let Content::Link(target) = &entry.content {
            assert!(!target.starts_with('/'));
        }
        let read = std::io::copy(content, &mut std::io::sink()).unwrap_or(0);
        if let Content::File { length, .. } = entry.content {
            assert!(read <= length);
        }
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("mcp-fuzz-archive-{}", std::process::id()));
    let Ok(mut file) = std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path) else { return };
    if file.write_all(bytes).is_ok() {
        let limits = ArchiveLimits { entries: 1000, file: 1 << 20, total: 4 << 20, ratio: 200 };
        let _ = archive::read(&mut file, &limits, &mut Watch::default());
    }
});
