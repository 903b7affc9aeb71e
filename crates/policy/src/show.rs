//! The effective policy in the syntax of a policy file, each value with its origin beside
//! it. Reading it back gives the same policy.

use std::fmt::{Display, Write};
use std::path::PathBuf;

use crate::policy::{NetworkMode, Policy, Sourced, Subprocess, Trust};
use crate::toml_text::{comment, key, quoted};
use crate::{Origin, Protect, SecretRef};

impl Policy {
    /// What `mcp policy show` prints. Secrets are references here too.
    pub fn to_toml(&self) -> String {
        let mut page = Page(String::new());
        let network = &self.network;
        if network.mode.value == NetworkMode::Host {
            // A top-level key has to stand before the first table.
            page.value("network", quoted("host"), &network.mode.origin);
            page.0.push('\n');
        }

        page.0.push_str("[filesystem]\n");
        page.paths("read", &self.filesystem.read);
        page.paths("write", &self.filesystem.write);
        page.paths("deny", &self.filesystem.deny);
        page.value("protect", self.protect.value == Protect::Usual, &self.protect.origin);
        page.paths("allow_write", &self.filesystem.allow_write);

        if network.mode.value == NetworkMode::Isolated {
            page.0.push_str("\n[network]\n");
            let rules =
                network.allow.iter().map(|r| (Some(quoted(&r.value.to_string())), &r.origin));
            page.list("allow", rules);
            page.paths("unix", &network.unix);
            page.list(
                "listen",
                network.listen.iter().map(|p| (Some(p.value.to_string()), &p.origin)),
            );
            let trust = &network.trust;
            page.value("system_trust", trust.value == Trust::System, &trust.origin);
        }

        page.0.push_str("\n[process]\n");
        let subprocess = &self.process.subprocess;
        page.value("subprocess", subprocess.value == Subprocess::Allowed, &subprocess.origin);

        page.0.push_str("\n[limits]\n");
        let limits = &self.limits;
        page.limit("memory", &limits.memory);
        let cpu = limits.cpu.value.map_or_else(|| quoted("none"), |cores| cores.number());
        page.value("cpu", cpu, &limits.cpu.origin);
        page.limit("cpu_time", &limits.cpu_time);
        page.limit("io", &limits.io);
        page.count("processes", &limits.processes);
        page.count("open_files", &limits.open_files);
        page.limit("file_size", &limits.file_size);
        page.value("tmp_size", quoted(&limits.tmp_size.value.to_string()), &limits.tmp_size.origin);
        page.limit("address_space", &limits.address_space);
        page.limit("timeout", &limits.timeout);
        page.value("grace", quoted(&limits.grace.value.to_string()), &limits.grace.origin);

        page.0.push_str("\n[env]\n");
        let allow = self.env.allow.iter();
        page.list("allow", allow.map(|p| (Some(quoted(p.value.as_str())), &p.origin)));
        if !self.env.set.is_empty() {
            page.0.push_str("\n[env.set]\n");
            for (name, value) in &self.env.set {
                page.value(&key(name.as_str()), quoted(&value.value), &value.origin);
            }
        }
        if !self.env.secrets.is_empty() {
            page.0.push_str("\n[env.secrets]\n");
            for (name, reference) in &self.env.secrets {
                match reference_text(&reference.value) {
                    Some(text) => page.value(&key(name.as_str()), quoted(&text), &reference.origin),
                    None => page.unwritable(&format!("{name} = {}", reference.value)),
                }
            }
        }
        page.0
    }
}

struct Page(String);

impl Page {
    fn value(&mut self, key: &str, value: impl Display, origin: &Origin) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{key} = {value} # {}", comment(&origin.to_string()));
    }

    fn limit<T: Display>(&mut self, key: &str, limit: &Sourced<Option<T>>) {
        let value = limit.value.as_ref().map_or_else(|| "none".to_owned(), T::to_string);
        self.value(key, quoted(&value), &limit.origin);
    }

    fn count(&mut self, key: &str, limit: &Sourced<Option<u32>>) {
        let value = limit.value.map_or_else(|| quoted("none"), |count| count.to_string());
        self.value(key, value, &limit.origin);
    }

    fn paths(&mut self, key: &str, paths: &[Sourced<PathBuf>]) {
        let mut unwritable = Vec::new();
        self.list(
            key,
            paths.iter().map(|path| {
                if path.value.to_str().is_none() {
                    unwritable.push(path.value.to_string_lossy().into_owned());
                }
                (path.value.to_str().map(quoted), &path.origin)
            }),
        );
        for path in unwritable {
            self.unwritable(&path);
        }
    }

    fn list<'o>(&mut self, key: &str, items: impl Iterator<Item = (Option<String>, &'o Origin)>) {
        let mut items = items.filter_map(|(item, origin)| Some((item?, origin))).peekable();
        if items.peek().is_none() {
            let _ = writeln!(self.0, "{key} = []");
            return;
        }
        let _ = writeln!(self.0, "{key} = [");
        for (item, origin) in items {
            let _ = writeln!(self.0, "    {item}, # {}", comment(&origin.to_string()));
        }
        self.0.push_str("]\n");
    }

    /// TOML is UTF-8, file names need not be. A comment says so, because the page would otherwise look complete.
    fn unwritable(&mut self, what: &str) {
        let _ = writeln!(self.0, "# also, but not writable in TOML: {}", comment(what));
    }
}

fn reference_text(reference: &SecretRef) -> Option<String> {
    match reference {
        SecretRef::Env(name) => Some(format!("env:{}", name.as_str())),
        SecretRef::File(path) => Some(format!("file:{}", path.to_str()?)),
        SecretRef::Command(command) => Some(format!("cmd:{command}")),
    }
}

#[cfg(test)]
mod tests;
