//! The files of this machine, for [`spread`](crate::windows::spread).

use std::io;
use std::path::Path;

use mcp_policy::WindowsPath;
use mcp_policy::windows_path::Spelling;

use crate::windows::access_list::{Descriptor, List};
use crate::windows::spread::{Look, Objects};
use crate::windows::sys::acl::{Object, Purpose};

pub struct Disk;

impl Objects for Disk {
    type Object = Object;

    /// What was put in the place of a directory on the way, by whoever runs at the same time, is not opened.
    fn open(&self, path: &WindowsPath) -> io::Result<Object> {
        let object = Object::open(Path::new(&path.verbatim()), Purpose::Changing)?;
        let place = object.place()?;
        let is_it =
            place.to_str().and_then(|place| WindowsPath::parse(place, Spelling::Resolved).ok());
        match is_it.is_some_and(|place| place == *path) {
            true => Ok(object),
            false => Err(io::Error::other(format!("{path} leads to {}", place.display()))),
        }
    }

    fn look(&self, object: &Object) -> io::Result<Look> {
        object.look()
    }

    fn list(&self, object: &Object) -> io::Result<List> {
        listed(&descriptor(object)?)
    }

    fn write(&self, object: &Object, list: &List) -> io::Result<()> {
        let bytes = descriptor(object)?.bytes_with(list);
        object.set_descriptor(&bytes.ok_or_else(|| io::Error::other("its access list is full"))?)
    }

    fn names(&self, directory: &WindowsPath) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(directory.verbatim())?;
        Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }
}

fn descriptor(object: &Object) -> io::Result<Descriptor> {
    Descriptor::parse(&object.descriptor()?)
        .ok_or_else(|| io::Error::other("its access list is odd"))
}

fn listed(descriptor: &Descriptor) -> io::Result<List> {
    descriptor.list.clone().ok_or_else(|| {
        // Open to all; one entry of ours would close it to everybody else.
        let why = "has no access list, which a container cannot be let through";
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

/// What a file or directory lets a SID do, whether or not it is ours to change.
pub fn gives(path: &WindowsPath, sid: &[u8]) -> io::Result<u32> {
    let object = Object::open(Path::new(&path.verbatim()), Purpose::Looking)?;
    Ok(listed(&descriptor(&object)?)?.gives(sid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::access::{Access, Grant};
    use crate::windows::access_list::sid;
    use crate::windows::keep::{Keep, Kept};
    use crate::windows::spread::{let_in, shut_out};

    /// Nobody has this SID, so it opens nothing to anybody.
    const NOBODY: &str = "S-1-15-2-11-22-33-44-55-66-77";

    #[test]
    fn entries_are_set_around_what_is_kept_and_withdrawn() {
        let at = std::env::temp_dir().join(format!("mcp-disk-{}", std::process::id()));
        std::fs::create_dir_all(at.join("src")).unwrap();
        for file in ["closed", r"src\open"] {
            std::fs::write(at.join(file), "x").unwrap();
        }
        std::fs::hard_link(at.join("closed"), at.join(r"src\alias")).unwrap();
        let root = crate::windows::probe::resolved(&at).unwrap();
        let path =
            |name: &str| name.split('\\').fold(root.clone(), |at, name| at.join(name).unwrap());
        let nobody = sid(NOBODY).unwrap();
        let keeps = [Keep { path: path("closed"), kept: Kept::Closed }];
        let grant = Grant { path: root.clone(), access: Access::Write };
        let descriptor = |name: &str| {
            let path = if name.is_empty() { root.clone() } else { path(name) };
            self::descriptor(&Disk.open(&path).unwrap()).unwrap()
        };
        let all = ["", "closed", "src", r"src\open", r"src\alias"];
        let before: Vec<_> = all.map(descriptor).into();
        match let_in(&Disk, &nobody, &grant, &keeps) {
            Ok(()) => {
                assert_eq!(gives(&path(r"src\open"), &nobody).unwrap(), Access::Write.mask());
                for closed in ["closed", r"src\alias"] {
                    assert_eq!(gives(&path(closed), &nobody).unwrap(), 0, "{closed}");
                }
            }
            // The root was read back, and the entry is not there: such a run is never started.
            Err(e) => println!("NOT VERIFIED: entries: {e}"),
        }
        shut_out(&Disk, &nobody, &root).unwrap();
        assert_eq!(Vec::from(all.map(descriptor)), before);
        std::fs::remove_dir_all(&at).unwrap();
    }

    #[test]
    fn what_is_reached_by_another_way_is_not_opened() {
        let at = std::env::temp_dir().join(format!("mcp-disk-way-{}", std::process::id()));
        std::fs::create_dir_all(&at).unwrap();
        let root = crate::windows::probe::resolved(&at).unwrap();
        assert!(Disk.open(&root).is_ok(), "the control");
        let look = Disk.look(&Disk.open(&root).unwrap()).unwrap();
        assert_eq!(look.kind, crate::windows::spread::Kind::Directory);
        std::fs::remove_dir_all(&at).unwrap();
        assert!(Disk.open(&root).is_err());
    }
}
