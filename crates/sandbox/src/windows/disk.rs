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

/// How many names a file has.
pub fn count_names(path: &Path) -> io::Result<u64> {
    Ok(Object::open(path, Purpose::Looking)?.look()?.names.into())
}
