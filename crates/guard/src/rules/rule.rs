//! One rule.

use serde::Deserialize;

use super::patterns::Conditions;

use crate::language::{Shell, Strictness};
use crate::verdict::Decision;

/// What a rule is about, so that a policy can switch off all of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Destroys the system or what the user has.
    Catastrophic,
    /// Hides what it does.
    Disguise,
    /// Runs a program given as text to another language.
    Interpreter,
    /// Leaves the supervision of whoever started it.
    Escape,
    /// Stays after the command has ended.
    Persistence,
    /// Network tools.
    Network,
    /// Reads what only the user should.
    Secrets,
    /// Cannot be read.
    Unknown,
    /// Added by a user.
    Own,
}

/// What a rule that could match, for all the text tells, says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unsure {
    #[default]
    Unknown,
    Allow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    #[default]
    Always,
    /// Only where the policy gives no network.
    NoNetwork,
}

/// What a rule says while the kernel's boundaries are whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confined {
    /// As everywhere.
    #[default]
    Same,
    /// Allowed, and a note in the report.
    Note,
}

/// All conditions that are given must hold; of each list, one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, as reports have it.
    pub id: String,
    /// What it is about.
    #[serde(default = "own")]
    pub group: Group,
    /// What it says where it matches.
    #[serde(default = "refuse")]
    pub decision: Decision,
    /// The shells it is for; POSIX shells where it names none.
    #[serde(default = "posix")]
    pub shell: Vec<Shell>,
    /// Where it matters.
    #[serde(default)]
    pub when: When,
    /// What it says where it cannot tell whether it matches.
    #[serde(default)]
    pub unsure: Unsure,
    /// What it says where the sandbox holds everything the rule is about: `note` allows it.
    #[serde(default)]
    pub confined: Confined,
    /// Found by the evaluator, not by conditions: a fork bomb, a text that cannot be read.
    #[serde(default)]
    pub raised_by_code: bool,
    /// Names of programs, `*` and `?` allowed.
    #[serde(default)]
    pub command: Vec<String>,
    /// Programs that the rule is not about, where `command` is empty.
    #[serde(default)]
    pub not_command: Vec<String>,
    /// Letters of patterns match whatever their case.
    #[serde(default)]
    pub ignore_case: bool,
    /// Each entry must be there; `-r|-R|--recursive` are alternatives.
    #[serde(default)]
    pub flags: Vec<String>,
    /// None of these may be there.
    #[serde(default)]
    pub without: Vec<String>,
    /// The first words that are no options: `push`, or `compose down`.
    #[serde(default)]
    pub first: Vec<String>,
    /// A word that is no option: a place (`@system`) or a pattern.
    #[serde(default)]
    pub operand: Vec<String>,
    /// The same, but only the last one.
    #[serde(default)]
    pub last: Vec<String>,
    /// Any word after the name.
    #[serde(default)]
    pub argument: Vec<String>,
    /// A second such condition.
    #[serde(default)]
    pub also: Vec<String>,
    /// A file written to by a redirection.
    #[serde(default)]
    pub redirect: Vec<String>,
    /// A file read by a redirection or an option.
    #[serde(default)]
    pub reads: Vec<String>,
    /// Only a network tool whose every address is this machine's loopback.
    #[serde(default)]
    pub at_loopback: bool,
    /// Only a network tool with another address than that.
    #[serde(default)]
    pub elsewhere: bool,
    /// Only with an address of a machine that is not among the well-known hosts, or unencrypted.
    #[serde(default)]
    pub foreign_address: bool,
    /// Only with an address that holds a password or a token.
    #[serde(default)]
    pub password_in_address: bool,
    /// Where it runs.
    #[serde(default)]
    pub cwd: Vec<String>,
    /// A variable set for the command.
    #[serde(default)]
    pub assign: Vec<String>,
    /// Programs whose output it reads.
    #[serde(default)]
    pub fed_by: Vec<String>,
    /// It is given no file to run, so it runs what it reads.
    #[serde(default)]
    pub reads_program: bool,
    /// The reason, for a language model.
    pub model: String,
    /// The reason, for a person.
    pub human: String,
    /// Commands that it has to match.
    #[serde(default)]
    pub matches: Vec<String>,
    /// Commands that it has to let pass.
    #[serde(default)]
    pub passes: Vec<String>,
    #[serde(skip)]
    pub(super) ready: Conditions,
}

fn own() -> Group {
    Group::Own
}

fn refuse() -> Decision {
    Decision::Refuse
}

fn posix() -> Vec<Shell> {
    vec![Shell::Bash]
}

impl Rule {
    /// The decision at this strictness.
    pub(crate) fn decision_for(&self, strictness: Strictness) -> Decision {
        match (strictness, self.confined) {
            (Strictness::Confined, Confined::Note) => Decision::Allow,
            _ => self.decision,
        }
    }

    pub(super) fn stub(id: &str, decision: Decision) -> Rule {
        Rule {
            id: id.to_owned(),
            group: Group::Unknown,
            decision,
            shell: vec![Shell::Bash, Shell::PowerShell, Shell::Cmd],
            when: When::Always,
            unsure: Unsure::Unknown,
            raised_by_code: false,
            command: Vec::new(),
            not_command: Vec::new(),
            ignore_case: false,
            flags: Vec::new(),
            without: Vec::new(),
            first: Vec::new(),
            operand: Vec::new(),
            last: Vec::new(),
            argument: Vec::new(),
            also: Vec::new(),
            redirect: Vec::new(),
            reads: Vec::new(),
            at_loopback: false,
            elsewhere: false,
            foreign_address: false,
            password_in_address: false,
            cwd: Vec::new(),
            confined: Confined::Same,
            assign: Vec::new(),
            fed_by: Vec::new(),
            reads_program: false,
            model: "The guard's own rules cannot be read.".to_owned(),
            human: "The guard's own rules cannot be read.".to_owned(),
            matches: Vec::new(),
            passes: Vec::new(),
            ready: Conditions::default(),
        }
    }
}
