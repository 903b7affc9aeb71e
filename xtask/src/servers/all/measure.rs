//! One server: from empty caches, from warm ones, by `mcp run`, then in turns.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::time::timeout;

use super::super::session::Session;
use super::list::{Call, Entry};
use super::place::{Installed, Place, Places};
use super::record::{Outcome, Record, Warm, load, stored_version, today};
use super::{page, public, words};
use crate::Result;

const WARM_LIMIT: Duration = Duration::from_secs(30);
const CALLS_LIMIT: Duration = Duration::from_secs(60);
/// Of one server's warm starts; those that do not end with their input take three seconds each time.
const ROUNDS_LIMIT: Duration = Duration::from_secs(60);

pub struct Measure<'a> {
    pub launcher: &'a Path,
    pub newest: bool,
    pub rounds: usize,
    pub empty_caches: bool,
    /// Cold starts are not measured, and the bare one from empty caches is left out.
    pub warm_only: bool,
    pub caches: Option<&'a Path>,
    /// For an installation and the list of tools.
    pub cold_limit: Duration,
}

/// What one start showed.
struct Start {
    /// From the spawn to the list of tools.
    ready: Duration,
    tools: usize,
    calls: usize,
}

impl Measure<'_> {
    pub async fn server(&self, entry: &Entry) -> Result<Record> {
        let page = page::serve()?;
        let places = Places {
            bare: Place::new("bare", page, self.caches)?,
            mcp: Place::new("mcp", page, self.caches)?,
        };
        let mut record = Record::new(entry, today()?, load());
        let (kind, name) = entry.split()?;
        let home = places.bare.home();
        // Both settings share the home with the caches; directories are each one's own.
        record.bare = self.bare(entry, &places.bare, &mut record.bare_empty).await;
        if record.bare.error.is_none() {
            let program = entry.program.as_deref();
            match places.bare.installed(kind, name, program) {
                Ok(found) => {
                    record.bare.version = Some(found.version.clone());
                    self.under_mcp(entry, &places, &found, &mut record).await?;
                }
                Err(error) => record.bare.error = Some(places.bare.plain(&error.to_string())),
            }
        }
        places.bare.end_leftovers(&home)?;
        Ok(record)
    }

    /// From empty caches, then without what that installed.
    async fn bare(&self, entry: &Entry, place: &Place, empty: &mut Option<u64>) -> Outcome {
        let home = place.home();
        let outcome = async {
            let line = words::line(entry, self.newest, place)?;
            let command = || self.bare_command(entry, place, &line);
            if !self.warm_only {
                let first = start(place, command(), self.cold_limit, &[]).await;
                place.end_leftovers(&home)?;
                let ready = milliseconds(first?.ready);
                *empty = self.caches.is_none().then_some(ready);
            }
            place.forget_installed()?;
            let second = start(place, command(), self.cold_limit, &entry.calls).await;
            place.end_leftovers(&home)?;
            second
        };
        Outcome::of(outcome.await.map(|it| self.kept(&it)), place)
    }

    fn kept(&self, start: &Start) -> (Option<Duration>, usize, usize) {
        ((!self.warm_only).then_some(start.ready), start.tools, start.calls)
    }

    fn bare_command(&self, entry: &Entry, place: &Place, line: &[String]) -> Command {
        let home = place.home();
        let (program, rest) = line.split_first().map_or(("", line), |(first, rest)| (first, rest));
        let mut command = place.command(Path::new(program), &home);
        command.args(rest).envs(variables(entry, place));
        command
    }

    async fn under_mcp(
        &self,
        entry: &Entry,
        places: &Places,
        found: &Installed,
        record: &mut Record,
    ) -> Result<()> {
        let (home, place) = (places.bare.home(), &places.mcp);
        if self.empty_caches {
            let empty = place.home();
            let command = self.mcp_command(entry, place, &empty)?;
            let outcome = start(place, command, self.cold_limit, &[]).await;
            record.mcp_empty = outcome.ok().map(|it| milliseconds(it.ready));
        }
        let cold =
            start(place, self.mcp_command(entry, place, &home)?, self.cold_limit, &entry.calls);
        let cold = cold.await.map(|it| self.kept(&it));
        let mut outcome = Outcome::of(cold, place);
        outcome.version = stored_version(&home, &entry.package);
        if outcome.error.is_none()
            && let Err(error) = self.again(entry, places, found, record, &mut outcome).await
        {
            outcome.error = Some(place.plain(&error.to_string()));
        }
        record.mcp = Some(outcome);
        Ok(())
    }

    /// Warm starts in turns; the calls of a later start; those in the namespaces.
    async fn again(
        &self,
        entry: &Entry,
        places: &Places,
        found: &Installed,
        record: &mut Record,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let home = places.bare.home();
        let direct = || {
            let mut command = places.bare.command(&found.program, &home);
            command.args(words::arguments(entry, &places.bare));
            command.envs(variables(entry, &places.bare));
            command
        };
        let (mut bare, mut mcp) = (Vec::new(), Vec::new());
        let begin = Instant::now();
        for round in 0..self.rounds {
            if round >= 3 && begin.elapsed() > ROUNDS_LIMIT {
                break;
            }
            let later: &[Call] = if round == 0 { &entry.later } else { &[] };
            let one = start(&places.bare, direct(), WARM_LIMIT, later).await;
            let one = match one {
                Ok(one) => one,
                Err(error) => {
                    record.bare_fails("warm", &places.bare, &*error);
                    return Ok(());
                }
            };
            let command = self.mcp_command(entry, &places.mcp, &home)?;
            let other = start(&places.mcp, command, WARM_LIMIT, later).await;
            let other = other.map_err(|error| format!("warm: {error}"))?;
            record.bare.calls += one.calls;
            outcome.calls += other.calls;
            bare.push(one.ready);
            mcp.push(other.ready);
        }
        record.warm = Warm::of(&mut bare, &mut mcp);
        if !entry.public.is_empty() {
            let command = public::inside(&direct(), &places.bare, &home)?;
            let one = start(&places.bare, command, WARM_LIMIT, &entry.public).await;
            places.bare.end_leftovers(&home)?;
            let one = match one {
                Ok(one) => one,
                Err(error) => {
                    record.bare_fails("in namespaces", &places.bare, &*error);
                    return Ok(());
                }
            };
            record.bare.calls += one.calls;
            let command = self.mcp_command(entry, &places.mcp, &home)?;
            let command = public::inside(&command, &places.mcp, &home)?;
            let other = start(&places.mcp, command, WARM_LIMIT, &entry.public).await;
            outcome.calls += other.map_err(|error| format!("in namespaces: {error}"))?.calls;
        }
        Ok(())
    }

    fn mcp_command(&self, entry: &Entry, place: &Place, home: &Path) -> Result<Command> {
        let mut command = place.command(self.launcher, home);
        command.args(words::grants(entry, place)).args(words::line(entry, self.newest, place)?);
        Ok(command)
    }
}

fn variables(entry: &Entry, place: &Place) -> Vec<(String, String)> {
    entry.variables.iter().map(|(name, value)| (name.clone(), place.filled(value))).collect()
}

async fn start(place: &Place, command: Command, limit: Duration, calls: &[Call]) -> Result<Start> {
    let begin = Instant::now();
    let session = Session::spawn(command, limit).await?;
    let outcome = async {
        let tools = session.tools().await?;
        let ready = begin.elapsed();
        for Call(tool, arguments, expected) in calls {
            let arguments = serde_json::from_str(&place.filled(arguments))?;
            session.call(tool, arguments, &place.filled(expected)).await?;
        }
        Ok::<_, Box<dyn std::error::Error>>(Start { ready, tools, calls: calls.len() })
    };
    let outcome = match timeout(CALLS_LIMIT, outcome).await {
        Ok(outcome) => outcome,
        Err(_) => Err("the calls took too long".into()),
    };
    let end = session.end().await?;
    outcome.map_err(|error| format!("{error}{}", end.stderr_quoted()).into())
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
