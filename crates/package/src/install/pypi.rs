//! pip: its index, its report, a wheel's own entry point.

use serde_json::{Value, json};

use super::Index;
use crate::error::{Error, Result};
use crate::reference::normal_pypi;

const DEFAULT: &str = "https://pypi.org/simple/";

/// The index: pip's variables, uv's, then what `pip config list` said.
pub fn pypi_index(config: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Index> {
    let configured = config.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let is_index =
            ["global.index-url", "install.index-url", "user.index-url", "site.index-url"]
                .contains(&key.trim());
        is_index.then(|| value.trim().trim_matches(['\'', '"']).to_owned())
    });
    let named = ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"]
        .iter()
        .find_map(|name| variable(name));
    Index::new(&named.or(configured).unwrap_or_else(|| DEFAULT.to_owned()))
}

/// pip's installation report → requirements with the digest of every wheel; name and version of
/// the one that was asked for.
pub fn requirements(report: &str, name: &str) -> Result<(String, String)> {
    let wrong = |why: &str| Error::package(format!("what pip resolved {why}"));
    let report: Value = serde_json::from_str(report).map_err(|e| wrong(&e.to_string()))?;
    let installs = report["install"].as_array().ok_or_else(|| wrong("is not a report"))?;
    let mut lines = Vec::new();
    let mut version = None;
    for one in installs {
        let (found, at) = (one["metadata"]["name"].as_str(), one["metadata"]["version"].as_str());
        let (Some(found), Some(at)) = (found, at) else {
            return Err(wrong("has no name and version"));
        };
        let word =
            |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-._!+".contains(c));
        let url = one["download_info"]["url"].as_str().unwrap_or_default();
        let url = url.split(['#', '?']).next().unwrap_or_default();
        let archive = &one["download_info"]["archive_info"];
        let sha256 = archive["hashes"]["sha256"]
            .as_str()
            .or_else(|| archive["hash"].as_str().and_then(|hash| hash.strip_prefix("sha256=")));
        let sha256 = sha256.filter(|hex| crate::Digest::from_hex(hex).is_ok());
        let (Some(sha256), true) = (sha256, url.ends_with(".whl") && word(found) && word(at))
        else {
            return Err(wrong(&format!("has {found}, which is not a wheel with a SHA-256 digest")));
        };
        lines.push(format!("{found}=={at} --hash=sha256:{sha256}"));
        if normal_pypi(found) == name {
            version = Some(at.to_owned());
        }
    }
    lines.sort();
    let version = version.ok_or_else(|| wrong(&format!("does not have {name}")))?;
    Ok((lines.join("\n") + "\n", version))
}

/// The `console_scripts` of `entry_points.txt`: the one of the project's name, or the only one.
pub fn pypi_launcher(name: &str, entry_points: &str) -> Result<String> {
    let wrong = |why: String| Error::package(format!("{name}: {why}"));
    let mut scripts = Vec::new();
    let mut section = "";
    for line in entry_points
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']').trim();
        } else if section == "console_scripts"
            && let Some((script, target)) = line.split_once('=')
        {
            scripts.push((script.trim(), target.split('[').next().unwrap_or(target).trim()));
        }
    }
    let own = scripts.iter().find(|(script, _)| normal_pypi(script) == name);
    let (script, target) = match (own, &scripts[..]) {
        (Some(own), _) => own,
        (None, [only]) => only,
        (None, []) => return Err(wrong("has no program to run (no console script)".to_owned())),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|(script, _)| *script).collect();
            return Err(wrong(format!(
                "has several programs, and none of its own name: {}",
                names.join(", ")
            )));
        }
    };
    let word = |text: &str| {
        !text.is_empty()
            && text.split('.').all(|part| {
                part.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    && part.chars().all(|c| c.is_alphanumeric() || c == '_')
            })
    };
    let parsed =
        target.split_once(':').filter(|(module, attribute)| word(module) && word(attribute));
    let (module, attribute) =
        parsed.ok_or_else(|| wrong(format!("its entry point {target:?} makes no sense")))?;
    let first = attribute.split('.').next().unwrap_or(attribute);
    Ok(format!(
        "import os, sys\n\
         sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), \"site\"))\n\
         sys.argv[0] = {script:?}\n\
         from {module} import {first}\n\
         sys.exit({attribute}())\n"
    ))
}

/// A bundle's `manifest.json`. `-I`: nothing of the user's, no variable of Python's, no current directory.
pub fn pypi_manifest(name: &str, version: &str, python: &str) -> String {
    json!({
        "manifest_version": "0.3",
        "name": name,
        "version": version,
        "description": "",
        "author": {"name": "PyPI"},
        "compatibility": {"runtimes": {"python": format!("={python}")}},
        "server": {
            "type": "python",
            "entry_point": "start.py",
            "mcp_config": {"command": "python3", "args": ["-I", "${__dirname}/start.py"], "env": {}},
        },
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_that_is_configured() {
        let of = |config: &str, name: &'static str, value: &'static str| {
            pypi_index(config, &|asked| (asked == name).then(|| value.to_owned())).unwrap().url
        };
        assert_eq!(of("", "", ""), DEFAULT);
        assert_eq!(
            of("global.index-url='https://c.example/simple'\nglobal.cert='x'", "", ""),
            "https://c.example/simple/"
        );
        assert_eq!(
            of("global.index-url='https://c.example/'", "PIP_INDEX_URL", "https://e.example/"),
            "https://e.example/"
        );
    }

    fn install(url: &str, hash: &str) -> String {
        format!(
            r#"{{"install": [{{"metadata": {{"name": "A_b", "version": "1.0"}}, "download_info": {{"url": "{url}", "archive_info": {{"hashes": {{"sha256": "{hash}"}}}}}}}}]}}"#
        )
    }

    #[test]
    fn only_wheels_with_digests() {
        let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let (text, version) = requirements(&install("https://x/a.whl", hash), "a-b").unwrap();
        assert_eq!((text, version.as_str()), (format!("A_b==1.0 --hash=sha256:{hash}\n"), "1.0"));
        assert!(requirements(&install("https://x/a.tar.gz", hash), "a-b").is_err());
        assert!(requirements(&install("https://x/a.whl", "12"), "a-b").is_err());
        assert!(requirements(&install("https://x/a.whl", hash), "other").is_err());
        assert!(requirements("{}", "a").is_err());
    }

    #[test]
    fn entry_points() {
        let text =
            "[console_scripts]\nother = x:y\na-b = a_b.cli:main.run\n[gui_scripts]\ng = g:g\n";
        let launcher = pypi_launcher("a-b", text).unwrap();
        assert!(launcher.contains("from a_b.cli import main\nsys.exit(main.run())"), "{launcher}");
        assert!(
            pypi_launcher("z", "[console_scripts]\nonly = m:f [extra]")
                .unwrap()
                .contains("from m import f")
        );
        for text in [
            "",
            "[console_scripts]\na = x:y\nb = x:y",
            "[console_scripts]\nz = os;evil:y",
            "[console_scripts]\nz = m:f()",
        ] {
            assert!(pypi_launcher("z", text).is_err(), "{text}");
        }
    }
}
