//! What a sweep found of a server: one line of JSON.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::list::{Entry, List};
use super::place::Place;
use crate::Result;

/// Of an error, this much of its beginning and of its end is kept: the cause is often last.
const ERROR_KEPT: usize = 200;

#[derive(Clone, Serialize, Deserialize)]
pub struct Record {
    pub package: String,
    /// Of the list.
    pub version: String,
    pub date: String,
    /// Of the machine, when the server's turn began.
    pub load: f64,
    /// npx or uvx from empty caches, in milliseconds to the list of tools.
    pub bare_empty: Option<u64>,
    pub mcp_empty: Option<u64>,
    pub bare: Outcome,
    pub mcp: Option<Outcome>,
    pub warm: Option<Warm>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub version: Option<String>,
    /// With warm caches and nothing installed, in milliseconds to the list of tools.
    pub cold: Option<u64>,
    pub tools: usize,
    pub calls: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Starts in turns, in milliseconds to the list of tools, the middle of each.
#[derive(Clone, Serialize, Deserialize)]
pub struct Warm {
    pub rounds: usize,
    pub bare: f64,
    pub mcp: f64,
}

impl Record {
    pub fn new(entry: &Entry, date: String, load: f64) -> Self {
        Self {
            package: entry.package.clone(),
            version: entry.version.clone(),
            date,
            load,
            bare_empty: None,
            mcp_empty: None,
            bare: Outcome::default(),
            mcp: None,
            warm: None,
        }
    }

    pub fn bare_fails(&mut self, when: &str, place: &Place, error: &dyn Error) {
        self.bare.error = Some(place.plain(&format!("{when}: {error}")));
    }

    /// What works bare and does not under mcp.
    pub fn fault(&self) -> Option<String> {
        let (bare, mcp) = (&self.bare, self.mcp.as_ref());
        if bare.error.is_some() {
            return None;
        }
        let Some(mcp) = mcp else { return Some("was not run under mcp".into()) };
        if let Some(error) = &mcp.error {
            return Some(error.clone());
        }
        if bare.version != mcp.version {
            let shown = |version: &Option<String>| version.clone().unwrap_or_else(|| "?".into());
            return Some(format!(
                "version {} bare, {} under mcp",
                shown(&bare.version),
                shown(&mcp.version)
            ));
        }
        (bare.tools != mcp.tools)
            .then(|| format!("{} tools bare, {} under mcp", bare.tools, mcp.tools))
    }

    /// In a few words, while a sweep runs.
    pub fn told(&self, entry: &Entry) -> String {
        match (&self.bare.error, self.fault()) {
            (Some(error), _) => format!("- does not work bare: {}", head(error, 200)),
            (None, Some(fault)) => format!("- FAILED: {fault}"),
            (None, None) => format!(
                "- {} tools, {} calls, cold {}, warm {}{}",
                self.bare.tools,
                self.mcp.as_ref().map_or(0, |mcp| mcp.calls),
                shown(self.cold_ratio()),
                shown(self.warm_ratio()),
                if entry.reason.is_some() { " (the list has a reason against it)" } else { "" }
            ),
        }
    }

    pub fn works(&self) -> bool {
        self.bare.error.is_none() && self.fault().is_none()
    }

    pub fn cold_ratio(&self) -> Option<f64> {
        let mcp = self.mcp.as_ref().filter(|mcp| mcp.error.is_none())?;
        ratio(mcp.cold?, self.bare.cold?)
    }

    pub fn empty_ratio(&self) -> Option<f64> {
        ratio(self.mcp_empty?, self.bare_empty?)
    }

    pub fn warm_ratio(&self) -> Option<f64> {
        self.warm.as_ref().map(|warm| warm.mcp / warm.bare)
    }
}

impl Outcome {
    pub fn of(outcome: Result<(Option<Duration>, usize, usize)>, place: &Place) -> Self {
        match outcome {
            Ok((cold, tools, calls)) => {
                let cold = cold.and_then(|cold| u64::try_from(cold.as_millis()).ok());
                Self { version: None, cold, tools, calls, error: None }
            }
            Err(error) => Self { error: Some(place.plain(&error.to_string())), ..Self::default() },
        }
    }
}

impl Warm {
    pub fn of(bare: &mut [Duration], mcp: &mut [Duration]) -> Option<Self> {
        Some(Self { rounds: bare.len(), bare: middle(bare)?, mcp: middle(mcp)? })
    }
}

/// To a tenth of a millisecond.
fn middle(times: &mut [Duration]) -> Option<f64> {
    times.sort_unstable();
    let time = times.get(times.len() / 2)?;
    Some((time.as_secs_f64() * 10_000.0).round() / 10.0)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of minutes at most")]
fn ratio(ours: u64, bare: u64) -> Option<f64> {
    (bare > 0).then(|| ours as f64 / bare as f64)
}

pub fn shown(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"))
}

pub fn head(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The beginning and the end of a long text.
fn ends(text: &str, length: usize) -> String {
    match text.char_indices().rev().nth(length) {
        Some((at, _)) if at > length => format!("{} {}", head(text, length), &text[at..]),
        _ => text.to_owned(),
    }
}

/// The file of results: a server's last line counts.
pub struct Results {
    path: PathBuf,
    records: Vec<Record>,
}

impl Results {
    pub fn fresh(path: &Path) -> Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), records: Vec::new() })
    }

    pub fn open(path: &Path) -> Result<Self> {
        let mut results = Self { path: path.to_owned(), records: Vec::new() };
        if let Ok(text) = fs::read_to_string(path) {
            for line in text.lines() {
                let record: Record = serde_json::from_str(line)
                    .map_err(|error| format!("{}: {error}: {line}", path.display()))?;
                results.put(record);
            }
        }
        Ok(results)
    }

    /// Written at once: a sweep may be interrupted.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        let mut record = record.clone();
        for outcome in std::iter::once(&mut record.bare).chain(&mut record.mcp) {
            outcome.error = outcome.error.take().map(|error| ends(&error, ERROR_KEPT));
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        writeln!(file, "{}", serde_json::to_string(&record)?)?;
        self.put(record);
        Ok(())
    }

    fn put(&mut self, record: Record) {
        self.records.retain(|before| before.package != record.package);
        self.records.push(record);
    }

    pub fn of(&self, package: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.package == package)
    }

    pub fn in_order_of(&self, list: &List) -> Vec<Record> {
        list.servers.iter().filter_map(|entry| self.of(&entry.package).cloned()).collect()
    }
}

/// The version that `mcp run` installed, as the store names it.
pub fn stored_version(home: &Path, package: &str) -> Option<String> {
    let text = fs::read_to_string(home.join(".local/share/mcp/store/index.json")).ok()?;
    let index: serde_json::Value = serde_json::from_str(&text).ok()?;
    let prefix = format!("{}@", package.to_lowercase().replace(['_', '.'], "-"));
    index["manifests"].as_array()?.iter().find_map(|manifest| {
        let name = manifest["annotations"]["org.opencontainers.image.ref.name"].as_str()?;
        let plain = name.to_lowercase().replace(['_', '.'], "-");
        // What was installed beside it follows a comma.
        let version = plain.strip_prefix(&prefix).map(|_| &name[prefix.len()..])?;
        version.split(',').next().map(str::to_owned)
    })
}

pub fn today() -> Result<String> {
    let output = Command::new("date").arg("+%F").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// How many processes wanted a processor in the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default()
}
