//! A session at a terminal: prompts, progress, width, ^C, ^Z.

use crate::person::Person;
use crate::require;
use crate::support::{Pty, Run, eventually, patience};

/// A shell on a terminal, with what is typed into it.
pub struct Typing {
    pub pty: Pty,
    _shell: crate::support::Live,
}

impl Typing {
    pub fn begin(person: &Person, columns: u16) -> Typing {
        let pty = Pty::new();
        pty.resize(24, columns);
        let shell: Run = person.run("PS1='ready> ' exec bash --norc --noprofile -i");
        let _shell = pty.on(shell.env("TERM", "dumb").env("NO_COLOR", "1")).spawn();
        let typing = Typing { pty, _shell };
        typing.pty.expect("ready> ");
        typing
    }

    /// Types a line at the prompt, and waits for what it brings. What is typed earlier is for the command that still runs.
    #[track_caller]
    pub fn types(&self, line: &str, expected: &str) {
        self.ends_with("ready>");
        self.answers(line, expected);
    }

    /// Types a line for the command that runs.
    #[track_caller]
    pub fn answers(&self, line: &str, expected: &str) {
        self.pty.type_in(&format!("{line}\n"));
        self.pty.expect(expected);
    }

    /// Types a line at the prompt, and waits until a question stands at the end of the screen: an older one may be on it.
    #[track_caller]
    pub fn types_and_is_asked(&self, line: &str, question: &str) {
        self.ends_with("ready>");
        self.answers_and_is_asked(line, question);
    }

    #[track_caller]
    pub fn answers_and_is_asked(&self, line: &str, question: &str) {
        self.pty.type_in(&format!("{line}\n"));
        self.ends_with(question);
    }

    #[track_caller]
    fn ends_with(&self, text: &str) {
        let is_there = || self.pty.screen().trim_end().ends_with(text);
        assert!(eventually(patience(), is_there), "{text:?}\n{}", self.pty.screen());
    }
}

#[test]
fn a_session_at_a_terminal() {
    require!("userns");
    let person = Person::new();
    let typing = Typing::begin(&person, 80);
    // A hint, and what follows from it.
    typing.types("mcp run cat sub/other.txt; echo one-$?.", "add -r sub/other.txt");
    typing.pty.expect("one-1.");
    typing.types("mcp run -r . cat sub/other.txt; echo two-$?.", "two-0.");
    // ^C ends what runs, and only that.
    typing.types("mcp run sh -c 'echo runs-$((1+1)); sleep 600'; echo three-$?.", "runs-2");
    typing.pty.type_in("\u{3}");
    typing.pty.expect("three-130.");
    // ^Z stops it; fg goes on with it.
    typing.types("mcp run sh -c 'echo waits-$((1+2)); read line; echo got-$line-it'", "waits-3");
    typing.pty.type_in("\u{1a}");
    typing.pty.expect("Stopped");
    typing.types("fg", "mcp run sh -c");
    typing.answers("word", "got-word-it");
    // A new size is the program's, too.
    typing.types(
        "mcp run bash -c 'trap \"stty size\" WINCH; echo sized-$((2+2)); for i in $(seq 600); do sleep 0.1; done'; echo four-$?.",
        "sized-4",
    );
    typing.pty.resize(33, 101);
    typing.pty.expect("33 101");
    // bash goes on where the child it waits for has just ended by itself, so one ^C may not be enough.
    let ends = || {
        typing.pty.type_in("\u{3}");
        typing.pty.screen().contains("four-130.")
    };
    assert!(eventually(patience(), ends), "{}", typing.pty.screen());
}

#[test]
fn a_package_asks_before_it_is_granted_anything() {
    require!("userns");
    let person = Person::new();
    person.file(
        "package/mcp.toml",
        "[package]\nname = 'acme/asks'\nversion = '1.0.0'\n[server]\ncommand = './bin/server'\n[filesystem]\nread = ['~/project']\n",
    );
    person.program("package/bin/server", "#!/bin/sh\necho served-$((3+3))\n");
    let typing = Typing::begin(&person, 80);
    typing
        .types_and_is_asked("mcp run ./package; echo a-$?.", "grant it, and remember that? [y/N]");
    typing.answers("n", "a-125.");
    typing
        .types_and_is_asked("mcp run ./package; echo b-$?.", "grant it, and remember that? [y/N]");
    typing.answers("y", "b-0.");
    typing.pty.expect("served-6");
    typing.types("mcp grants; echo d-$?.", "d-0.");
    typing.pty.expect("read ");
    typing.types("mcp grants revoke --all; echo c-$?.", "c-0.");
    typing.types("mcp grants", "nothing was granted");
}

/// What a line shows on a terminal of this width, alone on it.
fn shown(person: &Person, line: &str, columns: u16, variables: &[(&str, &str)]) -> String {
    let pty = Pty::new();
    pty.resize(24, columns);
    let mut run =
        person.run(line).env("TERM", "xterm").without_env("COLUMNS").without_env("NO_COLOR");
    for (name, value) in variables {
        run = run.env(name, value);
    }
    pty.on(run).run();
    pty.whole_screen()
}

#[test]
fn help_fits_the_terminal() {
    require!("userns");
    let person = Person::new();
    let widest = |columns: u16, line: &str| {
        let screen = shown(&person, line, columns, &[("NO_COLOR", "1")]);
        let about = screen.split("Examples:").next().unwrap_or_default().to_owned();
        about.lines().map(|line| line.trim_end().chars().count()).max().unwrap()
    };
    for line in ["mcp --help", "mcp run --help", "mcp exec -h", "mcp update --help"] {
        let (narrow, wide) = (widest(60, line), widest(100, line));
        assert!(narrow <= 60, "{line}: {narrow}");
        assert!(wide > 60 && wide <= 100, "{line}: {wide}");
    }
}

#[test]
fn colours_are_for_terminals_and_can_be_switched_off() {
    require!("userns");
    let person = Person::new();
    let line = "mcp run --explain true";
    assert!(shown(&person, line, 80, &[]).contains("\u{1b}[1m"));
    assert!(!shown(&person, line, 80, &[("NO_COLOR", "1")]).contains('\u{1b}'));
    assert!(!person.types(line).text().contains('\u{1b}'));
}

#[test]
fn what_runs_fits_the_terminal_and_shows_no_secret() {
    require!("userns");
    let person = Person::new();
    let words = "mcp run sh -c 'echo lives; read line' --api-key hunter2 a-long-argument another-long-argument more-of-them";
    let live = person.run(&format!("XDG_RUNTIME_DIR=$HOME {words}")).open_input().spawn();
    assert!(crate::support::eventually(crate::support::patience(), || {
        person.types("XDG_RUNTIME_DIR=$HOME mcp ps").text().contains("sh -c")
    }));
    let screen = shown(&person, "XDG_RUNTIME_DIR=$HOME mcp ps", 60, &[]);
    assert!(
        screen
            .lines()
            .all(|line| line.trim_end().chars().count() <= 60 + "\u{1b}[1m\u{1b}[0m".len()),
        "{screen}"
    );
    let whole =
        person.types("XDG_RUNTIME_DIR=$HOME mcp ps; XDG_RUNTIME_DIR=$HOME mcp ps --json").text();
    assert!(whole.contains("more-of-them") && whole.contains("--api-key"), "{whole}");
    assert!(!whole.contains("hunter2") && !screen.contains("hunter2"), "{whole}");
    drop(live);
}

/// Progress is for a person at a terminal, on standard error; a pipe gets none.
#[test]
fn progress_is_on_a_terminal_only() {
    require!("userns");
    let person = Person::new();
    std::fs::create_dir_all(person.project.join("package/bin")).unwrap();
    std::fs::write(
        person.project.join("package/mcp.toml"),
        "[package]\nname = 'acme/large'\nversion = '1.0.0'\n[server]\ncommand = './bin/server'\n",
    )
    .unwrap();
    let noise: Vec<u8> =
        (0..24u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(person.project.join("package/bin/server"), noise).unwrap();
    person.types("mcp pack package -o large.mcpb").code_is(0);
    let piped = person.types("mcp pull ./large.mcpb").code_is(0).stderr.clone();
    assert!(!piped.contains("unpacking") && !piped.contains('\r'), "{piped:?}");
    person.types("mcp remove acme/large@1.0.0").code_is(0);
    let screen = shown(&person, "mcp pull ./large.mcpb", 80, &[]);
    assert!(screen.contains("unpacking ["), "{screen:?}");
}
