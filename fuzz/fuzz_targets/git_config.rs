//! git's configuration: whatever the bytes, the same settings come of them with every line end, a text that is
//! understood is understood with a comment behind it, and what a command line names is found without end or panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_sandbox::fuzzing::git_config::grammar::parse;
use mcp_sandbox::fuzzing::git_config::pathname::{Homes, expand, places};
use mcp_sandbox::fuzzing::git_config::programs::{files, names};

fuzz_target!(|bytes: &[u8]| {
    let parsed = parse(bytes);
    assert!(parsed.bad_line.is_none_or(|line| line <= 1 + bytes.len()));
    if parsed.bad_line.is_none() {
        let more = parse(&[bytes, b"\n; [x] y = z\n[x]y"].concat());
        // A line that goes on takes the next one with it, and nothing else does.
        if !bytes.ends_with(b"\\") && !bytes.ends_with(b"\\\r") {
            assert_eq!(more.settings.len(), parsed.settings.len() + 1);
            assert!(more.settings.starts_with(&parsed.settings));
        }
        if !bytes.contains(&b'\r') {
            let text: Vec<u8> = bytes
                .iter()
                .flat_map(|c| if *c == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(c) })
                .copied()
                .collect();
            assert_eq!(parse(&text), parsed);
        }
    }
    let homes = Homes::default();
    let root = std::path::Path::new(if cfg!(windows) { "C:\\w" } else { "/w" });
    for setting in &parsed.settings {
        assert!(!setting.key.contains(&0));
        let value = setting.value.as_deref().unwrap_or_default();
        assert!(!value.contains(&0));
        let _ = names(&setting.key, value);
        for name in expand(value, &homes).iter().chain(&files(value, &homes)) {
            let found = places(name, &[root], &[root]);
            assert!(found.iter().all(|place| place.is_absolute()));
        }
    }
    let _ = files(bytes, &homes);
});
