//! `mcp exec`: one command of an agent. The guard judges it, then it runs as `mcp run` would run it, with the
//! project as what may be written.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

use mcp_guard::{Confined, Context, Decision, NetworkAccess, Rules, Shell, Strictness, Verdict};
use mcp_policy::{Defaults, GuardMode, Layer, Policy};
use mcp_sandbox::agent::{self, Project};
use mcp_sandbox::{Identity, Judged, Report, Wish};

use super::{check, run};
use crate::args::Fallback;
use crate::args::exec::{Exec, ExecShell};
use crate::audit::{Log, What};
use crate::failure::Failure;
use crate::{layers, render};

pub fn run(args: Box<Exec>) -> Result<u8, Failure> {
    if let Some(directory) = &args.directory {
        std::env::set_current_dir(directory).map_err(|e| Failure::input(directory, &e))?;
    }
    let what = What::exec(&args.command);
    run::recorded(&args.starting, what, &args.command, |log, report| start(&args, log, report))
}

fn start(args: &Exec, log: &mut Option<Log>, report: &mut Option<Report>) -> Result<u8, Failure> {
    let shell = match args.shell {
        None => agent::default_shell(),
        Some(ExecShell::PowerShell) => Shell::PowerShell,
        Some(ExecShell::Cmd) => Shell::Cmd,
        Some(ExecShell::Bash | ExecShell::Sh) => Shell::Bash,
    };
    let text = text(&args.command, shell)?;
    let (mut policy, tools) = policy(args)?;
    if args.starting.explain {
        policy.env.secrets.clear();
    }
    let judged = if args.no_guard {
        None
    } else {
        Some(guard(args, &text, shell, (&policy, tools.guard), report)?)
    };
    if let Some(log) = log {
        log.what.policy(&policy);
    }
    let explain = args.starting.explain;
    let home = args.home.as_deref().map(|name| run::kept_home(name, explain)).transpose()?;
    let mut command = agent::words(&text, shell);
    if args.shell == Some(ExecShell::Sh) {
        command[0] = "sh".into();
    }
    let wish = Wish {
        policy,
        command,
        cwd: None,
        home,
        programs: agent::programs(&text),
        identity: Identity::User,
    };
    let fallback = args.starting.fallback.or(tools.fallback).unwrap_or(Fallback::Deny);
    let runs = run::hints::Runs::Agent;
    let how = run::How { starting: &args.starting, fallback, judged, runs, package: None };
    run::launch(wish, &how, log, report)
}

/// One text is the shell's; several words are words.
fn text(command: &[OsString], shell: Shell) -> Result<String, Failure> {
    let word = |word: &OsString| word.to_str().map(str::to_owned);
    let words: Option<Vec<String>> = command.iter().map(word).collect();
    match words.as_deref() {
        None => Err(Failure::Usage("the command is not valid UTF-8".to_owned())),
        Some([one]) => Ok(one.clone()),
        Some(words) => agent::joined(words, shell)
            .map_err(|why| Failure::Usage(format!("a word of the command {why}"))),
    }
}

/// What the config's `[tools.sandbox]` says beyond the policy.
struct Tools {
    fallback: Option<Fallback>,
    guard: Option<GuardMode>,
}

/// What people said, with the project and the config's `[tools.sandbox]`.
fn policy(args: &Exec) -> Result<(Policy, Tools), Failure> {
    let project = Project::at(Path::new("."))?;
    let mut people = layers::of_people(&args.permissions)?;
    let layers = std::mem::take(&mut people.layers);
    let said = layers.iter().filter_map(|layer| layer.tools.fallback.as_ref()).next_back();
    let fallback = said.map(|said| match said.value {
        mcp_policy::Fallback::Deny => Fallback::Deny,
        mcp_policy::Fallback::Prompt => Fallback::Prompt,
        mcp_policy::Fallback::Warn => Fallback::Warn,
    });
    let guard = layers.iter().filter_map(|layer| layer.tools.guard.as_ref()).next_back();
    let tools = Tools { fallback, guard: guard.map(|said| said.value) };
    let mut own = Layer::command_line(project.root.clone(), None);
    own.write(&project.root);
    for git in &project.git {
        own.write(git);
    }
    let layers: Vec<Layer> =
        [own.build()?].into_iter().chain(layers.into_iter().map(Layer::for_commands)).collect();
    let policy = Policy::merge(&layers, Defaults::exec())?;
    people.check(&policy)?;
    Ok((policy, tools))
}

/// What the guard says, where that lets the command run.
fn guard(
    args: &Exec,
    text: &str,
    shell: Shell,
    (policy, said): (&Policy, Option<GuardMode>),
    report: &mut Option<Report>,
) -> Result<Judged, Failure> {
    let network: NetworkAccess = agent::network(policy);
    let strictness = match args.guard.or(said).unwrap_or_default() {
        GuardMode::Usual => Strictness::Confined,
        GuardMode::Strict => Strictness::Strict,
    };
    let context = Context { network, strictness, rules: check::rules(args.rules.as_deref())? };
    let verdict = agent::judge(text, shell, &context);
    let judged = agent::judged(&verdict);
    let outcome = match verdict.decision {
        Decision::Allow | Decision::Unknown => Ok(()),
        Decision::Refuse => Err(refused(text, &verdict, "")),
        Decision::Ask if args.yes || args.starting.explain => Ok(()),
        Decision::Ask => ask(text, &verdict),
    };
    match outcome {
        Ok(()) => Ok(judged),
        Err(failure) => {
            let unplanned =
                Report::unplanned(vec![text.to_owned()], failure.to_string(), failure.exit_code());
            *report = Some(Report { guard: Some(judged), ..unplanned });
            Err(failure)
        }
    }
}

fn refused(text: &str, verdict: &Verdict, more: &str) -> Failure {
    let Some(finding) = verdict.reason() else {
        return Failure::Guarded("refused by the guard".to_owned());
    };
    // Where only strictness refuses it, that is the setting to name.
    let strict =
        Rules::built_in().get(&finding.rule).is_some_and(|rule| rule.confined == Confined::Note);
    let setting = if strict {
        "without guard = \"strict\" the sandbox alone holds it: --guard usual; "
    } else {
        ""
    };
    let span = text.get(finding.span.clone()).unwrap_or_default();
    let span: String = render::plain(span).chars().take(120).collect();
    Failure::Guarded(format!(
        "refused by the guard ({}): {span}\n     {}\n     {}\n     {more}({setting}mcp check says more; rules of your \
         own: --rules FILE; the sandbox alone: --no-guard)",
        render::plain(&finding.rule),
        render::plain(&finding.human),
        render::plain(&finding.model)
    ))
}

fn ask(text: &str, verdict: &Verdict) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(refused(
            text,
            verdict,
            "a person has to say yes, and nobody can be asked here: --yes ",
        ));
    }
    if let Some(finding) = verdict.reason() {
        render::say(&render::plain(&format!(
            "the guard asks ({}): {}",
            finding.rule, finding.human
        )));
    }
    eprint!("{} run it? [y/N] ", render::prefix());
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer) {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::Guarded("not started".to_owned())),
    }
}
