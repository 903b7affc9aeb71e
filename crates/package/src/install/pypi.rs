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

/// Which files of an index may be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distributions {
    /// Wheels, which run nothing at installation.
    Wheels,
    /// Source distributions as well, which run code of the package.
    AnyKind,
}

/// pip's installation report → requirements with the digest of every wheel; name and version of
/// the one that was asked for.
pub fn requirements(report: &str, name: &str, from: Distributions) -> Result<(String, String)> {
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
        let is_wanted = from == Distributions::AnyKind || url.ends_with(".whl");
        let (Some(sha256), true) = (sha256, is_wanted && word(found) && word(at)) else {
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

/// The `console_scripts` of `entry_points.txt` as files: `programs/NAME.py` for each, and `start.py` for the one that
/// a server is started by: of the project's name, the only one, or the only one that calls itself a server.
/// Where that is not clear, `start.py` says what there is.
pub fn pypi_launchers(name: &str, entry_points: &str) -> Result<Vec<(String, String)>> {
    let wrong = |why: String| Error::package(format!("{name}: {why}"));
    let scripts = console_scripts(entry_points);
    if scripts.is_empty() {
        return Err(wrong("has no program to run (no console script)".to_owned()));
    }
    let mut files = Vec::new();
    let chosen = chosen(name, &scripts);
    for (script, target) in &scripts {
        let is_chosen = chosen == Some(*script);
        let Some(target) = Target::parse(target) else {
            if is_chosen {
                return Err(wrong(format!("its entry point {target:?} is not valid")));
            }
            continue;
        };
        if is_chosen {
            files.push(("start.py".to_owned(), target.launcher(script, 1)));
        }
        if is_program_name(script) {
            files.push((format!("programs/{script}.py"), target.launcher(script, 2)));
        }
    }
    if chosen.is_none() {
        let names: Vec<&str> = scripts
            .iter()
            .map(|(script, _)| *script)
            .filter(|name| is_program_name(name))
            .collect();
        let text = format!(
            "{name} has several programs: {}; choose one: mcp run --bin NAME pypi:{name}",
            names.join(", ")
        );
        files.push(("start.py".to_owned(), format!("import sys\nsys.exit({text:?})\n")));
    }
    Ok(files)
}

fn console_scripts(entry_points: &str) -> Vec<(&str, &str)> {
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
    scripts
}

fn chosen<'a>(name: &str, scripts: &[(&'a str, &'a str)]) -> Option<&'a str> {
    let own = scripts.iter().find(|(script, _)| normal_pypi(script) == name);
    if let Some((script, _)) = own {
        return Some(script);
    }
    if let [(only, _)] = scripts {
        return Some(only);
    }
    // Each kind alone: two that look like one leave it open.
    let only = |looks: &dyn Fn(&str) -> bool| {
        let mut found = scripts.iter().map(|(script, _)| *script).filter(|script| looks(script));
        found.next().filter(|_| found.next().is_none())
    };
    only(&|script| script.contains("mcp") && script.contains("server"))
        .or_else(|| only(&|script| script.contains("mcp")))
        .or_else(|| only(&|script| script.contains("server")))
}

/// A name that is a file's and nothing more.
fn is_program_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(good)
        && name.len() <= 100
}

/// `module:attribute`, of names alone: it becomes a line of Python.
struct Target<'a> {
    module: &'a str,
    attribute: &'a str,
}

impl<'a> Target<'a> {
    fn parse(text: &'a str) -> Option<Target<'a>> {
        let word = |text: &str| {
            !text.is_empty()
                && text.split('.').all(|part| {
                    part.starts_with(|c: char| c.is_alphabetic() || c == '_')
                        && part.chars().all(|c| c.is_alphanumeric() || c == '_')
                })
        };
        let (module, attribute) = text.split_once(':')?;
        (word(module) && word(attribute)).then_some(Target { module, attribute })
    }

    /// `depth` directories below the package's own.
    fn launcher(&self, script: &str, depth: usize) -> String {
        let Target { module, attribute } = self;
        let first = attribute.split('.').next().unwrap_or(attribute);
        let root = (0..depth).fold("os.path.abspath(__file__)".to_owned(), |path, _| {
            format!("os.path.dirname({path})")
        });
        format!(
            "import os, site, sys\n\
             # As in a virtual environment: after the standard library, in the place of the machine's packages.\n\
             machine = (\"site-packages\", \"dist-packages\")\n\
             sys.path[:] = [path for path in sys.path if os.path.basename(path) not in machine]\n\
             site.addsitedir(os.path.join({root}, \"site\"))\n\
             sys.argv[0] = {script:?}\n\
             from {module} import {first}\n\
             sys.exit({attribute}())\n"
        )
    }
}

/// A bundle's `manifest.json`. `-I`: nothing of the user's, no variable of Python's, no current directory.
#[must_use]
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
        let (text, version) =
            requirements(&install("https://x/a.whl", hash), "a-b", Distributions::Wheels).unwrap();
        assert_eq!((text, version.as_str()), (format!("A_b==1.0 --hash=sha256:{hash}\n"), "1.0"));
        let source = install("https://x/a.tar.gz", hash);
        assert!(requirements(&source, "a-b", Distributions::Wheels).is_err());
        assert!(requirements(&source, "a-b", Distributions::AnyKind).is_ok());
        for files in [Distributions::Wheels, Distributions::AnyKind] {
            let wheel = |hash| install("https://x/a.whl", hash);
            assert!(requirements(&wheel("12"), "a-b", files).is_err());
            assert!(requirements(&wheel(hash), "other", files).is_err());
            assert!(requirements("{}", "a", files).is_err());
        }
    }

    #[test]
    fn entry_points() {
        let text =
            "[console_scripts]\nother = x:y\na-b = a_b.cli:main.run\n[gui_scripts]\ng = g:g\n";
        let launcher = &files("a-b", text)["start.py"];
        assert!(launcher.contains("from a_b.cli import main\nsys.exit(main.run())"), "{launcher}");
        let only = files("z", "[console_scripts]\nonly = m:f [extra]");
        assert!(only["start.py"].contains("from m import f"));
        for text in ["", "[console_scripts]\nz = os;evil:y", "[console_scripts]\nz = m:f()"] {
            assert!(pypi_launchers("z", text).is_err(), "{text}");
        }
    }

    #[test]
    fn of_several_programs_the_server_is_started_and_each_can_be_chosen() {
        let text = "[console_scripts]\nserena = s:a\nserena-mcp-server = s:b\nindex-project = s:c\n../evil = s:d\n";
        let all = files("serena-agent", text);
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "programs/index-project.py",
                "programs/serena-mcp-server.py",
                "programs/serena.py",
                "start.py"
            ]
        );
        assert!(all["start.py"].contains("from s import b"));
        assert!(all["programs/serena.py"].contains("dirname(os.path.dirname("));
        let open = files("z", "[console_scripts]\na = m:f\nb = m:g");
        assert!(open["start.py"].contains("several programs: a, b"), "{}", open["start.py"]);
    }

    fn files(name: &str, text: &str) -> std::collections::BTreeMap<String, String> {
        pypi_launchers(name, text).unwrap().into_iter().collect()
    }
}
