//! The launcher inside a program that uses the library.
//!
//! A launcher copies itself to set up a sandbox, and only a process with a single thread can be
//! copied safely. So a [`Sandbox`](crate::Sandbox) does not launch anything in the program that
//! made it: it starts the same program once more, and [`dispatch`] turns that one into the
//! launcher before it does anything else. Policy, secrets and report cross on a socket; nothing
//! of them is on the helper's command line or in its environment.

use std::ffi::OsString;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::notices::Notices;
use crate::plan::{Intent, Plan};
use crate::platform::{self, Claim, Line, Step};
use crate::report::Report;
use crate::request::{Request, Secret};
use crate::sandbox::Fallback;
use crate::sandbox::order::{Order, Received};
use crate::sandbox::wire::Reply;

/// The exit code of `mcp` for a sandbox that could not be set up.
const NOT_SET_UP: i32 = 125;

static IS_READY: AtomicBool = AtomicBool::new(false);

/// Has to be the first thing in `main` of a program that starts sandboxes without naming a
/// [helper](crate::Sandbox::helper). Returns at once, except where the program was started as a
/// helper: then it launches the sandbox, and exits with the command's exit code.
///
/// ```standalone_crate
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     mcp_sandbox::helper::dispatch();
///     // Arguments, logging, threads and everything else come after it.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn dispatch() {
    match platform::caller() {
        None => IS_READY.store(true, Ordering::Relaxed),
        Some(Ok(line)) => serve(line),
        Some(Err(why)) => {
            eprintln!("mcp-sandbox-helper: {}", mcp_policy::text::word(&why));
            exit(NOT_SET_UP)
        }
    }
}

/// Whether this program would become a launcher when started as a helper.
pub(crate) fn is_ready() -> bool {
    IS_READY.load(Ordering::Relaxed)
}

fn serve(mut line: Line) -> ! {
    let order = match line.receive() {
        Ok(Some(order)) => order,
        // Nobody is there to be told.
        Ok(None) | Err(_) => exit(NOT_SET_UP),
    };
    let outcome = Order::from_bytes(&order).and_then(prepare).and_then(|prepared| {
        drop(order);
        reply(&line, &Reply::Accepted);
        launch(prepared)
    });
    let (answer, code) = match outcome {
        Ok(report) => {
            let code = report.exit_code;
            (Reply::Ended(Box::new(report)), code)
        }
        Err(error) => {
            let code = error.exit_code();
            (Reply::Failed(error), code)
        }
    };
    // A caller may read the outputs to their ends before it listens here.
    platform::let_go_of_stdio();
    reply(&line, &answer);
    exit(code.into())
}

fn reply(line: &Line, reply: &Reply) {
    let sent = serde_json::to_vec(reply).map_err(std::io::Error::from);
    if let Err(error) = sent.and_then(|bytes| line.send(&bytes)) {
        eprintln!("mcp-sandbox-helper: answer the caller: {error}");
        exit(NOT_SET_UP)
    }
}

struct Prepared {
    plan: Plan<Step>,
    request: Request,
    claim: Claim,
    fallback: Fallback,
    strict: bool,
}

/// Where this host refuses what was planned, once more with what it allows.
fn launch(prepared: Prepared) -> Result<Report, Error> {
    let Prepared { plan, request, claim, fallback, strict } = prepared;
    // Its stderr is the command's; the report has what there is to tell.
    let error = match platform::run(&plan, &request, claim, Notices::Silent, None) {
        Err(error) => error,
        ended => return ended,
    };
    match crate::plan_again(&request, &plan, &error)? {
        None => Err(error),
        Some(again) => {
            refuse_gaps(&again.plan, fallback, strict)?;
            platform::run(&again.plan, &request, again.claim, Notices::Silent, None)
        }
    }
}

fn prepare(received: Received) -> Result<Prepared, Error> {
    let Received { wish, secrets, fallback, strict } = received;
    if !platform::is_single_threaded() {
        return Err(Error::Input {
            what: "helper".to_owned(),
            why: "mcp_sandbox::helper::dispatch() was called after another thread was started; \
                  call it first in main"
                .to_owned(),
        });
    }
    let mut request = platform::resolve(wish)?;
    add_secrets(&mut request, secrets);
    let mut facts = platform::assume_host()?;
    let claim = platform::claim(&request, &mut facts);
    let plan = crate::plan(&request, &facts);
    refuse_gaps(&plan, fallback, strict)?;
    Ok(Prepared { plan, request, claim, fallback, strict })
}

/// A secret replaces whatever else has its name.
fn add_secrets(request: &mut Request, secrets: Vec<(OsString, Secret)>) {
    let is_given = |name: &OsString| secrets.iter().any(|(given, _)| given == name);
    request.env.retain(|(name, _)| !is_given(name));
    request.secrets.retain(|(name, _)| !is_given(name));
    request.secrets.extend(secrets);
}

/// As `mcp run` does it, but for warnings: stderr belongs to the command, and the report has them.
fn refuse_gaps<S>(plan: &Plan<S>, fallback: Fallback, strict: bool) -> Result<(), Error> {
    let gaps: Vec<String> = match (strict, fallback) {
        (true, _) => plan.gaps().map(sentence).collect(),
        (false, Fallback::Deny) => plan.boundary_gaps().map(sentence).collect(),
        (false, Fallback::Warn) => return Ok(()),
    };
    if gaps.is_empty() {
        return Ok(());
    }
    Err(Error::Unsupported(format!("not started: {}", gaps.join("; "))))
}

fn sentence((control, intent): (crate::Control, &Intent)) -> String {
    match intent {
        Intent::Unavailable { why, remedy } => {
            format!("{control} cannot be enforced: {why}; {remedy}")
        }
        Intent::Partial { by, missing, .. } => {
            format!("{control} is only partly enforced by {by}: {missing}")
        }
        Intent::Enforce { .. } | Intent::NotRequested => control.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Control;

    #[test]
    fn gaps_stop_what_they_should() {
        let plan = |control, intent| Plan::<Step> {
            controls: BTreeMap::from([(control, intent)]),
            steps: Vec::new(),
        };
        let boundary = plan(Control::Network, Intent::unavailable("no", "do"));
        let limit = plan(Control::Cpu, Intent::partial("x", "y"));
        let whole = plan(Control::Network, Intent::enforce("x"));
        for (plan, fallback, strict, is_refused) in [
            (&boundary, Fallback::Deny, false, true),
            (&boundary, Fallback::Warn, false, false),
            (&boundary, Fallback::Warn, true, true),
            (&limit, Fallback::Deny, false, false),
            (&limit, Fallback::Deny, true, true),
            (&whole, Fallback::Deny, true, false),
        ] {
            let refused = refuse_gaps(plan, fallback, strict);
            assert_eq!(refused.is_err(), is_refused, "{plan:?} {fallback:?} {strict}");
            if let Err(error) = refused {
                assert_eq!(error.exit_code(), 125);
            }
        }
    }
}
