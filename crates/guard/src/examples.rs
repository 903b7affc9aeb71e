//! Rules are tried against their own examples before they count.

use std::sync::Arc;

use crate::context::Context;
use crate::judge::judge;
use crate::rules::{Rule, Rules, RulesError, error, extend};
use crate::verdict::Finding;

impl Rules {
    /// These rules and those of a user's file, which may also switch off some of them.
    pub fn with(&self, text: &str) -> Result<Rules, RulesError> {
        let (rules, own) = extend(self, text)?;
        verify(&rules, own.iter())?;
        Ok(rules)
    }

    /// Tries all examples of all rules.
    pub fn verify(&self) -> Result<(), RulesError> {
        verify(self, self.iter())
    }
}

/// Tries the examples of some of the rules against all of them.
fn verify<'a>(rules: &Rules, mut tried: impl Iterator<Item = &'a Rule>) -> Result<(), RulesError> {
    tried.find_map(|rule| failing(rules, rule).into_iter().next()).map_or(Ok(()), Err)
}

/// What is wrong with a rule's examples.
fn failing(rules: &Rules, rule: &Rule) -> Vec<RulesError> {
    if rule.shell.is_empty() {
        return vec![error(&rule.id, "it is for no shell")];
    }
    let context = Context { rules: Arc::new(rules.clone()), ..Context::default() };
    // An example is written for one of the rule's shells.
    let found = |example: &&String| {
        let own = |finding: &Finding| finding.rule == rule.id && finding.decision == rule.decision;
        let matches = |shell| judge(example, shell, &context).findings.iter().any(own);
        rule.shell.iter().any(|shell| matches(*shell))
    };
    let missed = rule
        .matches
        .iter()
        .filter(|example| !found(example))
        .map(|example| error(&rule.id, format!("it does not match its example: {example}")));
    let caught = rule
        .passes
        .iter()
        .filter(found)
        .map(|example| error(&rule.id, format!("it matches what it should not: {example}")));
    missed.chain(caught).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_true() {
        let rules = crate::rules::with_examples();
        assert!(rules.iter().count() > 50, "the built-in rules could not be read");
        let wrong: Vec<String> = rules
            .iter()
            .flat_map(|rule| failing(&rules, rule))
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        rules.verify().unwrap();
    }
}
