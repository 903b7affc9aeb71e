//! The disks that writable grants are on, as `io.max` wants them named.

use std::fs;
use std::path::PathBuf;

use crate::core::request::Place;

#[derive(Debug, Default)]
pub struct Disks {
    /// `MAJOR:MINOR` of whole disks.
    pub named: Vec<String>,
    /// Grants on no disk that could be bounded: memory, network and layered file systems.
    pub unbounded: Vec<PathBuf>,
}

pub fn of(places: &[Place]) -> Disks {
    let mut disks = Disks::default();
    for place in places {
        match disk(place) {
            Some(disk) if disks.named.contains(&disk) => {}
            Some(disk) => disks.named.push(disk),
            None => disks.unbounded.push(place.path.clone()),
        }
    }
    disks
}

fn disk(place: &Place) -> Option<String> {
    let device = rustix::fs::stat(&place.path).ok()?.st_dev;
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let described = PathBuf::from(format!("/sys/dev/block/{number}"));
    if described.join("partition").exists() {
        // A link to the partition's place below its disk.
        let whole = described.canonicalize().ok()?;
        return Some(fs::read_to_string(whole.parent()?.join("dev")).ok()?.trim().to_owned());
    }
    described.exists().then_some(number)
}
