//! The launcher's side of the relay: the broker as a proxy on a port of the loopback, and what leads there from
//! the container's pipes. It judges by the same rules as the transparent network of Linux.
//!
//! Other programs of the machine can connect to the broker's port too, so it wants a password that is new in each
//! run and that only the command's environment has. The relay may be in the command's hands: see
//! [`mux`](crate::net::mux) for what it can do then.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcp_policy::Sourced;

use crate::error::Error;
use crate::net::allowlist::Allowlist;
use crate::net::broker::{Broker, Callers, Handle, Journal, Meter, NetworkUse, NoInside, Setup};
use crate::net::junction::{Door, Ended, Farewell, Junction, Over};
use crate::net::mux::{Frame, Frames};
use crate::net::proxy::Login;
use crate::net::resolv::Server;
use crate::net::upstream::Upstream;
use crate::net::variables::variables;
use crate::notices::Notices;
use crate::plan::Plan;
use crate::report::{Answer, Evidence};
use crate::request::Request;
use crate::windows::job::JobLimits;
use crate::windows::launch::{Trouble, at_step};
use crate::windows::outlet::MARK;
use crate::windows::step::Step;
use crate::windows::sys::handles::Inheritable;
use crate::windows::sys::job::Job;
use crate::windows::sys::process::Children;
use crate::windows::sys::{adapters, random};
use crate::windows::walls::Walls;
use crate::windows::{command_line, environment};

const NAME: &str = "mcp";
/// A relay that says nothing for so long has hung.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the relay may take to say what is left after the command's end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What the relay needs at most: its windows, twice, and itself.
const MEMORY: u64 = 128 << 20;
/// Windows does not count descriptors; the broker's bounds are made from a number.
const DESCRIPTORS: usize = 16 << 10;

pub fn name_servers() -> Vec<Server> {
    adapters::name_servers().unwrap_or_default()
}

/// A proxy that is ready to run.
pub struct Carrier {
    /// The number of the plan's step.
    step: usize,
    login: Login,
    password: String,
    setup: Setup,
    direct: bool,
}

impl Carrier {
    /// `None` for a run without a relay.
    pub fn prepare(
        plan: &Plan<Step>,
        request: &Request,
        notices: Notices,
    ) -> Result<Option<Carrier>, Error> {
        let Some(step) = plan.steps.iter().position(|planned| planned.step == Step::Relay) else {
            return Ok(None);
        };
        let upstream = Upstream::read(|name| std::env::var(name).ok()).map_err(|bad| {
            Error::Input { what: bad.variable.to_owned(), why: bad.reason.to_owned() }
        })?;
        let failed = |source| Error::Io { doing: "make the proxy ready".to_owned(), source };
        let password: String =
            random::bytes().map_err(failed)?.iter().map(|byte| format!("{byte:02x}")).collect();
        let login = Login::new(NAME, &password)
            .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let rules = request.policy.network.allow.iter();
        Ok(Some(Carrier {
            step,
            login,
            password,
            direct: upstream.is_direct(),
            setup: Setup {
                rules: Allowlist::with_loopback(rules.map(|Sourced { value, .. }| value.clone())),
                listeners: Vec::new(),
                own: Box::new(|| adapters::own_addresses().unwrap_or_default()),
                upstream,
                journal: Journal::new(notices.teller()),
            },
        }))
    }

    /// What is carried is told to this as it is counted.
    pub fn metered(self, meter: Option<Meter>) -> Carrier {
        let journal = self.setup.journal.metered(meter);
        Carrier { setup: Setup { journal, ..self.setup }, ..self }
    }

    /// Starts the relay behind the walls, and the broker.
    pub fn start(self, walls: &Walls) -> Result<Carried, Trouble> {
        let step = self.step;
        self.try_start(walls).map_err(|e| at_step(step, &e))
    }

    fn try_start(self, walls: &Walls) -> io::Result<Carried> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let front = listener.local_addr()?;
        let Relay { job, port, from, to } = Relay::start(walls)?;
        let junction = Junction::new(Door::To(front), from, to)?;
        let mut broker = Broker::new(self.setup, Box::new(NoInside), DESCRIPTORS)?;
        broker.add_front(listener, Callers::Holders(self.login))?;
        let broker = Some(broker.start()?);
        let farewell = junction.farewell();
        let (done, far_end) = channel();
        std::thread::Builder::new()
            .name("mcp-relay".to_owned())
            .spawn(move || done.send(junction.run()))?;
        Ok(Carried {
            step: self.step,
            job: Some(job),
            port,
            place: format!("{NAME}:{}@127.0.0.1:{port}", self.password),
            direct: self.direct,
            broker,
            farewell,
            far_end,
        })
    }
}

/// A relay that has said where it listens.
struct Relay {
    job: Job,
    port: u16,
    from: PipeReader,
    to: PipeWriter,
}

impl Relay {
    fn start(walls: &Walls) -> io::Result<Relay> {
        // Its own: what it takes is not the command's, which may have one process only.
        let job = Job::new()?;
        let limits = JobLimits { memory: Some(MEMORY), processes: Some(1), user_time: None };
        job.set_limits(limits)?;
        let own = std::env::current_exe()?;
        let line =
            command_line::of_program(own.as_os_str(), &[MARK.into()]).map_err(io::Error::other)?;
        let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
        let block = environment::block(&[("SystemRoot".into(), root.clone())]);
        let (hear, to) = io::pipe()?;
        let (from, speak) = io::pipe()?;
        let nothing = std::fs::OpenOptions::new().read(true).write(true).open("NUL")?;
        let stdio = [Inheritable::of(&hear)?, Inheritable::of(&speak)?, Inheritable::of(&nothing)?];
        drop((hear, speak));
        let mut start = walls.start(own.as_os_str(), &line, &block, &root, &stdio);
        start.job = &job;
        start.children = Children::Refused;
        let process = start.suspended()?.resume()?;
        drop(stdio);
        let greeting = greeting(from)?;
        let (port, from) = greeting.recv_timeout(PATIENCE).map_err(|_| {
            process.kill(1);
            io::Error::other("the relay ended or hung inside, and did not say where it listens")
        })?;
        Ok(Relay { job, port, from, to })
    }
}

/// Nothing comes of this where the relay ends, or says something else.
fn greeting(mut from: PipeReader) -> io::Result<Receiver<(u16, PipeReader)>> {
    let (tell, told) = channel();
    let hear = move || {
        let mut frames = Frames::default();
        let mut byte = [0];
        while let Ok(()) = from.read_exact(&mut byte) {
            frames.feed(&byte);
            match frames.next_frame() {
                Ok(None) => {}
                Ok(Some(Frame::Hello { port })) if port != 0 => {
                    let _ = tell.send((port, from));
                    return;
                }
                Ok(Some(_)) | Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().name("mcp-relay-hello".to_owned()).spawn(hear)?;
    Ok(told)
}

/// A relay and a broker at work. Dropping it ends both.
pub struct Carried {
    step: usize,
    /// The relay dies with it.
    job: Option<Job>,
    port: u16,
    /// As a proxy's URL has it, password included.
    place: String,
    direct: bool,
    broker: Option<Handle>,
    farewell: Farewell,
    far_end: Receiver<io::Result<Ended>>,
}

impl Carried {
    /// Where the relay listens, inside.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// For the command's environment, and nobody else's.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        variables(&self.place)
    }

    /// Ends it, and tells what it has carried.
    pub fn finish(mut self, evidence: &mut Vec<Evidence>) -> NetworkUse {
        let (used, over) = self.stop();
        let answer = match (over, self.direct) {
            (Some(Over::Violated(_)), _) => Answer::Less(
                "the relay said what it never says by itself, as if in the command's hands: it was not heard any \
                 more from then on"
                    .to_owned(),
            ),
            (_, false) => Answer::Less(
                "names go to the user's proxy (HTTPS_PROXY and the like), which resolves them: what they lead to is \
                 not checked"
                    .to_owned(),
            ),
            (_, true) => Answer::Confirmed(format!("on port {} inside", self.port)),
        };
        evidence.push(Evidence { step: self.step, answer });
        used
    }

    fn stop(&mut self) -> (NetworkUse, Option<Over>) {
        self.farewell.say();
        let mut ended = self.far_end.recv_timeout(LAST_WORDS).ok();
        if let Some(job) = self.job.take() {
            let _ = job.terminate(1);
        }
        if ended.is_none() {
            // Its pipes are closed now, so this comes to an end.
            ended = self.far_end.recv_timeout(PATIENCE).ok();
        }
        // What was passed on has to be read by the broker before its connections are gone.
        let used = self.broker.take().map(Handle::finish).unwrap_or_default();
        (used, ended.and_then(Result::ok).map(|ended| ended.over))
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if self.job.is_some() {
            self.stop();
        }
    }
}
