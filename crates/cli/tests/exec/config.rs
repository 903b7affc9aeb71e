//! `[tools.sandbox]` of the user's config: for commands of agents, and for nothing else.

use crate::require;
use crate::support::{PLAIN, Run, Scratch};

fn config(text: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.file("config/mcp/config.toml", text);
    scratch.dir("project");
    scratch.file("root/file", "content");
    scratch
}

fn with(scratch: &Scratch, run: Run) -> Run {
    run.env("XDG_CONFIG_HOME", scratch.join("config"))
}

#[test]
fn roots_and_patterns_count_for_commands_alone() {
    require!("userns");
    let root = Scratch::new();
    root.file("file", "content");
    root.file("secret.pem", "canary");
    let text = format!(
        "[tools.sandbox]\nallowed_roots = ['{}']\ndenied_patterns = ['**/*.pem']\nallow_absolute = true\n",
        root.path().display()
    );
    let scratch = config(&text);
    let command =
        format!("cat {0}/file; echo x > {0}/made; cat {0}/secret.pem", root.path().display());
    let finished = with(&scratch, Run::exec(scratch.join("project"))).command(&[&command]).run();
    assert!(finished.text().starts_with("content"), "{finished}");
    assert!(root.join("made").exists() && !finished.text().contains("canary"), "{finished}");
    let finished = with(&scratch, Run::new()).command(&["sh", "-c", &command]).run();
    assert!(!finished.text().contains("content"), "a server must not get it\n{finished}");
}

#[test]
fn fallback_is_the_configs_unless_a_flag_says_otherwise() {
    require!("userns", "plain");
    let scratch = config("[tools.sandbox]\nfallback = 'warn'\n");
    let run = || with(&scratch, Run::exec(scratch.join("project")).on(PLAIN)).command(&["ls"]);
    run().run().code_is(0);
    run().flag("--fallback=deny").run().code_is(125);
}

#[test]
fn nonsense_has_a_line() {
    for text in [
        "[tools.sandbox]\nallowed_root = []\n",
        "[tools.sandbox]\nfallback = 'maybe'\n",
        "[tools.sandbox]\nallow_absolute = 'yes'\n",
        "[tools.sandboxes]\n",
    ] {
        let scratch = config(text);
        let finished = with(&scratch, Run::exec(scratch.join("project"))).command(&["ls"]).run();
        finished.code_is(2);
        assert!(finished.stderr.contains("config.toml:"), "{text}\n{finished}");
    }
}
