//! A layer put together from values that are typed already: the flags of the command line,
//! or a manifest in another syntax.

use std::path::PathBuf;

use crate::error::Error;
use crate::layer::{Layer, LayerKind};
use crate::limit_rules::{Limit, LimitValue};
use crate::paths::{PathRoots, Tilde};
use crate::policy::{NetworkMode, Sourced, Subprocess, Trust};
use crate::text;
use crate::{
    Bytes, Cores, Duration, EnvName, EnvPattern, NetRule, Origin, Protect, Rate, SecretRef,
    ValueError, parse,
};

/// Setters never fail; [`LayerBuilder::build`] tells the first thing that was wrong.
#[derive(Debug, Clone)]
pub struct LayerBuilder {
    layer: Layer,
    roots: PathRoots,
    /// Where everything is said; `None` on the command line, where each flag is a place.
    place: Option<String>,
    error: Option<Error>,
}

impl Layer {
    /// A layer of flags. `cwd` is absolute; relative paths are resolved against it.
    pub fn command_line(cwd: impl Into<PathBuf>, home: Option<PathBuf>) -> LayerBuilder {
        LayerBuilder::command_line(cwd.into(), home)
    }

    /// A layer of what a package asks for, when that is not written in policy syntax.
    /// `place` says where, such as `manifest.json`.
    pub fn manifest(
        place: impl Into<String>,
        base: impl Into<PathBuf>,
        home: Option<PathBuf>,
    ) -> LayerBuilder {
        LayerBuilder::manifest(place.into(), base.into(), home)
    }
}

impl LayerBuilder {
    pub(crate) fn command_line(base: PathBuf, home: Option<PathBuf>) -> Self {
        let layer = Layer::empty(LayerKind::CommandLine);
        Self { layer, roots: PathRoots { base, home }, place: None, error: None }
    }

    pub(crate) fn manifest(place: String, base: PathBuf, home: Option<PathBuf>) -> Self {
        let layer = Layer::empty(LayerKind::Manifest);
        let place = Some(text::word(&place));
        Self { layer, roots: PathRoots { base, home }, place, error: None }
    }

    fn origin(&self, flag: &str) -> Origin {
        match &self.place {
            Some(place) => Origin::Manifest { place: place.clone() },
            None => Origin::CommandLine { flag: flag.to_owned() },
        }
    }

    fn said<T>(&self, value: T, flag: &str) -> Sourced<T> {
        Sourced::new(value, self.origin(flag))
    }

    fn refuse(&mut self, flag: &str, error: ValueError) {
        let place = self.origin(flag);
        let error = Error::plain(format!("{place}: {}", error.message), error.hint);
        self.error.get_or_insert(error);
    }

    fn path(&mut self, path: PathBuf, flag: &str) -> Option<Sourced<PathBuf>> {
        match self.roots.resolve(&path, Tilde::Shell) {
            Ok(path) => Some(self.said(path, flag)),
            Err(error) => {
                self.refuse(flag, error);
                None
            }
        }
    }

    fn limit<T: LimitValue>(&mut self, limit: Limit, value: T) -> Option<Sourced<T>> {
        match value.check(limit) {
            Ok(()) => Some(self.said(value, limit.flag())),
            Err(error) => {
                self.refuse(limit.flag(), error);
                None
            }
        }
    }

    /// Shows a file or directory, read-only.
    pub fn read(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        let path = self.path(path.into(), "--read");
        self.layer.filesystem.read.extend(path);
        self
    }

    /// Shows a file or directory that may be written.
    pub fn write(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        let path = self.path(path.into(), "--write");
        self.layer.filesystem.write.extend(path);
        self
    }

    /// A path or a glob.
    pub fn deny(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        match self.roots.resolve_deny(&path.into(), Tilde::Shell) {
            Ok(path) => {
                let path = self.said(path, "--deny");
                self.layer.filesystem.deny.push(path);
            }
            Err(error) => self.refuse("--deny", error),
        }
        self
    }

    /// Takes the protection from a path inside a writable one.
    pub fn allow_write(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        let path = self.path(path.into(), "--unprotect");
        self.layer.filesystem.allow_write.extend(path);
        self
    }

    /// Protects settings that other programs act on, or not.
    pub fn protect(&mut self, protect: Protect) -> &mut Self {
        self.layer.protect = Some(self.said(protect, "--protect"));
        self
    }

    /// Opens the way to a host.
    pub fn allow_net(&mut self, rule: NetRule) -> &mut Self {
        let rule = self.said(rule, "--allow-net");
        self.layer.allow.push(rule);
        self
    }

    /// Lets the command use a unix socket of the host.
    pub fn allow_unix(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        let path = self.path(path.into(), "--allow-unix");
        self.layer.unix.extend(path);
        self
    }

    /// Lets the host reach a port of the command.
    pub fn listen(&mut self, port: u16) -> &mut Self {
        if port == 0 {
            let error = ValueError::new(0..0, "port 0 cannot be listened on", "name a port");
            self.refuse("--listen", error);
            return self;
        }
        let port = self.said(port, "--listen");
        self.layer.listen.push(port);
        self
    }

    /// Lets programs on macOS use the system's certificate service.
    pub fn system_trust(&mut self) -> &mut Self {
        self.layer.trust = Some(self.said(Trust::System, "--system-trust"));
        self
    }

    /// Gives the command the host's own network, unrestricted.
    pub fn network_host(&mut self) -> &mut Self {
        self.layer.network_mode = Some(self.said(NetworkMode::Host, "--network host"));
        self
    }

    /// Takes back a `network = "host"` of an earlier layer.
    pub fn network_isolated(&mut self) -> &mut Self {
        self.layer.network_mode = Some(self.said(NetworkMode::Isolated, "--network isolated"));
        self
    }

    /// Refuses new processes and programs; threads work.
    pub fn no_subprocess(&mut self) -> &mut Self {
        self.layer.subprocess = Some(self.said(Subprocess::Refused, "--no-subprocess"));
        self
    }

    /// Takes back a `subprocess = false` of an earlier layer.
    pub fn allow_subprocess(&mut self) -> &mut Self {
        self.layer.subprocess = Some(self.said(Subprocess::Allowed, "--subprocess"));
        self
    }

    /// Limits the memory of all processes together; `None` takes the limit away, here and below.
    pub fn memory(&mut self, limit: Option<Bytes>) -> &mut Self {
        self.layer.limits.memory = self.limit(Limit::Memory, limit);
        self
    }

    /// Limits the share of the processor.
    pub fn cpu(&mut self, limit: Option<Cores>) -> &mut Self {
        self.layer.limits.cpu = self.limit(Limit::Cpu, limit);
        self
    }

    /// Limits the processor time of each process.
    pub fn cpu_time(&mut self, limit: Option<Duration>) -> &mut Self {
        self.layer.limits.cpu_time = self.limit(Limit::CpuTime, limit);
        self
    }

    /// Limits the bytes each second to and from disks.
    pub fn io(&mut self, limit: Option<Rate>) -> &mut Self {
        self.layer.limits.io = self.limit(Limit::Io, limit);
        self
    }

    /// Limits processes and threads.
    pub fn processes(&mut self, limit: Option<u32>) -> &mut Self {
        self.layer.limits.processes = self.limit(Limit::Processes, limit);
        self
    }

    /// Limits the open files of each process.
    pub fn open_files(&mut self, limit: Option<u32>) -> &mut Self {
        self.layer.limits.open_files = self.limit(Limit::OpenFiles, limit);
        self
    }

    /// Limits the size of each file that is written.
    pub fn file_size(&mut self, limit: Option<Bytes>) -> &mut Self {
        self.layer.limits.file_size = self.limit(Limit::FileSize, limit);
        self
    }

    /// Limits temporary space.
    pub fn tmp_size(&mut self, limit: Bytes) -> &mut Self {
        self.layer.limits.tmp_size = self.limit(Limit::TmpSize, limit);
        self
    }

    /// Limits the address space of each process.
    pub fn address_space(&mut self, limit: Option<Bytes>) -> &mut Self {
        self.layer.limits.address_space = self.limit(Limit::AddressSpace, limit);
        self
    }

    /// Ends the command after this time.
    pub fn timeout(&mut self, limit: Option<Duration>) -> &mut Self {
        self.layer.limits.timeout = self.limit(Limit::Timeout, limit);
        self
    }

    /// Gives the command this time between the request to end and the kill.
    pub fn grace(&mut self, limit: Duration) -> &mut Self {
        self.layer.limits.grace = self.limit(Limit::Grace, limit);
        self
    }

    /// Passes the variables on that a pattern names.
    pub fn env_allow(&mut self, pattern: EnvPattern) -> &mut Self {
        let pattern = self.said(pattern, "--env");
        self.layer.env.allow.push(pattern);
        self
    }

    /// Sets a variable.
    pub fn env_set(&mut self, name: EnvName, value: impl Into<String>) -> &mut Self {
        let value = value.into();
        if let Err(error) = parse::check_env_value(&value) {
            self.refuse("--env", error);
            return self;
        }
        let value = self.said(value, "--env");
        self.layer.env.set.insert(name, value);
        self
    }

    /// Sets a variable from a secret, fetched when the run starts.
    pub fn secret(&mut self, name: EnvName, reference: SecretRef) -> &mut Self {
        let reference = match reference {
            SecretRef::File(path) => match self.path(path, "--secret") {
                Some(path) => SecretRef::File(path.value),
                None => return self,
            },
            other => other,
        };
        let reference = self.said(reference, "--secret");
        self.layer.env.secrets.insert(name, reference);
        self
    }

    /// The layer, or the first thing that was wrong with it.
    pub fn build(self) -> Result<Layer, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let Layer { filesystem, env, network_mode, allow, unix, listen, .. } = &self.layer;
        for (verb, granted) in [("read", &filesystem.read), ("write", &filesystem.write)] {
            if let Some((_, denied)) = parse::contradiction(
                granted.iter().map(|path| (&path.value, ())),
                filesystem.deny.iter().map(|path| (&path.value, path)),
            ) {
                return Err(Error::plain(
                    format!(
                        "{} is given to both {verb} and deny",
                        text::word(&denied.value.to_string_lossy())
                    ),
                    "deny always wins: remove one of them",
                ));
            }
        }
        if let Some(name) = env.set.keys().find(|name| env.secrets.contains_key(name)) {
            return Err(Error::plain(
                format!("{name} is both set and a secret"),
                "a variable has one value: remove one of them",
            ));
        }
        let isolates = !(allow.is_empty() && unix.is_empty() && listen.is_empty());
        if isolates && network_mode.as_ref().is_some_and(|mode| mode.value == NetworkMode::Host) {
            return Err(Error::plain(
                "the host's network is asked for together with network rules",
                "with the host's network nothing is restricted: remove one of them",
            ));
        }
        Ok(self.layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Setter = fn(&mut LayerBuilder) -> &mut LayerBuilder;

    fn refused(build: impl FnOnce(&mut LayerBuilder) -> &mut LayerBuilder) -> String {
        let mut flags = Layer::command_line("/cwd", None);
        build(&mut flags);
        flags.build().unwrap_err().to_string()
    }

    #[test]
    fn flags_become_a_layer() {
        let mut flags = Layer::command_line("/cwd", Some("/home/me".into()));
        flags.read("~/x").write("out").deny("**/.env").timeout(None).grace(Duration::from_secs(1));
        let layer = flags.build().unwrap();
        assert_eq!(layer.filesystem.read[0].value, PathBuf::from("/home/me/x"));
        assert_eq!(layer.filesystem.write[0].value, PathBuf::from("/cwd/out"));
        assert_eq!(layer.filesystem.deny[0].value, PathBuf::from("**/.env"));
        assert_eq!(layer.filesystem.deny[0].origin.to_string(), "--deny");
        assert_eq!(layer.limits.timeout.map(|limit| limit.value), Some(None));
    }

    #[test]
    fn nonsense_is_refused_with_its_flag() {
        let name = || "A".parse::<EnvName>().unwrap();
        let cases: [(Setter, &str); 8] = [
            (|flags| flags.read(""), "--read: empty path; write ."),
            (|flags| flags.read("~/x"), "--read: the home directory is not known"),
            (|flags| flags.memory(Some(Bytes(0))), "--max-memory: memory cannot be zero"),
            (|flags| flags.open_files(Some(2)), "--max-fds: open_files is too small"),
            (|flags| flags.listen(0), "--listen: port 0"),
            (|flags| flags.write("a").deny("/cwd/a"), "/cwd/a is given to both write and deny"),
            (|flags| flags.network_host().listen(1), "the host's network is asked for together"),
            (|flags| flags.allow_unix("a\0b"), "--allow-unix: NUL"),
        ];
        for (build, said) in cases {
            let error = refused(build);
            assert!(error.replace('\\', "/").contains(said), "{error}");
        }
        let error = refused(|flags| {
            flags.env_set(name(), "x").secret(name(), SecretRef::Command("y".into()))
        });
        assert!(error.contains("A is both set and a secret"), "{error}");
        assert!(refused(|flags| flags.env_set(name(), "x\0")).contains("--env: NUL"));
    }

    #[test]
    fn a_manifest_names_its_place() {
        let mut manifest = Layer::manifest("manifest.json", "/bundle", None);
        manifest.read("data");
        let layer = manifest.build().unwrap();
        assert_eq!(layer.kind, LayerKind::Manifest);
        assert_eq!(layer.filesystem.read[0].origin.to_string(), "manifest.json");
    }
}
