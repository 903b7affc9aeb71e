use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A process that is ours stands in for init.
fn record(id: &RunId) -> Record {
    let own = std::process::id();
    Record {
        id: id.clone(),
        command: vec!["x".to_owned()],
        since: 0,
        launcher: own,
        init: own,
        init_started: 1,
        cgroup: None,
    }
}

struct TestDirectory(std::path::PathBuf);

impl TestDirectory {
    fn new(mode: u32) -> TestDirectory {
        let path = std::env::temp_dir().join(format!("mcp-runs-{}", RunId::random()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        TestDirectory(path)
    }

    fn directory(&self) -> Option<Directory> {
        directory::open(&self.0)
    }

    fn put(&self, name: &str, text: &[u8]) {
        fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_directory_that_others_may_enter_is_not_used() {
    assert!(TestDirectory::new(0o700).directory().is_some());
    for mode in [0o755, 0o770, 0o701, 0o777] {
        assert!(TestDirectory::new(mode).directory().is_none(), "{mode:o}");
    }
    let place = TestDirectory::new(0o700);
    std::os::unix::fs::symlink(&place.0, place.0.join("link")).unwrap();
    assert!(directory::open(&place.0.join("link")).is_none());
}

#[test]
fn a_record_is_read_while_it_is_locked_and_removed_after() {
    let place = TestDirectory::new(0o700);
    let directory = place.directory().unwrap();
    let id = RunId::random();
    let name = file_name(&id);
    let locked = create(&directory, &name).unwrap();
    // Half a record is none, and stays.
    assert!(open(&directory, &name).is_none());
    rustix::io::write(&locked, &serde_json::to_vec(&record(&id)).unwrap()).unwrap();
    assert_eq!(open(&directory, &name).unwrap().0, record(&id));
    drop(locked);
    assert!(open(&directory, &name).is_none());
    assert!(directory.names(9).is_empty());
}

#[test]
fn nonsense_is_passed_over() {
    let place = TestDirectory::new(0o700);
    let directory = place.directory().unwrap();
    let id = RunId::random();
    place.put("zzzzzzzz.json", b"{}");
    place.put("notes.json", b"{}");
    fs::create_dir(place.0.join("00000001.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.0.join("00000002.json")).unwrap();
    let pipe = place.0.join("00000003.json");
    // Of the crates here none makes a FIFO on macOS.
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // The record of another run under this name, locked by a living process.
    let other = create(&directory, "00000004.json").unwrap();
    rustix::io::write(&other, &serde_json::to_vec(&record(&id)).unwrap()).unwrap();
    for name in directory.names(usize::MAX) {
        assert!(open(&directory, &name).is_none(), "{name}");
    }
    assert_eq!(directory.names(usize::MAX).len(), 6, "only what is ours and stale is removed");
}
