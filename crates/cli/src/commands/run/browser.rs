//! `--browser`: this machine's Chromium or Chrome, for servers that drive one.
//!
//! The command finds a script of ours where servers look for Chrome. It starts the real program headless and without
//! its own sandbox, which wants user namespaces, and these are closed inside: the walls of the run are what holds a
//! page. Each process of the browser may have half of the memory, so that a page that takes too much ends, and not
//! the server. Linux with a root of its own only.
//!
//! Leaves open: a page that breaks out of its renderer is in the sandbox of the server, and may do what the server
//! may. Pages that take too much only together end the run, as any command at its memory limit.

use std::path::{Path, PathBuf};

use mcp_policy::{Bytes, Defaults, EnvName, Layer, LayerKind, Policy};
use mcp_sandbox::Script;

use crate::failure::Failure;
use crate::{paths, render};

/// Where servers look for Chrome, and a place that is free where Chrome itself is there.
const PLACES: [&str; 2] = ["/opt/google/chrome/chrome", "/opt/mcp/chrome"];

/// Programs themselves: the scripts in /usr/bin read settings below /etc that need not be shown.
const KNOWN: [&str; 9] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium/chrome",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium/chromium",
    "/opt/google/chrome/chrome",
    "/opt/chromium.org/chromium/chrome",
    "/opt/microsoft/msedge/msedge",
    "/opt/brave.com/brave/brave",
];

/// Below the user's cache: what Playwright and Puppeteer downloaded, `DIR/VERSION/DIR/PROGRAM`.
const DOWNLOADED: [(&str, &str, &str); 4] = [
    ("ms-playwright", "chromium-", "chrome-linux64/chrome"),
    ("ms-playwright", "chromium-", "chrome-linux/chrome"),
    ("puppeteer/chrome", "linux-", "chrome-linux64/chrome"),
    (
        "puppeteer/chrome-headless-shell",
        "linux-",
        "chrome-headless-shell-linux64/chrome-headless-shell",
    ),
];

/// What servers and libraries are told by.
const VARIABLES: [&str; 4] =
    ["PUPPETEER_EXECUTABLE_PATH", "PLAYWRIGHT_MCP_EXECUTABLE_PATH", "CHROME_PATH", "CHROME_BIN"];

const MEMORY: Bytes = Bytes::mib(2048);
const PROCESSES: u32 = 512;
/// Less than this, and no page starts.
const LEAST_FOR_A_PROCESS: u64 = 512 << 20;

pub struct Browser {
    program: PathBuf,
}

impl Browser {
    pub fn find() -> Result<Browser, Failure> {
        if !cfg!(target_os = "linux") {
            return Err(Failure::Usage("--browser is for Linux only".to_owned()));
        }
        let known = KNOWN.iter().map(PathBuf::from);
        let program = known.chain(downloaded()).find(|path| path.is_file()).ok_or_else(|| {
            Failure::Refused(
                "--browser: no Chromium or Chrome was found; install one (Debian: apt install chromium; \
                 a snap cannot run inside)"
                    .to_owned(),
            )
        })?;
        let program = paths::real(&program).map_err(|e| Failure::file(&program, &e))?;
        Ok(Browser { program })
    }

    /// More than a server alone needs, unless a person says otherwise.
    pub fn defaults() -> Defaults {
        let mut defaults = Defaults::run().memory(MEMORY);
        defaults.limits.processes.value = Some(PROCESSES);
        defaults
    }

    /// The browser's directory, to read, and the variables that lead to our script.
    pub fn layer(&self) -> Result<Layer, Failure> {
        let directory = self.program.parent().unwrap_or(&self.program);
        let mut layer = Layer::manifest("--browser", directory, None);
        if !directory.starts_with("/usr") {
            layer.read(directory);
        }
        for name in VARIABLES {
            // Each of ours is one.
            if let Ok(name) = name.parse::<EnvName>() {
                layer.env_set(name, self.place().to_owned());
            }
        }
        let mut layer = layer.build()?;
        layer.kind = LayerKind::UserConfig;
        Ok(layer)
    }

    /// Chrome's own place, unless Chrome is there.
    fn place(&self) -> &'static str {
        let [usual, free] = PLACES;
        match Path::new(usual).parent().is_some_and(|own| self.program.starts_with(own)) {
            true => free,
            false => usual,
        }
    }

    pub fn scripts(&self, policy: &Policy) -> Vec<Script> {
        let limit = match for_a_process(policy) {
            Some(bytes) => format!("ulimit -d {}\n", bytes.0 / 1024),
            None => String::new(),
        };
        let program = self.program.to_string_lossy().replace('\'', r"'\''");
        let text = format!(
            "#!/bin/sh\n{limit}exec '{program}' --no-sandbox --headless=new --disable-dev-shm-usage --no-first-run \
             --disable-background-networking --disable-component-update \"$@\"\n"
        );
        vec![Script::new(self.place().into(), text)]
    }

    /// What a person gave by the flag, in a sentence.
    pub fn told(&self, policy: &Policy) -> String {
        let bound = match for_a_process(policy) {
            Some(bytes) => format!("; a page that takes more than {bytes} ends"),
            None => String::new(),
        };
        format!(
            "{} runs headless and without its own sandbox, which needs user namespaces: they are closed inside, and \
             this run's walls hold its pages{bound}",
            render::path(&self.program)
        )
    }
}

/// Half of the memory for each process, where that is enough for one.
fn for_a_process(policy: &Policy) -> Option<Bytes> {
    let half = policy.limits.memory.value?.0 / 2;
    (half >= LEAST_FOR_A_PROCESS).then_some(Bytes(half))
}

/// The newest of each kind.
fn downloaded() -> impl Iterator<Item = PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| paths::home().map(|home| home.join(".cache")));
    let newest = move |(kind, start, program): &(&str, &str, &str)| {
        let directory = cache.as_ref()?.join(kind);
        let entries = std::fs::read_dir(directory).ok()?.flatten();
        let named =
            |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(start);
        let mut found: Vec<PathBuf> =
            entries.filter(named).map(|entry| entry.path().join(program)).collect();
        found.retain(|path| path.is_file());
        found.sort();
        found.pop()
    };
    DOWNLOADED.iter().filter_map(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_half_of_the_memory() {
        let browser = Browser { program: "/usr/lib/it's/chromium".into() };
        let policy = |memory: Option<Bytes>| {
            let mut policy =
                Policy::merge(&[browser.layer().unwrap()], Browser::defaults()).unwrap();
            policy.limits.memory.value = memory;
            policy
        };
        let text = |memory| browser.scripts(&policy(memory)).remove(0).text;
        assert!(text(Some(Bytes::mib(2048))).contains("ulimit -d 1048576\n"));
        assert!(
            text(Some(Bytes::mib(2048))).contains(r"exec '/usr/lib/it'\''s/chromium' --no-sandbox")
        );
        for memory in [Some(Bytes::mib(768)), None] {
            assert!(!text(memory).contains("ulimit"), "{memory:?}");
        }
    }

    #[test]
    fn chrome_itself_keeps_its_place() {
        let at = |program: &str| Browser { program: program.into() }.place();
        assert_eq!(at("/usr/lib/chromium/chromium"), "/opt/google/chrome/chrome");
        assert_eq!(at("/opt/google/chrome/chrome"), "/opt/mcp/chrome");
    }
}
