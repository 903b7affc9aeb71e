//! Bundles of type `uv`: they have a `pyproject.toml` instead of their dependencies, and leave it to
//! their host to get those. They are got once, locked by digest, and what comes of it is a bundle
//! of type `python` that needs no network.

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// What has to be made of such a bundle, whose own files go below `bundle/`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UvBundle {
    /// The name in the bundle's manifest.
    pub name: String,
    /// As the project wrote them.
    pub dependencies: Vec<String>,
    /// The new bundle's `manifest.json`, and its `start.py`.
    pub manifest: String,
    /// The program that starts the server.
    pub start: String,
}

/// Whether a manifest is of this type.
#[must_use]
pub fn is_uv(manifest: &str) -> bool {
    serde_json::from_str::<Value>(manifest).is_ok_and(|value| value["server"]["type"] == "uv")
}

/// `python` is the version that the dependencies are installed for.
pub fn uv_bundle(manifest: &str, pyproject: &str, python: &str) -> Result<UvBundle> {
    let wrong = |why: String| Error::package(format!("pyproject.toml: {why}"));
    let mut root: Value = serde_json::from_str(manifest)
        .map_err(|e| Error::package(format!("manifest.json: {e}")))?;
    let project: toml::Table =
        pyproject.parse().map_err(|e: toml::de::Error| wrong(e.message().to_owned()))?;
    let mut dependencies = Vec::new();
    let listed = project.get("project").and_then(|project| project.get("dependencies"));
    for one in listed.and_then(toml::Value::as_array).into_iter().flatten() {
        let text = one.as_str().ok_or_else(|| wrong("a dependency is not text".to_owned()))?;
        let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts || text.contains("://") || text.chars().any(char::is_control) {
            return Err(wrong(format!("{:?} is not a dependency from an index", text)));
        }
        dependencies.push(text.to_owned());
    }
    let server = &root["server"];
    let entry = server["entry_point"].as_str().unwrap_or_default().to_owned();
    let climbs = entry.split(['/', '\\']).any(|part| part == "..");
    if entry.is_empty() || entry.starts_with('/') || climbs || entry.contains(['"', '\\', '\n']) {
        return Err(Error::package("manifest.json: a bundle of type uv needs an entry_point"));
    }
    let text = |value: &Value| {
        value.as_str().unwrap_or_default().replace("${__dirname}", "${__dirname}/bundle")
    };
    // What comes after the entry point is for the server; what comes before it, for uv.
    let given = server["mcp_config"]["args"].as_array().cloned().unwrap_or_default();
    let after = given.iter().position(|arg| arg.as_str().is_some_and(|arg| arg.ends_with(&entry)));
    let rest = after.map(|at| given[at + 1..].iter().map(text).collect::<Vec<_>>());
    let mut args = vec!["-I".to_owned(), "${__dirname}/start.py".to_owned()];
    args.extend(rest.unwrap_or_default());
    let env = server["mcp_config"]["env"].as_object().cloned().unwrap_or_default();
    let env: serde_json::Map<String, Value> =
        env.iter().map(|(name, value)| (name.clone(), text(value).into())).collect();
    root["server"] = json!({
        "type": "python",
        "entry_point": "start.py",
        "mcp_config": {"command": "python3", "args": args, "env": env},
    });
    root["compatibility"]["runtimes"]["python"] = format!("={python}").into();
    Ok(UvBundle {
        name: root["name"].as_str().unwrap_or_default().to_owned(),
        dependencies,
        manifest: root.to_string(),
        start: start(&entry),
    })
}

/// The project's own modules are found beside its entry point, at its top and below `src`.
fn start(entry: &str) -> String {
    format!(
        "import os, runpy, sys\n\
         here = os.path.dirname(os.path.abspath(__file__))\n\
         bundle = os.path.join(here, \"bundle\")\n\
         entry = os.path.join(bundle, \"{entry}\")\n\
         sys.path[:0] = [os.path.dirname(entry), bundle, os.path.join(bundle, \"src\"), os.path.join(here, \"site\")]\n\
         sys.argv[0] = entry\n\
         runpy.run_path(entry, run_name=\"__main__\")\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{"manifest_version": "0.4", "name": "n", "version": "1.0.0", "user_config": {"k": {"type": "string"}},
        "server": {"type": "uv", "entry_point": "src/server.py", "mcp_config": {"command": "uv",
            "args": ["run", "--directory", "${__dirname}", "src/server.py", "--data", "${__dirname}/data"], "env": {"K": "${user_config.k}"}}}}"#;

    #[test]
    fn it_becomes_a_bundle_that_needs_nobody() {
        assert!(is_uv(MANIFEST) && !is_uv(r#"{"server": {"type": "python"}}"#) && !is_uv("x"));
        let pyproject = "[project]\nname = 'n'\ndependencies = ['six>=1', 'mcp[cli]']\n";
        let made = uv_bundle(MANIFEST, pyproject, "3.11").unwrap();
        assert_eq!(made.dependencies, ["six>=1", "mcp[cli]"]);
        let manifest: Value = serde_json::from_str(&made.manifest).unwrap();
        assert_eq!(manifest["user_config"]["k"]["type"], "string");
        let config = &manifest["server"]["mcp_config"];
        assert_eq!(manifest["compatibility"]["runtimes"]["python"], "=3.11");
        assert_eq!(config["command"], "python3");
        assert_eq!(
            config["args"],
            json!(["-I", "${__dirname}/start.py", "--data", "${__dirname}/bundle/data"])
        );
        assert_eq!(config["env"]["K"], "${user_config.k}");
        assert!(made.start.contains("\"src/server.py\""));
    }

    #[test]
    fn what_is_not_from_an_index_is_refused() {
        for dependency in ["x @ https://evil.example/x.whl", "--index-url=x", "../x", "a\\nb"] {
            let pyproject = format!("[project]\ndependencies = [\"{dependency}\"]\n");
            assert!(uv_bundle(MANIFEST, &pyproject, "3.11").is_err(), "{dependency}");
        }
        assert!(uv_bundle(&MANIFEST.replace("src/server.py", "../x"), "", "3.11").is_err());
        assert!(uv_bundle(MANIFEST, "[project", "3.11").is_err());
    }
}
