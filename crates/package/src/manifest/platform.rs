//! Operating system and architecture, in our words and in those of MCPB.

/// An operating system and an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    /// `linux`, `macos` or `windows`.
    pub os: &'static str,
    /// `x86_64` or `aarch64`.
    pub arch: &'static str,
}

pub(super) const SYSTEMS: [&str; 3] = ["linux", "macos", "windows"];
pub(super) const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

impl Platform {
    /// The platform that this program was compiled for.
    #[must_use]
    pub const fn current() -> Platform {
        Platform { os: std::env::consts::OS, arch: std::env::consts::ARCH }
    }

    /// As Node's `process.platform` says it.
    #[must_use]
    pub fn node_name(&self) -> &'static str {
        match self.os {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        }
    }

    /// The most specific first: `linux-x86_64`, `linux`.
    #[must_use]
    pub fn keys(&self) -> [String; 2] {
        [format!("{}-{}", self.os, self.arch), self.os.to_owned()]
    }
}

/// Whether a person wrote a platform that there is.
pub(super) fn is_key(key: &str) -> bool {
    match key.split_once('-') {
        Some((os, arch)) => SYSTEMS.contains(&os) && ARCHITECTURES.contains(&arch),
        None => SYSTEMS.contains(&key),
    }
}
