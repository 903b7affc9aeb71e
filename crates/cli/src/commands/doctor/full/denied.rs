//! What a failed check was refused: the run once more, watched, for the paths that its report names. Linux watches by
//! seccomp notification, macOS by its log of refusals, Windows not at all.

use std::path::Path;

use serde::Deserialize;

/// More would not be read.
const MOST: usize = 5;

/// Flags that have a run write down what it was refused.
pub fn flags(report: &Path) -> Vec<String> {
    let report = report.display().to_string();
    vec!["--watch-paths".to_owned(), "--report".to_owned(), report]
}

#[derive(Deserialize)]
struct Report {
    watched: Option<Watched>,
}

#[derive(Deserialize)]
struct Watched {
    #[serde(default)]
    missing: Vec<Missing>,
}

#[derive(Deserialize)]
struct Missing {
    path: String,
    act: String,
}

/// The first paths of a report, with what each was wanted for. Empty where nothing was seen.
pub fn told(report: &str) -> String {
    let watched = serde_json::from_str::<Report>(report).ok().and_then(|report| report.watched);
    let missing = watched.map(|watched| watched.missing).unwrap_or_default();
    let wanted = missing.iter().filter(|missing| missing.act != "look");
    let wanted: Vec<String> =
        wanted.take(MOST).map(|missing| format!("{} {}", missing.act, missing.path)).collect();
    match wanted.is_empty() {
        true => String::new(),
        false => format!("; not there inside: {}", wanted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_report_are_told() {
        let report = r#"{"x": 1, "watched": {"missing": [
            {"path": "/a", "act": "look", "times": 1}, {"path": "/b c", "act": "read", "times": 2},
            {"path": "/d", "act": "create", "times": 2}]}}"#;
        assert_eq!(told(report), "; not there inside: read /b c, create /d");
        for report in ["", "{}", r#"{"watched": null}"#, r#"{"watched": {}}"#] {
            assert_eq!(told(report), "", "{report}");
        }
    }
}
