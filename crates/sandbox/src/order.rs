//! The message from the caller to the helper: a spec, and values that must not be in a policy.
//!
//! A policy's own JSON is for people to read: durations are fractions there, and names that are
//! not UTF-8 are shown, not kept. An order holds every value exactly.

use std::ffi::OsString;
use std::path::PathBuf;

use mcp_policy::{
    Bytes, Cores, Duration, Env, Fallback, Filesystem, Limits, Network, NetworkMode, Origin,
    Policy, Process, Protect, Rate, Sourced, Subprocess, Trust, ValueError,
};
use serde::{Deserialize, Serialize};

use crate::core::error::Error;
use crate::core::report::Judged;
use crate::core::request::Secret;
use crate::core::run_spec::{Identity, RunSpec};
use crate::core::wire;

pub mod reply;
mod sourced_value;

use sourced_value::{Reference, SourcedValue};

/// Bumped with every change below: a helper may be another program than the caller.
const VERSION: u32 = 3;

/// Read first, so that an order of another version is refused for that and nothing else.
#[derive(Deserialize)]
struct Stamp {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    version: u32,
    command: Vec<OsString>,
    cwd: Option<OsString>,
    home: Option<OsString>,
    programs: Vec<OsString>,
    has_identity: bool,
    policy: SentPolicy,
    /// Given by value; a policy holds references only.
    secrets: Vec<(OsString, OsString)>,
    #[serde(with = "wire::fallback")]
    fallback: Fallback,
    strict: bool,
    judged: Option<Judged>,
}

/// What the helper makes of an order.
pub struct Received {
    pub spec: RunSpec,
    pub secrets: Vec<(OsString, Secret)>,
    pub fallback: Fallback,
    pub strict: bool,
    /// What the guard said, where it was asked.
    pub judged: Option<Judged>,
}

impl Order {
    pub fn new(received: Received) -> Order {
        let Received { spec, secrets, fallback, strict, judged } = received;
        let RunSpec { policy, command, cwd, home, programs, identity } = spec;
        let reveal = |(name, value): (OsString, Secret)| (name, value.reveal().clone());
        Order {
            version: VERSION,
            command,
            cwd: cwd.map(PathBuf::into_os_string),
            home: home.map(PathBuf::into_os_string),
            programs,
            has_identity: identity == Identity::User,
            policy: SentPolicy::new(policy),
            secrets: secrets.into_iter().map(reveal).collect(),
            fallback,
            strict,
            judged,
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| bad(&error))
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Received, Error> {
        let stamp: Stamp = serde_json::from_slice(bytes).map_err(|error| bad(&error))?;
        if stamp.version != VERSION {
            return Err(Error::Unsupported(format!(
                "the helper takes orders of version {VERSION}, not {}; \
                 use an mcp of the same release as the library",
                stamp.version
            )));
        }
        let order: Order = serde_json::from_slice(bytes).map_err(|error| bad(&error))?;
        let secrets = order.secrets.into_iter();
        Ok(Received {
            spec: RunSpec {
                policy: order.policy.policy().map_err(|error| bad(&error))?,
                command: order.command,
                cwd: order.cwd.map(PathBuf::from),
                home: order.home.map(PathBuf::from),
                programs: order.programs,
                identity: if order.has_identity { Identity::User } else { Identity::None },
            },
            secrets: secrets.map(|(name, value)| (name, Secret::new(value))).collect(),
            fallback: order.fallback,
            strict: order.strict,
            judged: order.judged,
        })
    }
}

fn bad(error: &dyn std::error::Error) -> Error {
    Error::Input { what: "order for the helper".to_owned(), why: error.to_string() }
}

/// [`Policy`], every value exact.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentPolicy {
    read: Vec<SourcedValue<OsString>>,
    write: Vec<SourcedValue<OsString>>,
    deny: Vec<SourcedValue<OsString>>,
    allow_write: Vec<SourcedValue<OsString>>,
    protect: SourcedValue<bool>,
    host_network: SourcedValue<bool>,
    allow: Vec<SourcedValue<String>>,
    unix: Vec<SourcedValue<OsString>>,
    listen: Vec<SourcedValue<u16>>,
    system_trust: SourcedValue<bool>,
    subprocess: SourcedValue<bool>,
    memory: SourcedValue<Option<u64>>,
    millicores: SourcedValue<Option<u32>>,
    cpu_millis: SourcedValue<Option<u64>>,
    io: SourcedValue<Option<u64>>,
    processes: SourcedValue<Option<u32>>,
    open_files: SourcedValue<Option<u32>>,
    file_size: SourcedValue<Option<u64>>,
    tmp_size: SourcedValue<u64>,
    address_space: SourcedValue<Option<u64>>,
    timeout_millis: SourcedValue<Option<u64>>,
    grace_millis: SourcedValue<u64>,
    env_allow: Vec<SourcedValue<String>>,
    env_set: Vec<(String, SourcedValue<String>)>,
    env_secrets: Vec<(String, SourcedValue<Reference>)>,
}

impl SentPolicy {
    fn new(policy: Policy) -> SentPolicy {
        // Taken apart to the last field: a new one must not be lost on the way.
        let Policy { filesystem, protect, network, process, limits, env } = policy;
        let Filesystem { read, write, deny, allow_write } = filesystem;
        let Network { mode, allow, unix, listen, trust } = network;
        let Process { subprocess } = process;
        let Limits { memory, cpu, cpu_time, io, processes, open_files, .. } = limits;
        let Limits { file_size, tmp_size, address_space, timeout, grace, .. } = limits;
        let Env { allow: env_allow, set, secrets } = env;
        let paths = |list| sourced_value::list(list, PathBuf::into_os_string);
        let size = |size| SourcedValue::new(size, |size: Option<Bytes>| size.map(|bytes| bytes.0));
        let time =
            |time| SourcedValue::new(time, |time: Option<Duration>| time.map(Duration::as_millis));
        SentPolicy {
            read: paths(read),
            write: paths(write),
            deny: paths(deny),
            allow_write: paths(allow_write),
            protect: SourcedValue::new(protect, |protect| protect == Protect::Usual),
            host_network: SourcedValue::new(mode, |mode| mode == NetworkMode::Host),
            allow: sourced_value::list(allow, |rule| rule.to_string()),
            unix: paths(unix),
            listen: sourced_value::list(listen, |port| port),
            system_trust: SourcedValue::new(trust, |trust| trust == Trust::System),
            subprocess: SourcedValue::new(subprocess, |subprocess| {
                subprocess == Subprocess::Allowed
            }),
            memory: size(memory),
            millicores: SourcedValue::new(cpu, |cpu| cpu.map(Cores::millicores)),
            cpu_millis: time(cpu_time),
            io: SourcedValue::new(io, |rate: Option<Rate>| rate.map(|rate| rate.0.0)),
            processes: SourcedValue::new(processes, |count| count),
            open_files: SourcedValue::new(open_files, |count| count),
            file_size: size(file_size),
            tmp_size: SourcedValue::new(tmp_size, |size| size.0),
            address_space: size(address_space),
            timeout_millis: time(timeout),
            grace_millis: SourcedValue::new(grace, Duration::as_millis),
            env_allow: sourced_value::list(env_allow, |pattern| pattern.as_str().to_owned()),
            env_set: sourced_value::map(set, |value| value),
            env_secrets: sourced_value::map(secrets, Reference::new),
        }
    }

    fn policy(self) -> Result<Policy, ValueError> {
        let paths = |list: Vec<SourcedValue<OsString>>| {
            sourced_value::unlist(list, |path| Ok(PathBuf::from(path)))
        };
        let size = |size: SourcedValue<Option<u64>>| size.map(|size| size.map(Bytes));
        let time =
            |time: SourcedValue<Option<u64>>| time.map(|time| time.map(Duration::from_millis));
        let network_mode =
            |is_host| if is_host { NetworkMode::Host } else { NetworkMode::Isolated };
        let subprocess =
            |is_allowed| if is_allowed { Subprocess::Allowed } else { Subprocess::Refused };
        let protect = |is_usual| if is_usual { Protect::Usual } else { Protect::Nothing };
        let trust = |is_system| if is_system { Trust::System } else { Trust::Closed };
        Ok(Policy {
            filesystem: Filesystem {
                read: paths(self.read)?,
                write: paths(self.write)?,
                deny: paths(self.deny)?,
                allow_write: paths(self.allow_write)?,
            },
            protect: self.protect.map(protect),
            network: Network {
                mode: self.host_network.map(network_mode),
                allow: sourced_value::unlist(self.allow, |rule| rule.parse())?,
                unix: paths(self.unix)?,
                listen: sourced_value::unlist(self.listen, Ok)?,
                trust: self.system_trust.map(trust),
            },
            process: Process { subprocess: self.subprocess.map(subprocess) },
            limits: Limits {
                memory: size(self.memory),
                cpu: self.millicores.map(|cores| cores.map(Cores::from_millicores)),
                cpu_time: time(self.cpu_millis),
                io: self.io.map(|rate| rate.map(|bytes| Rate(Bytes(bytes)))),
                processes: self.processes.map(|count| count),
                open_files: self.open_files.map(|count| count),
                file_size: size(self.file_size),
                tmp_size: self.tmp_size.map(Bytes),
                address_space: size(self.address_space),
                timeout: time(self.timeout_millis),
                grace: self.grace_millis.map(Duration::from_millis),
            },
            env: Env {
                allow: sourced_value::unlist(self.env_allow, |pattern| pattern.parse())?,
                set: sourced_value::unmap(self.env_set, Ok)?,
                secrets: sourced_value::unmap(self.env_secrets, Reference::reference)?,
            },
        })
    }
}

#[cfg(test)]
mod tests;
