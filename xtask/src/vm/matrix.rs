//! `cargo xtask vm matrix`: what holds on which kind of host, tried on each of them.
//!
//! A cell is one kernel, one kind of host, one user. It is tried in a guest of its own, and what
//! came of it is kept until the programs change, so that a long run can be taken up again.

mod cell;
mod document;
mod host;
pub mod stage;
pub mod suite;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::Result;
use crate::vm::guest::{Cgroup, Guest, Output, User};
use crate::vm::kernel::Kernel;
use crate::vm::{Machine, Temporary};
use cell::{Tests, Tried};
use host::HostKind;
use stage::Stage;
use suite::Suites;

/// Try every control and the escape tests on several kernels and kinds of hosts
///
/// One guest at a time; what is known is kept, and only what is missing is tried. The whole takes an
/// hour or two.
#[derive(clap::Args)]
pub struct Args {
    /// Only cells whose name contains this: 6.1/, /no-landlock/, /root
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// A directory with mcp, mcp-probe, escape and exec, and with `commit`, which says what they were
    /// built from [default: a fresh release build]
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// Leave the escape tests out: minutes instead of hours
    #[arg(long)]
    without_tests: bool,
    /// Try again what is known already
    #[arg(long)]
    again: bool,
    /// Of the tests, only those that failed when they were last run there
    #[arg(long, conflicts_with_all = ["again", "without_tests"])]
    failed: bool,
    /// Write the table into docs/security/hosts.md
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Only see that the table in docs/security/hosts.md is one of these
    #[arg(long)]
    check: bool,
    /// How cgroup v2 is set up
    #[arg(long, value_enum, default_value_t = Cgroup::Delegate)]
    cgroup: Cgroup,
    /// Seconds until a guest is given up
    #[arg(long, default_value_t = 2400, value_name = "SECONDS")]
    timeout: u64,
    #[command(flatten)]
    machine: Machine,
}

/// One kernel, one kind of host, one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    kernel: Kernel,
    kind: HostKind,
    user: User,
}

impl Cell {
    fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        for kernel in Kernel::ALL {
            for kind in HostKind::ALL {
                for user in [User::Ordinary, User::Root] {
                    cells.push(Cell { kernel, kind, user });
                }
            }
        }
        cells
    }

    fn name(self) -> String {
        let user = match self.user {
            User::Ordinary => "user",
            User::Root => "root",
        };
        format!("{}/{}/{user}", self.kernel, self.kind.name())
    }

    /// What such a host has, so that no test may skip for want of it.
    fn required(self, cgroup: Cgroup) -> Vec<&'static str> {
        let has_landlock = self.kernel >= Kernel::V6_1
            && !matches!(self.kind, HostKind::NoLandlock | HostKind::Neither);
        let is_root = self.user == User::Root;
        let has_userns = match self.kind {
            HostKind::Plain | HostKind::NoLandlock => true,
            HostKind::NoUnprivileged => is_root,
            HostKind::NoUserNamespaces | HostKind::Neither => false,
        };
        let features = [
            ("userns", has_userns),
            ("cgroup", cgroup == Cgroup::Delegate),
            ("root", is_root),
            ("ordinary-user", !is_root),
            ("mount-attributes", self.kernel >= Kernel::V6_1),
            ("nproc", self.kernel >= Kernel::V6_1),
            ("plain", has_landlock),
            ("landlock", has_landlock),
            ("landlock-scopes", has_landlock && self.kernel >= Kernel::V6_12),
            ("landlock-sockets", has_landlock && self.kernel >= Kernel::Newest),
        ];
        features.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let document = crate::workspace().join("docs/security/hosts.md");
    if args.check {
        document::check(&fs::read_to_string(&document)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let cache = args.machine.cache();
    let stage = Stage::make(args.bin_dir.as_deref(), &cache)?;
    let results = cache.join("matrix");
    fs::create_dir_all(&results)?;
    let mut known = Vec::new();
    for cell in Cell::all() {
        let file = results.join(cell.name().replace('/', "_") + ".json");
        let chosen =
            args.only.is_empty() || args.only.iter().any(|part| cell.name().contains(part));
        let kept = Tried::read(&file);
        let suites = kept.as_ref().and_then(|tried| tried.suites.clone());
        let is_done = match args.failed {
            true => !suites.as_ref().is_some_and(Suites::has_failed),
            false => kept.as_ref().is_some_and(|tried| {
                tried.stage == stage.fingerprint && (args.without_tests || suites.is_some())
            }),
        };
        if chosen && (args.again || !is_done) {
            let only = suites.as_ref().filter(|_| args.failed).map(Suites::failed);
            let mut tried = attempt(cell, args, only, &stage, &cache)?;
            // Tests take long: those of an earlier commit stand until they are run again.
            tried.suites = match (tried.suites, suites) {
                (Some(again), Some(before)) if args.failed => Some(before.repeated(&again)),
                (now, before) => now.or(before),
            };
            tried.write(&file)?;
            known.push((cell, tried));
        } else {
            known.extend(kept.map(|tried| (cell, tried)));
        }
    }
    let table = document::render(&known);
    println!("{table}");
    if args.write {
        let text = document::replaced(&fs::read_to_string(&document)?, &table)?;
        fs::write(&document, text)?;
    }
    let failed =
        known.iter().any(|(_, tried)| tried.suites.as_ref().is_some_and(Suites::has_failed));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `only`: names of tests, where it is not all of them.
fn attempt(
    cell: Cell,
    args: &Args,
    only: Option<BTreeMap<String, Vec<String>>>,
    stage: &Stage,
    cache: &Path,
) -> Result<Tried> {
    let guest = Guest {
        kernel: cell.kernel,
        sysctls: cell.kind.sysctls().iter().map(|it| (*it).to_owned()).collect(),
        append: cell.kind.append().iter().map(|it| (*it).to_owned()).collect(),
        cgroup: args.cgroup,
        user: cell.user,
        memory: args.machine.memory,
        processors: args.machine.processors,
        limit: Duration::from_secs(args.timeout),
    };
    let tests = match args.without_tests {
        true => Tests::LeftOut,
        false => Tests::Run { required: cell.required(args.cgroup).join(","), only },
    };
    eprint!("{:<28} ", cell.name());
    let begun = Instant::now();
    let logs = cache.join("logs");
    fs::create_dir_all(&logs)?;
    let log = logs.join(cell.name().replace('/', "_"));
    let script = cell::script(&stage.directory, &tests);
    let finished = guest.run(cache, &script, Output::Logged(&log))?;
    if finished.code.is_none() {
        return Err(format!("not done after {} s; see {}", args.timeout, log.display()).into());
    }
    let tried = Tried::parse(&finished.stdout, &finished.release, stage)
        .map_err(|why| format!("{why}; see {}", log.display()))?;
    eprintln!("{} ({} s)", tried.told(), begun.elapsed().as_secs());
    Ok(tried)
}

/// A place beside the cache for what is staged.
fn staging(cache: &Path) -> Result<Temporary> {
    Temporary::below(cache, "stage")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> =
            Cell::all().into_iter().map(Cell::name).collect();
        assert_eq!(names.len(), 40);
        assert!(names.contains("6.1/no-landlock/root"));
    }

    #[test]
    fn the_table_in_the_document_has_its_shape() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security/hosts.md");
        document::check(&fs::read_to_string(document).unwrap()).unwrap();
    }
}
