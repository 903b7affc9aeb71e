//! Descriptors that only the launcher can open for the sandbox: the standard ones and, as root, granted trees.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use crate::core::request::{Request, Stdio};
use crate::linux::failure::{LaunchFailure, at_step};
use crate::linux::mounts::{STAGED_LAYER, Trees, host_tree};
use crate::linux::owner_map::OwnerMap;
use crate::linux::phases::LinuxPlan;
use crate::linux::relay::{Pipe, Relay, is_same_file, own_nonblocking, set_nonblocking};
use crate::linux::step::{Access, Numbered, Owner, Placed};
use crate::linux::{stdio, terminal};
use crate::unix::terminal::standard;

/// Ends of relays for what must not get inside, and files opened again.
pub(super) type PreparedStdio = ([Option<OwnedFd>; 3], (Vec<Relay>, Vec<Relay>));

/// `namespaces` is the step that is to blame where there cannot be one more.
pub(super) fn prepare_stdio(
    request: &Request,
    map: Option<&OwnerMap>,
    namespaces: usize,
) -> Result<PreparedStdio, LaunchFailure> {
    let mut ends: [Option<OwnedFd>; 3] = [None, None, None];
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let most = request.policy.limits.file_size.value.map(|size| size.0);
    for (fd, kind) in (0..).zip(&request.stdio) {
        let user = standard(fd);
        match kind {
            Stdio::Direct | Stdio::Terminal => {}
            Stdio::ReadOnlyFile(path) => {
                // Without root init does it, in namespaces where it may mount.
                if let Some(map) = map {
                    let owners = map.of_root().map_err(|e| at_step(namespaces, &e))?;
                    let opened = stdio::open_read_only(user, path, Some(owners))
                        .or_else(|_| stdio::open_read_only(user, path, None));
                    match opened {
                        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {}
                        other => ends[fd as usize] = Some(other?),
                    }
                }
            }
            Stdio::Relayed
                if fd == 2
                    && ends[1].is_some()
                    && request.stdio[1] == Stdio::Relayed
                    && is_same_file(standard(1), user) =>
            {
                ends[2] = ends[1].as_ref().map(OwnedFd::try_clone).transpose()?;
            }
            Stdio::Filtered => {
                let Pipe { read, write } = Pipe::new()?;
                map.iter().for_each(|map| map.give(write.as_fd()));
                set_nonblocking(read.as_fd())?;
                outputs.push(Relay::filtered(read, own_nonblocking(user)?, most));
                ends[fd as usize] = Some(write);
            }
            Stdio::Relayed => {
                let own = match rustix::termios::isatty(user) {
                    true => terminal::reopen(user)?,
                    false => user.try_clone_to_owned()?,
                };
                let Pipe { read, write } = Pipe::new()?;
                map.iter().for_each(|map| map.give(write.as_fd()));
                if fd == 0 {
                    set_nonblocking(write.as_fd())?;
                    inputs.push(Relay::new(own, write));
                    ends[0] = Some(read);
                } else {
                    set_nonblocking(read.as_fd())?;
                    outputs.push(Relay::output(read, own, most));
                    ends[fd as usize] = Some(write);
                }
            }
        }
    }
    Ok((ends, (inputs, outputs)))
}

/// As root, granted trees are made here: what root may read, its stand-in may not even reach. `namespaces` is the
/// step that is to blame where there cannot be one more.
pub(super) fn prepare_trees(
    plan: &LinuxPlan,
    map: Option<&OwnerMap>,
    namespaces: usize,
) -> Result<(Trees, Vec<PathBuf>), LaunchFailure> {
    let (mut trees, mut unmapped) = (Trees::new(), Vec::new());
    let Some(map) = map else {
        return Ok((trees, unmapped));
    };
    for Numbered { number, step, .. } in plan.placed() {
        let staged = PathBuf::from(STAGED_LAYER);
        let (from, at, access) = match step {
            Placed::Bind { from, at, access, owner: Owner::CallerMapped, .. } => (from, at, access),
            Placed::Layer { kept_in, owner: Owner::CallerMapped, .. } => {
                (kept_in, &staged, &Access::ReadWrite)
            }
            _ => continue,
        };
        let owners = map.of(from).map_err(|e| at_step(namespaces, &e))?;
        let tree = match mapped_tree(from, *access, owners) {
            Ok(Some(tree)) => tree,
            Ok(None) => {
                unmapped.push(from.clone());
                match host_tree(from, *access, None) {
                    // Root of a container may not copy mounts; init can, in namespaces of its own.
                    Err(e) if e.raw_os_error() == Some(libc::EPERM) => continue,
                    other => other.map_err(|e| at_step(*number, &e))?,
                }
            }
            Err(e) => return Err(at_step(*number, &e)),
        };
        trees.insert(at.clone(), tree);
    }
    Ok((trees, unmapped))
}

/// `None` where the file system cannot map owners.
fn mapped_tree(
    from: &std::path::Path,
    access: Access,
    map: &OwnedFd,
) -> io::Result<Option<OwnedFd>> {
    match host_tree(from, access, Some(map)) {
        Ok(tree) => Ok(Some(tree)),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EPERM | libc::ENOSYS)) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}
