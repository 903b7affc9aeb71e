//! What holds for every policy.

use mcp_sandbox::{Home, Request, Stdio};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::escaping::odd_name;
use crate::evaluator::{End, Question};
use crate::support::{Mac, policy, request, scratch};

/// Few names, so that they nest, and one that is odd.
fn path() -> impl Strategy<Value = String> {
    let base = select(&["/Users/me", "/Volumes/big", "/private/tmp/w", "/opt/app"][..]);
    let name =
        prop_oneof![3 => select(&["a", "b", "Dir"][..]).prop_map(str::to_owned), 1 => odd_name()];
    (base, vec(name, 1..4)).prop_map(|(base, names)| format!("{base}/{}", names.join("/")))
}

fn rule() -> impl Strategy<Value = String> {
    let glob = select(&["**/.env", "**/a/b", "**/*.key", "/Users/me/a/*", "**/{x,y}"][..]);
    // Never a grant itself: a policy that both gives and denies a path is refused.
    prop_oneof![glob.prop_map(str::to_owned), path().prop_map(|path| format!("{path}/closed"))]
}

#[derive(Debug, Clone)]
struct Asked {
    read: Vec<String>,
    write: Vec<String>,
    deny: Vec<String>,
    subprocess: bool,
    home: Option<String>,
    is_interactive: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    let home = proptest::option::of(path());
    (vec(path(), 0..4), vec(path(), 0..4), vec(rule(), 0..4), any::<bool>(), home, any::<bool>())
        .prop_map(|(read, write, deny, subprocess, home, is_interactive)| Asked {
            read,
            write,
            deny,
            subprocess,
            home,
            is_interactive,
        })
}

fn made(asked: &Asked) -> Request {
    let mut request = request(policy(|flags| {
        for path in &asked.read {
            flags.read(path);
        }
        for path in &asked.write {
            flags.write(path);
        }
        for path in &asked.deny {
            flags.deny(path);
        }
        // Without an allowlist it opens nothing.
        flags.system_trust();
        if asked.subprocess { flags } else { flags.no_subprocess() }
    }));
    if let Some(home) = &asked.home {
        request.home = Home::Kept(home.into());
    }
    if asked.is_interactive {
        request.stdio = [Stdio::Terminal, Stdio::Terminal, Stdio::Terminal];
    }
    request
}

fn is_below(path: &str, above: &str) -> bool {
    path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

fn end() -> impl Strategy<Value = End> {
    let host = select(&["127.0.0.1", "::1", "203.0.113.5", "10.0.0.1", "fe80::1"][..]);
    let socket = prop_oneof![
        select(&["/private/var/run/mDNSResponder", "/private/var/run/docker.sock", "/x.sock"][..])
            .prop_map(str::to_owned),
        path(),
    ];
    prop_oneof![
        (host, any::<u16>()).prop_map(|(host, port)| End::ip(host, port)),
        socket.prop_map(End::Unix),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The sockets of a command's own directories are its own; there are no others in them.
    #[test]
    fn without_network_nothing_goes_out(asked in asked(), to in end()) {
        let mac = Mac::of(&made(&asked));
        let own = match (&to, &asked.home) {
            (End::Unix(path), Some(home)) => is_below(path, home),
            _ => false,
        };
        prop_assert!(own || !mac.asks(Question::outbound(to.clone())), "{to:?}");
        prop_assert!(own || !mac.asks(Question::bind(to.clone())), "{to:?}");
    }

    #[test]
    fn nothing_outside_the_grants_can_be_written(asked in asked(), target in path()) {
        let mac = Mac::of(&made(&asked));
        let own = [scratch("home"), scratch("tmp")];
        let mut writable = asked.write.iter().chain(&asked.home).chain(&own);
        prop_assume!(!writable.any(|root| is_below(&target, root)));
        prop_assert!(!mac.changes(&target), "{target}");
    }

    #[test]
    fn nothing_outside_the_grants_can_be_read(asked in asked(), target in path()) {
        let mac = Mac::of(&made(&asked));
        let mut readable = asked.read.iter().chain(&asked.write).chain(&asked.home);
        prop_assume!(!readable.any(|root| is_below(&target, root)));
        prop_assert!(!mac.may("file-read-data", &target), "{target}");
        prop_assert!(!mac.may("process-exec", &target), "{target}");
        prop_assert!(!mac.may("file-map-executable", &target), "{target}");
    }

    /// What is granted works, unless a rule denies it.
    #[test]
    fn what_is_granted_works(asked in asked()) {
        let asked = Asked { deny: Vec::new(), ..asked };
        let mac = Mac::of(&made(&asked));
        for root in &asked.write {
            let inside = format!("{root}/x");
            prop_assert!(mac.writes(&inside), "{}", root);
        }
        for root in asked.read.iter().chain(&asked.write) {
            let inside = format!("{root}/x");
            prop_assert!(mac.reads(&inside), "{}", root);
            let mut above = std::path::Path::new(root).ancestors();
            prop_assert!(above.all(|a| mac.may("file-read-metadata", &a.to_string_lossy())));
        }
    }

    /// Deny wins, and more rules never open anything.
    #[test]
    fn a_rule_more_opens_nothing(asked in asked(), more in rule(), target in path()) {
        let before = Mac::of(&made(&asked));
        let mut deny = asked.deny.clone();
        deny.push(more);
        let after = Mac::of(&made(&Asked { deny, ..asked }));
        for operation in ["file-read-data", "file-write-data", "file-write-unlink", "process-exec"] {
            prop_assert!(before.may(operation, &target) || !after.may(operation, &target));
        }
    }

    #[test]
    fn no_policy_gives_a_way_to_others(asked in asked()) {
        let mac = Mac::of(&made(&asked));
        for operation in ["signal", "process-info-pidinfo", "mach-priv-task-port", "job-creation"] {
            prop_assert!(!mac.asks(Question::other_process(operation)));
        }
        for service in ["com.apple.SecurityServer", "com.apple.trustd.agent", "com.apple.securityd"] {
            prop_assert!(!mac.looks_up(service));
        }
        prop_assert_eq!(mac.asks(Question::new("process-fork")), asked.subprocess);
    }
}
