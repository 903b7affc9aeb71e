//! What a run takes of the host before it is planned: a name, and a cgroup where its limits need
//! one.

use std::io::Read;

use rustix::process::getuid;

use crate::core::request::Request;
use crate::core::run_record::RunId;
use crate::linux::cgroup::held::RunCgroup;
use crate::linux::cgroup::{disks, limits, place};
use crate::linux::facts::{CgroupFacts, HeldCgroup, LinuxFacts};
use crate::linux::sys;

/// Given back when it is dropped, or by the run that it was made for.
pub struct Reservation {
    pub(super) id: RunId,
    pub(super) cgroup: Option<RunCgroup>,
}

/// Takes what the request needs, and writes down in the facts what was to be had.
pub fn reserve(request: &Request, facts: &mut LinuxFacts) -> Reservation {
    let asked = &request.policy.limits;
    let id = RunId::random();
    let wanted = limits::wanted(asked);
    if wanted.is_empty() {
        return Reservation { id, cgroup: None };
    }
    let (found, cgroup) = take(&wanted, &id);
    facts.cgroup = found;
    if asked.io.value.is_some() {
        let disks = disks::of(&request.write);
        facts.cgroup.disks = disks.named;
        facts.cgroup.unbounded = disks.unbounded;
    }
    Reservation { id, cgroup }
}

fn take(wanted: &[&str], id: &RunId) -> (CgroupFacts, Option<RunCgroup>) {
    let place::OwnCgroup { mount, held } = place::reserve(wanted, id, getuid().is_root());
    let mut facts = CgroupFacts { mount, ..CgroupFacts::default() };
    match held {
        Ok(held) => {
            let (at, controllers) = (held.run().path.clone(), held.controllers.clone());
            facts.held = Some(HeldCgroup { at, means: held.means, controllers });
            (facts, Some(held))
        }
        Err(why) => {
            facts.why_not = Some(why);
            (facts, None)
        }
    }
}

/// What a run that asked for every limit would get here. Tried in a child: a launcher may be moved
/// to another cgroup for it.
pub fn probe() -> CgroupFacts {
    let failed = |why: String| CgroupFacts { why_not: Some(why), ..CgroupFacts::default() };
    let (read, write) = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(e) => return failed(e.to_string()),
    };
    match sys::clone_process(0) {
        Ok(sys::Cloned::Child) => {
            drop(read);
            let all = [limits::MEMORY, limits::PIDS, limits::CPU, limits::IO];
            let (facts, held) = take(&all, &RunId::random());
            drop(held);
            let sent = serde_json::to_writer(&write, &facts);
            sys::exit_now(sent.is_err().into())
        }
        Ok(sys::Cloned::Parent { pid, .. }) => {
            drop(write);
            let mut text = Vec::new();
            let _ = { read }.read_to_end(&mut text);
            let _ = sys::wait_for(pid);
            serde_json::from_slice(&text).unwrap_or_else(|e| failed(e.to_string()))
        }
        Err(e) => failed(e.to_string()),
    }
}
