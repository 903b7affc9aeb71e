//! Each form of the Seatbelt profile by itself: where a Mac refuses the whole, the form that it refuses is named.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::check::CheckOutcome;

const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// The profile of an ordinary run, from the plan that this program prints.
struct Profile {
    text: String,
    parameters: Vec<(String, String)>,
}

pub fn run(exe: &Path) -> io::Result<CheckOutcome> {
    let explained = Command::new(exe)
        .args(["run", "--explain", "--json", "--platform", "macos", "--no-subprocess"])
        .args(["--listen", "8080", "--deny", "**/x", "--protect", "--", "/usr/bin/true"])
        .stdin(Stdio::null())
        .output()?;
    let Some(profile) = profile(&String::from_utf8_lossy(&explained.stdout)) else {
        return Ok(CheckOutcome::Failed { why: "the plan has no profile".to_owned() });
    };
    let compiles = |text: &str| -> io::Result<bool> {
        let mut command = Command::new(SANDBOX_EXEC);
        command.arg("-p").arg(text);
        for (name, value) in &profile.parameters {
            command.arg("-D").arg(format!("{name}={value}"));
        }
        command.arg("/usr/bin/true").stdin(Stdio::null());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        Ok(status.success())
    };
    if !compiles("(version 1)(allow default)")? {
        return Ok(CheckOutcome::Skipped {
            why: "no profile works here, not an empty one".to_owned(),
        });
    }
    let mut refused = Vec::new();
    for form in forms(&profile.text) {
        // What the form closes is opened again behind it, so that only its syntax counts.
        let alone = format!(
            "(version 1)(allow default){form}(allow default)(allow process-exec* (subpath \"/\"))\
                             (allow file-read* file-map-executable (subpath \"/\"))"
        );
        if !compiles(&alone)? {
            refused.push(form);
        }
    }
    Ok(match refused.is_empty() {
        true => CheckOutcome::Passed,
        false => {
            CheckOutcome::Failed { why: format!("refused by themselves: {}", refused.join(" ")) }
        }
    })
}

fn profile(json: &str) -> Option<Profile> {
    let plan: Value = serde_json::from_str(json).ok()?;
    let step = plan.get("steps")?.as_array()?.iter().find(|step| step["do"] == "seatbelt")?;
    let text = step["profile"]["text"].as_str()?.to_owned();
    let parameter =
        |one: &Value| Some((one["name"].as_str()?.to_owned(), one["value"].as_str()?.to_owned()));
    let parameters = step["profile"]["parameters"].as_array()?;
    Some(Profile { text, parameters: parameters.iter().filter_map(parameter).collect() })
}

/// The rules of a profile, each on one line, without comments and without its version.
fn forms(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split(';').next().unwrap_or_default().trim());
    let text: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let (mut forms, mut form, mut depth, mut is_quoted) = (Vec::new(), String::new(), 0, false);
    for c in text.join(" ").chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        form.push(c);
        if depth == 0 {
            forms.push(std::mem::take(&mut form).trim().to_owned());
        }
    }
    forms.retain(|form| form.starts_with('(') && !form.starts_with("(version"));
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_taken_apart() {
        let text = "; a (comment)\n(version 1)\n(deny default) ; why\n(allow file-read*\n  (subpath \"/a (b)\")\n  \
                    ; inside\n  (regex #\"^/x$\"))\n";
        let wanted =
            ["(deny default)", "(allow file-read* (subpath \"/a (b)\") (regex #\"^/x$\"))"];
        assert_eq!(forms(text), wanted);
    }

    #[test]
    fn the_profile_is_found_in_a_plan() {
        let json = r#"{"steps": [{"do": "x"}, {"do": "seatbelt", "profile":
            {"text": "(version 1)", "parameters": [{"name": "A_0", "value": "/x"}]}}]}"#;
        let profile = profile(json).unwrap();
        assert_eq!(profile.text, "(version 1)");
        assert_eq!(profile.parameters, [("A_0".to_owned(), "/x".to_owned())]);
        assert!(super::profile("{}").is_none() && super::profile("").is_none());
    }
}
