//! Properties that hold for every request on every host.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;
use crate::core::report::{Answer, Ending, Evidence, Report, Status, Usage};
use crate::core::request::{HOME, Home, Place};
use crate::linux::landlock::Allowed;
use crate::linux::plan::arbitrary;
use crate::linux::step::{Access, ListedStep, Stage, Step};

/// What stands at a path inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    /// Writable, and nothing that the host has at this path.
    Own,
    Host(Access),
}

/// What stands where once every step has run: a later mount hides what was there before.
fn mounts(plan: &LinuxPlan) -> Vec<(PathBuf, There)> {
    let mut table: Vec<(PathBuf, There)> = Vec::new();
    let mut mount = |at: &Path, there| {
        table.retain(|(hidden, _)| !hidden.starts_with(at));
        table.push((at.to_owned(), there));
    };
    for placed in plan.placed() {
        match &placed.step {
            Placed::Show { path, .. } => mount(path, There::Host(Access::ReadOnly)),
            Placed::Bind { at, from, .. } if at != from => mount(at, There::Own),
            Placed::Bind { at, access, .. } => mount(at, There::Host(*access)),
            Placed::Scratch { places } => places.iter().for_each(|(at, _)| mount(at, There::Own)),
            _ => {}
        }
    }
    table
}

fn there(mounts: &[(PathBuf, There)], path: &Path) -> Option<There> {
    let over = mounts.iter().filter(|(at, _)| path.starts_with(at));
    over.max_by_key(|(at, _)| at.components().count()).map(|(_, there)| *there)
}

/// What can be done with the host's file of that path; `None`: nothing.
fn access(mounts: &[(PathBuf, There)], path: &Path) -> Option<Access> {
    match there(mounts, path) {
        Some(There::Host(access)) => Some(access),
        _ => None,
    }
}

/// Every place that the request or the plan names, and something below each.
fn sampled(request: &Request) -> Vec<PathBuf> {
    let places = request.shown.iter().chain(&request.read).chain(&request.write);
    let named = places.map(|place| place.path.clone());
    let own = ["/tmp", HOME, "/var/tmp", "/dev/shm", "/usr", "/etc/ssl"].map(PathBuf::from);
    named.chain(own).flat_map(|path| [path.join("below"), path]).collect()
}

/// Every host path that is mounted, with where it is.
fn sources(plan: &LinuxPlan) -> Vec<(&Path, &Path, Access)> {
    plan.placed()
        .iter()
        .filter_map(|placed| match &placed.step {
            Placed::Show { path, .. } => Some((path.as_path(), path.as_path(), Access::ReadOnly)),
            Placed::Bind { from, at, access, .. } => Some((from.as_path(), at.as_path(), *access)),
            _ => None,
        })
        .collect()
}

fn report(plan: &LinuxPlan, answers: &[(usize, Answer)]) -> Report {
    let evidence: Vec<_> = answers
        .iter()
        .map(|(step, answer)| Evidence { step: *step, answer: answer.clone() })
        .collect();
    Report::new(&plan.outline(), &evidence, vec![], Ending::Exited(0), 0, Usage::default())
}

/// The policy's words, read apart from the code under test.
fn is_asked_for(control: Control, request: &Request) -> bool {
    let policy = &request.policy;
    let limits = &policy.limits;
    match control {
        Control::Deny => !policy.filesystem.deny.is_empty(),
        Control::Protect => {
            policy.protect.value == mcp_policy::Protect::Usual && !request.write.is_empty()
        }
        Control::Network => policy.network.mode.value == NetworkMode::Isolated,
        Control::Subprocess => policy.process.subprocess.value == Subprocess::Refused,
        Control::Memory => limits.memory.value.is_some(),
        Control::Cpu => limits.cpu.value.is_some(),
        Control::CpuTime => limits.cpu_time.value.is_some(),
        Control::Io => limits.io.value.is_some(),
        Control::Processes => limits.processes.value.is_some(),
        Control::OpenFiles => limits.open_files.value.is_some(),
        Control::FileSize => limits.file_size.value.is_some(),
        Control::AddressSpace => limits.address_space.value.is_some(),
        Control::Timeout => limits.timeout.value.is_some(),
        Control::Filesystem
        | Control::ProcessIsolation
        | Control::Privileges
        | Control::Environment
        | Control::Descriptors
        | Control::TreeKill
        | Control::TmpSize => true,
    }
}

/// Where init's steps are among all.
fn init_of(stages: &[Stage]) -> std::ops::Range<usize> {
    stages.partition_point(|stage| *stage < Stage::Init)
        ..stages.partition_point(|stage| *stage <= Stage::Init)
}

/// One more grant gives at least what there was: of the host, and of the sandbox's own where
/// the grant itself is not.
fn never_less(
    before: &Request,
    after: &Request,
    grant: &Place,
    facts: &LinuxFacts,
) -> Result<(), TestCaseError> {
    let (old, new) = (mounts(&plan(before, facts)), mounts(&plan(after, facts)));
    for path in sampled(after) {
        let (had, has) = (access(&old, &path), access(&new, &path));
        prop_assert!(has >= had, "{}: {had:?} became {has:?}", path.display());
        if there(&old, &path) == Some(There::Own) && !path.starts_with(&grant.path) {
            prop_assert_eq!(there(&new, &path), Some(There::Own), "{}", path.display());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_more_grant_never_takes_access_away(
        before in arbitrary::request(),
        facts in arbitrary::namespaced(),
        grant in arbitrary::place(),
    ) {
        let mut reading = before.clone();
        reading.read.push(grant.clone());
        never_less(&before, &reading, &grant, &facts)?;
        let mut writing = before.clone();
        writing.write.push(grant.clone());
        never_less(&before, &writing, &grant, &facts)?;
        never_less(&reading, &writing, &grant, &facts)?;
        prop_assert!(access(&mounts(&plan(&reading, &facts)), &grant.path).is_some());
        let writable = access(&mounts(&plan(&writing, &facts)), &grant.path);
        prop_assert_eq!(writable, Some(Access::ReadWrite));
    }

    #[test]
    fn every_grant_holds_and_nothing_else_is_writable(
        request in arbitrary::request(),
        facts in arbitrary::namespaced(),
    ) {
        let mounts = mounts(&plan(&request, &facts));
        for place in request.shown.iter().chain(&request.read) {
            prop_assert!(access(&mounts, &place.path).is_some(), "{}", place.path.display());
        }
        let own = ["/tmp", "/dev/shm", "/var/tmp", HOME].map(PathBuf::from);
        let granted: Vec<_> = request.write.iter().map(|place| &place.path).chain(&own).collect();
        for (at, there) in &mounts {
            let may_write = granted.iter().any(|granted| at.starts_with(granted));
            let is_read_only = *there == There::Host(Access::ReadOnly);
            prop_assert!(is_read_only || may_write, "{}", at.display());
        }
    }

    #[test]
    fn only_what_was_named_comes_from_the_host(
        request in arbitrary::request(),
        facts in arbitrary::namespaced(),
    ) {
        let plan = plan(&request, &facts);
        let places = request.shown.iter().chain(&request.read).chain(&request.write);
        let named: Vec<&Path> = places
            .map(|place| place.path.as_path())
            .chain(facts.entries.iter().map(|entry| entry.path.as_path()))
            .collect();
        for (from, at, access) in sources(&plan) {
            if let (Home::Kept(kept), true) = (&request.home, at == Path::new(HOME)) {
                prop_assert_eq!((from, access), (kept.as_path(), Access::ReadWrite));
                continue;
            }
            prop_assert_eq!(from, at);
            prop_assert!(named.contains(&from), "{}", from.display());
            prop_assert!(!at.starts_with("/proc") && !at.starts_with("/dev"));
            let granted = request.write.iter().any(|place| place.path == from);
            prop_assert!(access == Access::ReadOnly || granted, "{}", from.display());
        }
    }

    #[test]
    fn mounts_come_parents_first_and_only_over_the_system_twice(
        request in arbitrary::request(),
        facts in arbitrary::facts(),
    ) {
        let plan = plan(&request, &facts);
        let binds: Vec<&Path> = plan
            .placed()
            .iter()
            .filter_map(|placed| match &placed.step {
                Placed::Bind { at, .. } => Some(at.as_path()),
                _ => None,
            })
            .collect();
        for (index, later) in binds.iter().enumerate() {
            for earlier in &binds[..index] {
                prop_assert!(!earlier.starts_with(later), "{earlier:?} before {later:?}");
            }
        }
    }

    #[test]
    fn no_link_is_made_inside_something_of_the_host(
        request in arbitrary::request(),
        facts in arbitrary::facts(),
    ) {
        let plan = plan(&request, &facts);
        let mut earlier = Vec::new();
        for placed in plan.placed() {
            match &placed.step {
                Placed::Link { at, .. } | Placed::Text { at, .. } | Placed::Directory { at } => {
                    let inside = earlier.iter().find(|place: &&&Path| at.starts_with(place));
                    prop_assert_eq!(inside, None, "{}", at.display());
                }
                Placed::Show { path: at, .. } => earlier.push(at.as_path()),
                Placed::Bind { at, from, .. } if at == from => earlier.push(at.as_path()),
                _ => {}
            }
        }
    }

    #[test]
    fn a_report_is_never_better_than_plan_and_evidence(
        (request, facts, answers) in (arbitrary::request(), arbitrary::facts()).prop_flat_map(
            |(request, facts)| {
                let steps = plan(&request, &facts).count();
                (Just(request), Just(facts), arbitrary::answers(steps))
            },
        ),
    ) {
        let plan = plan(&request, &facts);
        let report = report(&plan, &answers);
        prop_assert_eq!(report.controls.len(), Control::ALL.len());
        for (control, status) in &report.controls {
            let intent = &plan.controls[control];
            prop_assert!(!(intent.is_gap() && status.is_enforced()), "{control}: {intent:?}");
            let not_asked = *intent == Intent::NotRequested;
            prop_assert_eq!(*status == Status::NotRequested, not_asked, "{}", control);
            let steps = plan.steps().into_iter();
            let rests = steps.filter(|listed| listed.for_controls.contains(control));
            for ListedStep { number, step, .. } in rests {
                let mut of_step = answers.iter().filter(|(step, _)| *step == number).peekable();
                let is_lacking = of_step.peek().is_none();
                let is_less = of_step.any(|(_, answer)| matches!(answer, Answer::Less(_)));
                let reservation = status.is_enforced() && (is_lacking || is_less);
                prop_assert!(!reservation, "{control} without {step}");
            }
        }
    }

    #[test]
    fn full_evidence_makes_the_report_say_what_was_planned(
        request in arbitrary::request(),
        facts in arbitrary::facts(),
    ) {
        let plan = plan(&request, &facts);
        let all: Vec<_> =
            (0..plan.count()).map(|step| (step, Answer::Confirmed(String::new()))).collect();
        for (control, status) in &report(&plan, &all).controls {
            let meant = matches!(plan.controls[control], Intent::Enforce { .. });
            prop_assert_eq!(status.is_enforced(), meant, "{}: {:?}", control, status);
        }
    }

    #[test]
    fn a_control_is_not_requested_exactly_when_nobody_asked(
        request in arbitrary::request(),
        facts in arbitrary::facts(),
    ) {
        let plan = plan(&request, &facts);
        for control in Control::ALL {
            let intent = &plan.controls[&control];
            let asked = is_asked_for(control, &request);
            prop_assert_eq!(*intent != Intent::NotRequested, asked, "{}: {:?}", control, intent);
        }
    }

    #[test]
    fn without_namespaces_every_wall_is_said_to_be_what_it_is(
        request in arbitrary::request(),
        facts in arbitrary::plain(),
    ) {
        let plan = plan(&request, &facts);
        let has_walls = facts.landlock_abi > 0 && facts.seccomp.usable();
        for control in [Control::Filesystem, Control::ProcessIsolation] {
            let intent = &plan.controls[&control];
            let partial = matches!(intent, Intent::Partial { .. });
            let unavailable = matches!(intent, Intent::Unavailable { .. });
            prop_assert!(if has_walls { partial } else { unavailable }, "{control}: {intent:?}");
        }
        prop_assert!(plan.controls[&Control::TreeKill].is_gap());
        prop_assert!(plan.controls[&Control::TmpSize].is_gap());
        prop_assert!(has_walls || plan.controls.boundary_gaps().count() > 0);
        let is_lost = facts.caller.is_root() && facts.stand_in.is_none();
        prop_assert!(!is_lost || plan.controls[&Control::Privileges].is_gap());
        let network = &plan.controls[&Control::Network];
        let isolated = is_asked_for(Control::Network, &request);
        prop_assert!(facts.seccomp.usable() || !isolated || network.is_gap());
    }

    /// No step of a plan without namespaces needs one.
    #[test]
    fn without_namespaces_nothing_is_mounted(
        request in arbitrary::request(),
        facts in arbitrary::plain(),
    ) {
        for ListedStep { step, .. } in plan(&request, &facts).steps() {
            let mounts = matches!(
                step,
                Step::Namespaces(_) | Step::MapIds(_) | Step::NewRoot(_) | Step::Placed(_)
                    | Step::Mask(_) | Step::Reopen(_) | Step::Loopback | Step::DieWithLauncher
            );
            prop_assert!(!mounts, "{step}");
        }
    }

    #[test]
    fn without_namespaces_each_rule_is_a_grant_or_the_system(
        request in arbitrary::request(),
        facts in arbitrary::plain(),
    ) {
        let plan = plan(&request, &facts);
        let rules = plan.target.landlock.as_ref().map(|landlock| &landlock.step.rules);
        prop_assert_eq!(rules.is_some(), facts.landlock_abi > 0);
        let Some(rules) = rules else { return Ok(()) };
        let write: Vec<&Path> = request.write.iter().map(|place| place.path.as_path()).collect();
        let kept = match &request.home {
            Home::Kept(path) => path.as_path(),
            Home::Ephemeral => facts.run_directory.as_path(),
        };
        for rule in rules {
            let own = rule.path.starts_with(&facts.run_directory) || rule.path == kept;
            match rule.allowed {
                Allowed::Write => {
                    prop_assert!(own || write.contains(&rule.path.as_path()), "{rule}");
                }
                Allowed::Read => {
                    let places = request.shown.iter().chain(&request.read);
                    let named = places.map(|place| &place.path).any(|path| *path == rule.path);
                    let system = facts.entries.iter().any(|entry| entry.path == rule.path);
                    let text = facts.texts.contains(&rule.path);
                    let proc = rule.path == Path::new("/proc");
                    prop_assert!(named || system || text || proc, "{rule}");
                }
                Allowed::Devices => prop_assert!(rule.path.starts_with("/dev"), "{rule}"),
                other => prop_assert!(false, "{other:?}"),
            }
        }
        for place in &request.write {
            let has = rules.iter().any(|r| r.path == place.path && r.allowed == Allowed::Write);
            prop_assert!(has, "{}", place.path.display());
        }
    }

    #[test]
    fn the_order_is_launcher_init_target_and_execute_is_last(
        request in arbitrary::request(),
        facts in arbitrary::facts(),
    ) {
        let plan = plan(&request, &facts);
        let steps = plan.steps();
        let numbers: Vec<usize> = steps.iter().map(|listed| listed.number).collect();
        prop_assert_eq!(numbers, (0..plan.count()).collect::<Vec<_>>());
        let stages: Vec<Stage> = steps.iter().map(|listed| listed.step.stage()).collect();
        prop_assert!(stages.is_sorted(), "{stages:?}");
        prop_assert_eq!(&plan.init.steps()[..], &steps[init_of(&stages)]);
        let executes = steps.iter().filter(|l| matches!(l.step, Step::Execute(_))).count();
        prop_assert_eq!(executes, 1);
        let is_last = matches!(steps.last().map(|l| l.step), Some(Step::Execute(_)));
        prop_assert!(is_last);
    }

    #[test]
    fn a_plan_depends_on_nothing_else(
        request in arbitrary::request(),
        facts in arbitrary::facts(),
    ) {
        let once = plan(&request, &facts);
        prop_assert_eq!(&once, &plan(&request.clone(), &facts.clone()));
        let mut turned = request.clone();
        turned.read.reverse();
        turned.write.reverse();
        turned.shown.reverse();
        turned.links.reverse();
        prop_assert_eq!(&once, &plan(&turned, &facts));
        prop_assert!(serde_json::to_string(&once.outline()).is_ok());
    }
}
