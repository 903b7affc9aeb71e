//! The questions at a terminal, and what each answer comes to.

use std::fs;

use crate::require;
use crate::support::{Live, Pty, Run, eventually, mcp_path, patience};
use crate::user::User;

const NAMES: [&str; 6] = ["notes/a", "notes/b", "notes/c", "etc/one", "data/two", "private/three"];

/// `mcp learn` on a terminal, about a command that looks for six files and does without them.
struct Asked {
    user: User,
    pty: Pty,
    live: Live,
    answered: usize,
}

impl Asked {
    fn new() -> Asked {
        let user = User::new();
        for name in NAMES {
            user.scratch.file(name, name);
        }
        let base = user.scratch.path().display();
        let script = NAMES.map(|name| format!("cat {base}/{name}; ")).concat() + "true";
        let pty = Pty::new();
        pty.resize(24, 300);
        let mcp = mcp_path().display().to_string();
        let words = [&mcp, "learn", "--plain", "-o", "learned.toml", "--", "sh", "-c", &script];
        let mut run = Run::bare().command(&words).cwd(user.scratch.path());
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
            run = run.without_env(name);
        }
        let run = run.env("HOME", user.path("home")).env("NO_COLOR", "1").env("TERM", "dumb");
        let live = pty.on(run).spawn();
        Asked { user, pty, live, answered: 0 }
    }

    /// The next question, once it stands at the end of the screen.
    #[track_caller]
    fn question(&mut self) -> String {
        let questions = || -> Vec<String> {
            let screen = self.pty.screen();
            let lines = screen.lines().filter(|line| line.contains("? (") && line.contains(" ["));
            lines.map(str::to_owned).collect()
        };
        let is_next = || questions().len() > self.answered && self.pty.screen().ends_with("] ");
        assert!(eventually(patience(), is_next), "no question\n{}", self.pty.screen());
        self.answered += 1;
        questions().pop().unwrap()
    }
}

#[test]
fn each_answer_is_what_it_says() {
    require!("userns");
    let mut asked = Asked::new();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let question = asked.question();
        let (about, choices, answer) = match &question {
            it if it.contains("/notes?") => ("notes", "[yes/files/write/never]", "files"),
            it if it.contains("/etc/one?") => ("etc", "[yes/directory/write/never]", "d"),
            it if it.contains("/data/two?") => ("data", "[yes/directory/write/never]", "w"),
            it if it.contains("/private/three?") => ("private", "never]", "never"),
            other => panic!("{other}"),
        };
        assert!(question.contains(choices), "{question}");
        // What is no answer is asked again.
        asked.pty.type_in("perhaps\n");
        assert!(asked.question().contains(&format!("/{about}")), "{about}");
        asked.pty.type_in(&format!("{answer}\n"));
        seen.push(about);
    }
    seen.sort_unstable();
    assert_eq!(seen, ["data", "etc", "notes", "private"]);
    asked.pty.expect("written: learned.toml");
    let screen = asked.pty.screen();
    asked.live.wait();
    let policy = fs::read_to_string(asked.user.path("learned.toml")).unwrap();
    let (read, write) = policy.split_once("write = [").unwrap_or_else(|| panic!("{policy}"));
    let has = |part: &str, name: &str| {
        part.contains(&format!("    \"{}\", # ", asked.user.path(name).display()))
    };
    for name in ["notes/a", "notes/b", "notes/c", "etc"] {
        assert!(has(read, name), "{name}\n{policy}");
    }
    assert_eq!(read.matches("\", # once").count(), 4, "{policy}");
    assert!(has(write, "data/two"), "{policy}");
    assert!(!policy.contains("private") && !has(read, "notes"), "{policy}");
    // Never is remembered for the later rounds.
    assert_eq!(screen.matches("/private/three? (").count(), 2, "{screen}");
}

/// ^C ends it at a question, with nothing written; a later call removes what that one kept for its rounds.
#[test]
fn nothing_is_written_after_an_interrupt() {
    require!("userns");
    let mut asked = Asked::new();
    asked.question();
    asked.pty.type_in("\u{3}");
    let Asked { user, live, .. } = asked;
    live.wait();
    assert!(!user.path("learned.toml").exists());
    let rounds = || -> Vec<String> {
        let state =
            fs::read_dir(user.path("home/.local/state/mcp")).into_iter().flatten().flatten();
        let names = state.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("learn-")).collect()
    };
    user.mcp(&["learn", "--plain", "--yes", "--", "true"]).ok();
    assert_eq!(rounds(), [""; 0]);
}
