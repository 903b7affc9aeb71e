//! Tables of well-known programs and of the arguments that they read or write, so that no hint is a guess.

/// Exit code 1 is their answer, and no failure.
pub const ANSWERS: &[&str] = &[
    "[",
    "cmp",
    "diff",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "grep",
    "pgrep",
    "pidof",
    "rg",
    "systemctl",
    "test",
    "which",
    "zgrep",
];

/// Their first argument that is no option is a script, which they read together with what lies beside it.
pub const INTERPRETERS: &[&str] = &[
    "bash", "bun", "dash", "deno", "lua", "node", "nodejs", "perl", "php", "pwsh", "python",
    "python2", "python3", "ruby", "sh", "tsx", "zsh",
];

/// Options of theirs after which no script comes: a text or a module.
pub const WITHOUT_SCRIPT: &[&str] =
    &["-", "-c", "-e", "-E", "-p", "-m", "-r", "--eval", "--print", "run"];

/// They follow other processes by a system call that every sandbox refuses.
pub const TRACERS: &[&str] = &["ltrace", "rr", "strace"];

/// They look at the directory that they start in.
pub const LOOKERS: &[&str] = &[
    "ag",
    "cargo",
    "cmake",
    "ctest",
    "du",
    "eslint",
    "fd",
    "find",
    "git",
    "go",
    "gradle",
    "just",
    "ls",
    "make",
    "meson",
    "mvn",
    "mypy",
    "ninja",
    "npm",
    "pnpm",
    "prettier",
    "pytest",
    "rg",
    "ruff",
    "terraform",
    "tox",
    "tree",
    "tsc",
    "yarn",
];

/// Which arguments of a program are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    All,
    Last,
    First,
    /// Words that begin with this.
    After(&'static str),
}

const WRITERS: &[(&str, Writes)] = &[
    ("chmod", Writes::Last),
    ("cp", Writes::Last),
    ("dd", Writes::After("of=")),
    ("install", Writes::Last),
    ("ln", Writes::Last),
    ("mkdir", Writes::All),
    ("mkfifo", Writes::All),
    ("mv", Writes::All),
    ("patch", Writes::First),
    ("rm", Writes::All),
    ("rmdir", Writes::All),
    ("rsync", Writes::Last),
    ("sqlite3", Writes::First),
    ("tee", Writes::All),
    ("touch", Writes::All),
    ("truncate", Writes::All),
    ("unlink", Writes::All),
];

/// What a program writes, by its name and its words.
pub fn writes(program: &str, words: &[String]) -> Option<Writes> {
    let in_place = |word: &String| word == "-i" || word.starts_with("-i.") || word == "--in-place";
    if matches!(program, "sed" | "perl") && words.iter().any(in_place) {
        return Some(Writes::All);
    }
    WRITERS.iter().find(|(name, _)| *name == program).map(|(_, writes)| *writes)
}

/// The same in a shell's text, where only words that are spelled as paths are looked at.
pub fn writes_in_text(program: &str, words: &[String]) -> Option<Writes> {
    let makes = |word: &String| matches!(word.as_str(), "clone" | "init" | "worktree");
    match program {
        "git" => words.first().is_some_and(makes).then_some(Writes::All),
        _ => writes(program, words),
    }
}

/// Options whose value is a file that is written, whatever the program.
pub const WRITTEN_OPTIONS: &[&str] =
    &["-o", "--out", "--output", "--db", "--db-path", "--database"];
