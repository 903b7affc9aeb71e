use mcp_policy::{Defaults, Layer, LayerKind, LayerSource};
#[cfg(unix)]
use proptest::prelude::*;

use super::*;

fn policy(toml: &str, kind: LayerKind) -> Policy {
    let source = LayerSource { kind, path: "policy.toml".into(), base: "/srv".into(), home: None };
    let asked = Layer::from_toml(toml, source).unwrap();
    let mut flags = Layer::command_line("/cwd", None);
    flags.read("from-flag").cpu_time(Some(Duration::from_millis(1)));
    Policy::merge(&[asked, flags.build().unwrap()], Defaults::exec()).unwrap()
}

fn received(policy: Policy) -> Received {
    Received {
        spec: RunSpec {
            policy,
            command: vec!["true".into()],
            cwd: None,
            home: None,
            programs: vec!["make".into()],
            identity: crate::Identity::User,
        },
        secrets: Vec::new(),
        fallback: Fallback::Deny,
        strict: false,
        judged: None,
    }
}

fn sent(received: Received) -> Received {
    Order::from_bytes(&Order::new(received).to_bytes().unwrap()).unwrap()
}

const EVERYTHING: &str = r#"
[filesystem]
read = ["a"]
write = ["b"]
deny = ["**/.env"]
[network]
allow = ["api.example.com:443", "*.example.com", "[2001:db8::/32]:*", "udp://1.1.1.1:53"]
unix = ["/run/s"]
listen = [8080]
system_trust = true
[process]
subprocess = false
[limits]
memory = "64 MiB"
cpu = 0.5
io = "10 MiB/s"
processes = 7
open_files = 8
file_size = "none"
tmp_size = "1 MiB"
address_space = "1 GiB"
timeout = "none"
grace = "1ms"
[env]
allow = ["LC_*"]
[env.set]
A = "b"
[env.secrets]
E = "env:X"
F = "file:/f"
C = "cmd:pass"
"#;

#[test]
fn every_part_of_a_policy_arrives() {
    for kind in [LayerKind::UserConfig, LayerKind::PolicyFile, LayerKind::Manifest] {
        let policy = policy(EVERYTHING, kind);
        assert_eq!(sent(received(policy.clone())).spec.policy, policy, "{kind:?}");
    }
    let host = policy("network = 'host'", LayerKind::PolicyFile);
    assert_eq!(sent(received(host.clone())).spec.policy, host);
}

#[test]
fn what_the_guard_said_and_every_fallback_arrive() {
    for fallback in [Fallback::Deny, Fallback::Prompt, Fallback::Warn] {
        let mut before = received(policy("", LayerKind::PolicyFile));
        before.fallback = fallback;
        before.judged = Some(Judged {
            decision: "unknown".to_owned(),
            rules: vec!["a".to_owned()],
            noted: vec!["b".to_owned()],
            why: Some("c".to_owned()),
        });
        let judged = before.judged.clone();
        let after = sent(before);
        assert_eq!((after.fallback, after.judged), (fallback, judged));
    }
}

#[test]
fn an_order_of_another_version_is_refused_as_that() {
    let error = Order::from_bytes(br#"{"version":99,"new":{}}"#).err().unwrap().to_string();
    assert!(error.contains(&format!("version {VERSION}, not 99")), "{error}");
}

#[cfg(unix)]
proptest! {
    #[test]
    fn any_bytes_arrive(
        words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..4),
        secret in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        use std::os::unix::ffi::OsStringExt;
        let mut before = received(policy("", LayerKind::PolicyFile));
        before.spec.command = words.iter().cloned().map(OsString::from_vec).collect();
        before.spec.cwd = words.first().cloned().map(|w| OsString::from_vec(w).into());
        before.spec.home = words.last().cloned().map(|w| OsString::from_vec(w).into());
        before.secrets = vec![("T".into(), Secret::new(OsString::from_vec(secret)))];
        let (spec, secrets) = (before.spec.clone(), before.secrets.clone());
        let after = sent(before);
        prop_assert_eq!(after.spec, spec);
        prop_assert_eq!(after.secrets, secrets);
    }
}
