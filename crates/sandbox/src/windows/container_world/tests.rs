use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::core::plan::Plan;
use crate::core::request::{Place, PlaceKind, Request};
use crate::windows::access::Grant;
use crate::windows::acl_apply::{add_aces, remove_aces};
use crate::windows::exclusion::{Exclusion, ExclusionKind};
use crate::windows::facts::WindowsFacts;
use crate::windows::journal::{self, Change};
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
    // A second grant of the same run that covers the same files writes directories only.
    add_aces(&world.drive, &ours(), &grant, &[]).unwrap();
    assert_eq!(world.drive.writes.get(), 522);
    remove_aces(&world.drive, &ours(), &path(r"C:\p")).unwrap();
    assert_eq!(world.drive.writes.get(), 522 + 511);
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
