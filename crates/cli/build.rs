//! Gives the linker the order of functions that `cargo xtask order` found: a start touches less then.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=start.ld");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release") {
        let directory = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bin=mcp=-T{directory}/start.ld");
    }
}
