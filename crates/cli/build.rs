//! How the released program is linked on Linux: the addresses that its start-up code sets are listed in 3 KB, not in 200.

use std::env;
use std::process::Command;

/// The first whose start-up code reads the short list: 2.36.
const PACKED_SINCE: u32 = 2_36;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("PROFILE", "release") {
        return;
    }
    let is_own_libc = is("CARGO_CFG_TARGET_ENV", "gnu") && env::var("HOST") == env::var("TARGET");
    if is_own_libc && libc_version().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bin=mcp=-Wl,-z,pack-relative-relocs");
    }
}

/// Of the C library here: a static program has its start-up code.
fn libc_version() -> Option<u32> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some(major.parse::<u32>().ok()? * 100 + minor.parse::<u32>().ok()?)
}
