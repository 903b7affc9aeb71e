//! What is where in a target: the gateway's configuration, the policy, the secrets.

use std::path::Path;

use mcp_policy::{Policy, SecretRef, text};

use crate::error::{Error, Result};

/// Where a gateway finds its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Address and port.
    pub listen: String,
    /// As in servers.toml; none to leave it as it is there.
    pub behind_proxy: Option<bool>,
    /// Names under which clients know it there.
    pub hosts: Vec<String>,
    pub tls: Option<(&'static str, &'static str)>,
    pub tokens: Option<&'static str>,
    pub jwks: Option<&'static str>,
    /// The policy file.
    pub policy: String,
    /// A package's files, where they are part of the image.
    pub package: Option<&'static str>,
    /// A directory with a file for each secret.
    pub secrets: String,
}

impl Place {
    /// The policy file: the policy with its secrets in files of this place.
    pub fn policy_text(&self, policy: &Policy) -> Result<String> {
        let mut policy = policy.clone();
        for (name, reference) in &mut policy.env.secrets {
            is_file_name(name.as_str())?;
            reference.value = SecretRef::File(Path::new(&self.secrets).join(name.as_str()));
        }
        let files = &policy.filesystem;
        let paths = files.read.iter().chain(&files.write).chain(&files.deny);
        // What TOML cannot hold would be missing there, and a missing `deny` is an open file.
        for path in paths.chain(&files.allow_write).chain(&policy.network.unix) {
            if path.value.to_str().is_none() {
                return Err(Error::new(format!(
                    "{}: only paths in UTF-8 can be exported",
                    text::word(&path.value.to_string_lossy())
                )));
            }
        }
        Ok(policy.to_toml())
    }
}

/// The name of a secret is the name of its file, and a key of a Secret.
fn is_file_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match name.chars().all(plain) && name.len() <= 200 {
        true => Ok(()),
        false => Err(Error::new(format!(
            "the secret {}: its name has to consist of letters, digits, _ and - here",
            text::word(name)
        ))),
    }
}
