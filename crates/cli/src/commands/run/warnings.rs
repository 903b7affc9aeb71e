//! Warnings before the start, about grants and variables that were probably not meant.

use mcp_policy::{Bytes, Origin, Policy};
use mcp_sandbox::{Place, Request};

use crate::{paths, render};

pub fn tell(request: &Request) {
    let lines = [
        of_little_memory(request.policy.limits.memory.value),
        of_whole_home("write", &request.write),
        of_whole_home("read", &request.read),
    ];
    for line in lines.into_iter().flatten().chain(of_unset_variables(&request.policy)) {
        render::say(&render::plain(&format!("warning: {line}")));
    }
}

/// Programs that cannot get the memory to start with end without a word.
fn of_little_memory(limit: Option<Bytes>) -> Option<String> {
    let limit = limit.filter(|limit| *limit < Bytes::mib(1))?;
    let bytes = limit.get();
    Some(match bytes {
        1..1024 => format!(
            "a memory limit of {limit} is less than any program needs; did you mean {bytes}M?"
        ),
        _ => format!(
            "a memory limit of {limit} is less than most programs need to start (--max-memory 64M is more than enough \
             for small ones)"
        ),
    })
}

/// The keys, tokens and cookies of a person are in the home directory.
fn of_whole_home(access: &str, places: &[Place]) -> Option<String> {
    let home = paths::home().and_then(|home| paths::real(&home).ok())?;
    let whole = places.iter().find(|place| home.starts_with(&place.path))?;
    Some(format!(
        "--{access} {} gives the command your whole home, with ~/.ssh, tokens and browser profiles; name directories \
         below it",
        whole.path.display()
    ))
}

/// Variables that the command line names and that have no value here.
fn of_unset_variables(policy: &Policy) -> impl Iterator<Item = String> {
    let env = &policy.env;
    let is_typed = |origin: &Origin| matches!(origin, Origin::CommandLine { .. });
    env.allow
        .iter()
        .filter(move |allow| is_typed(&allow.origin))
        .map(|allow| allow.value.as_str())
        .filter(|name| !name.contains(['*', '?', '[']))
        .filter(|name| std::env::var_os(name).is_none())
        .filter(|name| !env.set.keys().chain(env.secrets.keys()).any(|key| key.as_str() == *name))
        .map(|name| {
            format!("{name} is not set here, so it is not passed on (-e {name}=VALUE sets it)")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_its_unit_is_told() {
        let told = |text: &str| of_little_memory(text.parse().ok()).unwrap_or_default();
        assert!(told("256").ends_with("did you mean 256M?"));
        assert!(told("64K").contains("--max-memory 64M"));
        assert_eq!(told("64M"), "");
    }
}
