//! The variables of a Windows run. Pure. Names differ there by more than case.

use std::ffi::OsString;

use crate::core::request::{HOME, Home, Request};
use crate::windows::facts::WindowsFacts;

/// What the policy gives, over what belongs to this machine and this run. Programs without SystemRoot do not
/// even open a socket.
pub fn variables(request: &Request, facts: &WindowsFacts) -> Vec<(OsString, OsString)> {
    let home = home(request, facts);
    let temporary = facts.temporary().to_string();
    let root = facts.system_root.to_string();
    let drive = root.get(..2).unwrap_or("C:").to_owned();
    let system = format!(r"{root}\System32");
    let own = [
        ("SystemRoot", root.clone()),
        ("windir", root.clone()),
        ("SystemDrive", drive.clone()),
        ("ComSpec", format!(r"{system}\cmd.exe")),
        ("PATHEXT", ".COM;.EXE;.BAT;.CMD".to_owned()),
        ("OS", "Windows_NT".to_owned()),
        ("NUMBER_OF_PROCESSORS", facts.processors.to_string()),
        ("PROCESSOR_ARCHITECTURE", architecture(&facts.architecture).to_owned()),
        ("ProgramFiles", format!(r"{drive}\Program Files")),
        ("ProgramFiles(x86)", format!(r"{drive}\Program Files (x86)")),
        ("ProgramW6432", format!(r"{drive}\Program Files")),
        ("CommonProgramFiles", format!(r"{drive}\Program Files\Common Files")),
        ("ProgramData", format!(r"{drive}\ProgramData")),
        ("PUBLIC", format!(r"{drive}\Users\Public")),
        ("PATH", format!(r"{system};{root};{system}\Wbem;{system}\WindowsPowerShell\v1.0")),
        ("TEMP", temporary.clone()),
        ("TMP", temporary),
        ("USERPROFILE", home.clone()),
        ("HOME", home.clone()),
        ("APPDATA", format!(r"{home}\AppData\Roaming")),
        ("LOCALAPPDATA", format!(r"{home}\AppData\Local")),
        ("USERNAME", "mcp".to_owned()),
    ];
    let mut all: Vec<(OsString, OsString)> = Vec::new();
    for (name, value) in own {
        put(&mut all, name.into(), value.into());
    }
    for (name, value) in &request.env {
        // As every request has it; it stands for the run's own.
        if name.eq_ignore_ascii_case("HOME") && value == HOME {
            continue;
        }
        put(&mut all, name.clone(), value.clone());
    }
    all
}

/// As Windows spells it: build tools and node-gyp read it.
fn architecture(name: &str) -> &'static str {
    match name {
        "aarch64" => "ARM64",
        "x86" => "x86",
        _ => "AMD64",
    }
}

/// The last one of a name stands.
pub fn put(all: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    all.retain(|(have, _)| !have.eq_ignore_ascii_case(&name));
    all.push((name, value));
}

/// Where HOME is.
pub fn home(request: &Request, facts: &WindowsFacts) -> String {
    match &request.home {
        Home::Ephemeral => facts.home().to_string(),
        Home::Kept(path) => path.to_string_lossy().trim_start_matches(r"\\?\").to_owned(),
    }
}

/// Name and value, each ended by NUL, sorted as Windows wants it, and one NUL more at the end.
#[cfg(any(windows, test))]
pub fn block(variables: &[(OsString, OsString)]) -> Vec<OsString> {
    let mut sorted: Vec<&(OsString, OsString)> = variables.iter().collect();
    sorted.sort_by_key(|(name, _)| name.to_ascii_uppercase());
    let line = |(name, value): &(OsString, OsString)| {
        let mut line = name.clone();
        line.push("=");
        line.push(value);
        line
    };
    sorted.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_by_more_than_case() {
        let mut all = Vec::new();
        for (name, value) in [("Path", "a"), ("PATH", "b"), ("x", "c")] {
            put(&mut all, name.into(), value.into());
        }
        assert_eq!(block(&all), ["PATH=b", "x=c"]);
    }
}
