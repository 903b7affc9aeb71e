//! What the unified log says about a run: each refusal by `deny default` is a line of the kernel's that ends with the
//! run's own name. Pure.
//!
//! The command chooses the paths it is refused at, so the lines are foreign text: they become advice, and never a grant.

use serde::Deserialize;

use crate::core::watched::{MissingPath, WatchedAct};

/// How long a forgotten reader may live.
const LONGEST: &str = "1h";

/// Arguments for reading lines as they come.
pub fn stream_arguments(mark: &str) -> Vec<String> {
    let words = ["stream", "--style", "ndjson", "--timeout", LONGEST, "--predicate"];
    words.into_iter().map(str::to_owned).chain([predicate(mark)]).collect()
}

/// Arguments for reading lines of the last seconds.
pub fn show_arguments(mark: &str, seconds: u64) -> Vec<String> {
    let last = format!("{seconds}s");
    let words = ["show", "--style", "ndjson", "--last", &last, "--predicate"];
    words.into_iter().map(str::to_owned).chain([predicate(mark)]).collect()
}

fn predicate(mark: &str) -> String {
    format!("eventMessage CONTAINS \"deny(\" AND eventMessage CONTAINS \"{mark}\"")
}

/// One thing that was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    pub process: String,
    pub operation: String,
    /// A path, a name or an address; empty where there is none.
    pub object: String,
    pub times: u64,
    /// Seconds since 1970, where the line has a time.
    pub at: f64,
}

/// A line of `log --style ndjson`, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "eventMessage")]
    message: String,
    #[serde(default)]
    timestamp: String,
}

/// The refusals of the run with this mark. Banners of the tool, lines of other runs and what cannot be read are left out.
pub fn denials(text: &str, mark: &str) -> Vec<Denial> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter_map(|line| denial(&line, mark)).collect()
}

/// `Sandbox: cat(123) deny(1) file-read-data /x`, a line break and the mark. Repeated ones begin with a count.
fn denial(line: &Line, mark: &str) -> Option<Denial> {
    let (report, last) = line.message.trim_end().rsplit_once('\n')?;
    if last.trim() != mark {
        return None;
    }
    let (before, report) = report.split_once("Sandbox: ")?;
    let times = match before.split_once(" duplicate report") {
        Some((count, _)) => count.trim().parse().ok()?,
        None => 1,
    };
    let (process, rest) = report.split_once(") deny(")?;
    let (process, pid) = process.rsplit_once('(')?;
    let _: u32 = pid.parse().ok()?;
    let (_, rest) = rest.split_once(") ")?;
    let (operation, object) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Denial {
        process: process.to_owned(),
        operation: operation.to_owned(),
        object: object.to_owned(),
        times,
        at: seconds(&line.timestamp).unwrap_or(0.0),
    })
}

/// `2026-09-13 10:08:38.776905-0700`.
fn seconds(timestamp: &str) -> Option<f64> {
    let (date, rest) = timestamp.split_once(' ')?;
    let zone_at = rest.rfind(['+', '-'])?;
    let (time, zone) = (rest.get(..zone_at)?, rest.get(zone_at..)?);
    let numbers = |text: &str, by: char| -> Option<Vec<f64>> {
        text.split(by).map(|part| part.parse().ok()).collect()
    };
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let [hour, minute, second] = numbers(time, ':')?[..] else { return None };
    let hours: i64 = zone.get(..3)?.parse().ok()?;
    let minutes: i64 = zone.get(3..)?.parse().ok()?;
    let ahead = hours * 3600 + minutes * 60 * if hours < 0 { -1 } else { 1 };
    // Days since 1970, by counting years from March: leap days come last.
    let (year, month) = if month > 2.0 { (year, month - 3.0) } else { (year - 1.0, month + 9.0) };
    let leaps = (year / 4.0).floor() - (year / 100.0).floor() + (year / 400.0).floor();
    let days = year * 365.0 + leaps + ((month * 153.0 + 2.0) / 5.0).floor() + day - 719_469.0;
    Some(days * 86_400.0 + hour * 3600.0 + minute * 60.0 + second - ahead as f64)
}

/// What almost every program asks for and does without.
const QUIET: [&str; 4] =
    ["/dev/autofs_nowait", "/Library/Preferences/", "/Library/Managed Preferences/", "/dev/tty"];

/// The places among the refusals, each once.
pub fn missing(denials: &[Denial]) -> Vec<MissingPath> {
    let mut places: Vec<MissingPath> = Vec::new();
    for denial in denials {
        let is_quiet = QUIET.iter().any(|quiet| denial.object.starts_with(quiet))
            || denial.object.ends_with("/.CFUserTextEncoding");
        let Some(act) = act(denial).filter(|_| !is_quiet) else { continue };
        match places.iter_mut().find(|place| place.path == denial.object && place.act == act) {
            Some(place) => place.times += denial.times,
            None => places.push(MissingPath {
                path: denial.object.clone(),
                act,
                times: denial.times,
                first: denial.at,
            }),
        }
    }
    places
}

/// What a place was wanted for; `None` for what is no place.
fn act(denial: &Denial) -> Option<WatchedAct> {
    if !denial.object.starts_with('/') {
        return None;
    }
    match denial.operation.as_str() {
        "file-read-metadata" | "file-test-existence" => Some(WatchedAct::Look),
        "file-write-create" => Some(WatchedAct::Create),
        "file-write-unlink" => Some(WatchedAct::Remove),
        "file-map-executable" | "process-exec" | "process-exec-interpreter" => {
            Some(WatchedAct::Read)
        }
        "file-link" | "file-clone" => Some(WatchedAct::Write),
        "network-outbound" => Some(WatchedAct::Connect),
        read if read.starts_with("file-read") => Some(WatchedAct::Read),
        write if write.starts_with("file-write") => Some(WatchedAct::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
