//! The facts that hints use, looked up once before the start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_policy::{Limits, NetworkMode};
use mcp_sandbox::HOME;
use mcp_sandbox::session::CommandView;

use super::loopback::Service;
use super::verbs::{self, Writes};
use super::{Runs, loopback, variables};
use crate::paths;

pub struct Facts {
    pub runs: Runs,
    /// The name of the program, without its directory.
    pub program: String,
    pub is_of_system: bool,
    /// A program that follows others, where the command starts one.
    pub tracer: Option<String>,
    pub arguments: Vec<Argument>,
    /// The user's directory, and whether the command starts there or in an empty HOME.
    pub here: PathBuf,
    pub starts: Starts,
    pub here_seen: PathState,
    /// The user's home, where there is one.
    pub home: Option<PathBuf>,
    pub limits: Limits,
    /// Services of the host's loopback that words or variables of the command name.
    pub services: Vec<Service>,
    /// Where the server's own files are, and the names of variables that it does not get.
    pub server: variables::ServerInputs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    Here,
    InEmptyHome,
    Elsewhere,
}

/// A word of the command that may be a path of the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// As it was written.
    pub word: String,
    pub path: PathBuf,
    pub kind: Kind,
    pub seen: PathState,
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    #[cfg_attr(not(unix), allow(dead_code))]
    Socket,
    #[cfg_attr(not(unix), allow(dead_code))]
    Device,
    /// It is not there, and the directory above it is.
    New,
}

/// Of the path, or of the directory above one that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathState {
    Writable,
    ReadOnly,
    Hidden,
    /// By this rule.
    Denied(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An interpreter reads it, and what lies beside it.
    Script,
    /// The program writes it.
    Written,
    /// Spelled as nothing but a path is.
    Path,
    /// A word that a file here happens to be named.
    Word,
}

impl Facts {
    pub fn look(runs: Runs, view: CommandView<'_>) -> Facts {
        let request = view.request;
        let here = std::env::current_dir().unwrap_or_default();
        let program = request.argv.first().map(OsString::from).unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default();
        let program = program.to_string_lossy().into_owned();
        let words: Vec<String> =
            request.argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let roles = match runs {
            Runs::Agent => words.last().map(|text| paths_in(text)).unwrap_or_default(),
            Runs::Command | Runs::Package => roles(&program, &words),
        };
        let look = |path: &Path| seen(path, view);
        let home = paths::home().and_then(|home| paths::real(&home).ok());
        let arguments: Vec<Argument> = roles
            .into_iter()
            .filter_map(|(word, role)| argument(&word, role, (&here, home.as_deref()), look))
            .collect();
        let here_seen = paths::real(&here).map_or(PathState::Hidden, |real| look(&real));
        let starts = match &request.cwd {
            cwd if paths::real(&here).is_ok_and(|real| real == *cwd) || *cwd == here => {
                Starts::Here
            }
            cwd if cwd.as_os_str() == HOME => Starts::InEmptyHome,
            _ => Starts::Elsewhere,
        };
        let is_closed = request.policy.network.mode.value == NetworkMode::Isolated;
        let services = if is_closed { loopback::services(&words, request) } else { Vec::new() };
        let server = variables::ServerInputs::of(runs, request, &arguments);
        let limits = request.policy.limits.clone();
        let is_of_system = variables::is_of_system(&request.program);
        let started = match runs {
            Runs::Agent => words.last().map(|text| programs_in(text)).unwrap_or_default(),
            Runs::Command | Runs::Package => vec![program.clone()],
        };
        let tracer = started.into_iter().find(|name| verbs::TRACERS.contains(&name.as_str()));
        Facts {
            runs,
            program,
            tracer,
            is_of_system,
            arguments,
            here,
            starts,
            here_seen,
            home,
            limits,
            services,
            server,
        }
    }
}

/// The words that may be paths, and what the program does with each.
pub fn roles(program: &str, words: &[String]) -> Vec<(String, Role)> {
    let mut roles = Vec::new();
    let writes = verbs::writes(program, words);
    let plain: Vec<usize> = (0..words.len()).filter(|at| !words[*at].starts_with('-')).collect();
    let mut script = verbs::INTERPRETERS.contains(&program);
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).map_or("", String::as_str);
        if script && verbs::WITHOUT_SCRIPT.contains(&word.as_str()) {
            script = false;
            continue;
        }
        // The text that follows is no path, whatever file is named so.
        if verbs::INTERPRETERS.contains(&program) && matches!(before, "-c" | "-e" | "--eval") {
            continue;
        }
        if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with('-')) {
            let written = verbs::WRITTEN_OPTIONS.contains(&name);
            roles.push((value.to_owned(), if written { Role::Written } else { spelled(value) }));
            continue;
        }
        if word.starts_with('-') || word.is_empty() {
            continue;
        }
        if let Some(Writes::After(start)) = writes {
            if let Some(path) = word.strip_prefix(start) {
                roles.push((path.to_owned(), Role::Written));
            }
            continue;
        }
        let is_written = match writes {
            Some(Writes::All) => true,
            Some(Writes::Last) => plain.last() == Some(&at),
            Some(Writes::First) => plain.first() == Some(&at),
            _ => verbs::WRITTEN_OPTIONS.contains(&before),
        };
        let role = match (is_written, script) {
            (true, _) => Role::Written,
            (false, true) => Role::Script,
            (false, false) => spelled(word),
        };
        script = false;
        let path = word.strip_prefix("file://").filter(|path| path.starts_with('/'));
        roles.push((path.unwrap_or(word).to_owned(), role));
    }
    roles
}

/// The first words of the commands in a shell's text.
fn programs_in(text: &str) -> Vec<String> {
    let commands = text.split([';', '&', '|', '\n', '(', ')', '`']);
    commands.filter_map(|command| words_of(command).into_iter().next()).collect()
}

/// Words of a shell's text that are spelled as paths are, and whether it writes them. It need not be read as a shell
/// does: what is taken for a path and is none does not exist.
fn paths_in(text: &str) -> Vec<(String, Role)> {
    const MOST_WORDS: usize = 200;
    let mut paths = Vec::new();
    for command in text.split([';', '&', '|', '\n', '(', ')', '`']) {
        let mut parts = command.split('>');
        let words = words_of(parts.next().unwrap_or_default());
        let (program, arguments) = words.split_first().map_or(("", &[][..]), |(p, a)| (p, a));
        let writes = verbs::writes_in_text(program, arguments);
        let plain: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
        paths.extend(plain.iter().enumerate().map(|(at, word)| {
            let is_written = match writes {
                Some(Writes::All) => at > 0,
                Some(Writes::First) => at == 1,
                Some(Writes::Last) => at > 0 && at + 1 == plain.len(),
                Some(Writes::After(_)) | None => false,
            };
            ((*word).clone(), if is_written { Role::Written } else { Role::Path })
        }));
        for part in parts {
            let role = |at| if at == 0 { Role::Written } else { Role::Path };
            let words = words_of(part).into_iter().enumerate();
            paths.extend(words.map(|(at, word)| (word, role(at))));
        }
    }
    let is_path = |word: &str| spelled(word) == Role::Path || below_home(word).is_some();
    paths.retain(|(word, _)| !word.starts_with('-') && is_path(word));
    paths.truncate(MOST_WORDS);
    paths
}

fn words_of(command: &str) -> Vec<String> {
    let words = command.split(|c: char| c.is_whitespace() || "'\"<=,".contains(c));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// What follows the home in a word that a shell would expand.
pub fn below_home(word: &str) -> Option<&str> {
    ["~/", "$HOME/", "${HOME}/"].iter().find_map(|start| word.strip_prefix(start))
}

fn spelled(word: &str) -> Role {
    let is_path = word.starts_with(['/', '.', '~']) || word.contains('/') && !word.contains("://");
    if is_path { Role::Path } else { Role::Word }
}

fn argument(
    word: &str,
    role: Role,
    (here, home): (&Path, Option<&Path>),
    seen: impl Fn(&Path) -> PathState,
) -> Option<Argument> {
    let path = match (below_home(word), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => here.join(word),
    };
    // The sandbox has its own of these, whatever the host's lead to (/dev/stderr is a file of the caller).
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return None;
    }
    let (kind, real) = match paths::real(&path) {
        Ok(real) => (kind_of(&real)?, real),
        Err(_) if role == Role::Script && !path.parent().is_some_and(Path::is_dir) => {
            let (word, seen) = (word.to_owned(), PathState::Hidden);
            return Some(Argument { word, path, kind: Kind::New, seen, role });
        }
        Err(_) => {
            let above = path.parent().filter(|above| above.is_dir())?;
            (Kind::New, paths::real(above).ok()?)
        }
    };
    if kind == Kind::New && role == Role::Word {
        return None;
    }
    let seen = seen(&real);
    Some(Argument { word: word.to_owned(), path, kind, seen, role })
}

fn kind_of(path: &Path) -> Option<Kind> {
    let found = path.metadata().ok()?.file_type();
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.is_socket() {
            return Some(Kind::Socket);
        }
        if found.is_char_device() || found.is_block_device() || found.is_fifo() {
            return Some(Kind::Device);
        }
    }
    Some(if found.is_dir() { Kind::Directory } else { Kind::File })
}

fn seen(real: &Path, view: CommandView<'_>) -> PathState {
    let request = view.request;
    if let Some(rule) = request.denying(real) {
        return PathState::Denied(rule.value.to_string_lossy().into_owned());
    }
    let is_in =
        |places: &[mcp_sandbox::Place]| places.iter().any(|place| real.starts_with(&place.path));
    let own = ["/tmp", "/dev", "/proc", HOME].iter().any(|own| real.starts_with(own));
    match view.shows(real) {
        _ if is_in(&request.write) || is_in(&request.unix) => PathState::Writable,
        true if is_in(&request.read) || is_in(&request.shown) || !own => PathState::ReadOnly,
        true => PathState::Writable,
        false => PathState::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_writes() {
        let paths = |text| -> Vec<(String, Role)> { paths_in(text) };
        let written = |word: &str| (word.to_owned(), Role::Written);
        let read = |word: &str| (word.to_owned(), Role::Path);
        for (text, expected) in [
            ("echo x > ../new.txt", vec![written("../new.txt")]),
            (
                "cat ../a >>'../b' 2>/dev/null",
                vec![read("../a"), written("../b"), written("/dev/null")],
            ),
            ("cd /a && mkdir -p ../new", vec![read("/a"), written("../new")]),
            ("cp ../a ../b; cat ../b", vec![read("../a"), written("../b"), read("../b")]),
            ("git worktree add ../tree main", vec![written("../tree")]),
            ("git -C ../tree log", vec![read("../tree")]),
            ("sed -i s/a/b/ ../a", vec![written("s/a/b/"), written("../a")]),
            ("make --out=../a 2>&1 | tee $HOME/log", vec![read("../a"), written("$HOME/log")]),
            ("echo hi", vec![]),
        ] {
            assert_eq!(paths(text), expected, "{text}");
        }
    }
}
