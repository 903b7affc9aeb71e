//! Starts the helper in the confinement and reads its report.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::core::plan::{Plan, Planned};
use crate::core::report::{Answer, Evidence};
use crate::windows::channel::{Attempt, Failed, HelperOrder, Purpose, READY, Reply, Task};
use crate::windows::confinement::Confinement;
use crate::windows::failure::{RunError, at_step};
use crate::windows::helper_main::MARK;
use crate::windows::listen_relay;
use crate::windows::own_program::{OwnProgram, Pipes};
use crate::windows::proxy_host::RunningProxy;
use crate::windows::step::{Act, Step};
use crate::windows::sys::handles::Inheritable;
use crate::windows::sys::port::Event;
use crate::windows::sys::process::Mitigated;
use crate::windows::win32;

/// A helper that sends nothing for this long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was seen from inside, for each step that asks for it. The first that is not as planned is an error.
pub fn look(
    plan: &Plan<Step>,
    confinement: &Confinement,
    running_proxy: Option<&RunningProxy>,
) -> Result<Vec<Evidence>, RunError> {
    let tasks = tasks(plan, running_proxy.and_then(RunningProxy::port));
    let Some(first) = tasks.first().map(|(step, _)| *step) else { return Ok(Vec::new()) };
    let step_of = |attempt: Attempt| {
        let wanted = Task::Refused(attempt);
        tasks.iter().find(|(_, task)| *task == wanted).map_or(first, |(step, _)| *step)
    };
    let (inherit, connect) = (step_of(Attempt::Inherit), step_of(Attempt::Connect));
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    // Outside it can be connected to; inside that has to fail.
    drop(TcpStream::connect(("127.0.0.1", port)).and_then(|_| listener.accept())?);
    listener.set_nonblocking(true)?;
    let marker = format!("mcp marker {}\n", std::process::id());
    let path = confinement.scratch.join("marker");
    std::fs::write(&path, &marker)?;
    // Inheritable: a process that was started without a handle list would have it.
    let trap = Inheritable::of(&File::open(&path)?)?;
    let order =
        HelperOrder { tasks, launcher: std::process::id(), port, handle: trap.number(), marker };
    let (targets, words) =
        (running_proxy.map(RunningProxy::targets).unwrap_or_default(), order.marker.clone());
    let knock = move |is_over: &AtomicBool| {
        let is_silent =
            |(_, at): &(u16, SocketAddr)| !listen_relay::is_answered(*at, &words, is_over);
        targets.into_iter().find(is_silent).map(|(port, _)| port)
    };
    let (word, mitigated, unheard) =
        ask(confinement, &order, knock).map_err(|e| at_step(first, &e))?;
    drop(trap);
    let seen = match word {
        Some(Reply::Ready(seen)) => seen,
        Some(Reply::Failed(failed)) => return Err(RunError::Step(failed)),
        None => {
            let why = "our own program ended inside without an answer".to_owned();
            return Err(RunError::Step(Failed {
                step: first,
                errno: win32::ERROR_ACCESS_DENIED,
                why,
            }));
        }
    };
    if listener.accept().is_ok() {
        let why = "was NOT refused: a connection from inside arrived".to_owned();
        return Err(RunError::Step(Failed {
            step: connect,
            errno: win32::ERROR_ACCESS_DENIED,
            why,
        }));
    }
    if let Some(port) = unheard.flatten() {
        let is_it = |planned: &Planned<Step>| planned.step == Step::Served { port };
        let step = plan.steps.iter().position(is_it).unwrap_or(first);
        let why = "its answer did not arrive at the launcher".to_owned();
        return Err(RunError::Step(Failed { step, errno: win32::ERROR_NOT_SUPPORTED, why }));
    }
    let mut evidence: Vec<Evidence> = seen
        .into_iter()
        .map(|(step, text)| Evidence { step, answer: answer(plan, step, text) })
        .collect();
    let handles = evidence.iter().any(|evidence| evidence.step == inherit);
    evidence.extend(answers(plan, handles, mitigated));
    Ok(evidence)
}

fn answer(plan: &Plan<Step>, step: usize, text: String) -> Answer {
    let is_desktop = plan.steps.get(step).is_some_and(|planned| planned.step == Step::Desktop);
    match is_desktop && !text.is_empty() {
        true => Answer::Less(format!("the user's desktop is used: {text}")),
        false => Answer::Confirmed(text),
    }
}

/// Whether programs with windows do not start on the run's own desktop.
pub fn is_desktop_closed(plan: &Plan<Step>, evidence: &[Evidence]) -> bool {
    let is_it =
        |step: usize| plan.steps.get(step).is_some_and(|planned| planned.step == Step::Desktop);
    evidence.iter().any(|one| is_it(one.step) && matches!(one.answer, Answer::Less(_)))
}

/// The steps that are confirmed by what the helper found, or by its start.
fn answers(plan: &Plan<Step>, handles: bool, mitigated: Mitigated) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    for (step, planned) in plan.steps.iter().enumerate() {
        let answer = match &planned.step {
            Step::Handles { .. } if handles => Answer::Confirmed(String::new()),
            Step::Mitigations if mitigated == Mitigated::Yes => Answer::Confirmed(String::new()),
            Step::Mitigations => Answer::Less("this system does not take mitigations".to_owned()),
            _ => continue,
        };
        evidence.push(Evidence { step, answer });
    }
    evidence
}

fn tasks(plan: &Plan<Step>, relay: Option<u16>) -> Vec<(usize, Task)> {
    let mut tasks = Vec::new();
    for (step, planned) in plan.steps.iter().enumerate() {
        let task = match &planned.step {
            Step::Refused { act } => Task::Refused(match act {
                Act::Read { path } => Attempt::Read(path.to_string()),
                Act::Create { path } => Attempt::Create(path.to_string()),
                Act::Connect => Attempt::Connect,
                Act::OpenLauncher => Attempt::OpenLauncher,
                Act::Inherit => Attempt::Inherit,
                Act::BreakAway => Attempt::BreakAway,
                Act::Spawn => Attempt::Spawn,
                Act::Reach { path } => Attempt::Open(Purpose::Anything, path.verbatim()),
                Act::Change { path } => Attempt::Open(Purpose::Changing, path.verbatim()),
                Act::Move { path } => Attempt::Open(Purpose::Moving, path.verbatim()),
            }),
            Step::Allowed { directory } => Task::Allowed(directory.to_string()),
            // Port 0 never answers.
            Step::Reached => Task::Reached(relay.unwrap_or(0)),
            Step::Served { port } => Task::Served(*port),
            Step::Identity => Task::Identity,
            Step::Desktop => Task::Desktop,
            _ => continue,
        };
        tasks.push((step, task));
    }
    tasks
}

/// Starts the helper, gives it its order and waits for its answer and its end. `None`: it gave none. Something can be
/// done meanwhile, from when the helper says that it is ready for it; it is told when the helper is gone.
pub fn ask<T: Send + 'static>(
    confinement: &Confinement,
    order: &HelperOrder,
    meanwhile: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> std::io::Result<(Option<Reply>, Mitigated, Option<T>)> {
    let own = OwnProgram::with(&[MARK.into()])?;
    let Pipes { inside, to: mut say, from: mut answer } = Pipes::make()?;
    let suspended = own.start(confinement, &inside).suspended()?;
    let mitigated = suspended.mitigated;
    let process = suspended.resume()?;
    drop(inside);
    // One that is dead already says more by that.
    let _ = say.write_all(&serde_json::to_vec(order)?);
    drop(say);
    let is_over = Arc::new(AtomicBool::new(false));
    let seen = is_over.clone();
    let reader = std::thread::spawn(move || {
        let mut text = vec![0];
        let first = answer.read_exact(&mut text);
        let done = (first.is_ok() && text == READY).then(|| meanwhile(&seen));
        let whole = first.and_then(|()| answer.read_to_end(&mut text));
        (whole.map(|_| text).unwrap_or_default(), done)
    });
    if process.ended(PATIENCE)?.is_none() {
        process.kill(1);
        process.ended(PATIENCE)?;
    }
    is_over.store(true, Ordering::Release);
    forget(confinement);
    let (text, done) = reader.join().unwrap_or_default();
    Ok((serde_json::from_slice(&text).ok(), mitigated, done))
}

/// What the job tells of the helper is not about the command.
pub fn forget(confinement: &Confinement) {
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        match confinement.port.wait(Duration::from_millis(100)) {
            Ok(Some(Event::Empty)) | Err(_) => return,
            Ok(None) if confinement.job.counted().is_ok_and(|counted| counted.active == 0) => {
                return;
            }
            Ok(_) => {}
        }
    }
}
