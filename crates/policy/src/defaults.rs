//! The values that hold where no layer sets one.

use crate::policy::{Limits, Sourced};
use crate::{Bytes, Duration, EnvPattern, Origin, Protect};

/// The lowest layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    /// The default limits.
    pub limits: Limits,
    /// Variables that are passed by default.
    pub env_allow: Vec<EnvPattern>,
    /// Whether settings that other programs act on are protected.
    pub protect: Protect,
}

/// Language and terminal: nothing that names a person, a place or a key.
const ENV_ALLOW: [&str; 10] = [
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
];

/// Variables whose value is a file or directory of certificates. They are passed on, and what they name is shown:
/// whoever sets one shows a file.
pub const CERTIFICATE_VARIABLES: [&str; 5] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

impl Defaults {
    /// For servers, which live as long as their client.
    pub fn run() -> Self {
        Self::with_timeout(None)
    }

    /// For one command of an agent: a build takes more of everything than a server does, and it
    /// works in a directory that belongs to a person.
    pub fn exec() -> Self {
        let mut defaults = Self::with_timeout(Some(Duration::from_secs(120)));
        defaults.limits.memory.value = Some(Bytes::mib(4096));
        defaults.limits.processes.value = Some(1024);
        defaults.limits.tmp_size.value = Bytes::mib(1024);
        defaults.protect = Protect::Usual;
        defaults
    }

    /// Another memory limit, such as the larger one for packages started through npx.
    pub fn memory(mut self, memory: Bytes) -> Self {
        self.limits.memory.value = Some(memory);
        self
    }

    fn with_timeout(timeout: Option<Duration>) -> Self {
        Self {
            limits: Limits {
                memory: default(Some(Bytes::mib(512))),
                cpu: default(None),
                cpu_time: default(None),
                io: default(None),
                processes: default(Some(128)),
                open_files: default(Some(1024)),
                file_size: default(None),
                tmp_size: default(Bytes::mib(256)),
                address_space: default(None),
                timeout: default(timeout),
                grace: default(Duration::from_secs(5)),
            },
            env_allow: ENV_ALLOW
                .into_iter()
                .chain(CERTIFICATE_VARIABLES)
                .map(EnvPattern::built_in)
                .collect(),
            protect: Protect::Nothing,
        }
    }
}

fn default<T>(value: T) -> Sourced<T> {
    Sourced::new(value, Origin::Default)
}
