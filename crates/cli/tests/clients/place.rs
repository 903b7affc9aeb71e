//! A world with two web sites at one address, and the files that its servers and clients use.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{Scratch, mcp_path, probe_path};

/// The name that rules allow, and the one that none does. Both lead to the same servers.
pub const ALLOWED: &str = "web.test";
pub const OTHER: &str = "other.test";
const ADDRESS: &str = "9.9.9.9";
pub const HELLO: &str = "hello by the web";

pub struct Place {
    scratch: Scratch,
}

/// Why a client cannot be tried here.
pub fn missing(programs: &[&str]) -> Option<String> {
    let absent = programs.iter().find(|program| find(program).is_none());
    absent.map(|program| format!("{program} is not installed"))
}

pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    places.map(|dir| dir.join(program)).find(|file| file.is_file())
}

impl Place {
    pub fn new() -> Place {
        let place = Place { scratch: Scratch::new() };
        std::fs::create_dir(place.path("www")).unwrap();
        std::fs::write(place.path("www/index.html"), format!("{HELLO}\n")).unwrap();
        std::fs::write(place.path("servers.py"), include_str!("servers.py")).unwrap();
        let names = format!("subjectAltName=DNS:{ALLOWED},DNS:{OTHER}");
        place.prepare(&[
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=throw-away",
            "-addext",
            &names,
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ]);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub fn certificate(&self) -> String {
        self.path("cert.pem").display().to_string()
    }

    /// Runs a command outside, in the place's directory, to make something ready.
    #[track_caller]
    pub fn prepare(&self, words: &[&str]) {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.path("")).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", shown(&output));
    }

    /// Runs words in the world: bare, or behind `mcp run` with these flags.
    fn run(&self, launcher: &[OsString], words: &[String]) -> Output {
        let names = [ALLOWED, OTHER].map(|name| format!("name={name}>{ADDRESS}")).join(";");
        let mut command = Command::new(probe_path());
        command
            .arg("world")
            .arg(self.path("log"))
            .arg(format!("ip={ADDRESS};{names}"))
            .args(["python3".as_ref(), self.path("servers.py").as_os_str()])
            .args([self.path("").as_os_str(), OsStr::new(ADDRESS)])
            .args(launcher)
            // The client's own limit, so that a hang fails the test and not the suite.
            .args(["timeout", "-k", "2", "60"])
            .args(words)
            .current_dir(self.path(""))
            .env("SSL_CERT_FILE", self.certificate())
            .env("NODE_EXTRA_CA_CERTS", self.certificate())
            .stdin(Stdio::null());
        // What this machine's owner set for the real world does not hold in this one.
        command.env_remove("GIT_SSL_CAINFO").env_remove("JAVA_TOOL_OPTIONS");
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(proxy).env_remove(proxy.to_ascii_lowercase());
        }
        command.output().unwrap()
    }

    /// The client reaches the allowed name in the sandbox; it does not reach the other one,
    /// though without the sandbox it does.
    #[track_caller]
    pub fn check(&self, ports: &[u16], said: &str, words: impl Fn(&str) -> Vec<String>) {
        let bare = self.run(&[], &words(OTHER));
        assert!(succeeded(&bare, said), "fails without the sandbox too: {}", shown(&bare));
        let mut launcher: Vec<OsString> = vec![mcp_path().into(), "run".into()];
        for port in ports {
            launcher.extend(["--allow-net".into(), format!("{ALLOWED}:{port}").into()]);
        }
        launcher.extend(["--read".into(), self.path("").into_os_string()]);
        for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
            launcher.extend(["--env".into(), name.into()]);
        }
        launcher.push("--".into());
        let allowed = self.run(&launcher, &words(ALLOWED));
        assert!(succeeded(&allowed, said), "does not reach {ALLOWED}: {}", shown(&allowed));
        let refused = self.run(&launcher, &words(OTHER));
        assert!(!succeeded(&refused, said), "reaches {OTHER}: {}", shown(&refused));
        // 124 and 137 are the limit's: it must fail by itself, as with any dead name.
        let code = refused.status.code();
        assert!(!matches!(code, Some(0 | 124 | 137) | None), "{code:?}: {}", shown(&refused));
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(stderr.contains(&format!("--allow-net {OTHER}")), "no remedy: {}", shown(&refused));
    }
}

fn succeeded(output: &Output, said: &str) -> bool {
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains(said)
}

fn shown(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

pub fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Puts a text into the place.
pub fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
