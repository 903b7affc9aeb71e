//! uv: its index, and what it resolved.

use super::{Index, pypi_index};
use crate::error::{Error, Result};
use crate::reference::normal_pypi;

/// The index: pip's variables, uv's, then what its configuration files name (the first counts most).
pub fn uv_index(files: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Result<Index> {
    let configured = files.iter().find_map(|text| index_in(text));
    let line = configured.map(|url| format!("global.index-url='{url}'")).unwrap_or_default();
    pypi_index(&line, variable)
}

/// The default of `[[index]]`, or the older `index-url`.
fn index_in(text: &str) -> Option<String> {
    let config: toml::Table = text.parse().ok()?;
    let indexes = config.get("index").and_then(toml::Value::as_array).into_iter().flatten();
    let default = indexes
        .filter(|index| index.get("default").and_then(toml::Value::as_bool) == Some(true))
        .find_map(|index| index.get("url"));
    default.or_else(|| config.get("index-url")).and_then(toml::Value::as_str).map(str::to_owned)
}

/// What `uv pip compile --generate-hashes` wrote → requirements of which each has digests, and the
/// version of the one that was asked for.
pub fn uv_requirements(text: &str, name: &str) -> Result<(String, String)> {
    let wrong = |why: String| Error::package(format!("what uv resolved {why}"));
    let mut lines = Vec::new();
    let mut version = None;
    let joined = text.replace("\\\n", " ").replace("\\\r\n", " ");
    for line in joined.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            continue;
        }
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let pinned = first.split_once("==").filter(|(found, at)| {
            let word =
                |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-._!+".contains(c));
            word(found.split('[').next().unwrap_or(found)) && word(at)
        });
        let (found, at) =
            pinned.ok_or_else(|| wrong(format!("has {first:?}, which is no version")))?;
        let rest: Vec<&str> = words.collect();
        let is_digest = |word: &&&str| {
            word.strip_prefix("--hash=sha256:")
                .is_some_and(|hex| crate::Digest::from_hex(hex).is_ok())
        };
        let digests: Vec<&str> = rest.iter().filter(is_digest).copied().collect();
        if digests.is_empty() || digests.len() != rest.len() {
            return Err(wrong(format!(
                "has {found} without a SHA-256 digest, or with more than that"
            )));
        }
        let bare = found.split('[').next().unwrap_or(found);
        if normal_pypi(bare) == name {
            version = Some(at.to_owned());
        }
        lines.push(format!("{bare}=={at} {}", digests.join(" ")));
    }
    let version = version.ok_or_else(|| wrong(format!("does not have {name}")))?;
    Ok((lines.join("\n") + "\n", version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_that_is_configured() {
        let of = |text: &str| uv_index(&[text.to_owned()], &|_| None).unwrap().url;
        assert_eq!(of(""), "https://pypi.org/simple/");
        assert_eq!(of("index-url = 'https://a.example/simple'"), "https://a.example/simple/");
        let both = "[[index]]\nurl = 'https://b.example/'\n[[index]]\nurl = 'https://c.example/simple'\ndefault = true\n";
        assert_eq!(of(both), "https://c.example/simple/");
        let named = uv_index(&[both.to_owned()], &|name| {
            (name == "UV_DEFAULT_INDEX").then(|| "https://d.example/".to_owned())
        });
        assert_eq!(named.unwrap().url, "https://d.example/");
    }

    #[test]
    fn only_versions_with_digests() {
        let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let good = format!(
            "# made by uv\na-b==1.0 \\\n    --hash=sha256:{hash} \\\n    --hash=sha256:{hash}\nc[d]==2.0 --hash=sha256:{hash}\n"
        );
        let (text, version) = uv_requirements(&good, "a-b").unwrap();
        assert_eq!(version, "1.0");
        assert_eq!(
            text,
            format!(
                "a-b==1.0 --hash=sha256:{hash} --hash=sha256:{hash}\nc==2.0 --hash=sha256:{hash}\n"
            )
        );
        for wrong in [
            "a-b==1.0".to_owned(),
            format!("a-b @ https://x/a.whl --hash=sha256:{hash}"),
            format!("a-b>=1.0 --hash=sha256:{hash}"),
            "a-b==1.0 --hash=md5:1".to_owned(),
            format!("a-b==1.0 --index-url=https://evil.example --hash=sha256:{hash}"),
            format!("--find-links https://evil.example\na-b==1.0 --hash=sha256:{hash}"),
            format!("c==1.0 --hash=sha256:{hash}"),
        ] {
            assert!(uv_requirements(&wrong, "a-b").is_err(), "{wrong}");
        }
    }
}
