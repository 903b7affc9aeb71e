//! Both sides of the demo: the same server and the same attempts, bare and in the sandbox.

mod attempt;
#[cfg_attr(windows, path = "windows_attempts.rs")]
mod attempts;
mod client;
#[cfg_attr(windows, path = "windows_props.rs")]
mod props;
mod scene;
mod stand_in;
mod table;
mod trial;

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Instant;

use self::attempt::Session;
use self::client::ServerProcess;
use self::scene::{DemoScene, TOKEN};
use self::table::{Row, Table};
use self::trial::AttemptResult;
use crate::args;
use crate::failure::Failure;
use crate::guest_arguments::{GUEST, SERVER};
use crate::render::{self, Paint};

/// Where the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Bare,
    Inside,
}

struct Stage {
    program: PathBuf,
    scene: DemoScene,
    /// Flags of every sandbox, beyond those of an attempt.
    flags: &'static [&'static str],
}

impl Stage {
    /// How to start the server. Of the user's own environment nothing is at stake here.
    fn command(&self, side: Side, flags: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        if side == Side::Inside {
            command.args(["run", "--quiet"]).args(self.flags).args(flags);
            command.arg("--").arg(&self.program);
        }
        command.args([GUEST, SERVER]);
        // A home of the stage's own also means that no user configuration widens the sandbox.
        command.env_clear().env(TOKEN, self.scene.secret());
        self.place(&mut command);
        command
    }

    #[cfg(not(windows))]
    fn place(&self, command: &mut Command) {
        command.env("HOME", self.scene.path("home")).env("PATH", "/usr/bin:/bin");
    }

    /// Programs of Windows need to know where that is.
    #[cfg(windows)]
    fn place(&self, command: &mut Command) {
        for name in ["SystemRoot", "SystemDrive", "ComSpec", "PATH", "PATHEXT", "TEMP", "TMP"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("USERPROFILE", self.scene.path("home"));
        for name in ["APPDATA", "LOCALAPPDATA"] {
            command.env(name, self.scene.path("local"));
        }
    }

    /// The server in its sandbox. Where the machine cannot give what the default policy asks for, that is said,
    /// and the rest of the demo shows what is left.
    fn introduce_inside(&mut self) -> Result<(ServerProcess, String), Failure> {
        match self.introduce(Side::Inside) {
            Err(Failure::Refused(why)) if cfg!(windows) => {
                render::say(&format!(
                    "this machine cannot enforce what is asked for, so `mcp run` refuses to start:\n     {why}\n     \
                     Shown is what is left with --fallback warn."
                ));
                self.flags = &["--fallback", "warn"];
                self.introduce(Side::Inside)
            }
            other => other,
        }
    }

    /// Starts the server and sees that it does its honest work.
    fn introduce(&self, side: Side) -> Result<(ServerProcess, String), Failure> {
        let mut server = ServerProcess::start(&mut self.command(side, &[])).map_err(not_started)?;
        match server.introduce() {
            Ok(forecast) => Ok((server, forecast)),
            Err(fault) => {
                let status = server.leave().map_err(refused)?;
                let said = server.stderr();
                let said = said.strip_prefix("mcp: ").unwrap_or(&said);
                Err(Failure::Refused(match (side, said) {
                    (Side::Inside, "") => format!("the sandbox did not start: {fault}, {status}"),
                    (Side::Inside, said) => said.to_owned(),
                    (Side::Bare, said) => {
                        format!("the server did not start: {fault}, {status} {said}")
                    }
                }))
            }
        }
    }
}

pub fn perform(args: &args::Demo) -> Result<u8, Failure> {
    let start = Instant::now();
    let program = std::env::current_exe().map_err(refused)?;
    let scene = DemoScene::set(&program)?;
    let mut stage = Stage { program, scene, flags: &[] };
    // Both stay to the end: the launcher is one of the processes that are attacked.
    let (launcher, forecast) = stage.introduce_inside()?;
    let (_bare, bare_forecast) = stage.introduce(Side::Bare)?;
    if forecast != bare_forecast {
        let why = format!("the server answers differently in the sandbox: {forecast}");
        return Err(Failure::Refused(why));
    }
    let paint = Paint::stdout();
    if !args.json {
        print(&format!(
            "An MCP server with one tool works without and with the sandbox: {}\n\
             Now it turns malicious. Every secret, file and process it attacks is a stand-in.\n\n",
            paint.strong(&format!("“{forecast}”"))
        ));
    }
    let sessions = attempts::all(&stage.scene, launcher.child().id()).map_err(refused)?;
    let rows = try_all(&stage, &sessions).map_err(not_started)?;
    let table = Table::new(rows, start.elapsed());
    for complaint in table.complaints() {
        render::say(complaint);
    }
    if args.json {
        print(&table.to_json());
    } else {
        print(&format!("{}\n{}{}", table.to_text(paint), table.summary(paint), next(paint)));
    }
    Ok(table.exit_code())
}

/// All sessions at once, on both sides: most of their time is waiting.
fn try_all(stage: &Stage, sessions: &[Session]) -> std::io::Result<Vec<Row>> {
    thread::scope(|scope| {
        let begin = |session, side| {
            thread::Builder::new().spawn_scoped(scope, move || trial::run(stage, session, side))
        };
        let mut running = Vec::new();
        for session in sessions {
            let (bare, inside) = (begin(session, Side::Bare)?, begin(session, Side::Inside)?);
            running.push((session, bare, inside));
        }
        let mut rows = Vec::new();
        for (session, bare, inside) in running {
            // A thread that panicked has seen nothing, and its rows say so.
            let none = |_| Ok(Vec::new());
            let mut bare = bare.join().unwrap_or_else(none)?.into_iter();
            let mut inside = inside.join().unwrap_or_else(none)?.into_iter();
            for attempt in &session.attempts {
                let missing =
                    || AttemptResult::Unclear { what: "not tried".into(), stderr: String::new() };
                let bare = bare.next().unwrap_or_else(missing);
                rows.push(Row::new(attempt, bare, inside.next().unwrap_or_else(missing)));
            }
        }
        Ok(rows)
    })
}

fn next(paint: Paint) -> String {
    format!(
        "\nNext: {} shows what this machine can enforce;\n      {} runs a command of yours.\n",
        paint.strong("mcp doctor"),
        paint.strong("mcp run -- COMMAND"),
    )
}

/// A reader that has gone away is no reason to fail.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn not_started(error: std::io::Error) -> Failure {
    Failure::Refused(format!("cannot start the server: {error}"))
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}
