//! The policy that is being learned, and its text: sorted, only what was given or learned, each line with its reason.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::path::Path;

use mcp_policy::toml_text::{comment, key, quoted};
use mcp_policy::{
    Bytes, NetworkMode, Origin, Policy, Protect, SecretRef, Sourced, Subprocess, Trust,
};

use crate::grant::Grant;
use crate::observation::Evidence;

/// The tables in the order in which they are written. Keys of the first stand before all tables.
const TABLES: [&str; 8] =
    ["", "filesystem", "network", "process", "limits", "env", "env.set", "env.secrets"];

/// A policy in the making.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    grants: BTreeMap<Grant, String>,
    /// Closed paths.
    denied: BTreeMap<String, String>,
    /// Learned limits with their notes, by name. A given one of the same name holds.
    limits: BTreeMap<&'static str, (String, String)>,
    /// Other given keys, by table and name.
    values: BTreeMap<(usize, String), Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// Literals with their notes.
    List(BTreeMap<String, String>),
    One {
        literal: String,
        note: String,
    },
}

impl Draft {
    /// What a person gave by flags or a policy file. Defaults, the user's config and a package's manifest are left out: they
    /// hold in later runs as well.
    ///
    /// # Errors
    ///
    /// A path that is not UTF-8: TOML cannot hold it.
    pub fn of(policy: &Policy) -> Result<Draft, String> {
        let mut draft = Draft::default();
        draft.take_grants(policy)?;
        draft.take_files(policy)?;
        draft.take_network(policy);
        draft.take_limits(policy);
        draft.take_variables(policy)?;
        Ok(draft)
    }

    fn take_grants(&mut self, policy: &Policy) -> Result<(), String> {
        let files = &policy.filesystem;
        for path in given(&files.read) {
            utf8(&path.value)?;
            self.insert(Grant::Read(path.value.clone()), path.origin.to_string());
        }
        for path in given(&files.write) {
            utf8(&path.value)?;
            self.insert(Grant::Write(path.value.clone()), path.origin.to_string());
        }
        for path in given(&policy.network.unix) {
            utf8(&path.value)?;
            self.insert(Grant::Unix(path.value.clone()), path.origin.to_string());
        }
        for rule in given(&policy.network.allow) {
            self.insert(Grant::Net(rule.value.clone()), rule.origin.to_string());
        }
        Ok(())
    }

    fn take_files(&mut self, policy: &Policy) -> Result<(), String> {
        for path in given(&policy.filesystem.deny) {
            self.deny(utf8(&path.value)?, &path.origin.to_string());
        }
        for path in given(&policy.filesystem.allow_write) {
            self.list("filesystem", "allow_write", quoted(utf8(&path.value)?), &path.origin);
        }
        self.one("filesystem", "protect", &policy.protect, |protect| {
            (*protect == Protect::Usual).to_string()
        });
        self.one("process", "subprocess", &policy.process.subprocess, |subprocess| {
            (*subprocess == Subprocess::Allowed).to_string()
        });
        Ok(())
    }

    fn take_network(&mut self, policy: &Policy) {
        let network = &policy.network;
        if network.mode.value == NetworkMode::Host {
            self.one("", "network", &network.mode, |_| quoted("host"));
            return;
        }
        for port in given(&network.listen) {
            self.list("network", "listen", port.value.to_string(), &port.origin);
        }
        self.one("network", "system_trust", &network.trust, |trust| {
            (*trust == Trust::System).to_string()
        });
    }

    fn take_limits(&mut self, policy: &Policy) {
        fn text<T: Display>(value: &Option<T>) -> String {
            quoted(&value.as_ref().map_or_else(|| "none".to_owned(), T::to_string))
        }
        fn count(value: &Option<u32>) -> String {
            value.map_or_else(|| quoted("none"), |count| count.to_string())
        }
        let limits = &policy.limits;
        self.one("limits", "memory", &limits.memory, text);
        self.one("limits", "cpu", &limits.cpu, |cores| {
            cores.map_or_else(|| quoted("none"), |cores| cores.number())
        });
        self.one("limits", "cpu_time", &limits.cpu_time, text);
        self.one("limits", "io", &limits.io, text);
        self.one("limits", "processes", &limits.processes, count);
        self.one("limits", "open_files", &limits.open_files, count);
        self.one("limits", "file_size", &limits.file_size, text);
        self.one("limits", "tmp_size", &limits.tmp_size, |size| quoted(&size.to_string()));
        self.one("limits", "address_space", &limits.address_space, text);
        self.one("limits", "timeout", &limits.timeout, text);
        self.one("limits", "grace", &limits.grace, |grace| quoted(&grace.to_string()));
    }

    fn take_variables(&mut self, policy: &Policy) -> Result<(), String> {
        for pattern in given(&policy.env.allow) {
            match pattern.value.as_str().parse() {
                Ok(name) => self.insert(Grant::Variable(name), pattern.origin.to_string()),
                // A pattern of several.
                Err(_) => {
                    self.list("env", "allow", quoted(pattern.value.as_str()), &pattern.origin);
                }
            }
        }
        for (name, value) in &policy.env.set {
            self.one("env.set", &key(name.as_str()), value, |value| quoted(value));
        }
        for (name, reference) in &policy.env.secrets {
            let text = match &reference.value {
                SecretRef::Env(variable) => format!("env:{}", variable.as_str()),
                SecretRef::File(path) => format!("file:{}", utf8(path)?),
                SecretRef::Command(command) => format!("cmd:{command}"),
            };
            self.one("env.secrets", &key(name.as_str()), reference, |_| quoted(&text));
        }
        Ok(())
    }

    fn list(&mut self, table: &str, name: &str, literal: String, origin: &Origin) {
        if let Value::List(items) = self
            .values
            .entry((index(table), name.to_owned()))
            .or_insert_with(|| Value::List(BTreeMap::new()))
        {
            items.insert(literal, origin.to_string());
        }
    }

    fn one<T>(
        &mut self,
        table: &str,
        name: &str,
        value: &Sourced<T>,
        literal: impl Fn(&T) -> String,
    ) {
        if is_given(&value.origin) {
            let value =
                Value::One { literal: literal(&value.value), note: value.origin.to_string() };
            self.values.insert((index(table), name.to_owned()), value);
        }
    }

    /// Adds a line, unless another gives it already; lines that it gives are taken out.
    pub fn insert(&mut self, grant: Grant, note: String) {
        if self.grants.keys().any(|kept| kept.covers(&grant)) {
            return;
        }
        self.grants.retain(|kept, _| !grant.covers(kept));
        self.grants.insert(grant, note);
    }

    /// Adds a learned line with its evidence.
    pub fn learn(&mut self, grant: Grant, evidence: &Evidence) {
        self.insert(grant, note(evidence));
    }

    /// Takes a line out.
    pub fn remove(&mut self, grant: &Grant) {
        self.grants.remove(grant);
    }

    /// Closes a path inside what is granted.
    pub fn deny(&mut self, path: &str, note: &str) {
        self.denied.entry(path.to_owned()).or_insert_with(|| note.to_owned());
    }

    /// The closed paths, with their notes.
    pub fn denied(&self) -> impl Iterator<Item = (&str, &str)> {
        self.denied.iter().map(|(path, note)| (path.as_str(), note.as_str()))
    }

    /// The memory limit, with the peak that it is made from.
    pub fn limit_memory(&mut self, limit: Bytes, note: &str) {
        self.limit("memory", quoted(&limit.to_string()), note);
    }

    /// The limit of processes and threads, with the peak that it is made from.
    pub fn limit_processes(&mut self, limit: u32, note: &str) {
        self.limit("processes", limit.to_string(), note);
    }

    /// The limit of temporary space, with what it is made from.
    pub fn limit_temporary(&mut self, limit: Bytes, note: &str) {
        self.limit("tmp_size", quoted(&limit.to_string()), note);
    }

    fn limit(&mut self, name: &'static str, literal: String, note: &str) {
        self.limits.insert(name, (literal, note.to_owned()));
    }

    /// Takes the learned limits out.
    pub fn without_limits(&mut self) {
        self.limits.clear();
    }

    /// The lines that give something, in order.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.keys()
    }

    /// The lines that give something, with their notes.
    pub fn noted(&self) -> impl Iterator<Item = (&Grant, &str)> {
        self.grants.iter().map(|(grant, note)| (grant, note.as_str()))
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.grants.is_empty()
            && self.denied.is_empty()
            && self.limits.is_empty()
            && self.values.is_empty()
    }

    /// The text that `--policy` takes.
    pub fn to_toml(&self) -> String {
        let mut values = self.values.clone();
        if !self.denied.is_empty() {
            let items = self.denied.iter().map(|(path, note)| (quoted(path), note.clone()));
            let key = (index("filesystem"), "deny".to_owned());
            values.insert(key, Value::List(items.collect()));
        }
        for (name, (literal, note)) in &self.limits {
            let value = Value::One { literal: literal.clone(), note: note.clone() };
            values.entry((index("limits"), (*name).to_owned())).or_insert(value);
        }
        for (grant, note) in &self.grants {
            let Some(text) = grant.value() else { continue };
            let (table, name) = grant.key();
            let entry = match grant {
                Grant::Secret(variable) => {
                    let literal = quoted(&format!("env:{text}"));
                    let value = Value::One { literal, note: note.clone() };
                    values.insert((index("env.secrets"), key(variable.as_str())), value);
                    continue;
                }
                _ => values.entry((index(table), name.to_owned())),
            };
            if let Value::List(items) = entry.or_insert_with(|| Value::List(BTreeMap::new())) {
                items.insert(quoted(&text), note.clone());
            }
        }
        let mut page = String::new();
        let mut last = 0;
        for ((table, name), value) in &values {
            if *table != last {
                let space = if page.is_empty() { "" } else { "\n" };
                // Writing to a String cannot fail.
                let _ = writeln!(page, "{space}[{}]", TABLES[*table]);
                last = *table;
            }
            value.write(&mut page, name);
        }
        page
    }
}

impl Value {
    fn write(&self, page: &mut String, name: &str) {
        let _ = match self {
            Value::One { literal, note } => {
                writeln!(page, "{name} = {literal} # {}", comment(note))
            }
            Value::List(items) => {
                let _ = writeln!(page, "{name} = [");
                for (item, note) in items {
                    let _ = writeln!(page, "    {item}, # {}", comment(note));
                }
                writeln!(page, "]")
            }
        };
    }
}

/// `12 times, first by read_file`.
fn note(evidence: &Evidence) -> String {
    let times = match evidence.times {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    match evidence.first.as_str() {
        "" => times,
        first => format!("{times}, first by {first}"),
    }
}

fn index(table: &str) -> usize {
    TABLES.iter().position(|known| *known == table).unwrap_or_default()
}

fn is_given(origin: &Origin) -> bool {
    matches!(origin, Origin::CommandLine { .. } | Origin::PolicyFile { .. })
}

fn given<T>(values: &[Sourced<T>]) -> impl Iterator<Item = &Sourced<T>> {
    values.iter().filter(|value| is_given(&value.origin))
}

fn utf8(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8, which a policy file is", path.display()))
}

#[cfg(test)]
mod tests;
