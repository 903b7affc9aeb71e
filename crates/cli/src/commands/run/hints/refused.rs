//! What the system's own log says was refused (macOS keeps one). The command chose these paths itself, so the line says
//! what was wanted and leaves the decision to a person; credentials are named without a flag to copy.

use std::path::Path;

use mcp_learn::path_reason;
use mcp_sandbox::{Report, Watched, WatchedAct};

use super::Hint;
use super::facts::Facts;
use super::shown::{directory_of, typed};

/// One line for each place, the first of them.
pub fn after(facts: &Facts, report: &Report) -> Vec<Hint> {
    let mut told = report.watched.as_ref().map(|watched| hints(facts, watched)).unwrap_or_default();
    told.extend(facts.tracer.as_ref().map(|tracer| {
        Hint::new(tracer, format!("{tracer} follows other processes, which every sandbox refuses (ptrace); start it outside"))
    }));
    told
}

fn hints(facts: &Facts, watched: &Watched) -> Vec<Hint> {
    let mut hints: Vec<Hint> = Vec::new();
    for missing in &watched.missing {
        let path = Path::new(&missing.path);
        let (wanted, flag, granted) = match missing.act {
            WatchedAct::Read => ("read", "-r", path.to_owned()),
            WatchedAct::Write | WatchedAct::Remove => ("write", "-w", path.to_owned()),
            WatchedAct::Create => ("make", "-w", directory_of(path, facts)),
            WatchedAct::Connect => ("connect to", "--allow-unix", path.to_owned()),
            _ => continue,
        };
        // No grant brings what is not there.
        let is_there = path.symlink_metadata().is_ok()
            || missing.act == WatchedAct::Create && granted.is_dir();
        if !is_there {
            continue;
        }
        let shown = path.display();
        let line = match path_reason(path, facts.home.as_deref()) {
            Some(reason) => {
                format!("{} tried to {wanted} {shown}, and was refused: {reason}", facts.program)
            }
            None => format!(
                "{} tried to {wanted} {shown}, and was refused; if it should: {flag} {}",
                facts.program,
                typed(&granted, facts)
            ),
        };
        if hints.iter().all(|hint| hint.about != missing.path) {
            hints.push(Hint::new(&missing.path, line));
        }
    }
    hints
}

#[cfg(test)]
mod tests {
    use mcp_policy::{Defaults, Policy};

    use super::super::facts::{PathState, Starts};
    use super::super::{Runs, variables};
    use super::*;

    fn facts(home: &Path) -> Facts {
        Facts {
            runs: Runs::Command,
            program: "node".to_owned(),
            is_of_system: true,
            tracer: None,
            arguments: Vec::new(),
            here: home.join("here"),
            starts: Starts::Elsewhere,
            here_seen: PathState::Hidden,
            home: Some(home.to_owned()),
            limits: Policy::merge(&[], Defaults::run()).unwrap().limits,
            services: Vec::new(),
            server: variables::ServerInputs::default(),
        }
    }

    #[test]
    fn what_was_refused_is_told_with_its_flag_and_credentials_without() {
        let home = std::env::temp_dir().join(format!("mcp-refused-{}", std::process::id()));
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        std::fs::create_dir_all(home.join("out")).unwrap();
        for file in ["data.json", ".ssh/id_ed25519"] {
            std::fs::write(home.join(file), "x").unwrap();
        }
        let missing = |act: &str, name: &str| {
            let path = home.join(name);
            serde_json::json!({ "path": path, "act": act, "times": 1, "first": 0.0 })
        };
        let watched: Watched = serde_json::from_value(serde_json::json!({ "calls": 5, "missing": [
            missing("read", "data.json"), missing("look", "data.json"), missing("read", "gone"),
            missing("create", "out/new"), missing("read", ".ssh/id_ed25519"),
        ]}))
        .unwrap();
        let lines: Vec<String> =
            hints(&facts(&home), &watched).into_iter().map(|hint| hint.line).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].contains("to read") && lines[0].ends_with("/data.json"), "{lines:?}");
        assert!(lines[0].contains("; if it should: -r "), "{lines:?}");
        assert!(lines[1].contains("to make") && lines[1].ends_with("/out"), "{lines:?}");
        assert!(lines[2].contains("id_ed25519") && !lines[2].contains("-r "), "{lines:?}");
        std::fs::remove_dir_all(&home).unwrap();
    }
}
