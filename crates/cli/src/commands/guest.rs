//! This binary as the guest: `doctor` and `demo` start it inside a sandbox to try things there.

use super::demo;
use crate::guest_arguments::{GUEST, SERVER};
use crate::render;

/// Acts as a guest when called as one.
pub fn dispatch() -> Option<u8> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != GUEST {
        return None;
    }
    let words: Vec<String> = args.filter_map(|word| word.into_string().ok()).collect();
    if words == [SERVER] {
        return Some(demo::server::serve());
    }
    Some(match mcp_probe::Act::parse(&words) {
        Ok(acts) => {
            for act in &acts {
                render::print(&(mcp_probe::run(act).to_json() + "\n"));
            }
            0
        }
        Err(error) => {
            eprintln!("{error}");
            2
        }
    })
}
