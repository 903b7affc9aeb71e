//! The questions of `mcp wire` at a terminal: every answer, and the file after each.

use std::fs;

use crate::person::Person;
use crate::session::Typing;

const BEFORE: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "DIRECTORY"] },
    "memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] }
  }
}
"#;

#[test]
fn the_questions_of_wire() {
    let person = Person::new();
    // A link on PATH, as package managers make it: wire writes its path into the client's file.
    fs::create_dir(person.project.join("bin")).unwrap();
    std::os::unix::fs::symlink(crate::support::mcp_path(), person.project.join("bin/mcp")).unwrap();
    let before = BEFORE.replace("DIRECTORY", &person.shown("sub"));
    person.file("../.cursor/mcp.json", &before);
    let now = || fs::read_to_string(person.project.join("../.cursor/mcp.json")).unwrap();

    let typing = Typing::begin(&person, 200);
    typing.types("export PATH=$PWD/bin:$PATH; echo set-$((1+1)).", "set-2.");
    // An answer that is none is asked again; q leaves everything as it is.
    typing.types_and_is_asked("mcp wire; echo a-$?.", "[R/w/n/q]");
    typing.answers("x", "answer with the letters in brackets");
    typing.answers("q", "nothing is written");
    typing.pty.expect("a-0.");
    // Nothing is shown after that: what was not asked is not on the screen.
    assert!(!typing.pty.screen().contains("server-memory"), "{}", typing.pty.screen());
    assert_eq!(now(), before);
    // So does ^C in the middle of the questions.
    typing.types_and_is_asked("mcp wire; echo b-$?.", "[R/w/n/q]");
    typing.answers_and_is_asked("w", "[Y/n/q]");
    typing.pty.type_in("\u{3}");
    typing.types("echo c-$((1+1)).", "c-2.");
    assert_eq!(now(), before);
    // w for the first, n for the second.
    typing.types_and_is_asked("mcp wire; echo d-$?.", "[R/w/n/q]");
    typing.answers_and_is_asked("w", "[Y/n/q]");
    typing.answers("n", "d-0.");
    let wired = now();
    let sub = person.shown("sub");
    assert!(wired.contains(&format!(r#""--write", "{sub}""#)), "{wired}");
    assert!(
        wired
            .contains(r#""command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]"#),
        "{wired}"
    );
    // Only what is left is asked; Enter takes the large letter.
    typing.types_and_is_asked("mcp wire; echo e-$?.", "[Y/n/q]");
    typing.answers("", "e-0.");
    typing.types("mcp wire --check; echo f-$?.", "f-0.");
    typing.types("mcp unwire; echo g-$?.", "g-0.");
    assert_eq!(now(), before);
}
