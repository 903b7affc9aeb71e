#![no_main]
//! The guard on any text, in all three languages: no panic, no overflow, spans good to slice with.

use libfuzzer_sys::fuzz_target;
use mcp_guard::{Context, Shell, judge};
use std::sync::OnceLock;

fuzz_target!(|text: &str| {
    static CONTEXT: OnceLock<Context> = OnceLock::new();
    let context = CONTEXT.get_or_init(Context::default);
    for shell in [Shell::Bash, Shell::PowerShell, Shell::Cmd] {
        for finding in judge(text, shell, context).findings {
            assert!(text.get(finding.span).is_some());
        }
    }
});
