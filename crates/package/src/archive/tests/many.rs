//! More entries than the end record of a zip has a number for.

use super::super::{read as read_archive, *};
use crate::scratch::Scratch;

/// As task-master-ai and its like have them.
#[test]
fn more_entries_than_a_zip_has_numbers_for() {
    let scratch = Scratch::new();
    let packed = |count: u32| {
        let mut zip = ZipWriter::new(Vec::new(), Effort::Quick);
        for number in 0..count {
            let path = EntryPath::parse(format!("d{}/{number}", number % 300).as_bytes()).unwrap();
            let content = &mut &b"x"[..];
            zip.add(&path, ZipContent::File { is_executable: false, content }).unwrap();
        }
        zip.finish().unwrap()
    };
    struct Count(u64);
    impl Sink for Count {
        fn entry(&mut self, _: &Entry, _: &mut dyn std::io::Read) -> Result<()> {
            self.0 += 1;
            Ok(())
        }
    }
    let read = |bytes: &[u8]| {
        let path = scratch.file("zip", bytes);
        let mut count = Count(0);
        let mut file = std::fs::File::open(path).unwrap();
        read_archive(&mut file, &ArchiveLimits::DEFAULT, &mut count).map(|()| count.0)
    };
    for count in [65_534, 65_536] {
        assert_eq!(read(&packed(count)).unwrap(), u64::from(count));
    }
    // The records of zip64 say what the others say, or nothing is read.
    let good = packed(65_536);
    let end = good.len() - 22 - 76;
    for at in [
        end,
        end + 4,
        end + 16,
        end + 24,
        end + 32,
        end + 40,
        end + 48,
        end + 56,
        end + 64,
        end + 72,
    ] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(read(&bad).is_err(), "byte {}", at - end);
    }
}
