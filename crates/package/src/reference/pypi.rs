//! References to projects on PyPI: a name, a version, extras, and requirements beside it.

use super::{Package, wrong};
use crate::error::Result;

pub(super) fn read(text: &str, rest: &str) -> Result<Package> {
    let mut parts = requirements(rest).into_iter();
    let first = parts.next().unwrap_or_default();
    let (named, version) = match first.split_once("==").or_else(|| first.split_once('@')) {
        Some((named, version)) => (named, Some(version)),
        None => (first.as_str(), None),
    };
    let parsed = with_extras(named);
    let Some((name, extras)) = parsed else {
        return wrong(
            text,
            "expected a project name: pypi:name, pypi:name@1.2.3, pypi:name==1.2.3 or pypi:name[extra]",
        );
    };
    if let Some(version) = version.filter(|version| *version != "latest") {
        let good = |c: char| c.is_ascii_alphanumeric() || "-._!+".contains(c);
        let edge = |c: char| c.is_ascii_alphanumeric();
        if !version.starts_with(edge) || !version.chars().all(good) || version.len() > 100 {
            return wrong(text, "expected an exact version: pypi:name==1.2.3");
        }
    }
    let version = version.map(str::to_owned).filter(|version| version != "latest");
    let mut with: Vec<String> = Vec::new();
    for part in parts {
        match requirement(&part) {
            Some(requirement) => with.push(requirement),
            None => {
                return wrong(
                    text,
                    "expected a requirement after the comma: pypi:name,other or pypi:name,other<2",
                );
            }
        }
    }
    with.sort();
    with.dedup();
    Ok(Package { name: normal_pypi(name), version, extras, with })
}

/// Separated by commas; one that begins with an operator belongs to what is before it (`mcp>=1,<2`), and so does one
/// inside brackets.
fn requirements(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        let is_more = |last: &String| {
            part.starts_with(['<', '>', '=', '!', '~'])
                || last.matches('[').count() > last.matches(']').count()
        };
        match parts.last_mut() {
            Some(last) if is_more(last) => *last = format!("{last},{part}"),
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// `name`, `name[extra]`, `name[extra]>=1,<2`, in one spelling.
fn requirement(text: &str) -> Option<String> {
    let at = text.find(['<', '>', '=', '!', '~']).unwrap_or(text.len());
    let (name, extras) = with_extras(&text[..at])?;
    let good = |c: char| c.is_ascii_alphanumeric() || "<>=!~.,*+-_".contains(c);
    let bounds = &text[at..];
    let name = normal_pypi(name) + &bracketed(&extras);
    (bounds.chars().all(good) && bounds.len() <= 100).then(|| name + bounds)
}

fn with_extras(text: &str) -> Option<(&str, Vec<String>)> {
    let (name, extras) = match text.strip_suffix(']') {
        Some(inner) => inner.split_once('[').map(|(name, extras)| (name, Some(extras)))?,
        None => (text, None),
    };
    let good = |name: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let edge = |c: char| c.is_ascii_alphanumeric();
        name.starts_with(edge)
            && name.ends_with(edge)
            && name.chars().all(inner)
            && name.len() <= 200
    };
    let mut extras: Vec<String> =
        extras.into_iter().flat_map(|list| list.split(',')).map(normal_pypi).collect();
    extras.sort();
    extras.dedup();
    (good(name) && extras.iter().all(|extra| good(extra))).then_some((name, extras))
}

pub(super) fn bracketed(extras: &[String]) -> String {
    if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) }
}

/// Lower case, with runs of `-`, `_` and `.` as one dash, as the index compares names.
#[must_use]
pub fn normal_pypi(name: &str) -> String {
    let mut normal = String::new();
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            c => normal.push(c.to_ascii_lowercase()),
        }
    }
    normal
}
