//! The Seatbelt profile of a run: the base rules, then its own. Pure.
//!
//! Stops: every operation that no rule allows, in the command and all it starts, from the helper's
//! first instruction on; there is no way to take a profile off again. Paths are compared without
//! symlinks, as the kernel knows them. Since macOS 10.5; Apple calls `sandbox-exec` deprecated and has no
//! other for programs without a bundle.
//!
//! Text of the user's is in the parameters (`-D`) and nowhere else.

mod network;

use std::fmt;
use std::path::{Path, PathBuf};

use mcp_policy::Subprocess;
use serde::Serialize;

use crate::core::request::{Home, Place, PlaceKind, Request, Stdio};
use crate::macos::deny::{self, resolved};
use crate::macos::facts::MacFacts;
use crate::macos::network::Proxy;
use crate::macos::protect;

const BASE: &str = include_str!("base.sbpl");

/// What is needed of a file to run it.
const RUN: &str = "file-read* file-map-executable process-exec*";
/// What is needed of a directory to work in it. Hard links and clones are operations of their own: cargo, pnpm, uv and
/// `fs::copy` make them.
const CHANGE: &str = "file-write* file-link file-clone";
/// A deny rule has to name every operation that an allow names: the more particular one decides.
const EVERYTHING: &str = "file-read* file-read-metadata file-write* file-write-data file-link \
                          file-clone file-map-executable process-exec*";

/// The parameter that the launcher fills in: the terminal is made at the start.
pub const TERMINAL: &str = "TERMINAL";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// What the log's lines about this run end with.
    pub mark: String,
    pub text: String,
    pub parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parameter {
    pub name: String,
    pub value: String,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        writeln!(f, "\n; parameters")?;
        for Parameter { name, value } in &self.parameters {
            writeln!(f, "; -D {name}={}", value.escape_debug())?;
        }
        Ok(())
    }
}

/// The profile that a request needs on this machine, with this much of a network.
pub fn profile(request: &Request, facts: &MacFacts, proxy: &Proxy) -> Profile {
    let home = home(request, facts);
    let mark = service(&facts.nonce);
    let mut rules = Rules::new(&marked_base(&mark));
    programs(&mut rules, request, facts);
    granted(&mut rules, request, facts, &home);
    ways(&mut rules, request, facts, &home);
    let files: Vec<String> = facts
        .redirected
        .iter()
        .map(|path| format!("(literal {})", rules.path("STDIO", path)))
        .collect();
    rules.allow(
        "The files that descriptors 0 to 2 are: Node calls fstat() on each, and ends when that fails.",
        "file-read-metadata",
        &files,
    );
    if request.stdio.contains(&Stdio::Terminal) {
        terminal(&mut rules);
    }
    network::network(&mut rules, request, facts, &home, proxy);
    let run = rules.parameter("RUN", &mark);
    rules.allow(
        "No process offers this service: its name tells the processes of this run from all others.",
        "mach-lookup",
        &[format!("(global-name {run})")],
    );
    processes(&mut rules, request, facts);
    let kept = matches!(request.home, Home::Kept(_)).then_some(home.as_path());
    protected(&mut rules, request);
    denied(&mut rules, request, kept);
    let tried = [facts.canary(), facts.created()]
        .map(|path| format!("(literal {})", rules.path("CANARY", &path)));
    rules.deny(
        "The self-check has to be refused here, also where a directory above was granted.",
        EVERYTHING,
        &tried,
    );
    Profile { mark, text: rules.text, parameters: rules.parameters }
}

/// The base rules, with the name of the run in what the log says of each refusal by `deny default`. What a rule of the
/// user's refuses has no name: a message must not tell how to get around it.
fn marked_base(mark: &str) -> String {
    let marked = format!("(deny default (with message \"{mark}\"))");
    BASE.replacen("(deny default)", &marked, 1)
}

/// The name under which a run's processes are known.
pub fn service(nonce: &str) -> String {
    format!("mcp.run.{nonce}")
}

/// HOME as a directory of this machine.
pub fn home(request: &Request, facts: &MacFacts) -> PathBuf {
    match &request.home {
        Home::Ephemeral => facts.home(),
        Home::Kept(path) => resolved(path, &request.links),
    }
}

/// Whether the command can read a path of the host.
pub fn is_visible(path: &Path, request: &Request, _: &MacFacts) -> bool {
    let system = BASE.lines().filter_map(|line| {
        let line = line.trim().strip_prefix("(subpath \"")?;
        line.split('"').next()
    });
    let places = request.shown.iter().chain(&request.read).chain(&request.write);
    system
        .map(Path::new)
        .chain(places.map(|place| place.path.as_path()))
        .any(|p| path.starts_with(p))
}

/// The text so far, and what it refers to.
struct Rules {
    text: String,
    parameters: Vec<Parameter>,
}

impl Rules {
    fn new(base: &str) -> Rules {
        Rules { text: base.to_owned(), parameters: Vec::new() }
    }

    /// A reference to this value; the same value of the same kind is one parameter.
    fn parameter(&mut self, kind: &str, value: &str) -> String {
        let of_kind = |parameter: &&Parameter| {
            let rest = parameter.name.strip_prefix(kind).and_then(|rest| rest.strip_prefix('_'));
            rest.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let known = self.parameters.iter().filter(of_kind).find(|known| known.value == value);
        let name = match known {
            Some(known) => known.name.clone(),
            None => {
                let name = format!("{kind}_{}", self.parameters.iter().filter(of_kind).count());
                let value = value.to_owned();
                self.parameters.push(Parameter { name: name.clone(), value });
                name
            }
        };
        format!("(param \"{name}\")")
    }

    fn path(&mut self, kind: &str, path: &Path) -> String {
        let text = path.to_string_lossy();
        // A plan for a Mac that is made on Windows.
        let text = if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() };
        self.parameter(kind, &text)
    }

    fn allow(&mut self, why: &str, operations: &str, filters: &[String]) {
        self.rule("allow", why, operations, filters);
    }

    fn deny(&mut self, why: &str, operations: &str, filters: &[String]) {
        self.rule("deny", why, operations, filters);
    }

    /// No filter at all would mean everything, so a rule about nothing is left out.
    fn rule(&mut self, action: &str, why: &str, operations: &str, filters: &[String]) {
        if filters.is_empty() {
            return;
        }
        self.text += &format!("\n; {why}\n({action} {operations}");
        for filter in filters {
            self.text += &format!("\n  {filter}");
        }
        self.text += ")\n";
    }

    /// A rule about everything.
    fn without_filter(&mut self, action: &str, why: &str, operations: &str) {
        self.text += &format!("\n; {why}\n({action} {operations})\n");
    }

    fn places<'a>(
        &mut self,
        kind: &str,
        places: impl IntoIterator<Item = &'a Place>,
    ) -> Vec<String> {
        let filter = |place: &Place| match place.kind {
            PlaceKind::Directory => format!("(subpath {})", self.path(kind, &place.path)),
            PlaceKind::File | PlaceKind::Socket => {
                format!("(literal {})", self.path(kind, &place.path))
            }
        };
        places.into_iter().map(filter).collect()
    }
}

/// Trees of which the base rules show what is installed, and not the rest.
const TOOLCHAINS: [&str; 5] = ["/opt/homebrew", "/opt/local", "/usr/local", "/nix", "/nix/store"];

fn programs(rules: &mut Rules, request: &Request, facts: &MacFacts) {
    let helper = rules.path("HELPER", &facts.helper);
    let program = rules.path("PROGRAM", &resolved(&request.program, &request.links));
    rules.allow(
        "What sets the limits, and the program itself.",
        RUN,
        &[format!("(literal {helper})"), format!("(literal {program})")],
    );
    let known = |place: &&Place| !TOOLCHAINS.iter().any(|prefix| place.path == Path::new(prefix));
    let shown = rules.places("SHOWN", request.shown.iter().filter(known));
    rules.allow("The program's own installation and its interpreter's.", RUN, &shown);
    if let Some((home, stand_ins)) = &facts.rustup {
        let toolchains = rules.path("RUSTUP", &home.join("toolchains"));
        let settings = rules.path("RUSTUP", &home.join("settings.toml"));
        let stand_ins = rules.path("RUSTUP", stand_ins);
        let filters = [
            format!("(subpath {toolchains})"),
            format!("(literal {settings})"),
            format!("(subpath {stand_ins})"),
        ];
        rules.allow("Rust's toolchains, where rustup keeps them.", RUN, &filters);
    }
    if let Some(developer) = &facts.developer {
        // Xcode's tools load what is beside their own directory.
        let whole = developer.parent().filter(|_| developer.ends_with("Contents/Developer"));
        let developer = rules.path("DEVELOPER", whole.unwrap_or(developer));
        rules.allow(
            "What /usr/bin/git, cc, make, python3 and their like stand for.",
            RUN,
            &[format!("(subpath {developer})")],
        );
    }
}

fn granted(rules: &mut Rules, request: &Request, facts: &MacFacts, home: &Path) {
    let read = rules.places("READ", &request.read);
    rules.allow("Granted for reading.", RUN, &read);
    let write = rules.places("WRITE", &request.write);
    rules.allow("Granted for writing.", &format!("{RUN} {CHANGE}"), &write);
    let own = [rules.path("HOME", home), rules.path("TMP", &facts.temporary())]
        .map(|own| format!("(subpath {own})"));
    rules.allow("Its own HOME and TMPDIR.", &format!("{RUN} {CHANGE}"), &own);
    let mut roots: Vec<String> =
        request.write.iter().map(|place| rules.path("WRITE", &place.path)).collect();
    roots.extend([rules.path("HOME", home), rules.path("TMP", &facts.temporary())]);
    let roots: Vec<String> = roots.iter().map(|root| format!("(literal {root})")).collect();
    rules.deny(
        "What was granted stays where it is, or something else could be put in its place.",
        "file-write-unlink",
        &roots,
    );
}

/// Every directory above something readable, and every symlink on the way to it.
fn ways(rules: &mut Rules, request: &Request, facts: &MacFacts, home: &Path) {
    let temporary = facts.temporary();
    let places = request.shown.iter().chain(&request.read).chain(&request.write);
    let mut ends: Vec<&Path> = places.map(|place| place.path.as_path()).collect();
    ends.extend([home, &temporary, &facts.helper, &request.program]);
    ends.extend(facts.developer.as_deref());
    let rustup =
        facts.rustup.as_ref().map(|(home, bin)| (home.join("toolchains"), bin.join("rustup")));
    ends.extend(rustup.iter().flat_map(|(home, bin)| [home.as_path(), bin]));
    ends.extend(request.links.iter().map(|link| link.at.as_path()));
    let mut above: Vec<PathBuf> = Vec::new();
    for end in ends {
        for directory in end.ancestors().skip(1).filter(|a| a.file_name().is_some()) {
            let directory = directory.to_owned();
            if !above.contains(&directory) {
                above.push(directory);
            }
        }
    }
    above.extend(request.links.iter().map(|link| link.at.clone()));
    above.sort();
    above.dedup();
    let filters: Vec<String> =
        above.iter().map(|path| format!("(literal {})", rules.path("WAY", path))).collect();
    rules.allow(
        "Names on the way to the above: without them realpath and getcwd fail.",
        "file-read-metadata",
        &filters,
    );
}

fn terminal(rules: &mut Rules) {
    let name = format!("(param \"{TERMINAL}\")");
    let value = "/dev/ttys (made at the start)".to_owned();
    rules.parameters.push(Parameter { name: TERMINAL.to_owned(), value });
    rules.allow(
        "The terminal that was made for this run.",
        "file-read* file-write-data file-ioctl",
        &[format!("(literal {name})"), "(literal \"/dev/tty\")".to_owned()],
    );
}

fn processes(rules: &mut Rules, request: &Request, facts: &MacFacts) {
    match request.policy.process.subprocess.value {
        Subprocess::Allowed => {
            rules.without_filter(
                "allow",
                "Children, which are in this sandbox too.",
                "process-fork",
            );
        }
        Subprocess::Refused => {
            rules.without_filter("deny", "No new processes; threads are none.", "process-fork");
            // With a filter: one without would not override the filtered allows above.
            let every = ["(subpath \"/\")".to_owned()];
            rules.deny("No other program ...", "process-exec*", &every);
            let program = resolved(&request.program, &request.links);
            let mut own =
                vec![rules.path("HELPER", &facts.helper), rules.path("PROGRAM", &program)];
            own.extend(framework_python(&program).map(|path| rules.path("PROGRAM", &path)));
            let own: Vec<String> = own.iter().map(|own| format!("(literal {own})")).collect();
            rules.allow("... but the launching one, which stays possible.", "process-exec*", &own);
        }
    }
}

/// The program that a Python of python.org's or Homebrew's framework executes in its own place, at once and always.
fn framework_python(program: &Path) -> Option<PathBuf> {
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let version = bin.parent()?;
    let is_framework =
        version.parent().is_some_and(|dir| dir.ends_with("Python.framework/Versions"));
    is_framework.then(|| version.join("Resources/Python.app/Contents/MacOS/Python"))
}

fn protected(rules: &mut Rules, request: &Request) {
    let protected = protect::closed(request);
    let mut filters: Vec<String> = protected
        .places
        .iter()
        .map(|path| format!("(subpath {})", rules.path("PROTECT", path)))
        .collect();
    for (root, shape) in &protected.shapes {
        filters.push(rules.regex(root, &format!("{shape}(/|$)")));
    }
    rules.deny(
        "What other programs act on stays as it is.",
        "file-write* file-write-data file-link file-clone",
        &filters,
    );
    let held: Vec<String> = protected
        .held
        .iter()
        .map(|path| format!("(literal {})", rules.path("HOLD", path)))
        .collect();
    rules.deny("So do the directories that hold it.", "file-write-unlink", &held);
}

fn denied(rules: &mut Rules, request: &Request, home: Option<&Path>) {
    let closed = deny::closed(request, home);
    let mut filters: Vec<String> = closed
        .places
        .iter()
        .map(|path| format!("(subpath {})", rules.path("DENY", path)))
        .collect();
    for (root, shape) in &closed.shapes {
        filters.push(rules.regex(root, &format!("{shape}(/|$)")));
    }
    rules.deny("Denied, behind everything that is allowed.", EVERYTHING, &filters);
    let mut held: Vec<String> =
        closed.held.iter().map(|path| format!("(literal {})", rules.path("HOLD", path))).collect();
    for (root, shape) in &closed.held_shapes {
        held.push(rules.regex(root, &format!("{shape}$")));
    }
    rules.deny(
        "What the above is found in stays where it is, or it could be moved out of the rule.",
        "file-write-unlink",
        &held,
    );
}

impl Rules {
    /// A directory as it stands, and an expression for what is below it.
    fn regex(&mut self, root: &Path, shape: &str) -> String {
        let root = self.path("ROOT", root);
        let shape = self.parameter("SHAPE", shape);
        format!("(regex (string-append \"^\" (regex-quote {root}) {shape}))")
    }
}
