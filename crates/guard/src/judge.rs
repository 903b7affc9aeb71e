//! Applies the rules to a whole text.

use crate::characters;
use crate::context::Context;
use crate::evaluate;
use crate::language::Shell;
use crate::shell;
use crate::verdict::{Finding, Verdict};
use crate::windows::Parsed;

/// Longer texts are not read. Agents write commands, not books.
pub const LONGEST_COMMAND: usize = 64 * 1024;

/// What the rules say about a command in the language of a shell. Never panics, whatever the text;
/// takes time in proportion to its length.
pub fn judge(command: &str, shell: Shell, context: &Context) -> Verdict {
    let mut evaluator = evaluate::Evaluator::new(context);
    if command.len() > LONGEST_COMMAND {
        evaluator.raise("too-long", 0..command.len());
        return Verdict::new(command, evaluator.findings);
    }
    for (rule, span) in characters::suspicious(command, shell) {
        evaluator.raise(rule, span);
    }
    match shell {
        Shell::Bash => evaluator.bash(command),
        Shell::PowerShell => evaluator.powershell(command, shell::Origin::At(0)),
        Shell::Cmd => evaluator.cmd(command, shell::Origin::At(0)),
    }
    Verdict::new(command, evaluator.findings)
}

/// As [`judge`] for PowerShell, with what PowerShell itself found in the text: a script of ours
/// ([`PARSE_SCRIPT`](crate::PARSE_SCRIPT)) has it parse and tell. What either of the two finds counts.
pub fn judge_parsed(command: &str, parsed: &Parsed, context: &Context) -> Verdict {
    let light = judge(command, Shell::PowerShell, context);
    let mut evaluator = evaluate::Evaluator::new(context);
    let is_read = |finding: &Finding| finding.rule == "unreadable" && parsed.is_well_formed();
    evaluator.findings = light.findings.into_iter().filter(|finding| !is_read(finding)).collect();
    if command.len() <= LONGEST_COMMAND {
        evaluator.parsed(command, parsed);
    }
    Verdict::new(command, evaluator.findings)
}
