//! What well-known servers need to do their job, as data (`recipes.toml`). A recipe proposes what a person may grant;
//! it grants nothing itself, and no part of a run depends on it.

use serde::Deserialize;

use crate::error::{Error, Result};

const TEXT: &str = include_str!("recipes.toml");

/// What one server needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Recipe {
    /// As `mcp run` names it, without a version.
    pub package: String,
    /// What it is for.
    pub does: String,
    /// Hosts that it connects to.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Variables that hold secrets.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Other variables that it reads.
    #[serde(default)]
    pub variables: Vec<String>,
    /// Those of `secrets` and `variables` without which it works as well.
    #[serde(default)]
    pub optional: Vec<String>,
    /// How the folder of its argument is to be granted.
    pub folder: Option<Folder>,
    /// Its arguments, where it needs some.
    pub arguments: Option<String>,
    /// More memory than the default, as `--max-memory` takes it.
    pub memory: Option<String>,
    /// Whether it drives a browser of the machine.
    #[serde(default)]
    pub browser: bool,
    /// What lasts between its runs.
    pub keeps: Option<String>,
    /// A tool and its arguments, as JSON, that show it at work.
    pub call: Option<(String, String)>,
}

/// What a server does with the folder of its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Folder {
    /// It reads there.
    Read,
    /// It writes there.
    Write,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipes {
    recipe: Vec<Recipe>,
}

/// All recipes, in the order of the file.
///
/// # Errors
///
/// When the file that this was built with makes no sense, which a test excludes.
pub fn all() -> Result<Vec<Recipe>> {
    let parsed: std::result::Result<Recipes, _> = toml::from_str(TEXT);
    parsed.map(|all| all.recipe).map_err(|e| Error::package(format!("recipes.toml: {e}")))
}

/// The recipe of a package, by its name without a version.
#[must_use]
pub fn find(package: &str) -> Option<Recipe> {
    // Most packages have none, and need not pay for reading all of them.
    if !TEXT.contains(&format!("package = \"{package}\"\n")) {
        return None;
    }
    all().ok()?.into_iter().find(|recipe| recipe.package == package)
}

impl Recipe {
    /// The flags that give it what it needs, but for what was given already.
    pub fn flags(
        &self,
        has_host: impl Fn(&str) -> bool,
        has: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let wanted = |name: &&String| !has(name) && !self.optional.contains(name);
        let hosts = self.hosts.iter().filter(|host| !has_host(host));
        // Who set where one is needs no flag.
        let browser = (self.browser && !has("CHROME_PATH")).then(|| "--browser".to_owned());
        browser
            .into_iter()
            .chain(hosts.map(|host| format!("--allow-net {host}")))
            .chain(
                self.secrets
                    .iter()
                    .filter(wanted)
                    .map(|name| format!("--secret {name}=env:{name}")),
            )
            .chain(self.variables.iter().filter(wanted).map(|name| format!("--env {name}")))
            .collect()
    }

    /// The line that starts it with all it needs.
    #[must_use]
    pub fn line(&self) -> String {
        let mut words = vec!["mcp run".to_owned()];
        words.extend(self.flags(|_| false, |_| false));
        words.extend(self.memory.iter().map(|size| format!("--max-memory {size}")));
        words.extend(self.folder.map(|folder| match folder {
            Folder::Read => "--read FOLDER".to_owned(),
            Folder::Write => "--write FOLDER".to_owned(),
        }));
        words.push(self.package.clone());
        words.extend(self.arguments.iter().map(|arguments| format!("-- {arguments}")));
        words.join(" ")
    }
}

/// docs/RECIPES.md.
///
/// # Errors
///
/// As for [`all`].
pub fn page() -> Result<String> {
    let mut page = String::from(
        "# Recipes\n\nWhat well-known servers need to do their job (not tried with accounts of those services). `mcp run` names what is missing \
         the first time a package starts. A\nrecipe grants nothing: you give the flags that you want to give. \
         Made from `crates/package/src/recipes.toml` by\n`UPDATE_DOCS=1 cargo test -p mcp-cli --test docs`.\n\n\
         | server | does | needs | keeps | a call that shows it |\n|---|---|---|---|---|\n",
    );
    for recipe in all()? {
        let call = recipe
            .call
            .as_ref()
            .map_or_else(String::new, |(tool, arguments)| format!("`{tool} {arguments}`"));
        let keeps = recipe.keeps.as_deref().unwrap_or_default();
        page += &format!(
            "| `{}` | {} | `{}` | {keeps} | {call} |\n",
            recipe.package,
            recipe.does,
            recipe.line()
        );
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Reference;

    #[test]
    fn every_recipe_makes_sense() {
        let all = all().unwrap();
        assert!(all.len() >= 40, "{}", all.len());
        let names: BTreeSet<&str> = all.iter().map(|recipe| recipe.package.as_str()).collect();
        assert_eq!(names.len(), all.len(), "a package twice");
        for recipe in &all {
            let reference: Reference = recipe.package.parse().unwrap();
            assert_eq!(reference.name(), recipe.package);
            for host in &recipe.hosts {
                host.parse::<mcp_policy::NetRule>().unwrap();
            }
            for name in recipe.secrets.iter().chain(&recipe.variables) {
                name.parse::<mcp_policy::EnvName>().unwrap();
            }
            if let Some(size) = &recipe.memory {
                size.parse::<mcp_policy::Bytes>().unwrap();
            }
            let known =
                |name: &String| recipe.secrets.contains(name) || recipe.variables.contains(name);
            assert!(recipe.optional.iter().all(known), "{}", recipe.package);
            if let Some((_, arguments)) = &recipe.call {
                let value: serde_json::Value = serde_json::from_str(arguments).unwrap();
                assert!(value.is_object(), "{arguments}");
            }
            assert_eq!(find(&recipe.package).as_ref(), Some(recipe));
        }
        assert_eq!(find("npm:left-pad"), None);
    }

    #[test]
    fn what_was_given_is_not_proposed() {
        let github = find("npm:@modelcontextprotocol/server-github").unwrap();
        let flags = github.flags(|_| false, |_| false);
        let secret = "--secret GITHUB_PERSONAL_ACCESS_TOKEN=env:GITHUB_PERSONAL_ACCESS_TOKEN";
        assert_eq!(flags, ["--allow-net api.github.com", secret]);
        assert_eq!(github.flags(|host| host == "api.github.com", |_| false), [secret]);
        assert_eq!(github.flags(|_| true, |_| true), [""; 0]);
        let browser = find("npm:@playwright/mcp").unwrap();
        assert_eq!(browser.flags(|_| false, |_| false), ["--browser"]);
        assert_eq!(browser.flags(|_| false, |name| name == "CHROME_PATH"), [""; 0]);
        assert_eq!(browser.line(), "mcp run --browser npm:@playwright/mcp");
        let context7 = find("npm:@upstash/context7-mcp").unwrap();
        assert_eq!(context7.flags(|_| false, |_| false), ["--allow-net context7.com"]);
    }
}
