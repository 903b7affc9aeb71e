//! Values that a policy names and does not hold.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, Stdio};

use mcp_policy::{Policy, SecretRef};

use crate::core::error::Error;
use crate::core::request::Secret;

/// Windows takes no longer variable.
const LARGEST: u64 = 32 * 1024;

pub fn fetch_all(policy: &Policy) -> Result<Vec<(OsString, Secret)>, Error> {
    let mut secrets = Vec::new();
    for (name, reference) in &policy.env.secrets {
        let bad = |why: String| Error::Input { what: format!("secret {name}"), why };
        let value = fetch(&reference.value).map_err(bad)?;
        if value.is_empty() {
            return Err(bad(format!("{} gave an empty value", reference.value)));
        }
        if value.as_encoded_bytes().contains(&0) {
            return Err(bad(format!("the value of {} contains a NUL", reference.value)));
        }
        secrets.push((OsString::from(name.as_ref()), Secret::new(value)));
    }
    Ok(secrets)
}

fn fetch(reference: &SecretRef) -> Result<OsString, String> {
    match reference {
        SecretRef::Env(name) => std::env::var_os(AsRef::<str>::as_ref(name))
            .ok_or_else(|| format!("{name} is not set in this environment")),
        SecretRef::File(path) => {
            let file = mcp_files::open(path, mcp_files::Links::Follow)
                .map_err(|e| format!("{}: {e}", path.display()))?;
            text(file)
        }
        SecretRef::Command(command) => {
            let mut child = Command::new("cmd.exe")
                .args(["/d", "/s", "/c", command])
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|e| format!("could not run its command: {e}"))?;
            let said = child.stdout.take().map_or(Ok(OsString::new()), text);
            let status =
                child.wait().map_err(|e| format!("could not wait for its command: {e}"))?;
            if status.success() { said } else { Err(format!("its command failed ({status})")) }
        }
    }
}

/// Files and commands end with a line feed that is not part of the value.
fn text(from: impl Read) -> Result<OsString, String> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err("is larger than 32 KiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).into())
}
