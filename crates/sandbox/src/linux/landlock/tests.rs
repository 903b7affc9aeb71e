//! Every version from none to one that does not exist yet.

use std::path::Path;

use super::*;
use crate::core::request::{Home, Place};
use crate::linux::phases::LinuxPlan;
use crate::linux::plan::{plan, sample};
use crate::linux::step::Stage;

const NEWEST_KNOWN: u32 = 10;
const NOT_YET: u32 = 99;

/// The masks of the kernel's own `LANDLOCK_MASK_ACCESS_FS`, version by version.
const FILES: [u64; 11] =
    [0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff, 0xffff, 0xffff, 0xffff, 0x1_ffff, 0x1_ffff];

const ALL: [Allowed; 6] = [
    Allowed::Read,
    Allowed::Write,
    Allowed::Devices,
    Allowed::Input,
    Allowed::Output,
    Allowed::InputOutput,
];

fn versions() -> impl Iterator<Item = u32> {
    (0..=NEWEST_KNOWN).chain([NOT_YET])
}

fn plan_on(abi: u32) -> LinuxPlan {
    let mut request = sample::request();
    let place = |path: &str, kind| Place { path: path.into(), kind };
    request.read = vec![place("/srv/read", PlaceKind::Directory)];
    request.write = vec![
        place("/srv/data", PlaceKind::Directory),
        place("/srv/file", PlaceKind::File),
        place("/tmp/below", PlaceKind::Directory),
    ];
    let mut facts = sample::facts(1000);
    facts.landlock_abi = abi;
    plan(&request, &facts)
}

fn landlock(plan: &LinuxPlan) -> Option<(usize, u32, &[Rule])> {
    let landlock = plan.target.landlock.as_ref()?;
    Some((landlock.number, landlock.step.abi, landlock.step.rules.as_slice()))
}

#[test]
fn a_version_is_used_for_all_that_it_offers() {
    for abi in versions() {
        let known = abi.min(NEWEST_KNOWN);
        let expected = Ruleset {
            files: FILES[known as usize],
            ports: if abi >= 4 { 0b11 } else { 0 },
            scopes: if abi >= 6 { 0b11 } else { 0 },
            flags: if abi >= 7 { 0b100 } else { 0 },
        };
        assert_eq!(Ruleset::of(abi), expected, "version {abi}");
    }
}

#[test]
fn a_newer_version_refuses_no_less() {
    for abi in 1..=NOT_YET {
        let (old, new) = (Ruleset::of(abi - 1), Ruleset::of(abi));
        assert_eq!(old.files & !new.files, 0, "version {abi}");
        assert_eq!(old.scopes & !new.scopes, 0, "version {abi}");
    }
}

/// The kernel answers EINVAL to a right that was not handled, or that a file cannot have.
#[test]
fn no_rule_has_a_right_that_the_kernel_would_not_take() {
    for abi in versions() {
        let ruleset = Ruleset::of(abi);
        for allowed in ALL {
            let (directory, file) = (
                ruleset.rights(allowed, PlaceKind::Directory),
                ruleset.rights(allowed, PlaceKind::File),
            );
            assert_eq!(directory & !ruleset.files, 0, "{allowed:?}, version {abi}");
            assert_eq!(file & !OF_A_FILE & !ruleset.files, 0, "{allowed:?}, version {abi}");
            assert_eq!(file & !directory, 0, "{allowed:?}, version {abi}");
            // … and ENOMSG to a rule without any.
            assert!(abi == 0 || file != 0, "{allowed:?}, version {abi}");
        }
    }
}

#[test]
fn what_is_refused_stays_refused() {
    const CHANGES: u64 = FIRST & !(EXECUTE | READ_FILE | READ_DIR) | REFER | TRUNCATE;
    for abi in versions() {
        let rights = |allowed| Ruleset::of(abi).rights(allowed, PlaceKind::Directory);
        assert_eq!(rights(Allowed::Read) & (CHANGES | IOCTL_DEV), 0, "version {abi}");
        assert_eq!(rights(Allowed::Input) & CHANGES, 0, "version {abi}");
        assert_eq!(rights(Allowed::Output) & (READ_FILE | READ_DIR | EXECUTE), 0, "version {abi}");
        for allowed in ALL {
            let never = MAKE_CHAR | MAKE_BLOCK | RESOLVE_UNIX;
            assert_eq!(rights(allowed) & never, 0, "{allowed:?}, version {abi}");
        }
    }
}

#[test]
fn what_programs_do_in_a_writable_place_is_allowed() {
    for abi in USABLE_FROM..=NOT_YET {
        let ruleset = Ruleset::of(abi);
        let refused = MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV | RESOLVE_UNIX;
        let rights = ruleset.rights(Allowed::Write, PlaceKind::Directory);
        assert_eq!(rights, ruleset.files & !refused, "version {abi}");
    }
}

#[test]
fn the_step_is_there_from_the_first_version_that_lets_files_be_moved() {
    for abi in versions() {
        let plan = plan_on(abi);
        assert_eq!(landlock(&plan).map(|(_, abi, _)| abi), (abi >= 2).then_some(abi));
        // The mounts hold with it and without it.
        let gaps: Vec<_> = plan.controls.gaps().map(|(control, _)| control).collect();
        assert_eq!(
            gaps,
            plan_on(0).controls.gaps().map(|(control, _)| control).collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_rules_of_an_ordinary_run() {
    let plan = plan_on(7);
    let (index, _, rules) = landlock(&plan).unwrap();
    let rules: Vec<_> = rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        rules,
        [
            "read /",
            "devices /dev",
            "write /tmp",
            "write /dev/shm",
            "write /home/mcp",
            "write /srv/data",
            "write /srv/file",
            "write /tmp/below",
        ]
    );
    // No privileges are needed once no_new_privs is set, and descriptors are open as yet.
    assert!(plan.init.drop_privileges.number < index);
    assert!(plan.target.limits.iter().all(|limit| limit.number > index));
    assert!(plan.target.descriptors.number > index);
    assert_eq!(plan.steps()[index].step.stage(), Stage::Target);
}

#[test]
fn a_kept_home_is_writable() {
    let request = crate::core::request::Request {
        home: Home::Kept("/data/home".into()),
        ..sample::request()
    };
    let plan = plan(&request, &sample::facts(1000));
    let (_, _, rules) = landlock(&plan).unwrap();
    let home = rules.iter().find(|rule| rule.path == Path::new("/home/mcp")).unwrap();
    assert_eq!(home.allowed, Allowed::Write);
}

/// The numbers are written out above; the `landlock` crate has them from the kernel's headers, and says since when.
#[cfg(target_os = "linux")]
#[test]
fn the_numbers_are_those_of_the_landlock_crate() {
    use landlock::{ABI, Access, AccessFs, AccessNet, Scope};
    for (ours, theirs) in [
        (EXECUTE, AccessFs::Execute),
        (WRITE_FILE, AccessFs::WriteFile),
        (READ_FILE, AccessFs::ReadFile),
        (READ_DIR, AccessFs::ReadDir),
        (MAKE_CHAR, AccessFs::MakeChar),
        (MAKE_BLOCK, AccessFs::MakeBlock),
        (REFER, AccessFs::Refer),
        (TRUNCATE, AccessFs::Truncate),
        (IOCTL_DEV, AccessFs::IoctlDev),
        (RESOLVE_UNIX, AccessFs::ResolveUnix),
    ] {
        assert_eq!(ours, theirs as u64, "{theirs:?}");
    }
    assert_eq!(ABSTRACT_SOCKETS, Scope::AbstractUnixSocket as u64);
    assert_eq!(SIGNALS, Scope::Signal as u64);
    assert_eq!(TCP, AccessNet::BindTcp as u64 | AccessNet::ConnectTcp as u64);
    let versions =
        [ABI::V1, ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6, ABI::V7, ABI::V8, ABI::V9];
    for abi in versions {
        let ours = Ruleset::of(abi as u32);
        assert_eq!(ours.files, AccessFs::from_all(abi).bits(), "{abi:?}");
        assert_eq!(ours.ports, AccessNet::from_all(abi).bits(), "{abi:?}");
        assert_eq!(ours.scopes, Scope::from_all(abi).bits(), "{abi:?}");
        assert_eq!(OF_A_FILE & ours.files, AccessFs::from_file(abi).bits(), "{abi:?}");
    }
}
