//! `mcp doctor --full`: what programs need and what must not work, each tried outside and inside under a time-out, and a
//! summary that can be pasted into an issue: no user names, no paths.

mod check;
mod denied;
mod lists;
mod profile_forms;
mod redact;
mod windows_forms;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde::Serialize;

use self::check::{CheckOutcome, CheckScene, FullCheck};
use self::redact::Known;
use super::{Line, Mark};
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

/// As many at a time as do not disturb each other's time-outs.
const THREADS: usize = 2;

#[derive(Debug, Serialize)]
struct Tried {
    id: &'static str,
    what: &'static str,
    #[serde(flatten)]
    outcome: CheckOutcome,
    milliseconds: u128,
    /// Of that, the command inside: the start of the sandbox, its end and what is between.
    #[serde(skip_serializing_if = "Option::is_none")]
    inside_milliseconds: Option<u128>,
}

#[derive(Debug, Serialize)]
struct Summary {
    mcp: &'static str,
    system: &'static str,
    architecture: &'static str,
    mechanisms: Vec<Line>,
    passed: usize,
    failed: usize,
    skipped: usize,
    seconds: u64,
    checks: Vec<Tried>,
}

/// `only` keeps the checks whose names begin with it.
pub fn run(mechanisms: Vec<Line>, only: &str, json: bool) -> Result<u8, Failure> {
    let started = Instant::now();
    let exe = std::env::current_exe().map_err(|e| Failure::file(Path::new("mcp"), &e))?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| Failure::file(&exe, &e))?;
    let port = listener.local_addr().map_or(0, |at| at.port());
    accept_forever(&listener);
    let chosen = lists::of(std::env::consts::OS);
    let chosen: Vec<_> = chosen.into_iter().filter(|check| check.id.starts_with(only)).collect();
    if chosen.is_empty() {
        let why =
            format!("no check has a name that begins with {only}; `mcp doctor --full` lists them");
        return Err(Failure::Refused(why));
    }
    let checks = try_all(&chosen, &exe, port);
    let known = known_names(&exe);
    let clean = |text: &str| redact::redact(text, &known);
    let count =
        |wanted: fn(&CheckOutcome) -> bool| checks.iter().filter(|c| wanted(&c.outcome)).count();
    let summary = Summary {
        mcp: env!("CARGO_PKG_VERSION"),
        system: std::env::consts::OS,
        architecture: std::env::consts::ARCH,
        mechanisms: mechanisms.into_iter().map(|l| Line { text: clean(&l.text), ..l }).collect(),
        passed: count(|outcome| *outcome == CheckOutcome::Passed),
        failed: count(|outcome| matches!(outcome, CheckOutcome::Failed { .. })),
        skipped: count(|outcome| matches!(outcome, CheckOutcome::Skipped { .. })),
        seconds: started.elapsed().as_secs(),
        checks: checks.into_iter().map(|tried| cleaned(tried, &clean)).collect(),
    };
    match json {
        true => render::print(&(to_json(&summary) + "\n")),
        false => render::print(&text(&summary)),
    }
    Ok(if summary.failed == 0 { 0 } else { 1 })
}

/// Checks connect to this port; a backlog that is full would look like a refusal.
fn accept_forever(listener: &TcpListener) {
    let Ok(listener) = listener.try_clone() else { return };
    std::thread::spawn(move || while listener.accept().is_ok() {});
}

fn try_all(checks: &[&FullCheck], exe: &Path, port: u16) -> Vec<Tried> {
    let next = AtomicUsize::new(0);
    let tried = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(check) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = try_one(check, exe, port);
                    if let Ok(mut tried) = tried.lock() {
                        tried.push(one);
                    }
                }
            });
        }
    });
    let mut tried = tried.into_inner().unwrap_or_default();
    let place = |id: &str| checks.iter().position(|check| check.id == id);
    tried.sort_by_key(|one| place(one.id));
    tried
}

fn try_one(check: &FullCheck, exe: &Path, port: u16) -> Tried {
    let started = Instant::now();
    let name = format!("mcp-full-{}-{}", std::process::id(), check.id);
    let directory = std::env::temp_dir().join(name);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let free = free.map_or(0, |at| at.port());
    let patience = check.expect.patience();
    let place =
        CheckScene { exe, directory, port, free, patience, inside: std::cell::Cell::new(None) };
    let outcome = check::run(check, &place);
    let inside_milliseconds = place.inside.get().map(|time| time.as_millis());
    let milliseconds = started.elapsed().as_millis();
    Tried { id: check.id, what: check.what, outcome, milliseconds, inside_milliseconds }
}

/// What may stand in messages and says who the user is.
fn known_names(exe: &Path) -> Known {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let mut known = Known::default();
    known.path(&exe.display().to_string(), "<mcp>");
    let temporary = std::env::temp_dir();
    let temporaries = [temporary.canonicalize().unwrap_or_default(), temporary];
    for path in temporaries {
        known.path(path.display().to_string().trim_end_matches(['/', '\\']), "<tmp>");
    }
    for home in ["HOME", "USERPROFILE"].map(variable) {
        known.path(home.trim_end_matches(['/', '\\']), "~");
        let name = home.rsplit(['/', '\\']).next().unwrap_or_default();
        known.name(name, "<user>");
    }
    for host in ["COMPUTERNAME", "HOSTNAME"].map(variable) {
        known.name(&host, "<host>");
    }
    for user in ["USER", "LOGNAME", "USERNAME"].map(variable) {
        known.name(&user, "<user>");
    }
    // What holds another one goes first.
    known.paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    known.names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    known
}

fn cleaned(tried: Tried, clean: &impl Fn(&str) -> String) -> Tried {
    let outcome = match tried.outcome {
        CheckOutcome::Failed { why } => CheckOutcome::Failed { why: clean(&why) },
        CheckOutcome::Skipped { why } => CheckOutcome::Skipped { why: clean(&why) },
        CheckOutcome::Passed => CheckOutcome::Passed,
    };
    Tried { outcome, ..tried }
}

fn text(summary: &Summary) -> String {
    let paint = Paint::stdout();
    let mut text = format!(
        "mcp {} on {} {}: {} passed, {} failed, {} skipped in {} s\n",
        summary.mcp,
        summary.system,
        summary.architecture,
        summary.passed,
        summary.failed,
        summary.skipped,
        summary.seconds
    );
    for line in &summary.mechanisms {
        let mark = match line.mark {
            Mark::Holds => paint.good("[✓]"),
            Mark::Less => paint.warn("[!]"),
            Mark::Fails => paint.bad("[⚠]"),
        };
        text += &format!("{mark} {:<18} {}\n", line.topic, line.text);
    }
    for Tried { id, what, outcome, milliseconds, inside_milliseconds } in &summary.checks {
        let (mark, why) = match outcome {
            CheckOutcome::Passed => (paint.good("[✓]"), String::new()),
            CheckOutcome::Failed { why } => (paint.bad("[⚠]"), format!(": {why}")),
            CheckOutcome::Skipped { why } => (paint.warn("[-]"), format!(": skipped, {why}")),
        };
        let inside = inside_milliseconds.map(|inside| format!(", {inside} inside"));
        let inside = inside.unwrap_or_default();
        text += &format!("{mark} {id:<18} {what}{why} ({milliseconds} ms{inside})\n");
    }
    text + "\nThe lines above name no user and no path of yours. docs/FIRST-CONTACT.md says where to send them.\n"
}
