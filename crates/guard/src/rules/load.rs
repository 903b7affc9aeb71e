//! Reads rule files and tries their examples.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::{Group, Rule, Rules, class_name};

/// A file of rules that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// It is no TOML, or has another shape.
    #[error("rules: {0}")]
    Syntax(#[from] toml::de::Error),
    /// One rule makes no sense.
    #[error("rule {id}: {what}")]
    Rule {
        /// The rule's name.
        id: String,
        /// What is wrong with it.
        what: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Ids of rules to leave out.
    #[serde(default)]
    disable: Vec<String>,
    /// Groups to leave out. What is catastrophic is not a matter of taste, rule by rule only.
    #[serde(default)]
    allow: Vec<Group>,
    /// Named lists of places and patterns, written `@name` in rules.
    #[serde(default)]
    classes: HashMap<String, Vec<String>>,
    #[serde(default)]
    rule: Vec<Rule>,
}

#[cfg(test)]
pub fn parse(text: &str) -> Result<Rules, RulesError> {
    let file: File = toml::from_str(text)?;
    check(&file.rule, &file.classes)?;
    Ok(Rules::new(file.rule, file.classes))
}

pub fn extend(base: &Rules, text: &str) -> Result<(Rules, Vec<Rule>), RulesError> {
    let file: File = toml::from_str(text)?;
    for id in &file.disable {
        match base.get(id) {
            None => return Err(error(id, "there is no rule of this name to disable")),
            Some(rule) if rule.group == Group::Unknown => {
                return Err(error(id, "what cannot be read cannot be taken for safe"));
            }
            Some(_) => {}
        }
    }
    if file.allow.contains(&Group::Catastrophic) || file.allow.contains(&Group::Unknown) {
        return Err(error("allow", "these rules can only be disabled one by one"));
    }
    let mut classes = base.class_texts();
    classes.extend(file.classes);
    let kept = base
        .iter()
        .filter(|rule| !file.disable.contains(&rule.id) && !file.allow.contains(&rule.group));
    let mut all: Vec<Rule> = kept.cloned().collect();
    for rule in &file.rule {
        if rule.raised_by_code {
            return Err(error(&rule.id, "only built-in rules are raised by code"));
        }
        if rule.matches.is_empty() {
            return Err(error(&rule.id, "give at least one example in `matches`"));
        }
    }
    let own = file.rule.clone();
    all.extend(file.rule);
    check(&all, &classes)?;
    Ok((Rules::new(all, classes), own))
}

fn check(rules: &[Rule], classes: &HashMap<String, Vec<String>>) -> Result<(), RulesError> {
    let mut seen = HashSet::new();
    for rule in rules {
        if !seen.insert(&rule.id) {
            return Err(error(&rule.id, "this name is taken"));
        }
        let conditions = [
            &rule.command,
            &rule.flags,
            &rule.first,
            &rule.operand,
            &rule.last,
            &rule.argument,
            &rule.redirect,
            &rule.reads,
            &rule.assign,
            &rule.fed_by,
            &rule.cwd,
        ];
        if conditions.iter().all(|list| list.is_empty()) && !rule.raised_by_code {
            return Err(error(&rule.id, "it has no condition and would match everything"));
        }
        let patterns = [
            &rule.operand,
            &rule.last,
            &rule.argument,
            &rule.also,
            &rule.redirect,
            &rule.reads,
            &rule.command,
            &rule.not_command,
            &rule.fed_by,
            &rule.assign,
            &rule.cwd,
        ];
        for pattern in patterns.into_iter().flatten() {
            match class_name(pattern) {
                Some(name) if !classes.contains_key(name) => {
                    return Err(error(&rule.id, format!("there is no class @{name}")));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

pub fn error(id: &str, what: impl Into<String>) -> RulesError {
    RulesError::Rule { id: id.to_owned(), what: what.into() }
}
