//! The forbidden acts: done by this binary itself as a guest, outside and inside.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use mcp_sandbox::{Control, platform};
use serde::Deserialize;

use super::{Findings, Line, Mark, limits, topic};
use crate::failure::Failure;
use crate::guest_arguments::GUEST;

/// A variable of the caller's that must not arrive.
const CANARY: &str = "MCP_DOCTOR_CANARY";

/// The topic of the only line there is when no sandbox can be made.
const DOES_NOT_START: &str = "sandbox";

/// What the guest prints for each act.
#[derive(Debug, Deserialize)]
pub struct ActOutcome {
    pub ok: bool,
    #[serde(default)]
    errno: Option<String>,
    detail: String,
}

impl ActOutcome {
    pub fn answer(&self) -> &str {
        self.errno.as_deref().unwrap_or("allowed")
    }
}

/// One act that works outside and must be refused inside.
struct ActTrial {
    control: Control,
    what: &'static str,
    act: Vec<String>,
    /// Whether a run without namespaces leaves it open, and says so.
    open: bool,
}

pub fn controls(host: &platform::Facts) -> Result<Vec<Line>, Failure> {
    let scene = TrialScene::new()?;
    let mut lines = refusals(&scene, host)?;
    if lines.iter().any(|line| line.topic == DOES_NOT_START) {
        return Ok(lines);
    }
    lines.push(deny(&scene, host)?);
    lines.push(match std::env::consts::OS {
        "macos" => set_id(&scene)?,
        "windows" => container(&scene)?,
        _ => privileges(&scene)?,
    });
    lines.extend(limits::lines(&scene)?);
    lines.push(timeout(&scene)?);
    if cfg!(windows) {
        lines.extend(node(&scene)?);
    }
    Ok(lines)
}

/// Things outside for the guest to reach for.
pub struct TrialScene {
    directory: PathBuf,
    listener: TcpListener,
    bystander: Child,
    exe: PathBuf,
}

impl TrialScene {
    fn new() -> Result<TrialScene, Failure> {
        let directory = std::env::temp_dir().join(format!("mcp-doctor-{}", std::process::id()));
        let fail = |e: std::io::Error| Failure::file(&directory, &e);
        std::fs::create_dir(&directory).map_err(|e| Failure::temporary(&directory, &e))?;
        std::fs::write(directory.join("secret"), "secret").map_err(fail)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(fail)?;
        let exe = std::env::current_exe().map_err(fail)?;
        let bystander = Command::new(&exe)
            .args([GUEST, "sleep", "30"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(fail)?;
        Ok(TrialScene { directory, listener, bystander, exe })
    }

    pub fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// The acts done outside: each must work, or its refusal inside would mean nothing.
    fn outside(&self, acts: &[Vec<String>]) -> Result<Vec<ActOutcome>, Failure> {
        let output =
            Command::new(&self.exe).arg(GUEST).args(joined(acts)).env(CANARY, "1").output();
        outcomes(&finished(&self.exe, output)?)
    }

    pub fn inside(&self, flags: &[&str], acts: &[Vec<String>]) -> Result<Output, Failure> {
        let output = Command::new(&self.exe)
            .arg("run")
            .args(flags)
            .arg("--")
            .arg(&self.exe)
            .arg(GUEST)
            .args(joined(acts))
            .env(CANARY, "1")
            .stdin(Stdio::null())
            .output();
        finished(&self.exe, output)
    }
}

impl Drop for TrialScene {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn finished(exe: &Path, output: std::io::Result<Output>) -> Result<Output, Failure> {
    output.map_err(|e| Failure::file(exe, &e))
}

fn joined(acts: &[Vec<String>]) -> Vec<String> {
    acts.join(&"--then".to_owned())
}

pub fn outcomes(output: &Output) -> Result<Vec<ActOutcome>, Failure> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| {
            serde_json::from_str(line).map_err(|e| {
                Failure::Refused(format!("the answer of the guest cannot be read: {e}"))
            })
        })
        .collect()
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn trials(scene: &TrialScene, host: &platform::Facts) -> Vec<ActTrial> {
    let trial =
        |control, what, act: &[&str]| ActTrial { control, what, act: words(act), open: false };
    let open = |trial: ActTrial| ActTrial { open: host.is_plain(), ..trial };
    let port = scene.listener.local_addr().map_or(0, |address| address.port());
    let bystander = scene.bystander.id().to_string();
    let mut trials = vec![
        trial(
            Control::Filesystem,
            "read a file that was not granted",
            &["read", &scene.path("secret")],
        ),
        trial(
            Control::Filesystem,
            "write where nothing was granted",
            &["create", &scene.path("new")],
        ),
        trial(
            Control::Network,
            "reach a port of the host",
            &["connect", &format!("127.0.0.1:{port}")],
        ),
        trial(Control::ProcessIsolation, "signal a process of yours", &["kill", &bystander, "0"]),
        trial(Control::ProcessIsolation, "read its environment", &["environ", &bystander]),
        ActTrial {
            open: host.leaves_open(),
            ..trial(Control::ProcessIsolation, "read its command line", &["cmdline", &bystander])
        },
        open(trial(
            Control::Filesystem,
            "ask for the size of a file that was not granted",
            &["stat", &scene.path("secret")],
        )),
        trial(Control::Environment, "see a variable that was not named", &["getenv", CANARY]),
    ];
    // There is no such file there; whoever cannot open a process cannot read it either.
    trials.retain(|trial| cfg!(unix) || !["environ", "cmdline"].contains(&trial.act[0].as_str()));
    trials
}

fn refusals(scene: &TrialScene, host: &platform::Facts) -> Result<Vec<Line>, Failure> {
    let trials = trials(scene, host);
    let acts: Vec<_> = trials.iter().map(|trial| trial.act.clone()).collect();
    let outside = scene.outside(&acts)?;
    // What was created outside must not be in the way.
    let _ = std::fs::remove_file(scene.directory.join("new"));
    let run = scene.inside(&[], &acts)?;
    if run.status.code() != Some(0) {
        let why = String::from_utf8_lossy(&run.stderr).trim().to_owned();
        return Ok(vec![Line::new(DOES_NOT_START, Mark::Fails, format!("does not start: {why}"))]);
    }
    let inside = outcomes(&run)?;
    Ok(trials.iter().zip(outside.iter().zip(&inside)).map(|(t, (o, i))| verdict(t, o, i)).collect())
}

/// A granted directory, with and without a rule that closes a part of it.
fn deny(scene: &TrialScene, host: &platform::Facts) -> Result<Line, Failure> {
    let control = Control::Deny;
    if !host.closes_parts() {
        let flags =
            ["--quiet", "--read", &scene.directory.display().to_string(), "--deny", "**/secret"];
        let run = scene.inside(&flags, &[words(&["read", &scene.path("secret")])])?;
        return Ok(match run.status.code() {
            Some(125) => Line::new(
                topic(control),
                Mark::Less,
                "a part of a granted directory cannot be closed here: such a run does not start",
            ),
            code => Line::new(topic(control), Mark::Fails, format!("not refused (exit {code:?})")),
        });
    }
    let act = words(&["read", &scene.path("secret")]);
    let directory = scene.directory.display().to_string();
    let granted = ["--quiet", "--read", &directory];
    let free = outcomes(&scene.inside(&granted, std::slice::from_ref(&act))?)?;
    let flags = [&granted[..], &["--deny", "**/secret"]].concat();
    let closed = outcomes(&scene.inside(&flags, std::slice::from_ref(&act))?)?;
    let (Some(free), Some(closed)) = (free.first(), closed.first()) else {
        return Ok(Line::new(topic(control), Mark::Fails, "the sandbox does not start"));
    };
    let what = "read a denied file in a granted directory";
    Ok(verdict(&ActTrial { control, what, act, open: false }, free, closed))
}

fn verdict(trial: &ActTrial, outside: &ActOutcome, inside: &ActOutcome) -> Line {
    let topic = topic(trial.control);
    let what = trial.what;
    match (outside.ok, inside.ok) {
        (true, false) => {
            Line::new(topic, Mark::Holds, format!("{what}: refused ({})", inside.answer()))
        }
        (true, true) if trial.open => {
            Line::new(topic, Mark::Less, format!("{what}: left open on this host"))
        }
        (true, true) => Line::new(topic, Mark::Fails, format!("{what}: NOT refused")),
        // Refused outside as well: the refusal inside proves nothing.
        (false, _) => Line::new(
            topic,
            Mark::Less,
            format!("{what}: not proved, refused outside too ({})", outside.answer()),
        ),
    }
}

/// On a Mac, which has no capabilities to read back: a mode that would give rights away.
fn set_id(scene: &TrialScene) -> Result<Line, Failure> {
    let trial = |path: &str| ActTrial {
        control: Control::Privileges,
        what: "make a file set-uid",
        act: words(&["chmod", path, "4755"]),
        open: false,
    };
    let outside = scene.outside(&[trial(&scene.path("secret")).act])?;
    let inside = trial("new");
    let acts = [words(&["create", "new"]), inside.act.clone()];
    let tried = outcomes(&scene.inside(&["--cwd", "/tmp"], &acts)?)?;
    let (Some(outside), [made, refused]) = (outside.first(), tried.as_slice()) else {
        return Ok(Line::new("privileges", Mark::Fails, "the sandbox does not start"));
    };
    match made.ok {
        true => Ok(verdict(&inside, outside, refused)),
        false => Ok(Line::new("privileges", Mark::Less, "not proved: no file could be made")),
    }
}

/// On Windows: what a process inside says of its token, which the helper of every run has looked at closer.
fn container(scene: &TrialScene) -> Result<Line, Failure> {
    let acts = [words(&["in-container"]), words(&["break-away"])];
    let outside = scene.outside(&acts)?;
    let inside = outcomes(&scene.inside(&[], &acts)?)?;
    let ([_, _], [contained, left]) = (outside.as_slice(), inside.as_slice()) else {
        return Ok(Line::new("privileges", Mark::Fails, "the sandbox does not start"));
    };
    Ok(match (contained.detail.as_str(), left.ok) {
        ("true", false) => {
            Line::new("privileges", Mark::Holds, "in a container, and no process leaves its job")
        }
        _ => Line::new("privileges", Mark::Fails, format!("{inside:?}")),
    })
}

/// Node starts its children with pipes, which some sandboxes break.
fn node(scene: &TrialScene) -> Result<Option<Line>, Failure> {
    let script =
        "process.stdout.write(require('child_process').execFileSync(process.execPath,['-v']))";
    let run = Command::new(&scene.exe)
        .args(["run", "--quiet", "--", "node", "-e", script])
        .stdin(Stdio::null())
        .output();
    let run = finished(&scene.exe, run)?;
    let line = |mark, text: String| Ok(Some(Line::new("node", mark, text)));
    match run.status.code() {
        Some(127) => Ok(None),
        Some(0) if run.stdout.starts_with(b"v") => {
            line(Mark::Holds, "node starts a child over pipes inside".to_owned())
        }
        code => {
            let why = String::from_utf8_lossy(&run.stderr).trim().to_owned();
            line(Mark::Less, format!("node with a child over pipes: exit {code:?}: {why}"))
        }
    }
}

/// Read back from the kernel's own account of a process inside.
fn privileges(scene: &TrialScene) -> Result<Line, Failure> {
    let acts = [words(&["caps"]), words(&["nnp"]), words(&["uid"])];
    let inside = outcomes(&scene.inside(&[], &acts)?)?;
    let [caps, nnp, uid] = inside.as_slice() else {
        return Ok(Line::new("privileges", Mark::Fails, "the sandbox does not start"));
    };
    let is_zero = |set: &str| {
        set.split_whitespace().next_back().is_some_and(|bits| bits.bytes().all(|b| b == b'0'))
    };
    // Without a user namespace the bounding set cannot be emptied; nothing comes of it.
    let (bounding, sets): (Vec<&str>, Vec<&str>) =
        caps.detail.lines().partition(|line| line.starts_with("CapBnd"));
    let is_bounded = bounding.iter().all(|set| is_zero(set));
    let no_caps = caps.ok && sets.len() == 4 && sets.iter().all(|set| is_zero(set));
    let no_root = uid.ok && !uid.detail.split_whitespace().any(|id| id == "0");
    let mark =
        if no_caps && no_root && nnp.detail.trim() == "1" { Mark::Holds } else { Mark::Fails };
    let text = format!(
        "uid {}, no_new_privs {}, capability sets all zero{}",
        uid.detail.trim(),
        nnp.detail.trim(),
        if is_bounded { "" } else { " but the bounding one" }
    );
    Ok(Line::new(
        "privileges",
        mark,
        if mark == Mark::Holds { text } else { format!("{inside:?}") },
    ))
}

fn timeout(scene: &TrialScene) -> Result<Line, Failure> {
    let acts = [words(&["ignore-term", "20"])];
    let flags = ["--quiet", "--timeout", "100ms", "--grace", "50ms"];
    let run = scene.inside(&flags, &acts)?;
    Ok(match run.status.code() {
        Some(124) => Line::new(
            "timeout",
            Mark::Holds,
            "--timeout 100ms: a program that ignores SIGTERM was killed",
        ),
        code => {
            Line::new("timeout", Mark::Fails, format!("--timeout 100ms: NOT held (exit {code:?})"))
        }
    })
}
