//! Reads the output of the test harness in a guest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Result;

/// Names of the test programs.
pub const NAMES: [&str; 2] = ["escape", "exec"];

/// The suites of one guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suites {
    /// The commit they were built from.
    pub commit: String,
    /// The commit that those which had failed were run again with.
    #[serde(default)]
    pub repeated: Option<String>,
    pub results: BTreeMap<String, MatrixSuite>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixSuite {
    pub passed: usize,
    /// Of the passed: those that said why they could not try.
    pub skipped: usize,
    pub failed: Vec<String>,
}

impl Suites {
    pub fn has_failed(&self) -> bool {
        self.results.values().any(|suite| !suite.failed.is_empty())
    }

    /// Names of the tests that failed, by suite.
    pub fn failed(&self) -> BTreeMap<String, Vec<String>> {
        let plain =
            |suite: &MatrixSuite| suite.failed.iter().map(|it| it.replace('`', "")).collect();
        let failed = self.results.iter().filter(|(_, suite)| !suite.failed.is_empty());
        failed.map(|(name, suite)| (name.clone(), plain(suite))).collect()
    }

    /// With what came of running once more those that had failed. A test that is no longer there has not
    /// passed.
    pub fn repeated(mut self, again: &Suites) -> Suites {
        for (name, suite) in &again.results {
            let before = self.results.entry(name.clone()).or_default();
            if suite.passed + suite.failed.len() == before.failed.len() {
                before.passed += suite.passed;
                before.skipped += suite.skipped;
                before.failed.clone_from(&suite.failed);
            }
        }
        self.repeated = Some(again.commit.clone());
        self
    }
}

impl fmt::Display for Suites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, suite) in &self.results {
            write!(f, "{name}: {suite}; ")?;
        }
        write!(f, "at {}", self.commit)?;
        match &self.repeated {
            Some(commit) => write!(f, ", what had failed there at {commit}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for MatrixSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed", self.passed - self.skipped)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        if !self.failed.is_empty() {
            write!(f, ", **{} failed**: {}", self.failed.len(), self.failed.join(" "))?;
        }
        Ok(())
    }
}

impl MatrixSuite {
    /// The test harness' own account. Tests may run at the same time, so only whole lines count.
    pub fn parse(text: &str) -> Result<MatrixSuite> {
        let mut suite = MatrixSuite::default();
        let mut skipping = BTreeSet::new();
        let (mut current, mut ended) = (None, false);
        for line in text.lines() {
            let between = |from: &str, to: &str| line.strip_prefix(from)?.strip_suffix(to);
            if between("test ", " ... ok").is_some() {
                suite.passed += 1;
            } else if let Some(name) = between("test ", " ... FAILED") {
                suite.failed.push(format!("`{name}`"));
            } else if let Some(name) = between("---- ", " stdout ----") {
                current = Some(name);
            } else if line.starts_with("SKIP: ") {
                // A positive control that does not work on the host weakens a test, it does not skip it.
                if !line.starts_with("SKIP: control") {
                    skipping.extend(current);
                }
            } else if line.starts_with("test result: ") {
                ended = true;
            }
        }
        suite.failed.sort();
        let failed = |name: &&str| suite.failed.contains(&format!("`{name}`"));
        suite.skipped = skipping.iter().filter(|name| !failed(name)).count();
        if ended { Ok(suite) } else { Err("the tests did not come to their end".into()) }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const SAID: &str = "running 4 tests\ntest a::one ... ok\ntest a::two ... ok\ntest b::three ... ok\n\
                            test b::four ... FAILED\n\nsuccesses:\n\n---- a::two stdout ----\nSKIP: userns: no\n\
                            ---- b::three stdout ----\nSKIP: control: is EPERM outside too\n\nfailures:\n\
                            ---- b::four stdout ----\nSKIP: x\nthread panicked\n\ntest result: FAILED. 3 passed\n";

    #[test]
    fn passed_skipped_and_failed_are_told_apart() {
        let suite = MatrixSuite::parse(SAID).unwrap();
        let expected = MatrixSuite { passed: 3, skipped: 1, failed: vec!["`b::four`".to_owned()] };
        assert_eq!(suite, expected);
        assert_eq!(suite.to_string(), "2 passed, 1 skipped, **1 failed**: `b::four`");
    }

    #[test]
    fn what_had_failed_is_run_again() {
        let suites = |commit: &str, text: &str| Suites {
            commit: commit.to_owned(),
            results: BTreeMap::from([("escape".to_owned(), MatrixSuite::parse(text).unwrap())]),
            ..Suites::default()
        };
        let first = suites("abc", SAID);
        assert_eq!(first.failed()["escape"], ["b::four"]);
        let again = suites("def", "test b::four ... ok\ntest result: ok. 1 passed\n");
        let told = first.clone().repeated(&again).to_string();
        assert_eq!(told, "escape: 3 passed, 1 skipped; at abc, what had failed there at def");
        let gone = suites("def", "test result: ok. 0 passed\n");
        assert!(first.repeated(&gone).has_failed());
    }

    #[test]
    fn a_suite_without_an_end_is_no_result() {
        assert!(MatrixSuite::parse("test a::one ... ok\n").is_err());
    }
}
