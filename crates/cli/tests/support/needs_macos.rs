//! What this Mac can do, so that a skipped test says why.

use std::process::Command;
use std::sync::OnceLock;

use super::sys;

pub fn is_root() -> bool {
    sys::euid() == 0
}

/// Whether the machine has a feature. Prints `SKIP: reason` when not, and panics when
/// `MCP_REQUIRE` names it.
#[track_caller]
pub fn available(feature: &str) -> bool {
    let missing = match feature {
        "seatbelt" => seatbelt(),
        "ipv6" => std::net::TcpListener::bind("[::1]:0").err().map(|error| error.to_string()),
        other => panic!("no feature of a Mac is named {other}"),
    };
    let Some(reason) = missing else { return true };
    let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == feature),
        "MCP_REQUIRE={required}, but {feature} is missing: {reason}"
    );
    println!("SKIP: {feature}: {reason}");
    false
}

fn seatbelt() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING
        .get_or_init(|| {
            if is_root() {
                return Some("a Mac's sandbox is refused to root".to_owned());
            }
            let tried = Command::new("/usr/bin/sandbox-exec")
                .args(["-p", "(version 1)(allow default)", "/usr/bin/true"])
                .output();
            match tried {
                Ok(output) if output.status.success() => None,
                Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
                Err(error) => Some(error.to_string()),
            }
        })
        .clone()
}

pub fn landlock_abi() -> u32 {
    0
}

/// Why there are none.
pub fn user_namespaces() -> Option<String> {
    Some("this is a Mac".to_owned())
}
