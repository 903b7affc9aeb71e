//! Walks a parsed shell text as a shell would run it, without running it: follows variables with
//! known values, looks through wrappers, reads texts handed to shells, and shows every program it
//! meets to the rules.
//!
//! Both branches of a condition are walked; what they leave different is unknown afterwards. Loop
//! bodies are walked twice, so that what one round leaves is seen by the next.

mod assignments;
mod bomb;
mod brace;
mod builtins;
mod call;
mod everything;
mod expand;
mod files;
mod flow;
mod foreign;
mod lists;
mod name;
mod named_programs;
mod options;
mod output;
mod parameter;
mod provenance;
mod runners;
mod shells;
mod sql;
mod state;
mod subscripts;
mod wrappers;

use crate::context::Context;
use crate::language::Shell;
use crate::rules::{Confined, Group, Invocation, Unsure, Words};
use crate::shell::ast::Span;
use crate::shell::{Origin, parse};
use crate::tri::Tri;
use crate::value::Output;
use crate::verdict::{Decision, Finding};

pub use call::quote;
pub(crate) use call::{Call, SECRETS, holds_secrets};
pub(crate) use provenance::names_secret;
pub(crate) use shells::is_fetched;
pub(crate) use state::{State, WindowsState};

/// Commands and words walked in all, whatever loops and functions multiply.
const FUEL: u32 = 40_000;

/// Texts within texts, functions within functions, each with its nested commands.
const DEEPEST: u16 = 96;

/// More findings help no reader.
const MOST_FINDINGS: usize = 64;

pub struct Evaluator<'c> {
    pub context: &'c Context,
    pub findings: Vec<Finding>,
    fuel: u32,
    depth: u16,
    /// Functions being walked: a call of one of them from within is not followed.
    active: Vec<String>,
    heredocs: std::rc::Rc<[crate::shell::ast::Word]>,
    prints: provenance::Prints,
    /// What is remembered while a Windows text is read.
    pub(crate) windows: WindowsState,
    /// The words of the command being called hold a key or a password of the environment.
    holds_secret_variable: bool,
    /// What is printed goes to another program or into a value, not to whoever reads along.
    captured: bool,
    /// Texts of `trap`, which run when all else has.
    traps: Vec<crate::value::Field>,
    /// xargs, find and their like start the shell, for a text that is read.
    within_list: bool,
}

impl<'c> Evaluator<'c> {
    pub fn new(context: &'c Context) -> Evaluator<'c> {
        Evaluator {
            context,
            findings: Vec::new(),
            fuel: FUEL,
            depth: 0,
            active: Vec::new(),
            heredocs: std::rc::Rc::from([]),
            prints: provenance::Prints::default(),
            windows: WindowsState::default(),
            holds_secret_variable: false,
            captured: false,
            traps: Vec::new(),
            within_list: false,
        }
    }

    pub fn bash(&mut self, text: &str) {
        let mut state = State::new();
        self.text(text, Origin::At(0), &mut state, None);
        for trap in std::mem::take(&mut self.traps) {
            if let Some(text) = trap.known() {
                self.text(&text, trap.origin(&text), &mut state.clone(), None);
            }
        }
    }

    /// A text that another shell hands to this one.
    pub fn bash_within(&mut self, text: &str, span: Span) {
        self.text(text, Origin::Within(span), &mut State::new(), None);
    }

    /// Reads and walks a text.
    pub(crate) fn text(
        &mut self,
        text: &str,
        origin: Origin,
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        let span = origin.span(0, text.len());
        self.nested(span, |evaluator| {
            let script = parse(text, origin);
            if let Some(trouble) = &script.trouble {
                evaluator.raise_with("unreadable", trouble.span.clone(), trouble.what);
            }
            let outer = std::mem::replace(&mut evaluator.heredocs, script.heredocs.clone());
            let output = evaluator.list(&script.list, state, input);
            evaluator.heredocs = outer;
            output
        })
        .unwrap_or_default()
    }

    /// One level further in, if there is room.
    pub(crate) fn nested<T>(&mut self, span: Span, walk: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= DEEPEST || !self.spend(1) {
            self.raise("too-complex", span);
            return None;
        }
        self.depth += 1;
        let result = walk(self);
        self.depth -= 1;
        Some(result)
    }

    /// Takes fuel; false when there is none left.
    pub(crate) fn spend(&mut self, amount: usize) -> bool {
        let amount = u32::try_from(amount).unwrap_or(u32::MAX);
        match self.fuel.checked_sub(amount) {
            Some(left) => {
                self.fuel = left;
                true
            }
            None => {
                self.fuel = 0;
                false
            }
        }
    }

    /// Reports a rule that the evaluator itself found to apply.
    pub fn raise(&mut self, id: &str, span: Span) {
        self.raise_with(id, span, "");
    }

    /// The same, with more to say about this case.
    pub fn raise_with(&mut self, id: &str, span: Span, detail: &str) {
        let Some(rule) = self.context.rules.get(id) else {
            // Disabled by the user, who may not have everything unread pass by it.
            return;
        };
        let said = |text: &str| match detail {
            "" => text.to_owned(),
            detail => format!("{text} ({detail})"),
        };
        self.report(Finding {
            rule: rule.id.clone(),
            decision: rule.decision_for(self.context.strictness),
            span,
            model: said(&rule.model),
            human: said(&rule.human),
        });
    }

    /// Drops findings that came after the first `known` and say no more than "unknown".
    pub(crate) fn keep_heavier_than_unknown(&mut self, known: usize) {
        let mut number = 0;
        self.findings.retain(|finding| {
            number += 1;
            number <= known || finding.decision > Decision::Unknown
        });
    }

    /// Drops findings that came after the first `known` and do not matter on another machine: what is neither
    /// refused there too nor about destruction.
    pub(crate) fn keep_destruction(&mut self, known: usize) {
        let rules = &self.context.rules;
        let counts = |finding: &Finding| {
            let Some(rule) = rules.get(&finding.rule) else {
                return true;
            };
            match finding.decision {
                Decision::Refuse => rule.confined != Confined::Note,
                Decision::Ask => rule.group == Group::Catastrophic,
                _ => false,
            }
        };
        let mut number = 0;
        self.findings.retain(|finding| {
            number += 1;
            number <= known || counts(finding)
        });
    }

    fn report(&mut self, finding: Finding) {
        if self.findings.contains(&finding) {
            return;
        }
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
            return;
        }
        // Never lose a refusal to a flood of lesser findings.
        let lightest = self.findings.iter_mut().min_by_key(|finding| finding.decision);
        if let Some(lightest) = lightest.filter(|lightest| lightest.decision < finding.decision) {
            *lightest = finding;
        }
    }

    /// Shows a program about to be started to the rules.
    pub(crate) fn show(&mut self, call: &Invocation<'_>) {
        let context = self.context;
        let words = Words::new(call);
        for rule in context.rules.about(call.name, call.shell) {
            let Some(found) = rule.test(&words, &context.rules, context.network) else {
                continue;
            };
            let decision = match found.sure {
                Tri::Yes => rule.decision_for(context.strictness),
                _ if rule.unsure == Unsure::Allow => continue,
                _ => Decision::Unknown,
            };
            let (mut model, mut human) = (rule.model.clone(), rule.human.clone());
            if found.sure != Tri::Yes {
                model = format!(
                    "This could not be judged, because part of it is not known from the text. If \
                     the unknown part is what the rule is about: {model}"
                );
                human = format!("Part of it is not known from the text; it could be: {human}");
            }
            self.report(Finding {
                rule: rule.id.clone(),
                decision,
                span: found.span,
                model,
                human,
            });
        }
        debug_assert!(call.shell != Shell::Bash || !call.name.contains('/'));
    }
}
