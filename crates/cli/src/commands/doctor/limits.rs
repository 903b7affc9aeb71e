//! Limits, tried in sandboxes: an act that works without the limit must be stopped by it. What
//! stopped it is told from the report of that very run.

use std::process::Output;

use mcp_sandbox::{Control, Report, Status};

use super::trial::{ActOutcome, TrialScene, outcomes, words};
use super::{Line, Mark, topic};
use crate::failure::Failure;

struct LimitTrial {
    control: Control,
    flag: [&'static str; 2],
    act: Vec<String>,
}

/// The most of a processor that `--max-cpu 100` may let through here, setting up included.
const SHARE: f64 = 0.2;

/// A directory of the command's own, by its name inside.
const OWN_PLACE: &str = if cfg!(windows) { "/home/mcp" } else { "/tmp" };

pub fn lines(scene: &TrialScene) -> Result<Vec<Line>, Failure> {
    let limit = |control, flag, act: &[&str]| LimitTrial { control, flag, act: words(act) };
    let limits = [
        limit(Control::OpenFiles, ["--max-fds", "32"], &["open-files", "64"]),
        limit(Control::Processes, ["--max-pids", "8"], &["fork", "16"]),
        limit(Control::TmpSize, ["--max-tmp", "1M"], &["tmp-fill", ".", "4194304"]),
        limit(Control::FileSize, ["--max-file-size", "64K"], &["write-big", "big", "131072"]),
        limit(Control::Memory, ["--max-memory", "48M"], &["alloc-shared", "134217728", "400"]),
    ];
    let mut lines = Vec::new();
    for limit in &limits {
        let acts = [limit.act.clone()];
        // Without the limit it must work, or stopping it would mean nothing.
        let free = outcomes(&scene.inside(&["--quiet", "--cwd", OWN_PLACE], &acts)?)?;
        let (bound, report) = reported(scene, &limit.flag, &acts)?;
        lines.push(verdict(limit, &free, &bound, report.as_ref())?);
    }
    lines.push(cpu(scene)?);
    Ok(lines)
}

/// A run with this limit, and what it reported.
fn reported(
    scene: &TrialScene,
    flag: &[&str; 2],
    acts: &[Vec<String>],
) -> Result<(Output, Option<Report>), Failure> {
    let path = scene.path("report.json");
    let flags = [&["--quiet", "--cwd", OWN_PLACE, "--report", &path], &flag[..]].concat();
    let run = scene.inside(&flags, acts)?;
    let report = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok((run, report))
}

fn verdict(
    limit: &LimitTrial,
    free: &[ActOutcome],
    bound: &Output,
    report: Option<&Report>,
) -> Result<Line, Failure> {
    let topic = topic(limit.control);
    let flag = limit.flag.join(" ");
    let killed = bound.status.code() == Some(137);
    let inside = outcomes(bound)?;
    let stopped = killed || inside.first().is_some_and(|outcome| !outcome.ok);
    let how = match inside.first() {
        _ if killed => "killed",
        Some(outcome) => outcome.answer(),
        None => "no answer",
    };
    let status = report.and_then(|report| report.controls.get(&limit.control));
    if !free.first().is_some_and(|outcome| outcome.ok) {
        let text = format!("{flag}: not proved, fails without it too");
        return Ok(Line::new(topic, Mark::Less, text));
    }
    if !stopped {
        return Ok(match status {
            // Said in the report: no bound on temporary space, or others are counted with it.
            Some(Status::Partial { missing: why, .. } | Status::Unavailable { why }) => {
                Line::new(topic, Mark::Less, format!("{flag}: not held here ({how}): {why}"))
            }
            _ => Line::new(topic, Mark::Fails, format!("{flag}: NOT held ({how})")),
        });
    }
    Ok(match status {
        Some(Status::Enforced { by, .. }) => {
            Line::new(topic, Mark::Holds, format!("{flag}: held ({how}) by {by}"))
        }
        Some(Status::Partial { by, missing, .. }) => {
            Line::new(topic, Mark::Less, format!("{flag}: held ({how}) by {by}; but {missing}"))
        }
        _ => Line::new(topic, Mark::Less, format!("{flag}: held ({how})")),
    })
}

/// A tenth of a processor, by the kernel's own count of what was used in how long.
fn cpu(scene: &TrialScene) -> Result<Line, Failure> {
    let topic = topic(Control::Cpu);
    let flag = ["--max-cpu", "100"];
    let shown = flag.join(" ");
    let acts = [words(&["spin", "0.2"])];
    let (_, report) = reported(scene, &flag, &acts)?;
    let Some(report) = report else {
        return Ok(Line::new(topic, Mark::Fails, format!("{shown}: the run left no report")));
    };
    let share = report.usage.cpu_seconds / report.usage.wall_seconds;
    Ok(match report.controls.get(&Control::Cpu) {
        Some(Status::Enforced { by, .. }) if share < SHARE => {
            Line::new(topic, Mark::Holds, format!("{shown}: held (used {share:.2} of one) by {by}"))
        }
        Some(Status::Enforced { by, .. }) => {
            let text = format!("{shown}: NOT held by {by} (used {share:.2} of one)");
            Line::new(topic, Mark::Fails, text)
        }
        Some(Status::Unavailable { why }) => {
            Line::new(topic, Mark::Less, format!("{shown}: not enforced here: {why}"))
        }
        other => Line::new(topic, Mark::Fails, format!("{shown}: {other:?}")),
    })
}
