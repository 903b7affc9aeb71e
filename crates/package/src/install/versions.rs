//! Which version of a project is the newest that an interpreter may have: PEP 440's order, what a page of the simple
//! index lists (HTML, PEP 503 and 592; JSON, PEP 691), and which Python a file says it needs.
//!
//! Asked before pip or uv resolves anything: left to themselves, with wheels only, both go back to an older version
//! without a word when the newest has none.

use std::cmp::Ordering;

use serde_json::Value;

use crate::reference::normal_pypi;

/// The newest version that a page lists for an interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewestVersion {
    /// As its files write it.
    pub version: String,
    /// Whether it has a wheel, be it for this machine or for another.
    pub has_wheel: bool,
}

/// The newest version of a project that was not withdrawn and that this Python (`3.11.7`) fits. A pre-release only
/// where there is nothing else, as pip and uv do it. `None` where the page lists no such version.
#[must_use]
pub fn newest_in_simple_page(page: &str, name: &str, python: &str) -> Option<NewestVersion> {
    let mut best: Option<(bool, Version, NewestVersion)> = None;
    for file in files(page) {
        let Some((text, is_wheel)) = version_of(&file.name, name) else { continue };
        let fits = file.python.as_deref().is_none_or(|needed| suits_python(needed, python));
        let (Some(version), false, true) = (Version::parse(&text), file.is_yanked, fits) else {
            continue;
        };
        let is_final = !version.is_prerelease();
        let order = |(best_final, best, _): &(bool, Version, NewestVersion)| {
            (is_final, &version).cmp(&(*best_final, best))
        };
        match best.as_ref().map_or(Ordering::Greater, order) {
            Ordering::Greater => {
                let newest = NewestVersion { version: text, has_wheel: is_wheel };
                best = Some((is_final, version, newest));
            }
            Ordering::Equal => {
                if let Some((_, _, newest)) = &mut best {
                    newest.has_wheel |= is_wheel;
                }
            }
            Ordering::Less => {}
        }
    }
    best.map(|(_, _, newest)| newest)
}

/// Whether a version comes after another. None where either is no version.
#[must_use]
pub fn is_newer(version: &str, than: &str) -> Option<bool> {
    Some(Version::parse(version)? > Version::parse(than)?)
}

struct Listed {
    name: String,
    python: Option<String>,
    is_yanked: bool,
}

fn files(page: &str) -> Vec<Listed> {
    match serde_json::from_str::<Value>(page) {
        Ok(page) => {
            let files = page["files"].as_array().into_iter().flatten();
            let listed = |file: &Value| {
                Some(Listed {
                    name: file["filename"].as_str()?.to_owned(),
                    python: file["requires-python"].as_str().map(str::to_owned),
                    is_yanked: file["yanked"].as_bool().unwrap_or(file["yanked"].is_string()),
                })
            };
            files.filter_map(listed).collect()
        }
        Err(_) => page.split("<a ").skip(1).filter_map(listed_anchor).collect(),
    }
}

/// `href="…" data-requires-python="…" data-yanked="…">NAME</a>`.
fn listed_anchor(text: &str) -> Option<Listed> {
    let (attributes, rest) = text.split_once('>')?;
    let name = rest.split('<').next()?.trim().to_owned();
    let value = |name: &str| {
        let rest = attributes.split_once(name)?.1.strip_prefix('=')?;
        let quote = rest.chars().next().filter(|c| ['"', '\''].contains(c))?;
        rest[1..].split_once(quote).map(|(value, _)| unescaped(value))
    };
    let python = value("data-requires-python").filter(|needed| !needed.trim().is_empty());
    Some(Listed { name, python, is_yanked: attributes.contains("data-yanked") })
}

fn unescaped(text: &str) -> String {
    let pairs = [("&gt;", ">"), ("&lt;", "<"), ("&#62;", ">"), ("&#60;", "<"), ("&quot;", "\"")];
    let text = pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}

/// The version in a file's name, and whether it is a wheel.
fn version_of(file: &str, name: &str) -> Option<(String, bool)> {
    if let Some(stem) = file.strip_suffix(".whl") {
        let mut parts = stem.split('-');
        let (project, version) = (parts.next()?, parts.next()?);
        return (normal_pypi(project) == name).then(|| (version.to_owned(), true));
    }
    let stem = file.strip_suffix(".tar.gz").or_else(|| file.strip_suffix(".zip"))?;
    let dashes = stem.match_indices('-').map(|(at, _)| at);
    let at = dashes.into_iter().find(|at| normal_pypi(&stem[..*at]) == name)?;
    Some((stem[at + 1..].to_owned(), false))
}

/// PEP 440. Compared in the order of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    epoch: u64,
    release: Vec<u64>,
    pre: Pre,
    /// `None` comes before each number.
    post: Option<u64>,
    dev: Dev,
    local: Vec<Local>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pre {
    /// Of `1.0.dev1`, which comes before `1.0a1`.
    OnlyDev,
    Of(char, u64),
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dev {
    Of(u64),
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Local {
    Word(String),
    Number(u64),
}

impl Version {
    fn parse(text: &str) -> Option<Version> {
        let text = text.trim().to_ascii_lowercase();
        let (public, local) = match text.split_once('+') {
            Some((public, local)) => (public, local_parts(local)?),
            None => (text.as_str(), Vec::new()),
        };
        let mut rest = Rest(public.strip_prefix('v').unwrap_or(public));
        let mut epoch = 0;
        let first = rest.number()?;
        let mut release = vec![first];
        if rest.take("!") {
            (epoch, release) = (first, vec![rest.number()?]);
        }
        while rest.0.starts_with('.') && rest.0[1..].starts_with(|c: char| c.is_ascii_digit()) {
            rest.0 = &rest.0[1..];
            release.push(rest.number()?);
        }
        while release.len() > 1 && release.last() == Some(&0) {
            release.pop();
        }
        let words = [
            ("alpha", 'a'),
            ("beta", 'b'),
            ("preview", 'r'),
            ("pre", 'r'),
            ("rc", 'r'),
            ("a", 'a'),
            ("b", 'b'),
            ("c", 'r'),
        ];
        let pre = words.iter().find_map(|(word, kind)| Some((*kind, rest.part(word)?)));
        let post = rest.post();
        let dev = rest.part("dev");
        if !rest.0.is_empty() {
            return None;
        }
        let pre = match (pre, post, dev) {
            (Some((kind, number)), ..) => Pre::Of(kind, number),
            (None, None, Some(_)) => Pre::OnlyDev,
            _ => Pre::None,
        };
        Some(Version { epoch, release, pre, post, dev: dev.map_or(Dev::None, Dev::Of), local })
    }

    fn is_prerelease(&self) -> bool {
        self.pre != Pre::None || self.dev != Dev::None
    }
}

fn local_parts(text: &str) -> Option<Vec<Local>> {
    let part = |part: &str| {
        let good = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric());
        good.then(|| part.parse().map_or_else(|_| Local::Word(part.to_owned()), Local::Number))
    };
    text.split(['.', '-', '_']).map(part).collect()
}

/// What is left of a version's text.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn take(&mut self, start: &str) -> bool {
        self.0.strip_prefix(start).map(|rest| self.0 = rest).is_some()
    }

    fn number(&mut self) -> Option<u64> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let number = self.0[..end].parse().ok()?;
        self.0 = &self.0[end..];
        Some(number)
    }

    /// `.dev1`, `-rc_2`, `a`: a word with its number, which is 0 without one.
    fn part(&mut self, word: &str) -> Option<u64> {
        let after = self.0.strip_prefix(['.', '-', '_']).unwrap_or(self.0);
        self.0 = after.strip_prefix(word)?;
        let separated = self.0.strip_prefix(['.', '-', '_']);
        if let Some(digits) =
            separated.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            self.0 = digits;
        }
        Some(self.number().unwrap_or(0))
    }

    /// `.post1`, or `-1`.
    fn post(&mut self) -> Option<u64> {
        let digits =
            self.0.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(digits) = digits {
            self.0 = digits;
            return self.number();
        }
        ["post", "rev", "r"].iter().find_map(|word| self.part(word))
    }
}

/// Whether a Python of this version satisfies `requires-python`. What makes no sense asks for nothing, as in pip.
fn suits_python(needed: &str, python: &str) -> bool {
    let Some(have) = numbers(python) else { return true };
    needed.split(',').map(str::trim).filter(|one| !one.is_empty()).all(|one| {
        let end = one.find(|c: char| !"=!<>~".contains(c)).unwrap_or(one.len());
        let (sign, wanted) = (&one[..end], one[end..].trim());
        let (wanted, is_prefix) = match wanted.strip_suffix(".*") {
            Some(prefix) => (prefix, true),
            None => (wanted, false),
        };
        let Some(wanted) = numbers(wanted) else { return true };
        let at = |numbers: &[u64], index: usize| numbers.get(index).copied().unwrap_or(0);
        let most = if is_prefix { wanted.len() } else { have.len().max(wanted.len()) };
        let of = |numbers: &[u64]| (0..most).map(|index| at(numbers, index)).collect::<Vec<_>>();
        let order = of(&have).cmp(&of(&wanted));
        match sign {
            "==" | "===" => order == Ordering::Equal,
            "!=" => order != Ordering::Equal,
            ">=" => order != Ordering::Less,
            "<=" => order != Ordering::Greater,
            ">" => order == Ordering::Greater,
            "<" => order == Ordering::Less,
            "~=" => {
                let series = wanted.len().saturating_sub(1);
                let is_of = (0..series).all(|index| at(&have, index) == at(&wanted, index));
                is_of && order != Ordering::Less
            }
            _ => true,
        }
    })
}

/// The release of a version: `3.14.0rc1` counts as 3.14.0.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of PEP 440's own summary, and forms of the same version.
    #[test]
    fn the_order_is_that_of_pep_440() {
        let ordered = [
            "1.dev0",
            "1.0.dev456",
            "1.0a1",
            "1.0a2.dev456",
            "1.0a12.dev456",
            "1.0a12",
            "1.0b1.dev456",
            "1.0b2",
            "1.0b2.post345.dev456",
            "1.0b2.post345",
            "1.0rc1.dev456",
            "1.0rc1",
            "1.0",
            "1.0+abc.5",
            "1.0+abc.7",
            "1.0+5",
            "1.0.post456.dev34",
            "1.0.post456",
            "1.0.15",
            "1.1.dev1",
            "2!0.1",
        ];
        for pair in ordered.windows(2) {
            assert_eq!(is_newer(pair[1], pair[0]), Some(true), "{pair:?}");
            assert_eq!(is_newer(pair[0], pair[1]), Some(false), "{pair:?}");
        }
        for (one, same) in [
            ("1.0", "1.0.0"),
            ("v1.1", "1.1"),
            ("1.1.RC-1", "1.1rc1"),
            ("1.0-1", "1.0.post1"),
            ("1.0.rev2", "1.0post2"),
            ("1alpha_1", "1a1"),
            ("1.0c1", "1.0rc1"),
            ("0!1", "1"),
        ] {
            assert_eq!(Version::parse(one), Version::parse(same), "{one} {same}");
            assert!(Version::parse(one).is_some(), "{one}");
        }
        for wrong in ["", "x", "1.0-x", "1..0", "1.0+", "1.0rc1rc2", "1.0 --pre", "2004d"] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_python_that_is_needed() {
        for (needed, fits) in [
            (">=3.10", true),
            (">=3.11.8", false),
            (">=3.8,<3.12", true),
            (">=3.8, <3.11", false),
            ("==3.11.*", true),
            ("==3.11", false),
            ("!=3.11.*", false),
            ("!=3.11.6,>3", true),
            ("~=3.9", true),
            ("~=3.10.0", false),
            ("<4", true),
            ("<=3.11", false),
            ("nonsense", true),
            (">=3.11.dev0", true),
        ] {
            assert_eq!(suits_python(needed, "3.11.7"), fits, "{needed}");
        }
    }

    #[test]
    fn the_newest_of_a_page_that_fits() {
        let anchor = |file: &str, more: &str| {
            format!(r#"<a href="https://f/{file}#sha256=0" {more}>{file}</a><br/>"#)
        };
        let newest = |page: &str| newest_in_simple_page(page, "a-b", "3.11.7");
        let found = |version: &str, has_wheel| {
            Some(NewestVersion { version: version.to_owned(), has_wheel })
        };
        let mut page = anchor("a_b-1.9-py3-none-any.whl", "") + &anchor("A.b-1.10.tar.gz", "");
        page += &(anchor("other-9.0-py3-none-any.whl", "") + &anchor("a-b-c-9.0.tar.gz", ""));
        page += &anchor("a_b-2.0rc1-py3-none-any.whl", "");
        page += &anchor("a_b-3.0-py3-none-any.whl", r#"data-requires-python="&gt;=3.12""#);
        page += &anchor("a_b-4.0-py3-none-any.whl", r#"data-yanked="broken""#);
        assert_eq!(newest(&page), found("1.10", false));
        assert_eq!(
            newest(&(page.clone() + &anchor("a_b-1.10-py3-none-any.whl", ""))),
            found("1.10", true)
        );
        assert_eq!(newest(&anchor("a_b-2.0rc1.zip", "")), found("2.0rc1", false), "nothing else");
        assert_eq!(newest("<html>"), None);
        let json = r#"{"files": [{"filename": "a_b-1.0-py3-none-any.whl", "requires-python": ">=3.8", "yanked": false},
            {"filename": "a_b-1.1.tar.gz", "requires-python": null, "yanked": "why"}, {"filename": "a_b-1.2.tar.gz", "requires-python": ">=3.12"}]}"#;
        assert_eq!(newest(json), found("1.0", true));
    }
}
