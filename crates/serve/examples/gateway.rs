//! The gateway alone, for tests: `gateway PROGRAM servers.toml`. It prints its address.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

fn main() {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let config = mcp_serve::Config::read(&words[1]).unwrap();
    let ready = |address| println!("{address}");
    mcp_serve::serve(words[0].clone(), config, Some(&words[1]), ready, || ()).unwrap();
}
