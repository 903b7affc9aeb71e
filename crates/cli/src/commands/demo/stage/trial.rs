//! Makes the attempts of a session on one side, and judges what came of them.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use mcp_probe::Outcome;

use super::attempt::{Attempt, Proof, Session};
use super::client::{Fault, PATIENCE, ServerProcess};
use super::{Side, Stage};

/// How long the client bears with a server that nothing else ends.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(300);
/// A daemon writes every 20 ms; no beat in this time is death.
const SILENCE: Duration = Duration::from_millis(150);

/// What came of an attempt on one side, in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptResult {
    Worked(String),
    Failed(String),
    /// Neither: the server ended or fell silent for a reason that is not the attempt's.
    Unclear {
        what: String,
        stderr: String,
    },
}

/// Every attempt gets a server: when one did not survive, the next has a new one.
///
/// # Errors
/// When no process can be started, which says nothing about any attempt.
pub fn run(stage: &Stage, session: &Session, side: Side) -> io::Result<Vec<AttemptResult>> {
    let mut running: Option<ServerProcess> = None;
    let mut seen = Vec::new();
    for attempt in &session.attempts {
        let mut server = match running.take() {
            Some(server) => server,
            None => ServerProcess::start(&mut stage.command(side, &session.flags))?,
        };
        seen.push(match try_one(&mut server, attempt, side) {
            Ok(result) => {
                running = Some(server);
                result
            }
            Err(fault) => ended(&mut server, &fault, &attempt.proof),
        });
    }
    Ok(seen)
}

fn try_one(
    server: &mut ServerProcess,
    attempt: &Attempt,
    side: Side,
) -> Result<AttemptResult, Fault> {
    let acts = match side {
        Side::Bare => &attempt.bare,
        Side::Inside => &attempt.inside,
    };
    let outcomes = match (&attempt.proof, side) {
        (Proof::Outlives(_), Side::Bare) => {
            server.begin(acts)?;
            thread::sleep(CLIENT_TIMEOUT);
            ask_to_end(server);
            server.finish()?
        }
        _ => server.attempt(acts)?,
    };
    if let (Proof::StaysBehind { bare, inside }, [Outcome { ok: true, .. }]) =
        (&attempt.proof, outcomes.as_slice())
    {
        return stay_behind(server, if side == Side::Bare { bare } else { inside });
    }
    Ok(judge(&outcomes, &attempt.proof))
}

/// Should it be gone already, the missing answer tells.
#[cfg(unix)]
fn ask_to_end(server: &ServerProcess) {
    use rustix::process::{Pid, Signal, kill_process};
    let _ = kill_process(Pid::from_child(server.child()), Signal::TERM);
}

/// A client of Windows has no way to ask.
#[cfg(not(unix))]
fn ask_to_end(_: &ServerProcess) {}

fn judge(outcomes: &[Outcome], proof: &Proof) -> AttemptResult {
    let success = outcomes.iter().find(|outcome| {
        outcome.ok
            && match proof {
                Proof::Shows(secret) => outcome.detail.contains(secret),
                Proof::Lists(line) => outcome.detail.lines().any(|listed| listed == line),
                _ => true,
            }
    });
    match (success, outcomes.last()) {
        (Some(outcome), _) => AttemptResult::Worked(describe(outcome)),
        (None, Some(outcome)) => AttemptResult::Failed(describe(outcome)),
        (None, None) => {
            AttemptResult::Unclear { what: "nothing tried".to_owned(), stderr: String::new() }
        }
    }
}

/// A server that does not answer was killed by the limit it ran into, or something is wrong.
fn ended(server: &mut ServerProcess, fault: &Fault, proof: &Proof) -> AttemptResult {
    let status = server.leave();
    let code = status.as_ref().ok().and_then(ExitStatus::code);
    let expected = match proof {
        Proof::Survives(code) | Proof::Outlives(code) => Some(*code),
        _ => None,
    };
    match (fault, code) {
        (Fault::Ended, Some(code)) if expected == Some(code) => {
            AttemptResult::Failed(format!("killed, exit {code}"))
        }
        _ => {
            let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            let what = format!("{fault}, {how}");
            AttemptResult::Unclear { what, stderr: server.stderr() }
        }
    }
}

/// Looks from the host whether the heart beats on after its server's end.
fn stay_behind(server: &mut ServerProcess, heartbeat: &Path) -> Result<AttemptResult, Fault> {
    let size = || fs::metadata(heartbeat).map_or(0, |metadata| metadata.len());
    let born = within(PATIENCE, || size() > 0);
    server.leave().map_err(|error| Fault::Odd(error.to_string()))?;
    let at_exit = size();
    let alive = within(SILENCE, || size() > at_exit);
    // A daemon ends by itself, and holds the server's stdout until then: none outlives the demo.
    server.drain()?;
    Ok(match (born, alive) {
        (false, _) => {
            AttemptResult::Unclear { what: "no daemon".to_owned(), stderr: server.stderr() }
        }
        (true, true) => AttemptResult::Worked("lived on".to_owned()),
        (true, false) => AttemptResult::Failed("died with it".to_owned()),
    })
}

fn within(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    holds()
}

/// An outcome in a few words.
fn describe(outcome: &Outcome) -> String {
    let detail = &outcome.detail;
    if let Some(errno) = &outcome.errno {
        return match outcome.act.as_str() {
            "fork" => format!("{errno} after {detail}"),
            "tmp-fill" => format!("{errno} after {}", mebibytes(detail)),
            _ => errno.clone(),
        };
    }
    match outcome.act.as_str() {
        "read" | "getenv" | "environ" => format!("read {} bytes", detail.len()),
        "write" => format!("wrote {detail}"),
        "proc-list" => format!("saw {} processes", detail.lines().count()),
        "kill" => "signal sent".to_owned(),
        "connect" | "unix-connect" | "unix-abstract" => "connected".to_owned(),
        "alloc" => format!("took {}", mebibytes(detail)),
        "fork" | "fork-alloc" => format!("{detail} processes"),
        "tmp-fill" => format!("wrote {}", mebibytes(detail)),
        "ignore-term" => "ran to its end".to_owned(),
        _ => "worked".to_owned(),
    }
}

fn mebibytes(bytes: &str) -> String {
    match bytes.parse::<u64>() {
        Ok(bytes) => format!("{} MiB", bytes >> 20),
        Err(_) => bytes.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(act: &str, ok: bool, detail: &str) -> Outcome {
        let errno = (!ok).then(|| "EPERM".to_owned());
        Outcome { act: act.into(), arg: String::new(), ok, errno, detail: detail.into() }
    }

    #[test]
    fn only_the_secret_proves_a_theft() {
        let proof = Proof::Shows("s3cret".into());
        let theft = [outcome("read", true, "key: s3cret"), outcome("read", false, "")];
        assert_eq!(judge(&theft, &proof), AttemptResult::Worked("read 11 bytes".into()));
        let decoy = [outcome("read", true, "harmless")];
        assert_eq!(judge(&decoy, &proof), AttemptResult::Failed("read 8 bytes".into()));
        let refusal = [outcome("read", false, "")];
        assert_eq!(judge(&refusal, &proof), AttemptResult::Failed("EPERM".into()));
    }

    #[test]
    fn a_listed_process_is_a_whole_line() {
        let list = [outcome("proc-list", true, "1\n1234")];
        assert!(matches!(judge(&list, &Proof::Lists("123".into())), AttemptResult::Failed(_)));
        assert!(matches!(judge(&list, &Proof::Lists("1234".into())), AttemptResult::Worked(_)));
    }

    #[test]
    fn nothing_tried_proves_nothing() {
        assert!(matches!(judge(&[], &Proof::Done), AttemptResult::Unclear { .. }));
    }
}
