//! The launcher inside a program that uses the library.
//!
//! A launcher copies itself to set up a sandbox, and only a process with a single thread can be
//! copied safely. So a [`Sandbox`](crate::Sandbox) does not launch anything in the program that
//! made it: it starts the same program once more, and [`dispatch`] turns that one into the
//! launcher before it does anything else. Policy, secrets and report cross on a socket; nothing
//! of them is on the helper's command line or in its environment.

use std::process::exit;

use crate::core::error::Error;
use crate::core::exit_code;
use crate::core::report::Report;
use crate::order::reply::LauncherReply;
use crate::order::{Order, Received};
use crate::platform::{self, HelperLink};
use crate::sandbox::ready;
use crate::session::{CommandView, Events, Options, Session};

const NOT_SET_UP: i32 = exit_code::NOT_SET_UP as i32;

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
        None => ready::set(),
        Some(Ok(link)) => serve(link),
        Some(Err(why)) => {
            eprintln!("mcp-sandbox-helper: {}", mcp_policy::text::word(&why));
            exit(NOT_SET_UP)
        }
    }
}

fn serve(mut link: HelperLink) -> ! {
    let order = match link.receive() {
        Ok(Some(order)) => order,
        // There is no caller left to be told.
        Ok(None) | Err(_) => exit(NOT_SET_UP),
    };
    let outcome = Order::from_bytes(&order).and_then(|received| {
        drop(order);
        launch(received, &link)
    });
    let (answer, code) = match outcome {
        Ok(report) => {
            let code = report.exit_code;
            (LauncherReply::Ended(Box::new(report)), code)
        }
        Err(error) => {
            let code = error.exit_code();
            (LauncherReply::Failed(error), code)
        }
    };
    // A caller may read the outputs to their ends before it listens here.
    platform::let_go_of_stdio();
    reply(&link, &answer);
    exit(code.into())
}

fn reply(link: &HelperLink, reply: &LauncherReply) {
    let sent = serde_json::to_vec(reply).map_err(std::io::Error::from);
    if let Err(error) = sent.and_then(|bytes| link.send(&bytes)) {
        eprintln!("mcp-sandbox-helper: answer the caller: {error}");
        exit(NOT_SET_UP)
    }
}

/// The caller's end of the line. Its stderr is the command's, so nothing is told there: the report has it.
struct LinkEvents<'a>(&'a HelperLink);

impl Events for LinkEvents<'_> {
    fn starting(&mut self, _: CommandView<'_>) -> Result<(), Error> {
        reply(self.0, &LauncherReply::Accepted);
        Ok(())
    }
}

fn launch(received: Received, link: &HelperLink) -> Result<Report, Error> {
    let Received { spec, secrets, fallback, strict, judged } = received;
    if !platform::is_single_threaded() {
        return Err(Error::Input {
            what: "helper".to_owned(),
            why: "mcp_sandbox::helper::dispatch() was called after another thread was started; \
                  call it first in main"
                .to_owned(),
        });
    }
    let options = Options { fallback, strict, judged, secrets, ..Options::default() };
    let session = Session::prepare(spec, options)?;
    match session.run(&mut LinkEvents(link)) {
        Ok(ended) => Ok(ended.report),
        Err(not_started) => Err(not_started.error),
    }
}
