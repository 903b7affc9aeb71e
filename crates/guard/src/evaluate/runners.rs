//! Programs whose subcommand starts another program: `poetry run`, `docker exec`, `tmux new-session`.
//!
//! What they start is judged as if it stood alone. On another machine or in a container only what would be
//! refused anywhere counts: reading keys or becoming root there is not ours to ask about.

use super::Evaluator;
use super::call::Call;
use super::options::{Assigns, Wrapper, value_of};
use super::state::State;
use crate::value::{Field, Output, Value};

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Here,
    /// A container or another machine: files and directories are its own.
    Far,
}

/// A program, the words of its subcommand, and its options that take a value.
struct Runner {
    program: &'static str,
    verbs: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    /// Words between the subcommand and the command: a container, a host.
    operands: usize,
    side: Side,
}

const fn here(
    program: &'static str,
    verbs: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Runner {
    Runner { program, verbs, short, long, operands, side: Side::Here }
}

const fn far(
    program: &'static str,
    verbs: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Runner {
    Runner { program, verbs, short, long, operands, side: Side::Far }
}

const UV: &[&str] = &[
    "--with",
    "--python",
    "--directory",
    "--project",
    "--from",
    "--extra",
    "--group",
    "--env-file",
    "--index",
    "--index-url",
    "--extra-index-url",
    "--package",
    "--with-requirements",
    "--with-editable",
    "--config-file",
];
const RUN: &[&str] = &[
    "--name",
    "--env",
    "--volume",
    "--workdir",
    "--user",
    "--network",
    "--publish",
    "--entrypoint",
    "--mount",
    "--env-file",
    "--memory",
    "--cpus",
    "--platform",
    "--hostname",
    "--add-host",
    "--label",
    "--gpus",
    "--shm-size",
    "--restart",
    "--cap-add",
    "--cap-drop",
    "--device",
    "--ulimit",
    "--pull",
    "--tmpfs",
    "--dns",
    "--link",
    "--log-driver",
    "--pid",
    "--ipc",
    "--security-opt",
    "--volumes-from",
    "--file",
    "--project-name",
    "--profile",
    "--runtime",
    "--context",
    "--host",
    "--userns",
    "--detach-keys",
    "--index",
];
const KUBECTL: &[&str] = &[
    "--namespace",
    "--container",
    "--context",
    "--kubeconfig",
    "--image",
    "--overrides",
    "--cluster",
    "--user",
];

const RUNNERS: &[Runner] = &[
    here("poetry", &["run"], "CP", &["--directory", "--project"], 0),
    here("pipenv", &["run"], "", &[], 0),
    here("pdm", &["run"], "p", &["--project"], 0),
    here("rye", &["run"], "", &[], 0),
    here("hatch", &["run"], "e", &["--env"], 0),
    here("uv", &["run"], "pw", UV, 0),
    here("uv", &["tool", "run"], "pw", UV, 0),
    here("uvx", &[], "pw", UV, 0),
    here("pipx", &["run"], "", &["--spec", "--python", "--index-url", "--pip-args"], 0),
    here("conda", &["run"], "np", &["--name", "--prefix", "--cwd"], 0),
    here("mamba", &["run"], "np", &["--name", "--prefix", "--cwd"], 0),
    here("micromamba", &["run"], "np", &["--name", "--prefix", "--cwd"], 0),
    here("bundle", &["exec"], "", &["--gemfile"], 0),
    here("rbenv", &["exec"], "", &[], 0),
    here("pyenv", &["exec"], "", &[], 0),
    here("asdf", &["exec"], "", &[], 0),
    here("mise", &["exec"], "Cj", &["--cd", "--jobs"], 0),
    here("mise", &["x"], "Cj", &["--cd", "--jobs"], 0),
    here("direnv", &["exec"], "", &[], 1),
    here("dotenv", &[], "ef", &["--file"], 0),
    here("dotenvx", &["run"], "f", &["--env-file"], 0),
    here("env-cmd", &[], "ef", &["--file", "--environments"], 0),
    here("op", &["run"], "", &["--env-file"], 0),
    here("doppler", &["run"], "pc", &["--project", "--config"], 0),
    here("aws-vault", &["exec"], "", &["--duration", "--region"], 1),
    here("cross-env", &[], "", &[], 0),
    here("npx", &[], "pw", &["--package", "--workspace"], 0),
    here("bunx", &[], "p", &["--package"], 0),
    here("pnpx", &[], "p", &["--package"], 0),
    here("npm", &["exec"], "pw", &["--package", "--workspace"], 0),
    here("npm", &["x"], "pw", &["--package", "--workspace"], 0),
    here("pnpm", &["exec"], "CF", &["--filter", "--dir"], 0),
    here("pnpm", &["dlx"], "", &["--package"], 0),
    here("yarn", &["exec"], "", &["--cwd"], 0),
    here("yarn", &["dlx"], "p", &["--package"], 0),
    here("bun", &["x"], "p", &["--package"], 0),
    here("cargo", &["watch"], "wid", &[], 0),
    here(
        "watchexec",
        &[],
        "wefiErds",
        &["--watch", "--exts", "--filter", "--ignore", "--restart", "--signal"],
        0,
    ),
    here("perf", &["stat"], "erCGpIoDx", &["--event", "--repeat", "--output"], 0),
    here("perf", &["record"], "eFcogGpj", &["--event", "--output", "--freq", "--call-graph"], 0),
    here("rr", &["record"], "", &[], 0),
    here("coverage", &["run"], "", &["--source", "--omit", "--include", "--rcfile"], 0),
    here("reflex", &[], "rRgGd", &["--regex", "--glob"], 0),
    here("just", &["--command"], "fd", &["--shell", "--shell-arg", "--justfile", "--set"], 0),
    here("nix", &["develop"], "", &[], 0),
    here("screen", &[], "cehpsStT", &[], 0),
    here("dtach", &[], "", &[], 1),
    here("git", &["lfs", "exec"], "", &[], 0),
    here("xvfb-run", &[], "efns", &[], 0),
    here("sem", &[], "j", &["--id", "--jobs"], 0),
    here(
        "start-stop-daemon",
        &[],
        "npuxcgd",
        &["--name", "--pidfile", "--user", "--chuid", "--chdir"],
        0,
    ),
    far("docker", &["exec"], "euwd", RUN, 1),
    far("docker", &["run"], "vewupmhlac", RUN, 1),
    far("docker", &["container", "run"], "vewupmhlac", RUN, 1),
    far("docker", &["container", "exec"], "euw", RUN, 1),
    far("docker", &["compose", "exec"], "euwfp", RUN, 1),
    far("docker", &["compose", "run"], "veuwpf", RUN, 1),
    far("docker-compose", &["exec"], "euwfp", RUN, 1),
    far("docker-compose", &["run"], "veuwpf", RUN, 1),
    far("podman", &["exec"], "euw", RUN, 1),
    far("podman", &["run"], "vewupmhlac", RUN, 1),
    far("nerdctl", &["exec"], "euw", RUN, 1),
    far("nerdctl", &["run"], "vewupmhlac", RUN, 1),
    far("kubectl", &["exec"], "ncf", KUBECTL, 1),
    far("kubectl", &["run"], "n", KUBECTL, 1),
    far("oc", &["exec"], "ncf", KUBECTL, 1),
    far("adb", &["shell"], "stnex", &[], 0),
    far("lxc", &["exec"], "t", &["--env", "--cwd"], 1),
    far("multipass", &["exec"], "d", &["--working-directory"], 1),
    far("limactl", &["shell"], "", &["--workdir"], 1),
    far("heroku", &["run"], "a", &["--app", "--size"], 0),
    far("wsl", &[], "du", &["--distribution", "--user", "--cd"], 0),
    far("distrobox", &["enter"], "n", &["--name"], 1),
    far("toolbox", &["run"], "cd", &["--container", "--distro"], 0),
];

/// Options of programs whose value is a text for a shell.
const TEXTS: &[(&str, char, &str, Side)] = &[
    ("npx", 'c', "--call", Side::Here),
    ("npm", 'c', "--call", Side::Here),
    ("pnpm", 'c', "--shell-mode", Side::Here),
    ("nodemon", 'x', "--exec", Side::Here),
    ("cargo", 's', "--shell", Side::Here),
    ("nix-shell", '\0', "--run", Side::Here),
    ("nix-shell", '\0', "--command", Side::Here),
    ("ansible", 'a', "--args", Side::Far),
    ("vagrant", 'c', "--command", Side::Far),
    ("gcloud", '\0', "--command", Side::Far),
    ("fly", 'C', "--command", Side::Far),
    ("flyctl", 'C', "--command", Side::Far),
    ("pssh", 'P', "", Side::Far),
    ("sshpass", '\0', "", Side::Far),
    ("hyperfine", 'p', "--prepare", Side::Here),
    ("hyperfine", 's', "--setup", Side::Here),
    ("hyperfine", 'c', "--cleanup", Side::Here),
    ("tmux", '\0', "", Side::Here),
];

impl Evaluator<'_> {
    /// What a subcommand starts; `None` if it starts nothing.
    pub fn runner(
        &mut self,
        name: &str,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Option<Output> {
        self.module(name, arguments, call, state);
        self.texts(name, arguments, state);
        for runner in RUNNERS.iter().filter(|runner| runner.program == name) {
            let Some(at) = runner.command_at(arguments).filter(|at| *at < arguments.len()) else {
                continue;
            };
            let known = self.findings.len();
            let inner = Call {
                input: call.input,
                writes: &[],
                reads: &[],
                assigns: call.assigns,
                span: call.span.clone(),
            };
            let mut words = arguments[at..].to_vec();
            words[0] = without_version(&words[0]);
            match runner.side {
                Side::Here if words[0].value.known().is_none() => {}
                Side::Here => {
                    self.call(&words, &inner, &mut state.clone());
                }
                Side::Far => {
                    self.far(&words, runner, &inner);
                    self.keep_destruction(known);
                }
            }
            return Some(Output::unknown(name));
        }
        None
    }

    /// A command of another machine, or of a container.
    fn far(&mut self, words: &[Field], runner: &Runner, call: &Call<'_>) {
        let mut far = State::new();
        match runner.program {
            // These join their words and have a shell read them.
            "adb" | "heroku" => self.joined(words, call, &mut far),
            _ => self.call(words, call, &mut far),
        };
    }

    /// `python -m pip …` is pip.
    fn module(&mut self, name: &str, arguments: &[Field], call: &Call<'_>, state: &mut State) {
        if !name.starts_with("python") && !name.starts_with("pypy") && name != "py" {
            return;
        }
        let is_option = |field: &Field| field.known().is_some_and(|text| text == "-m");
        let before = |field: &Field| field.value.starts_with('-');
        let Some(at) = arguments.iter().position(is_option) else {
            return;
        };
        if arguments[..at].iter().all(before) && at + 1 < arguments.len() {
            let inner = Call {
                input: None,
                writes: &[],
                reads: &[],
                assigns: call.assigns,
                span: call.span.clone(),
            };
            self.call(&arguments[at + 1..], &inner, &mut state.clone());
        }
    }

    /// Options, and words, that are texts for a shell.
    fn texts(&mut self, name: &str, arguments: &[Field], state: &mut State) {
        for (program, short, long, side) in TEXTS {
            if *program != name {
                continue;
            }
            let Some((at, text)) = value_of(arguments, *short, long) else {
                continue;
            };
            self.one_text(&arguments[at], &text, *side, state);
        }
        let operands =
            |from: usize| arguments.iter().skip(from).filter(|field| !field.value.starts_with('-'));
        let all: Vec<&Field> = match name {
            "concurrently" | "npm-run-all" | "hyperfine" | "mprocs" | "watchexec" => {
                operands(0).collect()
            }
            // A name, a directory or keys are read as commands, too: they are harmless ones.
            "tmux" | "zellij" => operands(1).collect(),
            "screen" => operands(1).collect(),
            _ => return,
        };
        for field in all {
            if let Some(text) = field.known().filter(|text| text.contains(' ')) {
                self.one_text(field, &text, Side::Here, state);
            }
        }
    }

    fn one_text(&mut self, field: &Field, text: &str, side: Side, state: &State) {
        let known = self.findings.len();
        match side {
            Side::Here => {
                self.text_of(field, text, &mut state.clone(), None);
                self.keep_heavier_than_unknown(known);
            }
            Side::Far => {
                self.text_of(field, text, &mut State::new(), None);
                self.keep_destruction(known);
            }
        }
    }
}

impl Runner {
    fn command_at(&self, words: &[Field]) -> Option<usize> {
        let options = |operands| Wrapper {
            name: self.program,
            short: self.short,
            long: self.long,
            operands,
            assigns: Assigns::No,
        };
        let mut at = 0;
        for verb in self.verbs {
            if verb.starts_with('-') {
                at = words.iter().position(|field| field.known().as_deref() == Some(verb))? + 1;
                continue;
            }
            at += options(0).command_at(&words[at..])?;
            if words.get(at)?.known().as_deref() != Some(verb) {
                return None;
            }
            at += 1;
        }
        if self.program == "nix" {
            // `nix develop -c CMD`.
            let is = |field: &Field| field.known().is_some_and(|t| t == "-c" || t == "--command");
            return Some(at + words[at..].iter().position(is)? + 1);
        }
        let own = options(self.operands);
        let assigns = match self.program {
            "cross-env" | "dotenv" => Assigns::Yes,
            _ => Assigns::No,
        };
        Some(at + Wrapper { assigns, ..own }.command_at(&words[at..])?)
    }
}

/// `prisma@latest` is prisma; `@scope/name` stays.
fn without_version(field: &Field) -> Field {
    match field.known() {
        Some(text) if text.len() > 1 && !text.contains("://") => match text[1..].find('@') {
            Some(at) => Field::new(Value::text(&text[..at + 1]), field.span.clone()),
            None => field.clone(),
        },
        _ => field.clone(),
    }
}
