//! `compatibility.runtimes`: which versions of an interpreter a package runs with.

use semver::{Version, VersionReq};

/// Whether a version is in a range. None where either makes no sense: the format is others', and
/// says no more than "a range".
#[must_use]
pub fn suits(range: &str, version: &str) -> Option<bool> {
    let mut outcome = Some(false);
    for one in range.split("||") {
        match suits_one(one, version) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => outcome = None,
        }
    }
    outcome
}

/// One of the ranges that npm joins with `||`.
fn suits_one(range: &str, version: &str) -> Option<bool> {
    // npm writes the comparators of one range with spaces between them, and none after the sign.
    let mut words: Vec<String> = Vec::new();
    for word in range.split([' ', ',']).filter(|word| !word.is_empty()) {
        match words.last_mut() {
            Some(sign) if sign.chars().all(|c| "<>=^~".contains(c)) => sign.push_str(word),
            _ => words.push(word.to_owned()),
        }
    }
    let range = VersionReq::parse(&words.join(", ")).ok()?;
    Some(range.matches(&parsed(version)?))
}

/// `v20.1.0`, `3.11.7`, `3.14.0rc1`: a release candidate counts as what it will be.
fn parsed(version: &str) -> Option<Version> {
    let digits = version.trim().trim_start_matches('v');
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let mut parts = digits[..end].split('.').map(|part| part.parse::<u64>().ok());
    let mut next = || parts.next().flatten();
    Some(Version::new(next()?, next().unwrap_or(0), next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_people_write_them() {
        for (range, version, expected) in [
            (">=16.0.0", "v20.20.2", Some(true)),
            (">=16", "14.1.0", Some(false)),
            (">=3.10", "3.11.7", Some(true)),
            (">=3.10,<3.12", "3.12.0", Some(false)),
            (">= 18.0.0 < 21", "20.0.0", Some(true)),
            ("=3.11", "3.11.7", Some(true)),
            ("=3.11", "3.12.1", Some(false)),
            (">=3.14", "3.14.0rc1", Some(true)),
            ("^18.0.0 || >=20", "22.1.0", Some(true)),
            ("^18.0.0 || ^22.0.0", "20.20.2", Some(false)),
            ("^18.0.0 || whatever", "20.20.2", None),
            ("*", "1", Some(true)),
            ("whatever", "1.0.0", None),
            (">=1", "no version", None),
        ] {
            assert_eq!(suits(range, version), expected, "{range} {version}");
        }
    }
}
