//! What this Mac can do. A run looks up what is cheap; `doctor` and `--explain` try everything.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{getgid, getuid};

use crate::core::error::Error;
use crate::core::host::{Caller, Fact};
use crate::macos::facts::MacFacts;
use crate::macos::launch::SANDBOX_EXEC;
use crate::macos::profile::service;
use crate::macos::sys::{self, Membership};
use crate::unix::terminal::standard;

/// Prefixes under which software is installed.
const TOOLCHAINS: [&str; 4] =
    ["/opt/homebrew", "/opt/local", "/usr/local", "/nix/var/nix/profiles/default"];

/// The facts a run starts from.
pub fn assume() -> Result<MacFacts, Error> {
    let doing = |doing: &str| {
        let doing = doing.to_owned();
        move |source: io::Error| Error::Io { doing, source }
    };
    let name = rustix::system::uname();
    let nonce = nonce().map_err(doing("choose a name for the run"))?;
    let temporary = sys::user_temporary_directory().unwrap_or_else(std::env::temp_dir);
    let temporary = temporary.canonicalize().map_err(doing("find the temporary directory"))?;
    let helper = std::env::current_exe().and_then(|exe| exe.canonicalize());
    Ok(MacFacts {
        system: format!("macOS {}", sys::sysctl(c"kern.osproductversion").unwrap_or_default()),
        kernel: name.release().to_string_lossy().into_owned(),
        architecture: name.machine().to_string_lossy().into_owned(),
        caller: Caller {
            uid: getuid().as_raw(),
            gid: getgid().as_raw(),
            invoker: None,
            rootless: None,
        },
        seatbelt: seatbelt(),
        membership: match Membership::new("mcp.run") {
            Some(_) => Fact::Assumed,
            None => Fact::Fails { why: "there is no sandbox_check".to_owned() },
        },
        rlimits: Fact::Assumed,
        address_space: Fact::Assumed,
        accounting: accounting(),
        user_processes: user_processes(),
        // Short, for the sake of unix sockets below TMPDIR.
        scratch: temporary.join(format!("mcp-{}", nonce.get(..10).unwrap_or(&nonce))),
        proxy: None,
        nonce,
        redirected: (0..3).filter_map(|fd| sys::path_of_regular_file(standard(fd))).collect(),
        helper: helper.map_err(doing("find this program"))?,
        toolchains: TOOLCHAINS.iter().map(PathBuf::from).filter(|path| path.is_dir()).collect(),
        rustup: rustup(),
        developer: developer(),
    })
}

/// The facts that `mcp doctor` and `--explain` show: each mechanism tried.
pub fn probe() -> Result<MacFacts, Error> {
    let mut facts = assume()?;
    if facts.seatbelt.usable() {
        let (seatbelt, membership) = try_profile(&facts);
        facts.seatbelt = seatbelt;
        facts.membership = membership;
    }
    facts.rlimits = try_limit("-n", "64", "exec 3</dev/null; [ \"$(ulimit -n)\" = 64 ]");
    facts.address_space = try_limit("-v", "8388608", "[ \"$(ulimit -v)\" = 8388608 ]");
    Ok(facts)
}

/// What can be found out without starting anything.
fn seatbelt() -> Fact {
    if let Err(e) = fs::metadata(SANDBOX_EXEC) {
        return Fact::Fails { why: format!("{SANDBOX_EXEC}: {e}") };
    }
    match sys::is_sandboxed() {
        Some(true) => Fact::Fails { why: "this process is in a sandbox already".to_owned() },
        _ => Fact::Assumed,
    }
}

/// Under a small profile `cat` must be refused a file that it can read without it; and the system
/// must know the process by the profile's name.
fn try_profile(facts: &MacFacts) -> (Fact, Fact) {
    let untried = || Fact::Fails { why: "no profile could be tried".to_owned() };
    let file = facts.scratch.with_extension("probe");
    if let Err(e) = fs::write(&file, "probe") {
        return (Fact::Fails { why: e.to_string() }, untried());
    }
    let outcome = profile_holds(&file, &service(&facts.nonce));
    let _ = fs::remove_file(&file);
    match outcome {
        Ok(membership) => (Fact::Works, membership),
        Err(why) => (Fact::Fails { why }, untried()),
    }
}

fn profile_holds(file: &Path, service: &str) -> Result<Fact, String> {
    const TEXT: &str = "(version 1)(allow default)(deny mach-lookup)\
        (allow mach-lookup (global-name (param \"RUN\")))\
        (deny file-read* (literal (param \"FILE\")))";
    let parameter = |name: &str, value: &std::ffi::OsStr| {
        let mut pair = OsString::from(name);
        pair.push("=");
        pair.push(value);
        pair
    };
    let shell = "cat \"$1\" 2>/dev/null && echo open; echo tried; read line";
    let free = Command::new("/bin/cat").arg(file).output().map_err(|e| e.to_string())?;
    if free.stdout != b"probe" {
        return Err("a file of our own cannot be read".to_owned());
    }
    let mut child = Command::new(SANDBOX_EXEC)
        .args(["-p", TEXT, "-D"])
        .arg(parameter("RUN", service.as_ref()))
        .arg("-D")
        .arg(parameter("FILE", file.as_os_str()))
        .args(["/bin/sh", "-c", &format!("{shell}; echo over"), "sh"])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_clear()
        .spawn()
        .map_err(|e| format!("{SANDBOX_EXEC}: {e}"))?;
    // The shell prints a line once it runs under the profile, and then waits.
    let mut output = child.stdout.take();
    let mut said = output.as_mut().map(first_line).unwrap_or_default();
    let known = Membership::new(service).map(|membership| {
        let own = std::process::id().cast_signed();
        membership.holds(child.id().cast_signed()) && !membership.holds(own)
    });
    drop(child.stdin.take());
    if let Some(rest) = &mut output {
        let _ = rest.read_to_string(&mut said);
    }
    let ended = child.wait_with_output().map_err(|e| e.to_string())?;
    if !said.contains("over") {
        return Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned());
    }
    if said.contains("open") {
        return Err("a profile was accepted and did nothing".to_owned());
    }
    Ok(match known {
        Some(true) => Fact::Works,
        Some(false) => Fact::Fails { why: "sandbox_check does not know the process".to_owned() },
        None => Fact::Fails { why: "there is no sandbox_check".to_owned() },
    })
}

/// Byte by byte, so that the rest stays in the pipe.
fn first_line(from: &mut impl Read) -> String {
    let mut line = String::new();
    let mut byte = [0];
    while let Ok(1) = from.read(&mut byte) {
        line.push(char::from(byte[0]));
        if byte == *b"\n" {
            break;
        }
    }
    line
}

/// In a shell of its own: set, and read back.
fn try_limit(flag: &str, value: &str, holds: &str) -> Fact {
    let script = format!("ulimit {flag} {value} || exit 1; {holds}");
    let shell = Command::new("/bin/bash").args(["-c", &script]).stdin(Stdio::null()).output();
    match shell {
        Ok(output) if output.status.success() => Fact::Works,
        Ok(output) => {
            Fact::Fails { why: String::from_utf8_lossy(&output.stderr).trim().to_owned() }
        }
        Err(e) => Fact::Fails { why: e.to_string() },
    }
}

/// This process has to be in the list, and to use something.
fn accounting() -> Fact {
    let own = std::process::id().cast_signed();
    match sys::processes() {
        Err(e) => Fact::Fails { why: e.to_string() },
        Ok(all) if !all.iter().any(|process| process.pid == own) => {
            Fact::Fails { why: "this process is not in the list of all".to_owned() }
        }
        Ok(_) => match sys::used(own).map(|used| used.footprint) {
            Some(1..) => Fact::Works,
            _ => Fact::Fails { why: "this process is said to use no memory".to_owned() },
        },
    }
}

fn user_processes() -> u32 {
    let own = getuid().as_raw();
    let all = sys::processes().unwrap_or_default();
    u32::try_from(all.iter().filter(|process| process.user == own).count()).unwrap_or(u32::MAX)
}

/// Where the stand-ins look for it, as seen from outside.
fn rustup() -> Option<(PathBuf, PathBuf)> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let place = |variable: &str, name: &str| {
        let given = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        given.unwrap_or_else(|| home.join(name)).canonicalize().ok()
    };
    let (rustup, cargo) = (place("RUSTUP_HOME", ".rustup")?, place("CARGO_HOME", ".cargo")?);
    rustup.join("toolchains").is_dir().then(|| (rustup, cargo.join("bin")))
}

fn developer() -> Option<PathBuf> {
    let given = std::env::var_os("DEVELOPER_DIR").map(PathBuf::from);
    let chosen = || fs::read_link("/var/db/xcode_select_link").ok();
    given.or_else(chosen)?.canonicalize().ok().filter(|path| path.is_dir())
}

fn nonce() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
