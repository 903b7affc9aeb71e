//! Asks the PowerShell of this machine what is in a text. It parses and runs nothing; a text that would make it
//! load something while it parses is not given to it. Where there is none, or it does not answer in time, the
//! guard's own reader stands alone.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use mcp_guard::{LONGEST_COMMAND, PARSE_SCRIPT, Parsed, may_be_parsed};

use super::shells::powershell;

/// A first start is slow; a longer wait is worth less than the answer.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_ANSWER: u64 = 16 * 1024 * 1024;

/// Variables that it cannot start without; no other of the user's is its business.
const KEPT: [&str; 6] = ["SystemRoot", "SystemDrive", "windir", "PATH", "TEMP", "HOME"];

pub fn parse(text: &str) -> Option<Parsed> {
    if text.len() > LONGEST_COMMAND || !may_be_parsed(text) {
        return None;
    }
    ask(&powershell()?, text).and_then(|answer| Parsed::read(&answer))
}

fn ask(program: &Path, text: &str) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", PARSE_SCRIPT]);
    command.env_clear();
    for name in KEPT {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    // Not the project: nothing in it is to be found by accident.
    command.current_dir(program.parent()?);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let answer = exchange(&mut child, text);
    let _ = child.kill();
    let _ = child.wait();
    answer
}

fn exchange(child: &mut Child, text: &str) -> Option<Vec<u8>> {
    let (mut to, from) = (child.stdin.take()?, child.stdout.take()?);
    let text = text.to_owned();
    std::thread::spawn(move || to.write_all(text.as_bytes()));
    let (done, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        let read = from.take(LONGEST_ANSWER).read_to_end(&mut answer);
        let _ = done.send(read.map(|_| answer));
    });
    heard.recv_timeout(PATIENCE).ok()?.ok()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that stands for PowerShell, with this text.
    fn stand_in(name: &str, text: &str) -> std::path::PathBuf {
        let at = std::env::temp_dir().join(format!("mcp-parser-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&at).unwrap();
        let program = at.join("pwsh");
        std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn the_text_goes_in_and_the_answer_comes_out() {
        let program = stand_in(
            "echo",
            r#"[ "$(cat)" = "Get-Date" ] && [ "$4" = -Command ] && [ -z "$SECRET" ] && echo '{"mcp":1,"errors":[],"commands":[],"members":[]}'"#,
        );
        let answer = ask(&program, "Get-Date").unwrap();
        assert!(Parsed::read(&answer).is_some_and(|parsed| parsed.is_well_formed()));
        assert!(Parsed::read(&ask(&program, "Get-Other").unwrap()).is_none(), "the control");
        std::fs::remove_dir_all(program.parent().unwrap()).unwrap();
    }
}
