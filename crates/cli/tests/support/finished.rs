//! What a run left: its status, its output, and the outcomes the probe printed.

use std::fmt;

/// One line of the probe.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub act: String,
    pub ok: bool,
    pub errno: Option<String>,
    pub detail: String,
}

impl Outcome {
    fn parse(line: &str) -> Option<Outcome> {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(Outcome {
            act: value.get("act")?.as_str()?.to_owned(),
            ok: value.get("ok")?.as_bool()?,
            errno: value.get("errno").and_then(|errno| errno.as_str()).map(str::to_owned),
            detail: value.get("detail")?.as_str()?.to_owned(),
        })
    }

    pub fn errno(&self) -> &str {
        self.errno.as_deref().unwrap_or("none")
    }

    pub fn lines(&self) -> Vec<&str> {
        self.detail.lines().collect()
    }

    /// The words after `name` on the line that starts with it.
    pub fn field(&self, name: &str) -> Vec<&str> {
        self.detail
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|words| words.first() == Some(&name))
            .map(|words| words[1..].to_vec())
            .unwrap_or_default()
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; 128 + n for a signal.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub outcomes: Vec<Outcome>,
}

impl Finished {
    pub fn new(code: i32, stdout: Vec<u8>, stderr: &[u8]) -> Finished {
        let text = String::from_utf8_lossy(&stdout);
        let outcomes = text.lines().filter_map(Outcome::parse).collect();
        Finished { code, outcomes, stderr: String::from_utf8_lossy(stderr).into_owned(), stdout }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The last outcome; a run that printed none has failed as a test.
    #[track_caller]
    pub fn last(&self, shown: &str) -> &Outcome {
        self.outcomes.last().unwrap_or_else(|| panic!("the probe said nothing: {shown}\n{self}"))
    }

    /// The outcome of the only act with this name.
    #[track_caller]
    pub fn act(&self, name: &str) -> &Outcome {
        self.outcomes
            .iter()
            .find(|outcome| outcome.act == name)
            .unwrap_or_else(|| panic!("no outcome of {name}\n{self}"))
    }

    #[track_caller]
    pub fn code_is(&self, code: i32) -> &Finished {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// Asserts an error of ours that a person can act on: our prefix, no panic, exit 2 or 125.
    #[track_caller]
    pub fn is_clear_error(&self) -> &Finished {
        self.has_no_panic();
        assert!([2, 125].contains(&self.code), "exit code of a clear error\n{self}");
        assert!(self.stderr.trim().len() > 10, "says nothing\n{self}");
        self
    }

    #[track_caller]
    pub fn has_no_panic(&self) -> &Finished {
        assert!(!self.stderr.contains("panicked"), "{self}");
        assert!(![134, 139, 101].contains(&self.code), "{self}");
        self
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.code,
            self.text(),
            self.stderr
        )
    }
}
