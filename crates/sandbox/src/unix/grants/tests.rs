use mcp_policy::Defaults;

use super::*;
use crate::unix::fixture::Fixture;

/// What becomes of `--read path`, and the links on the way.
fn grant(path: &Path) -> Result<(Place, Vec<Link>), String> {
    let origin = Origin::CommandLine { flag: "--read".to_owned() };
    let granted = Sourced::new(path.to_owned(), origin);
    let found = find(std::slice::from_ref(&granted), "read").map_err(|error| error.to_string())?;
    let found = found.into_iter().next().unwrap();
    Ok((found.place, found.way.links))
}

#[test]
fn grants_are_canonical_and_keep_their_links() {
    let f = Fixture::new();
    let real = f.file("real/file", "");
    let link = f.link("link", "real");
    let directory = Place { path: f.path("real"), kind: PlaceKind::Directory };
    assert_eq!(grant(&f.path("real/../real")), Ok((directory.clone(), vec![])));
    let made = Link { at: link.clone(), to: "real".into() };
    assert_eq!(grant(&link), Ok((directory, vec![made.clone()])));
    let file = Place { path: real, kind: PlaceKind::File };
    assert_eq!(grant(&link.join("file")), Ok((file, vec![made])));
}

#[cfg(target_os = "linux")]
#[test]
fn grants_that_are_refused_name_the_path() {
    let f = Fixture::new();
    let proc = f.link("proc", "/proc/self/root/proc");
    let root = f.link("root", "/");
    let socket = f.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (path, why) in [
        (f.path("missing"), "does not exist"),
        (f.link("dangling", "nowhere"), "does not exist"),
        (f.file("file", "").join("below"), "a part of it is not a directory"),
        (PathBuf::from("/proc"), "the sandbox has a /proc of its own"),
        (PathBuf::from("/proc/sys/kernel"), "the sandbox has a /proc of its own"),
        (PathBuf::from("/dev/null"), "the sandbox has a /dev of its own"),
        (proc, "/proc"),
        (PathBuf::from("/"), "the whole host is no sandbox"),
        (root.join("usr/.."), "the whole host is no sandbox"),
        (socket, "is a unix socket; allow it with --allow-unix"),
    ] {
        let error = grant(&path).unwrap_err();
        assert!(error.starts_with(&format!("--read {}: ", path.display())), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn nothing_may_cover_the_own_home() {
    assert!(forbidden(Path::new("/home")).is_some());
    assert_eq!(forbidden(Path::new("/home/me")), None);
    assert_eq!(forbidden(Path::new(HOME)), None);
    assert_eq!(forbidden(Path::new("/processes")), None);
}

/// What becomes of these grants together: the places that can be written, or what is said.
fn both(read: &[PathBuf], write: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut layer = mcp_policy::Layer::command_line("/", None);
    read.iter().for_each(|path| _ = layer.read(path));
    write.iter().for_each(|path| _ = layer.write(path));
    let policy = Policy::merge(&[layer.build().unwrap()], Defaults::run()).unwrap();
    let found = resolve(&policy, None, &mut Vec::new()).map_err(|error| error.to_string())?;
    Ok(found.1.into_iter().map(|place| place.path).collect())
}

#[test]
fn grants_do_not_lead_out_of_what_may_be_written() {
    let f = Fixture::new();
    let project = f.directory("home/project");
    let (keys, own) = (f.directory("keys"), f.directory("home/project/own"));
    let out = f.link("home/project/out", &keys);
    let inside = f.link("home/project/inside", "own");
    let before = f.link("before", "home/project/out");
    let said = "by way of a symlink in a place that the command may write";
    for path in [&out, &before, &f.path("home/project/own/../out")] {
        let one = std::slice::from_ref(path);
        assert!(both(one, std::slice::from_ref(&project)).unwrap_err().contains(said), "{path:?}");
        let two = [project.clone(), path.clone()];
        assert!(both(&[], &two).unwrap_err().contains(said), "{path:?}");
        // The same is allowed where nothing there is writable, or the end is granted by a way of its own.
        assert_eq!(both(one, &[]), Ok(vec![]));
        assert_eq!(
            both(&[path.clone(), keys.clone()], std::slice::from_ref(&project)),
            Ok(vec![project.clone()])
        );
        assert!(both(std::slice::from_ref(&keys), &two).unwrap_err().contains(said), "{path:?}");
    }
    assert_eq!(
        both(std::slice::from_ref(&inside), std::slice::from_ref(&project)),
        Ok(vec![project.clone()])
    );
    assert_eq!(both(&[], &[project.clone(), inside]), Ok(vec![project, own]));
}
