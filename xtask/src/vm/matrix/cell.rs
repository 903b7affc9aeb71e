//! The suites that one guest runs, and their results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::stage::Stage;
use super::suite::{self, MatrixSuite, Suites};
use crate::Result;

/// Between the parts of what the script prints. A part's name and a code follow.
const MARK: &str = "@@part";

/// Asks for every control, so that the report names each. `--fallback warn`: what is less than asked for
/// is to be seen in the report; whether such a run starts by default is tried apart.
const ASK: &str = "--fallback warn --read /scratch/read --write /scratch/write --deny '**/secret' \
                   --no-subprocess --max-memory 256M --max-cpu 500 --max-cpu-time 60s --max-pids 64 \
                   --max-fds 256 --max-file-size 16M --max-tmp 16M --max-address-space 8G --timeout 300s";

/// Seconds that a test waits before it takes something for hung: all is emulated here, and slow.
const PATIENCE: u32 = 240;

/// Whether the tests are part of a trial; they take most of its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tests {
    Run {
        /// None of them may miss these: `MCP_REQUIRE`.
        required: String,
        /// Names by suite, where it is not all of them.
        only: Option<BTreeMap<String, Vec<String>>>,
    },
    LeftOut,
}

impl Tests {
    fn script(&self) -> String {
        let Tests::Run { required, only } = self else {
            return String::new();
        };
        let mut text = format!(
            "export MCP_REQUIRE={required} MCP_BIN=$bin/mcp MCP_PROBE_BIN=$bin/mcp-probe\n\
             export MCP_TEST_PATIENCE={PATIENCE}\n"
        );
        for name in suite::NAMES {
            let words = match only {
                None => String::new(),
                Some(only) => match only.get(name) {
                    Some(tests) => format!("--exact {} ", tests.join(" ")),
                    None => continue,
                },
            };
            let words = words + "--show-output --test-threads 3";
            text += &format!("$bin/{name} {words} 2>&1; part {name}\n");
        }
        text
    }
}

/// For a shell in the guest, whose disk is at /scratch.
pub fn script(stage: &Path, tests: &Tests) -> String {
    let suites = tests.script();
    format!(
        r#"bin=/scratch/bin
mkdir $bin /scratch/read /scratch/write && cp '{stage}'/* $bin || exit
chmod 755 $bin $bin/* /scratch/read; chmod 777 /scratch/write; touch /scratch/read/secret
cd /scratch/read
part() {{ code=$?; echo; echo "{MARK} $1 $code"; }}
timeout -k 9 300 $bin/mcp run -- /bin/true 2>&1; part default
timeout -k 9 300 $bin/mcp run --report /scratch/report {ASK} -- $bin/mcp-probe cwd >/dev/null 2>/scratch/said; part asked
cat /scratch/said; part said
cat /scratch/report 2>/dev/null; part report
timeout -k 9 600 $bin/mcp doctor --json; part doctor
cd /scratch
{suites}
exit 0
"#,
        stage = stage.display()
    )
}

/// What came of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Which programs it was tried with.
    pub stage: String,
    /// What they were built from.
    pub commit: String,
    /// As `uname -r` says it.
    pub release: String,
    /// Exit code of a run with the default policy.
    pub default: i32,
    /// Status of each control as reported, or the reason why there was no run.
    pub controls: Controls,
    /// What `doctor` says of the default policy.
    pub doctor: Doctor,
    /// None where the tests were left out.
    pub suites: Option<Suites>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controls {
    Reported(BTreeMap<String, String>),
    Refused(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doctor {
    Enforced,
    NotEnforced,
    /// It did not answer.
    Silent,
}

impl Tried {
    pub fn parse(output: &str, release: &str, stage: &Stage) -> Result<Tried> {
        let parts = parts(output);
        let part = |name: &str| {
            parts.get(name).ok_or_else(|| format!("the guest did not get to the {name} part"))
        };
        let controls = match reported(&part("report")?.1) {
            Some(controls) => Controls::Reported(controls),
            None => Controls::Refused(first_line(&part("said")?.1)),
        };
        let mut results = BTreeMap::new();
        for name in suite::NAMES {
            if let Some((_, text)) = parts.get(name) {
                results.insert(name.to_owned(), MatrixSuite::parse(text)?);
            }
        }
        let suites = Suites { commit: stage.commit.clone(), repeated: None, results };
        Ok(Tried {
            stage: stage.fingerprint.clone(),
            commit: stage.commit.clone(),
            release: release.to_owned(),
            default: part("default")?.0,
            controls,
            doctor: doctor(&part("doctor")?.1),
            suites: (!suites.results.is_empty()).then_some(suites),
        })
    }

    /// What the tests came to.
    pub fn told(&self) -> String {
        self.suites.as_ref().map_or_else(|| "not run".to_owned(), ToString::to_string)
    }

    pub fn read(file: &Path) -> Option<Tried> {
        serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        Ok(fs::write(file, serde_json::to_string_pretty(self)?)?)
    }
}

/// Code and text of each part by its name. Console ends of line have a carriage return.
fn parts(output: &str) -> BTreeMap<&str, (i32, String)> {
    let mut found = BTreeMap::new();
    let mut text = String::new();
    for line in output.lines().map(|line| line.trim_end_matches('\r')) {
        let mark = line.strip_prefix(MARK).and_then(|mark| mark.trim().split_once(' '));
        match mark {
            Some((name, code)) => {
                found.insert(name, (code.parse().unwrap_or(-1), std::mem::take(&mut text)));
            }
            None => {
                text += line;
                text.push('\n');
            }
        }
    }
    found
}

/// None for a report of a run that did not start: it says what was meant, not what held.
fn reported(text: &str) -> Option<BTreeMap<String, String>> {
    let report: Value = serde_json::from_str(text).ok()?;
    if report["ending"].get("not_started").is_some() {
        return None;
    }
    let controls = report["controls"].as_object()?.iter();
    controls.map(|(name, it)| Some((name.clone(), it["status"].as_str()?.to_owned()))).collect()
}

fn doctor(text: &str) -> Doctor {
    let answer = serde_json::from_str::<Value>(text).unwrap_or_default();
    match answer["default_policy_enforced"].as_bool() {
        Some(true) => Doctor::Enforced,
        Some(false) => Doctor::NotEnforced,
        None => Doctor::Silent,
    }
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::suite::tests::SAID;
    use super::*;

    #[test]
    fn parts_become_a_result() {
        let report = r#"{"controls":{"memory":{"status":"partial"}},"ending":{"exited":0}}"#;
        let output = format!(
            "\r\n@@part default 0\r\n@@part asked 0\n@@part said 0\n{report}\n@@part report 0\n\
             {{\"default_policy_enforced\":true}}\n@@part doctor 0\n{SAID}@@part escape 101\n"
        );
        let stage = Stage::named("x", "abc");
        let tried = Tried::parse(&output, "6.1", &stage).unwrap();
        assert_eq!((tried.default, tried.doctor), (0, Doctor::Enforced));
        let controls = BTreeMap::from([("memory".to_owned(), "partial".to_owned())]);
        assert_eq!(tried.controls, Controls::Reported(controls));
        assert_eq!(tried.told(), "escape: 2 passed, 1 skipped, **1 failed**: `b::four`; at abc");
        assert!(Tried::parse("nothing", "6.1", &stage).is_err());
    }

    #[test]
    fn a_run_that_did_not_start_has_no_statuses() {
        let report =
            r#"{"controls":{"memory":{"status":"partial"}},"ending":{"not_started":"no"}}"#;
        assert_eq!(reported(report), None);
        assert_eq!(reported(""), None);
    }
}
