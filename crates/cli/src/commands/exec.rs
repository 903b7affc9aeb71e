//! `mcp exec`: one command of an agent. The guard judges it, then it runs as `mcp run` would run it, with the
//! project as what may be written.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

use mcp_guard::{Confined, Context, Decision, Rules, Shell, Strictness, Verdict};
use mcp_policy::{Fallback, GuardMode, Policy};
use mcp_sandbox::agent::{self, Project};
use mcp_sandbox::{Judged, Report, RunSpec};

use super::{check, run};
use crate::args::exec::{Exec, ExecShell};
use crate::audit::{AuditLog, What};
use crate::failure::Failure;
use crate::{layers, render};

mod result;

/// Of a command, at the guard's question.
const LONGEST_SHOWN: usize = 1000;

pub fn run(args: Box<Exec>) -> Result<u8, Failure> {
    if args.starting.json && !args.starting.explain {
        return result::run(&args);
    }
    if args.captured.is_some() {
        result::end_with_parent();
    }
    if let Some(directory) = &args.directory {
        std::env::set_current_dir(directory).map_err(|e| Failure::input(directory, &e))?;
    }
    let what = What::exec(&args.command);
    run::recorded(&args.starting, what, &args.command, |log, report| start(&args, log, report))
}

fn start(
    args: &Exec,
    log: &mut Option<AuditLog>,
    report: &mut Option<Report>,
) -> Result<u8, Failure> {
    let shell = match args.shell {
        None => agent::default_shell(),
        Some(ExecShell::PowerShell) => Shell::PowerShell,
        Some(ExecShell::Cmd) => Shell::Cmd,
        Some(ExecShell::Bash | ExecShell::Sh) => Shell::Bash,
    };
    one_text(&args.command)?;
    let text = check::text(&args.command, shell)?;
    let (policy, tools) = policy(args)?;
    let (mut spec, judged) = if args.no_guard {
        (agent::spec(&text, shell, policy), None)
    } else {
        let (spec, judged) = guarded(args, &text, shell, (policy, tools.guard), report)?;
        (spec, Some(judged))
    };
    if let Some(log) = log {
        log.what.policy(&spec.policy);
    }
    let explain = args.starting.explain;
    spec.home = args.home.as_deref().map(|name| run::kept_home(name, explain)).transpose()?;
    if args.shell == Some(ExecShell::Sh) {
        spec.command[0] = "sh".into();
    }
    let fallback = args.starting.fallback.or(tools.fallback).unwrap_or_default();
    let how = run::How {
        starting: &args.starting,
        fallback,
        judged,
        runs: run::hints::Runs::Agent,
        package: None,
        json_only: false,
        hints: args.captured.as_deref(),
        browser: None,
    };
    run::launch(spec, how, log, report)
}

/// `mcp exec 'make test' --json`: separate words are looked for as they stand, so the text would be one program.
fn one_text(command: &[OsString]) -> Result<(), Failure> {
    let (Some(first), Some(next)) = (command.first(), command.get(1)) else { return Ok(()) };
    let (first, next) = (first.to_string_lossy(), next.to_string_lossy());
    if !first.contains(char::is_whitespace) || Path::new(first.as_ref()).exists() {
        return Ok(());
    }
    let shown = run::quoted(first.as_ref().as_ref());
    // The value of a variable may be a secret.
    let shown_word = |word: &OsString| match word.to_string_lossy().split_once('=') {
        Some((name, _)) => format!("{name}=…"),
        None => run::quoted(word),
    };
    let rest: Vec<String> = command[1..].iter().map(shown_word).collect();
    let rest = rest.join(" ");
    Err(Failure::Usage(render::plain(&match next.starts_with('-') {
        true => format!(
            "{rest} after the text belongs to the command; if it was meant for mcp, it comes first: mcp exec {rest} {shown}"
        ),
        false => format!(
            "{shown} is a text for the shell, and more words follow it; give all of it as one text: mcp exec '{first} {rest}'"
        ),
    })))
}

/// What the config's `[tools.sandbox]` says beyond the policy.
struct Tools {
    fallback: Option<Fallback>,
    guard: Option<GuardMode>,
}

/// What people said, with the project and the config's `[tools.sandbox]`.
fn policy(args: &Exec) -> Result<(Policy, Tools), Failure> {
    let mut people = layers::of_people(&args.permissions)?;
    let layers = std::mem::take(&mut people.layers);
    let fallback = layers.iter().filter_map(|layer| layer.tools.fallback.as_ref()).next_back();
    let guard = layers.iter().filter_map(|layer| layer.tools.guard.as_ref()).next_back();
    let tools =
        Tools { fallback: fallback.map(|said| said.value), guard: guard.map(|said| said.value) };
    let policy = Project::at(Path::new("."))?.policy(layers)?;
    people.check(&policy)?;
    Ok((policy, tools))
}

/// The command as it runs, and what the guard says about it, where that lets it run.
fn guarded(
    args: &Exec,
    text: &str,
    shell: Shell,
    (policy, said): (Policy, Option<GuardMode>),
    report: &mut Option<Report>,
) -> Result<(RunSpec, Judged), Failure> {
    let strictness = match args.guard.or(said).unwrap_or_default() {
        GuardMode::Usual => Strictness::Confined,
        _ => Strictness::Strict,
    };
    let rules = check::rules(args.rules.as_deref())?;
    let context = Context { strictness, rules, ..Context::default() };
    let prepared = agent::prepare_with(text, shell, policy, &context);
    let verdict = prepared.verdict().clone();
    let may_run = match verdict.decision {
        Decision::Ask if !args.yes && !args.starting.explain => ask(text, &verdict),
        _ => Ok(()),
    };
    let outcome = may_run
        .and_then(|()| prepared.spec_after_yes().map_err(|verdict| refused(text, &verdict, "")));
    if let Err(failure) = &outcome {
        let mut unplanned =
            Report::unplanned(vec![text.to_owned()], failure.to_string(), failure.exit_code());
        unplanned.guard = Some(agent::judged(&verdict));
        *report = Some(unplanned);
    }
    outcome
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
    let host = host_in(&finding.rule, &span)
        .map(|host| format!("--allow-net {host} lets it reach that; "));
    let host = host.unwrap_or_default();
    Failure::Guarded(format!(
        "refused by the guard ({}): {span}\n     {}\n     {}\n     {more}({host}{setting}mcp check says more; rules of your \
         own: --rules FILE; the sandbox alone: --no-guard)",
        render::plain(&finding.rule),
        render::plain(&finding.human),
        render::plain(&finding.model)
    ))
}

/// The host of an address in what a rule about the network refused.
fn host_in(rule: &str, span: &str) -> Option<String> {
    let (_, rest) = span.split_once("://").filter(|_| rule.starts_with("network"))?;
    let authority = rest.split(['/', '?', '#', ' ', '\'', '"']).next()?;
    let host = authority.rsplit('@').next()?;
    let rule: Option<mcp_policy::NetRule> = host.parse().ok();
    rule.map(|_| host.to_owned())
}

fn ask(text: &str, verdict: &Verdict) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(refused(
            text,
            verdict,
            "a person has to agree, and there is no terminal to ask on: --yes ",
        ));
    }
    if let Some(finding) = verdict.reason() {
        render::say(&render::plain(&format!(
            "the guard asks ({}): {}",
            finding.rule, finding.human
        )));
        // The person at the terminal may not be the one who wrote it.
        let shown: String = render::plain(text).chars().take(LONGEST_SHOWN).collect();
        render::tell(&format!("     {shown}\n"));
    }
    eprint!("{} run it? [y/N] ", render::prefix());
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer) {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::Guarded("not started".to_owned())),
    }
}
