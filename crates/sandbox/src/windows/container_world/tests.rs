use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::core::plan::Plan;
use crate::core::request::{Denied, DeniedKind, Place, PlaceKind, Request};
use crate::windows::access::Grant;
use crate::windows::acl_apply::{add_aces, refresh_aces, remove_aces, remove_lasting_aces};
use crate::windows::dacl::sid;
use crate::windows::exclusion::{Exclusion, ExclusionKind};
use crate::windows::facts::WindowsFacts;
use crate::windows::journal::{self, Change};
use crate::windows::lasting::capability_sid;
use crate::windows::plan::plan;
use crate::windows::plan::tests::request;
use crate::windows::program_files::{Batch, DriveRoot, batch};
use crate::windows::step::Step;

/// Where people have Node from: its installer, a version manager, an archive, the drive's top.
const NODES: [&str; 4] = [
    r"C:\Program Files\nodejs\node.exe",
    r"C:\Users\me\AppData\Roaming\nvm\v22\node.exe",
    r"C:\tools\node\node.exe",
    r"C:\node.exe",
];

const FILES: [&str; 9] = [
    r"C:\Windows\System32\cmd.exe",
    r"C:\Program Files\Git\cmd\git.exe",
    r"C:\Users\me\project\a.js",
    r"C:\Users\me\project\src\b.js",
    r"C:\Users\me\project\.env",
    r"C:\Users\me\.ssh\id_ed25519",
    r"C:\Users\other\secret",
    r"C:\data\x",
    r"C:\Users\you\AppData\Local\Temp\mcp-run\canary",
];

fn place(text: &str) -> Place {
    Place { path: PathBuf::from(text), kind: PlaceKind::Directory }
}

/// A machine with Node at one of these places, whose entries an installer may have replaced.
fn world(node: &str, is_stripped: bool) -> World {
    let files: Vec<WindowsPath> = FILES.iter().chain([&node]).map(|text| path(text)).collect();
    let open = WindowsFacts::usual().unwrap().readable;
    let stripped: Vec<WindowsPath> =
        path(node).parent().filter(|above| is_stripped && !above.is_root()).into_iter().collect();
    let mut world = World::new(&files, &open, &stripped);
    world.others = vec![path(r"C:\Users\other")];
    world
}

fn wanted(node: &str, write: &[&str], read: &[&str]) -> Request {
    Request {
        program: node.into(),
        shown: vec![Place { path: node.into(), kind: PlaceKind::File }],
        write: write.iter().map(|text| place(text)).collect(),
        read: read.iter().map(|text| place(text)).collect(),
        ..request("")
    }
}

/// The facts of a run in this world: what was asked of the actual directories.
fn facts(world: &World, request: &Request) -> WindowsFacts {
    let facts = WindowsFacts::usual().unwrap();
    let shown = request.shown.iter().chain(&request.read);
    let shown = shown.map(|place| path(&place.path.to_string_lossy())).collect();
    let ask = |at: &WindowsPath| {
        let object = world.drive.open(at).ok()?;
        Some(world.drive.dacl(&object).ok()?.granted_access(&everyone()))
    };
    let stripped = facts.stripped_among(shown, ask);
    WindowsFacts { stripped, ..facts }
}

fn grants(plan: &Plan<Step>) -> Vec<Grant> {
    let grant = |step: &Step| match step {
        Step::Grant { grant } => Some(grant.clone()),
        _ => None,
    };
    plan.steps.iter().filter_map(|planned| grant(&planned.step)).collect()
}

fn lasting(plan: &Plan<Step>) -> Vec<WindowsPath> {
    let place = |step: &Step| match step {
        Step::LastingGrant { path } => Some(path.clone()),
        _ => None,
    };
    plan.steps.iter().filter_map(|planned| place(&planned.step)).collect()
}

fn capability(at: &WindowsPath) -> Vec<u8> {
    sid(&capability_sid(at)).unwrap()
}

fn read(at: &WindowsPath) -> Grant {
    Grant { path: at.clone(), access: Access::Read }
}

/// As the launcher does it: the run's token gets the capability of each directory whose entries stay.
fn apply_lasting(world: &mut World, plan: &Plan<Step>) {
    world.capabilities.clear();
    for at in lasting(plan) {
        if add_aces(&world.drive, &capability(&at), &read(&at), &[]).is_ok() {
            world.capabilities.push(capability(&at));
        }
    }
}

/// As the launcher does it: journal first, then the entries. What is not in this world is not made.
fn apply(world: &World, plan: &Plan<Step>, exclusions: &[Exclusion]) -> Vec<Change> {
    let mut made = Vec::new();
    for grant in grants(plan) {
        if world.drive.open(&grant.path).is_err() {
            continue;
        }
        let text = grant.path.to_string();
        made.push(Change::Entry { sid: "S-1-15-2-1-2-3-4-5-6-7".to_owned(), path: text });
        if add_aces(&world.drive, &ours(), &grant, exclusions).is_err() {
            break;
        }
    }
    made
}

/// Whether nothing is left to take back.
fn take_back(world: &World, made: &[Change]) -> bool {
    journal::in_undo_order(made.to_vec()).all(|change| match change {
        Change::Entry { path: at, .. } => remove_aces(&world.drive, &ours(), &path(&at)).is_ok(),
        _ => true,
    })
}

fn is_clean(world: &World) -> bool {
    world.drive.objects.borrow().iter().all(|(_, dacl)| !dacl.has_ace_for(&ours()))
}

/// The worlds are what they are meant to be, or the properties below would hold in an empty one.
#[test]
fn a_world_refuses_what_a_container_is_refused() {
    let world = world(NODES[0], true);
    for closed in [r"C:\", NODES[0], r"C:\Users\me\project\a.js", r"C:\Users\other\secret"] {
        assert!(!world.reads(&path(closed)), "{closed}");
    }
    for open in [r"C:\Windows\System32\cmd.exe", r"C:\Program Files\Git\cmd\git.exe"] {
        assert!(world.reads(&path(open)), "{open}");
    }
    assert!(!world.cmd_starts(&path(r"C:\Windows\System32\cmd.exe")) && !world.is_nul_open);
    assert!(!world.opens_pipe(false) && !world.names_handles());
    // Both passes count: an entry for the container does not open what the user may not read.
    let grant = Grant { path: path(r"C:\Users\other"), access: Access::Read };
    add_aces(&world.drive, &ours(), &grant, &[]).unwrap();
    assert!(!world.reads(&path(r"C:\Users\other\secret")));
}

/// How many DACLs are written for a tree of `files` files: each object once, at the start and at the end.
#[test]
fn a_tree_costs_one_write_for_each_object() {
    let files: Vec<WindowsPath> =
        (0..500).map(|n| path(&format!(r"C:\p\{}\{n}", n % 10))).collect();
    let world = World::new(&files, &[], &[]);
    let grant = Grant { path: path(r"C:\p"), access: Access::Write };
    add_aces(&world.drive, &ours(), &grant, &[]).unwrap();
    assert_eq!(world.drive.writes.get(), 511);
    // A second grant of the same run that covers the same files writes none.
    add_aces(&world.drive, &ours(), &grant, &[]).unwrap();
    assert_eq!(world.drive.writes.get(), 511);
    remove_aces(&world.drive, &ours(), &path(r"C:\p")).unwrap();
    assert_eq!(world.drive.writes.get(), 511 + 511);
}

/// 52,000 files, in 1,300 directories of a Python: 9 s at every start for others. Here at the first one; afterwards the
/// directories are opened, and a package that was installed meanwhile costs what it is.
#[test]
fn entries_that_stay_cost_nothing_at_the_next_start() {
    let top = r"C:\Users\me\python\Lib";
    let file = |n: usize| path(&format!(r"{top}\p{}\m{n}.py", n % 1300));
    let files: Vec<WindowsPath> = (0..52_000).map(file).collect();
    let world = World::new(&files, &[], &[]);
    let (drive, place) = (&world.drive, path(top));
    let count = |act: &dyn Fn()| {
        drive.opened.set(0);
        drive.writes.set(0);
        act();
        (drive.opened.get(), drive.writes.get())
    };
    let sid = capability(&place);
    let add = || add_aces(drive, &sid, &read(&place), &[]).unwrap();
    assert_eq!(count(&add), (53_301, 53_301));
    drive.now.set(100);
    let since = drive.time();
    let again = || assert!(!refresh_aces(drive, &sid, &place, since).unwrap());
    assert_eq!(count(&again), (1_302, 0));
    // A package comes: by creation, which inherits, or by a hard link or a move, which does not.
    drive.now.set(200);
    drive.add(&path(&format!(r"{top}\new")), Kind::Directory, empty());
    for n in 0..40 {
        drive.add(&path(&format!(r"{top}\new\{n}.py")), Kind::File, empty());
    }
    drive.add(&path(&format!(r"{top}\p7\linked.py")), Kind::File, empty());
    let changed = || assert!(refresh_aces(drive, &sid, &place, since).unwrap());
    let (opened, written) = count(&changed);
    assert_eq!(written, 42, "the package and the linked file");
    assert!(opened < 3_000, "{opened}");
    for new in [r"new\3.py", r"p7\linked.py"] {
        assert!(
            drive.granted_access(&format!(r"{top}\{new}"), &sid) & Access::Read.mask() != 0,
            "{new}"
        );
    }
    // An entry of the run's own costs each object twice, at every start.
    let own = || {
        add_aces(drive, &ours(), &read(&place), &[]).unwrap();
        remove_aces(drive, &ours(), &place).unwrap();
    };
    assert_eq!(count(&own).1, 2 * 53_343);
    assert!(remove_lasting_aces(drive, &sid, &place).unwrap());
    assert!(drive.objects.borrow().iter().all(|(_, dacl)| !dacl.has_ace_for(&sid)));
}

/// An installer that replaces the lists of its directory leaves some of ours below: both the next run and the removal
/// find them.
#[test]
fn a_directory_that_was_installed_anew_gets_its_entries_again() {
    let top = path(r"C:\tools\node\node_modules");
    let files =
        [r"C:\tools\node\node_modules\npm\a.js", r"C:\tools\node\node_modules\b.js"].map(path);
    let world = World::new(&files, &[], &[]);
    let (drive, sid) = (&world.drive, capability(&top));
    add_aces(drive, &sid, &read(&top), &[]).unwrap();
    drive.now.set(100);
    let strip = |at: &WindowsPath| {
        let object = drive.open(at).unwrap();
        drive.set_dacl(&object, &empty()).unwrap();
    };
    strip(&top);
    assert!(refresh_aces(drive, &sid, &top, drive.time()).unwrap());
    assert!(drive.granted_access(&top.to_string(), &sid) & Access::Read.mask() != 0);
    strip(&top);
    assert!(remove_lasting_aces(drive, &sid, &top).unwrap());
    assert!(drive.objects.borrow().iter().all(|(_, dacl)| !dacl.has_ace_for(&sid)));
}

/// Node from an archive: its modules stay readable for runs that show them, and are closed to all others.
#[test]
fn only_what_is_shown_and_free_of_exclusions_has_entries_that_stay() {
    let modules = Place { path: r"C:\tools\node\node_modules".into(), kind: PlaceKind::Directory };
    let mut request = wanted(NODES[2], &[r"C:\Users\me\project"], &[r"C:\data"]);
    request.shown.push(modules.clone());
    let facts = WindowsFacts::usual().unwrap();
    let places = |request: &Request| lasting(&plan(request, &facts));
    assert_eq!(places(&request), [path(r"C:\tools\node\node_modules")]);
    // A package in the store, which its manifest asks to read.
    let package = r"C:\Users\you\AppData\Local\mcp\store\unpacked\ab\root";
    let stored = Request { read: vec![place(package)], ..request.clone() };
    assert!(places(&stored).contains(&path(package)));
    // What the user asks for has entries of the run's own, and so has what a rule denies a part of.
    let asked = Request { read: vec![modules], ..request.clone() };
    assert_eq!(places(&asked), []);
    let denied = Denied {
        path: r"C:\tools\node\node_modules\x\.env".into(),
        kind: DeniedKind::File,
        rule: 0,
    };
    let closed = Request { denied: vec![denied], ..request.clone() };
    assert_eq!(places(&closed), []);
    assert!(grants(&plan(&closed, &facts)).contains(&read(&path(r"C:\tools\node\node_modules"))));
    // Where every container reads already, there is no entry at all.
    let open = Request { shown: vec![place(r"C:\Program Files\nodejs\node_modules")], ..request };
    assert_eq!(places(&open), []);
}

proptest! {
    /// No plan assumes a readable tree: whatever an installer did, the program and the grants are there inside, and
    /// nothing else is that was not open to all.
    #[test]
    fn what_a_plan_shows_is_there_and_nothing_else(
        node in 0..NODES.len(), is_stripped: bool, is_written: bool,
    ) {
        let node = NODES[node];
        let world = world(node, is_stripped);
        let project = [r"C:\Users\me\project"];
        let request = match is_written {
            true => wanted(node, &project, &[r"C:\data"]),
            false => wanted(node, &[], &project),
        };
        let public: Vec<WindowsPath> = FILES.iter().map(|text| path(text)).filter(|at| world.reads(at)).collect();
        let plan = plan(&request, &facts(&world, &request));
        apply(&world, &plan, &[]);
        prop_assert!(world.reads(&path(node)), "{} cannot be read", node);
        for text in FILES {
            let at = path(text);
            let granted = [&request.write, &request.read].into_iter().flatten();
            let is_granted = granted.into_iter().any(|place| at.is_within(&path(&place.path.to_string_lossy())));
            prop_assert_eq!(world.reads(&at), is_granted || public.contains(&at), "{}", text);
            let writes = world.opens(&at, Access::Write.mask());
            prop_assert_eq!(writes, is_written && at.is_within(&path(project[0])), "{}", text);
        }
    }

    /// Entries that stay let in the runs that show the directory, and no others; `mcp doctor --clean` removes them all, in
    /// every order of failures, and whatever the directory holds by then.
    #[test]
    fn entries_that_stay_open_nothing_to_other_runs_and_can_all_be_removed(
        is_shown: bool, dies in 0usize..9, again in prop::collection::vec(0usize..9, 0..4), is_changed: bool,
    ) {
        let modules = r"C:\tools\node\node_modules";
        let script = format!(r"{modules}\x\cli.js");
        let (top, script) = (path(modules), path(&script));
        let mut world = world(NODES[2], false);
        for at in [top.clone(), path(&format!(r"{modules}\x"))] {
            world.drive.add(&at, Kind::Directory, empty());
        }
        world.drive.add(&script, Kind::File, empty());
        let mut shows = wanted(NODES[2], &[r"C:\Users\me\project"], &[]);
        shows.shown.push(place(modules));
        let plain = wanted(NODES[2], &[r"C:\Users\me\project"], &[]);
        let first = plan(&shows, &facts(&world, &shows));
        apply_lasting(&mut world, &first);
        prop_assert!(world.reads(&script) && !world.opens(&script, Access::Write.mask()));
        // The next run.
        let request = if is_shown { &shows } else { &plain };
        let next = plan(request, &facts(&world, request));
        apply_lasting(&mut world, &next);
        prop_assert_eq!(world.reads(&script), is_shown);
        if is_changed {
            world.drive.add(&path(&format!(r"{modules}\x\moved in")), Kind::File, empty());
            let object = world.drive.open(&top).unwrap();
            world.drive.set_dacl(&object, &empty()).unwrap();
        }
        world.drive.writes.set(0);
        for dies in std::iter::once(dies).chain(again) {
            world.drive.writes.set(0);
            world.drive.dies_after.set(Some(dies));
            let _ = remove_lasting_aces(&world.drive, &capability(&top), &top);
        }
        world.drive.dies_after.set(None);
        prop_assert!(remove_lasting_aces(&world.drive, &capability(&top), &top).unwrap());
        let sid = capability(&top);
        prop_assert!(world.drive.objects.borrow().iter().all(|(_, dacl)| !dacl.has_ace_for(&sid)));
    }

    /// A batch file gets to cmd.exe only where cmd.exe could start it.
    #[test]
    fn no_batch_file_is_handed_to_a_cmd_that_cannot_start_it(text in "\\PC{0,80}", is_shim: bool, is_open: bool) {
        let mut world = world(NODES[2], false);
        world.is_root_open = is_open;
        let shim = "\"%_prog%\"  \"%dp0%\\node_modules\\x\\cli.js\" %*";
        let text = if is_shim { format!("{text}\r\n{shim}") } else { text };
        let root = if world.opens(&path(r"C:\"), DRIVE_ROOT) { DriveRoot::Readable } else { DriveRoot::Closed };
        match batch(&text, Path::new("C:/npm"), root) {
            Batch::Cmd => prop_assert!(world.cmd_starts(&path(r"C:\Windows\System32\cmd.exe"))),
            Batch::Node(script) => prop_assert!(script.to_string_lossy().ends_with("js")),
            Batch::Never => prop_assert!(!is_open && !is_shim),
        }
    }

    /// The launcher may die at any write, and so may the next ones that take back: in the end nothing is left.
    #[test]
    fn every_grant_is_withdrawn_in_every_order_of_failures(
        node in 0..NODES.len(), dies in 0usize..24, again in prop::collection::vec(0usize..12, 0..4), closes: bool,
    ) {
        let world = world(NODES[node], true);
        let request = wanted(NODES[node], &[r"C:\Users\me\project", r"C:\Users\me\project\src"], &[r"C:\data"]);
        let plan = plan(&request, &facts(&world, &request));
        let env = Exclusion { path: path(r"C:\Users\me\project\.env"), kind: ExclusionKind::NoAccess };
        let exclusions = if closes { vec![env] } else { Vec::new() };
        world.drive.dies_after.set(Some(dies));
        let made = apply(&world, &plan, &exclusions);
        for dies in again {
            world.drive.writes.set(0);
            world.drive.dies_after.set(Some(dies));
            take_back(&world, &made);
        }
        world.drive.dies_after.set(None);
        prop_assert!(take_back(&world, &made));
        prop_assert!(is_clean(&world), "an entry is left");
    }
}
