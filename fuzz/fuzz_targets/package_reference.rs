//! References: what parses shows as itself, and no part of it can be taken for an option.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_package::Reference;

fuzz_target!(|text: &str| {
    let Ok(reference) = text.parse::<Reference>() else { return };
    assert_eq!(reference.to_string().parse::<Reference>().ok().as_ref(), Some(&reference));
    if let Reference::Npm(package) | Reference::Pypi(package) = &reference {
        assert!(!package.name.starts_with('-') && !package.name.contains(".."));
    }
});
