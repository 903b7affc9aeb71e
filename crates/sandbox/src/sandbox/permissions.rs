//! The grants of the command: files, network, environment.

use std::ffi::OsStr;
use std::path::Path;

use mcp_policy::{Protect, SecretRef};

use super::Sandbox;
use crate::core::request::Secret;

impl Sandbox {
    /// A file or directory that the command may read. Relative paths mean the directory that was
    /// the current one when the sandbox was made; `~` is the user's home.
    pub fn read(&mut self, path: impl AsRef<Path>) -> &mut Sandbox {
        self.permissions.read(path.as_ref());
        self
    }

    /// A file or directory that the command may read and write.
    pub fn write(&mut self, path: impl AsRef<Path>) -> &mut Sandbox {
        self.permissions.write(path.as_ref());
        self
    }

    /// A path or glob that stays closed inside what is granted.
    pub fn deny(&mut self, path: impl AsRef<Path>) -> &mut Sandbox {
        self.permissions.deny(path.as_ref());
        self
    }

    /// Whether git, editor, agent and shell settings stay as they are inside what may be written.
    pub fn protect(&mut self, protect: Protect) -> &mut Sandbox {
        self.permissions.protect(protect);
        self
    }

    /// Takes that protection from a path.
    pub fn allow_write(&mut self, path: impl AsRef<Path>) -> &mut Sandbox {
        self.permissions.allow_write(path.as_ref());
        self
    }

    /// A host that the command may reach: `api.github.com:443`, `*.example.com`,
    /// `10.1.0.0/16:5432`.
    pub fn allow_net(&mut self, rule: impl AsRef<str>) -> &mut Sandbox {
        match rule.as_ref().parse() {
            Ok(rule) => {
                self.permissions.allow_net(rule);
            }
            Err(error) => self.refuse("allow_net", error.to_string()),
        }
        self
    }

    /// A unix socket of the host that the command may use.
    pub fn allow_unix(&mut self, path: impl AsRef<Path>) -> &mut Sandbox {
        self.permissions.allow_unix(path.as_ref());
        self
    }

    /// A port of the command's that the host may reach on 127.0.0.1; on Windows on `[::1]`.
    pub fn listen(&mut self, port: u16) -> &mut Sandbox {
        self.permissions.listen(port);
        self
    }

    /// Lets the command ask the system's certificate service, on macOS and with an allowlist: Go's
    /// TLS needs it. That service connects to hosts of its own choice.
    pub fn system_trust(&mut self) -> &mut Sandbox {
        self.permissions.system_trust();
        self
    }

    /// The host's own network, unrestricted.
    pub fn network_host(&mut self) -> &mut Sandbox {
        self.permissions.network_host();
        self
    }

    /// No new processes and no exec; threads work.
    pub fn no_subprocess(&mut self) -> &mut Sandbox {
        self.permissions.no_subprocess();
        self
    }

    /// Sets a variable.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Sandbox {
        if let Some(name) = self.variable(name.as_ref()) {
            match value.as_ref().to_str() {
                Some(value) => {
                    self.permissions.env_set(name, value);
                }
                None => self.refuse(format!("env {name}"), "its value is not UTF-8"),
            }
        }
        self
    }

    /// Passes a variable of this program's environment on; a name, or a glob such as `LC_*`.
    pub fn pass_env(&mut self, pattern: impl AsRef<str>) -> &mut Sandbox {
        match pattern.as_ref().parse() {
            Ok(pattern) => {
                self.permissions.env_allow(pattern);
            }
            Err(error) => self.refuse("pass_env", error.to_string()),
        }
        self
    }

    /// Sets a variable to a value that is in no report, no message and no `Debug` output, and
    /// that crosses to the helper on a socket: neither its command line nor its environment
    /// has it. Replaces whatever else has this name.
    ///
    /// ```standalone_crate
    /// use mcp_sandbox::Sandbox;
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     mcp_sandbox::helper::dispatch();
    /// #   if !cfg!(target_os = "linux") { return Ok(()); }
    ///     let mut sandbox = Sandbox::new("sh");
    ///     sandbox.args(["-c", "echo ${#TOKEN}"]).secret("TOKEN", "hunter2");
    ///     assert!(!format!("{sandbox:?}").contains("hunter2"));
    ///     assert_eq!(sandbox.output()?.stdout, b"7\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn secret(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Sandbox {
        let value = value.as_ref();
        let Some(name) = self.variable(name.as_ref()) else {
            return self;
        };
        if value.is_empty() {
            self.refuse(format!("secret {name}"), "its value is empty");
        } else if value.as_encoded_bytes().contains(&0) {
            self.refuse(format!("secret {name}"), "its value contains a NUL byte");
        } else {
            self.secrets.retain(|(given, _)| given != name.as_str());
            self.secrets.push((name.as_str().into(), Secret::new(value.to_owned())));
        }
        self
    }

    /// Sets a variable to a secret by reference: another variable, a file, or what a command
    /// prints. It is looked up by the helper.
    pub fn secret_from(&mut self, name: impl AsRef<OsStr>, reference: SecretRef) -> &mut Sandbox {
        if let Some(name) = self.variable(name.as_ref()) {
            self.permissions.secret(name, reference);
        }
        self
    }
}
