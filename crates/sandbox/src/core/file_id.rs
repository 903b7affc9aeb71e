//! Which file a name stands for: a name alone can stand for another file a moment later, and a number alone too,
//! for file systems give the numbers of removed files to new ones.

use serde::Serialize;

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileId {
    /// The device.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Seconds and nanoseconds; not every file system keeps it.
    pub born: Option<(i64, u32)>,
}

impl FileId {
    /// Whether two looks saw the same file. Without a time of birth the numbers have to do.
    pub fn is_same(&self, other: &FileId) -> bool {
        let born = match (self.born, other.born) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        };
        (self.device, self.inode) == (other.device, other.inode) && born
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_again_is_another_file() {
        let id = |inode, born| FileId { device: 1, inode, born };
        assert!(id(7, Some((1, 2))).is_same(&id(7, Some((1, 2)))));
        assert!(!id(7, Some((1, 2))).is_same(&id(7, Some((1, 3)))));
        assert!(!id(7, None).is_same(&id(8, None)));
        assert!(id(7, None).is_same(&id(7, Some((1, 2)))));
    }
}
