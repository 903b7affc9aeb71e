//! What a manifest asks for, one wish at a time: in words for a person, and as the flag that gives it.

use std::fmt::Display;
use std::path::Path;

use mcp_policy::{
    Layer, LayerKind, NetworkMode, Origin, Policy, Sourced, Subprocess, Trust,
    asked_but_not_granted,
};

/// One wish. It is a layer of its own, so that the policy's own rules say whether it is granted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ask {
    /// Such as `write /home/me/notes`; also what a grant is remembered by.
    pub text: String,
    /// Such as `--write /home/me/notes`.
    pub flag: String,
    layer: Layer,
}

impl Ask {
    /// A limit that a person has set is decided, whatever a package would like.
    #[must_use]
    pub fn is_granted_by(&self, policy: &Policy) -> bool {
        asked_but_not_granted(std::slice::from_ref(&self.layer), policy).is_empty()
            || self.is_decided_by(policy)
    }

    fn is_decided_by(&self, policy: &Policy) -> bool {
        let (asked, limits) = (&self.layer.limits, &policy.limits);
        let of_person =
            |origin: &Origin| !matches!(origin, Origin::Default | Origin::Manifest { .. });
        [
            (asked.memory.is_some(), &limits.memory.origin),
            (asked.cpu.is_some(), &limits.cpu.origin),
            (asked.cpu_time.is_some(), &limits.cpu_time.origin),
            (asked.io.is_some(), &limits.io.origin),
            (asked.processes.is_some(), &limits.processes.origin),
            (asked.open_files.is_some(), &limits.open_files.origin),
            (asked.file_size.is_some(), &limits.file_size.origin),
            (asked.tmp_size.is_some(), &limits.tmp_size.origin),
            (asked.address_space.is_some(), &limits.address_space.origin),
            (asked.timeout.is_some(), &limits.timeout.origin),
        ]
        .iter()
        .any(|(is_asked, origin)| *is_asked && of_person(origin))
    }

    /// The wish as a person's word: what they agreed to.
    #[must_use]
    pub fn granted(&self) -> Layer {
        let mut layer = self.layer.clone();
        layer.kind = LayerKind::UserConfig;
        layer
    }
}

/// Every wish of these layers, each once.
#[must_use]
pub fn asks(layers: &[Layer]) -> Vec<Ask> {
    let mut list = List { asks: Vec::new() };
    for layer in layers {
        list.paths(layer);
        list.network(layer);
        list.environment(layer);
        list.limits(layer);
    }
    list.asks
}

struct List {
    asks: Vec<Ask>,
}

impl List {
    fn add(&mut self, text: String, flag: String, fill: impl FnOnce(&mut Layer)) {
        if self.asks.iter().any(|ask| ask.text == text) {
            return;
        }
        // An empty manifest layer has nothing that could be wrong.
        if let Ok(mut layer) = Layer::manifest("the package", "/", None).build() {
            fill(&mut layer);
            self.asks.push(Ask { text, flag, layer });
        }
    }

    fn paths(&mut self, layer: &Layer) {
        for path in &layer.filesystem.read {
            let shown = shown(&path.value);
            self.add(format!("read {shown}"), format!("--read {shown}"), |layer| {
                layer.filesystem.read.push(path.clone());
            });
        }
        for path in &layer.filesystem.write {
            let shown = shown(&path.value);
            self.add(format!("write {shown}"), format!("--write {shown}"), |layer| {
                layer.filesystem.write.push(path.clone());
            });
        }
        for path in &layer.filesystem.allow_write {
            let shown = shown(&path.value);
            let text = format!("write {shown} even where settings are protected");
            self.add(text, format!("--unprotect {shown}"), |layer| {
                layer.filesystem.allow_write.push(path.clone());
            });
        }
    }

    fn network(&mut self, layer: &Layer) {
        if let Some(mode) =
            layer.network_mode.as_ref().filter(|mode| mode.value == NetworkMode::Host)
        {
            self.add(
                "use the host's own network, unrestricted".into(),
                "--network host".into(),
                |layer| {
                    layer.network_mode = Some(mode.clone());
                },
            );
        }
        for rule in &layer.allow {
            self.add(
                format!("connect to {}", rule.value),
                format!("--allow-net {}", rule.value),
                |layer| {
                    layer.allow.push(rule.clone());
                },
            );
        }
        for path in &layer.unix {
            let shown = shown(&path.value);
            self.add(format!("connect to {shown}"), format!("--allow-unix {shown}"), |layer| {
                layer.unix.push(path.clone());
            });
        }
        for port in &layer.listen {
            self.add(
                format!("listen on port {}", port.value),
                format!("--listen {}", port.value),
                |layer| {
                    layer.listen.push(port.clone());
                },
            );
        }
        if let Some(trust) = layer.trust.as_ref().filter(|trust| trust.value == Trust::System) {
            self.add(
                "ask the system's certificate service (macOS)".into(),
                "--system-trust".into(),
                |layer| {
                    layer.trust = Some(trust.clone());
                },
            );
        }
    }

    fn environment(&mut self, layer: &Layer) {
        for pattern in &layer.env.allow {
            self.add(
                format!("see the variable {}", pattern.value),
                format!("--env {}", pattern.value),
                |layer| {
                    layer.env.allow.push(pattern.clone());
                },
            );
        }
        for (name, reference) in &layer.env.secrets {
            let text = format!("get the secret {name} from {}", reference.value);
            self.add(text, format!("--secret {name}={}", reference.value), |layer| {
                layer.env.secrets.insert(name.clone(), reference.clone());
            });
        }
    }

    fn limits(&mut self, layer: &Layer) {
        let of = &layer.limits;
        self.limit("memory", "--max-memory", &of.memory, |layer, value| {
            layer.limits.memory = value
        });
        self.limit("cpu", "--max-cpu", &of.cpu, |layer, value| layer.limits.cpu = value);
        self.limit("disk traffic", "--max-io", &of.io, |layer, value| layer.limits.io = value);
        self.limit("cpu time", "--max-cpu-time", &of.cpu_time, |layer, value| {
            layer.limits.cpu_time = value
        });
        self.limit("processes", "--max-pids", &of.processes, |layer, value| {
            layer.limits.processes = value
        });
        self.limit("open files", "--max-fds", &of.open_files, |layer, value| {
            layer.limits.open_files = value
        });
        self.limit("file size", "--max-file-size", &of.file_size, |layer, value| {
            layer.limits.file_size = value
        });
        self.limit("address space", "--max-address-space", &of.address_space, |layer, value| {
            layer.limits.address_space = value;
        });
        self.limit("time", "--timeout", &of.timeout, |layer, value| layer.limits.timeout = value);
        if let Some(size) = &of.tmp_size {
            let value = size.value.to_string().replace(' ', "");
            self.add(
                format!("temporary space {}", size.value),
                format!("--max-tmp {value}"),
                |layer| {
                    layer.limits.tmp_size = Some(size.clone());
                },
            );
        }
        if let Some(asked) =
            layer.subprocess.as_ref().filter(|asked| asked.value == Subprocess::Allowed)
        {
            self.add(
                "start other processes".into(),
                "leaving out --no-subprocess".into(),
                |layer| {
                    layer.subprocess = Some(asked.clone());
                },
            );
        }
    }

    fn limit<T: Clone + Display>(
        &mut self,
        what: &str,
        flag: &str,
        asked: &Option<Sourced<Option<T>>>,
        set: impl FnOnce(&mut Layer, Option<Sourced<Option<T>>>),
    ) {
        let Some(asked) = asked else { return };
        let value = asked.value.as_ref().map_or_else(|| "none".to_owned(), T::to_string);
        let text = match &asked.value {
            Some(_) => format!("up to {value} of {what}"),
            None => format!("{what} without limit"),
        };
        self.add(text, format!("{flag} {}", value.replace(' ', "")), |layer| {
            set(layer, Some(asked.clone()))
        });
    }
}

/// For a person, and for a shell to take back.
fn shown(path: &Path) -> String {
    let text = mcp_policy::text::word(&path.to_string_lossy());
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@,~".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use mcp_policy::{Defaults, LayerSource};

    use super::*;

    fn asked(text: &str) -> Vec<Ask> {
        let source = LayerSource {
            kind: LayerKind::Manifest,
            path: "mcp.toml".into(),
            base: "/package".into(),
            home: Some("/home/me".into()),
        };
        asks(&[Layer::from_toml(text, source).unwrap()])
    }

    /// Windows writes paths otherwise, and has them quoted for that.
    fn plain(flag: &str) -> String {
        if !cfg!(windows) {
            return flag.to_owned();
        }
        let flag = flag.replace('\\', "/");
        if flag.contains("/a b") { flag } else { flag.replace('\'', "") }
    }

    #[test]
    fn every_kind_of_wish_has_words_and_a_flag_and_can_be_granted() {
        let all = asked(
            "[filesystem]\nread=['~/a b']\nwrite=['/w']\nallow_write=['/w/.git/config']\n[network]\nallow=['x.org:443']\nunix=['/s']\nlisten=[80]\nsystem_trust=true\n\
             [env]\nallow=['A']\nsecrets={T='env:T'}\n[limits]\nmemory='8 GiB'\ntimeout='none'\ntmp_size='8 GiB'\nprocesses=5000\n",
        );
        let flags: Vec<String> = all.iter().map(|ask| plain(&ask.flag)).collect();
        assert_eq!(
            flags,
            [
                "--read '/home/me/a b'",
                "--write /w",
                "--unprotect /w/.git/config",
                "--allow-net x.org:443",
                "--allow-unix /s",
                "--listen 80",
                "--system-trust",
                "--env A",
                "--secret T=env:T",
                "--max-memory 8GiB",
                "--max-pids 5000",
                "--timeout none",
                "--max-tmp 8GiB"
            ]
        );
        let nothing = Policy::merge(&[], Defaults::exec()).unwrap();
        let everything: Vec<Layer> = all.iter().map(Ask::granted).collect();
        let everything = Policy::merge(&everything, Defaults::exec()).unwrap();
        for ask in &all {
            assert!(!ask.is_granted_by(&nothing), "{}", ask.text);
            assert!(ask.is_granted_by(&everything), "{}", ask.text);
        }
    }

    #[test]
    fn what_holds_anyway_is_not_asked_about() {
        let policy = Policy::merge(&[], Defaults::run()).unwrap();
        let open: Vec<Ask> = asked("[limits]\nmemory='64M'\n[process]\nsubprocess=true\n[filesystem]\ndeny=['**/.env']\n[env]\nset={A='1'}")
            .into_iter()
            .filter(|ask| !ask.is_granted_by(&policy))
            .collect();
        assert_eq!(open, []);
    }
}
