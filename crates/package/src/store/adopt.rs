//! The directory that a bundle was just packed from becomes the package's files, instead of the bundle being unpacked.
//!
//! Stops: what a bundle could not hold (a second name of a file, set-user-id, attributes, an access list) and what it
//! does not keep (who else may write). Such a tree is not taken, and the bundle is unpacked as any other. No process
//! that could write to the tree may live: who calls this has ended them. Unix only.

use std::path::Path;

/// Moves the tree to `root`, with the modes that unpacking gives. `false` where it has to be unpacked.
#[cfg(unix)]
pub fn adopt(tree: &Path, root: &Path) -> bool {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    seal(tree).is_ok_and(|is_plain| is_plain)
        && set_permissions(tree, Permissions::from_mode(0o700)).is_ok()
        && std::fs::rename(tree, root).is_ok()
}

#[cfg(not(unix))]
pub fn adopt(_: &Path, _: &Path) -> bool {
    false
}

/// Gives each entry its mode. `false` at the first that is not what an archive holds.
#[cfg(unix)]
fn seal(tree: &Path) -> std::io::Result<bool> {
    use std::fs::{Permissions, read_dir, set_permissions, symlink_metadata};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let mut pending = vec![tree.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in read_dir(&directory)? {
            let path = entry?.path();
            let found = symlink_metadata(&path)?;
            if found.is_symlink() {
                continue;
            }
            let wanted = match (found.is_dir(), found.mode() & 0o111 != 0) {
                (true, _) => 0o755,
                (false, true) => 0o555,
                (false, false) => 0o444,
            };
            let is_plain = found.is_dir() || (found.is_file() && found.nlink() == 1);
            if !is_plain || found.mode() & 0o7000 != 0 || has_attributes(&path) {
                return Ok(false);
            }
            if found.mode() & 0o7777 != wanted {
                set_permissions(&path, Permissions::from_mode(wanted))?;
            }
            if found.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(true)
}

/// Access lists and capabilities are attributes. A label of the system's own security module every file has.
#[cfg(unix)]
fn has_attributes(path: &Path) -> bool {
    let mut names = [0_u8; 1024];
    match rustix::fs::llistxattr(path, &mut names[..]) {
        Ok(length) => {
            let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
            let is_label =
                |name: &[u8]| name == b"security.selinux" || name.starts_with(b"com.apple.");
            names.into_iter().any(|name| !is_label(name))
        }
        Err(rustix::io::Errno::NOTSUP) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::*;
    use crate::scratch::Scratch;

    fn tree(scratch: &Scratch, name: &str) -> PathBuf {
        let tree = scratch.path().join(name);
        fs::create_dir_all(tree.join("bin")).unwrap();
        fs::write(tree.join("bin/run"), "#!/bin/sh\n").unwrap();
        fs::write(tree.join("data"), "x").unwrap();
        std::os::unix::fs::symlink("bin/run", tree.join("link")).unwrap();
        fs::set_permissions(tree.join("bin/run"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(tree.join("data"), fs::Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(tree.join("bin"), fs::Permissions::from_mode(0o777)).unwrap();
        tree
    }

    #[test]
    fn a_tree_gets_the_modes_of_an_unpacked_one() {
        let scratch = Scratch::new();
        let (tree, root) = (tree(&scratch, "tree"), scratch.path().join("root"));
        assert!(adopt(&tree, &root));
        assert!(!tree.exists());
        let mode =
            |name: &str| fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o7777;
        let modes = ["", "bin", "bin/run", "data"].map(mode);
        assert_eq!(modes, [0o700, 0o755, 0o555, 0o444]);
        assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("bin/run"));
    }

    /// Each of these a script of a package could leave.
    #[test]
    fn what_no_archive_holds_is_not_taken() {
        type Act = fn(&Path);
        let acts: [(&str, Act); 3] = [
            ("second-name", |tree| fs::hard_link(tree.join("data"), tree.join("again")).unwrap()),
            ("set-user-id", |tree| {
                fs::set_permissions(tree.join("bin/run"), fs::Permissions::from_mode(0o4755))
                    .unwrap();
            }),
            ("socket", |tree| drop(UnixListener::bind(tree.join("socket")).unwrap())),
        ];
        for (name, act) in acts {
            let scratch = Scratch::new();
            let (tree, root) = (tree(&scratch, name), scratch.path().join("root"));
            act(&tree);
            assert!(!adopt(&tree, &root), "{name}");
            assert!(tree.exists() && !root.exists(), "{name}");
        }
    }
}
