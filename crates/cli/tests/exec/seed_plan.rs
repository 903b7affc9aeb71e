//! The seed's test plan, row by row.

use std::fs;

use crate::require;
use crate::support::{PLAIN, Run, Scratch};

/// A home with a key in it, a project below it, and another project.
fn home() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("home/.ssh/id_rsa", "canary");
    scratch.file("home/project/inside", "content");
    scratch.file("home/other/outside", "canary");
    scratch
}

fn exec(home: &Scratch, command: &str) -> Run {
    Run::exec(home.join("home/project")).env("HOME", home.join("home")).command(&[command])
}

#[test]
fn read_and_write_inside_and_outside() {
    require!("userns");
    let home = home();
    let finished = exec(&home, "cat inside && echo new > made").run();
    finished.code_is(0);
    assert_eq!(finished.text(), "content", "{finished}");
    assert_eq!(fs::read_to_string(home.join("home/project/made")).unwrap(), "new\n");
    let outside = home.join("home/other/outside").display().to_string();
    for command in [
        "cat ../other/outside".to_owned(),
        format!("cat {outside}"),
        "cat ../.ssh/id_rsa".to_owned(),
        "echo x > ../other/outside".to_owned(),
        format!("echo x > {outside}"),
        "touch ../made".to_owned(),
    ] {
        let finished = Run::exec(home.join("home/project"))
            .flag("--no-guard")
            .env("HOME", home.join("home"))
            .command(&[&command])
            .run();
        assert!(!finished.text().contains("canary"), "{command}\n{finished}");
        assert_eq!(fs::read_to_string(home.join("home/other/outside")).unwrap(), "canary");
        assert!(!home.join("home/made").exists(), "{command}");
    }
    // The same, granted.
    let finished = exec(&home, "cat ../other/outside").read(home.join("home/other")).run();
    assert_eq!(finished.text(), "canary", "{finished}");
}

#[test]
fn home_is_not_the_users() {
    require!("userns");
    let home = home();
    let finished = exec(&home, "cd ~ && ls -A").run();
    finished.code_is(0);
    assert_eq!(finished.text(), "project\n", "{finished}");
    let real = home.join("home").display().to_string();
    let listed = exec(&home, &format!("ls -A {real}")).run();
    assert!(!listed.text().contains(".ssh") && !listed.text().contains("other"), "{listed}");
    let ssh = exec(&home, &format!("ls {real}/other")).run();
    assert_ne!(ssh.code, 0, "{ssh}");
}

/// What is granted below the user's home is there by `~`, and nothing else is.
#[test]
fn a_tilde_means_what_was_granted() {
    require!("userns");
    let home = home();
    let other = home.join("home/other");
    for command in ["cat ~/other/outside", "cat $HOME/other/outside", "cd ~/other && cat outside"] {
        let finished = exec(&home, command).read(&other).run();
        assert_eq!(finished.text(), "canary", "{command}\n{finished}");
    }
    let finished = exec(&home, "echo new > ~/project/made; ls ~/other").run();
    assert_ne!(finished.code, 0, "{finished}");
    assert_eq!(fs::read_to_string(home.join("home/project/made")).unwrap(), "new\n");
    // By way of the link nothing can be done that the grant does not allow.
    let finished = exec(&home, "echo x > ~/other/outside; rm -rf ~/other; ls ~").read(&other).run();
    assert_eq!(finished.text(), "project\n", "{finished}");
    assert_eq!(fs::read_to_string(home.join("home/other/outside")).unwrap(), "canary");
}

/// A file that is there and not visible: an agent would conclude that it does not exist.
#[test]
fn what_is_not_visible_is_told() {
    require!("userns");
    let home = home();
    let outside = home.join("home/other/outside").display().to_string();
    for command in [
        "cat ../other/outside".to_owned(),
        format!("cat {outside}"),
        "cat ~/other/outside".to_owned(),
        "grep x \"$HOME/other/outside\"".to_owned(),
    ] {
        let finished = exec(&home, &command).run();
        let line = "other/outside is here, but not visible to the command (add -r ";
        assert!(finished.stderr.contains(line), "{command}\n{finished}");
        let finished = exec(&home, &command).read(home.join("home/other")).run();
        assert!(!finished.stderr.contains("not visible"), "{command}\n{finished}");
    }
    for command in ["echo ../other/outside", "cat ../nothing", "false /usr/bin"] {
        let finished = exec(&home, command).run();
        assert!(!finished.stderr.contains("not visible"), "{command}\n{finished}");
    }
}

#[test]
fn a_whole_home_is_no_project() {
    let home = home();
    for directory in ["home", ""] {
        let finished =
            Run::exec(home.join(directory)).env("HOME", home.join("home")).command(&["ls"]).run();
        finished.code_is(125);
        assert!(finished.stderr.contains("-C DIR"), "{finished}");
    }
    require!("userns");
    let finished = Run::exec(home.join("home"))
        .env("HOME", home.join("home"))
        .flag("-C")
        .arg("project")
        .command(&["ls"])
        .run();
    assert_eq!(finished.text(), "inside\n", "{finished}");
}

#[test]
fn network_is_closed() {
    require!("userns");
    let home = home();
    let finished = Run::exec(home.join("home/project"))
        .flag("--no-guard")
        .command(&["exec 3<>/dev/tcp/127.0.0.1/9 && echo open || echo closed"])
        .run();
    assert!(finished.text().contains("closed"), "{finished}");
}

#[test]
fn fallbacks_where_the_sandbox_cannot_be_whole() {
    require!("userns", "plain");
    let home = home();
    let run = |flags: &[&str]| {
        let run = exec(&home, "ls").on(PLAIN);
        flags.iter().fold(run, |run, flag| run.arg(flag)).run()
    };
    let denied = run(&[]);
    denied.code_is(125);
    assert!(denied.stderr.contains("--fallback warn"), "{denied}");
    // Nobody to be asked: an error with what to give.
    let prompt = run(&["--fallback", "prompt"]);
    prompt.code_is(125);
    assert!(prompt.stderr.contains("--fallback warn"), "{prompt}");
    let warned = run(&["--fallback", "warn"]);
    warned.code_is(0);
    assert!(warned.stderr.contains("warning"), "{warned}");
}

#[test]
fn several_roots_and_odd_names() {
    require!("userns");
    let scratch = Scratch::new();
    let names = ["with space", "quo'te\"s", "ünïcode", "semi;colon $HOME"];
    for name in names {
        scratch.dir(name);
    }
    for name in names {
        let run = Run::exec(scratch.join(name));
        let run = names.iter().fold(run, |run, other| run.write(scratch.join(other)));
        let finished = run.command(&["for d in ../*/; do touch \"$d/made\"; done; pwd"]).run();
        finished.code_is(0);
        for name in names {
            assert!(scratch.join(name).join("made").exists(), "{name}\n{finished}");
            fs::remove_file(scratch.join(name).join("made")).unwrap();
        }
        assert_eq!(finished.text().trim_end(), scratch.join(name).display().to_string());
    }
}

#[test]
fn time_is_bounded() {
    require!("userns");
    let home = home();
    let finished = exec(&home, "sleep 60").flag("--timeout=300ms").flag("--grace=1s").run();
    finished.code_is(124);
}
