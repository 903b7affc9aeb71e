use proptest::prelude::*;

use crate::{Defaults, Layer, LayerKind, LayerSource, NetRule, Origin, Policy, SecretRef};

fn source() -> LayerSource {
    LayerSource {
        kind: LayerKind::PolicyFile,
        path: "shown.toml".into(),
        base: "/base".into(),
        home: None,
    }
}

/// The policy with every origin the same, to compare values only.
fn values(policy: &Policy) -> serde_json::Value {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                map.remove("origin");
                map.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(policy).unwrap();
    strip(&mut value);
    value
}

fn reread(policy: &Policy) -> Policy {
    let text = policy.to_toml();
    let layer = Layer::from_toml(&text, source()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Policy::merge(&[layer], Defaults::exec()).unwrap()
}

#[test]
fn shows_values_with_their_origins() {
    let mut flags = Layer::command_line("/cwd", None);
    flags
        .read("/data")
        .allow_net("api.github.com:443".parse().unwrap())
        .listen(8080)
        .system_trust()
        .memory(Some("64M".parse().unwrap()))
        .cpu(Some(crate::Cores::from_millicores(500)))
        .no_subprocess()
        .env_set("MODE".parse().unwrap(), "a \"b\"\n")
        .secret("TOKEN".parse().unwrap(), SecretRef::Command("pass show x".into()));
    let defaults = Defaults { env_allow: vec!["LC_*".parse().unwrap()], ..Defaults::run() };
    let policy = Policy::merge(&[flags.build().unwrap()], defaults).unwrap();
    // Windows has its own separator.
    let shown = policy.to_toml().replace(r#""\\data""#, r#""/data""#);
    assert_eq!(
        shown,
        r#"[filesystem]
read = [
    "/data", # --read
]
write = []
deny = []
protect = false # default
allow_write = []

[network]
allow = [
    "api.github.com:443", # --allow-net
]
unix = []
listen = [
    8080, # --listen
]
system_trust = true # --system-trust

[process]
subprocess = false # --no-subprocess

[limits]
memory = "64 MiB" # --max-memory
cpu = 0.5 # --max-cpu
cpu_time = "none" # default
io = "none" # default
processes = 128 # default
open_files = 1024 # default
file_size = "none" # default
tmp_size = "256 MiB" # default
address_space = "none" # default
timeout = "none" # default
grace = "5s" # default

[env]
allow = [
    "LC_*", # default
]

[env.set]
MODE = "a \"b\"\n" # --env

[env.secrets]
TOKEN = "cmd:pass show x" # --secret
"#
    );
    assert_eq!(values(&reread(&policy))["limits"], values(&policy)["limits"]);
}

#[test]
fn host_network_round_trips() {
    let layer = Layer::from_toml("network = 'host'", source()).unwrap();
    let policy = Policy::merge(&[layer], Defaults::run()).unwrap();
    assert!(policy.to_toml().starts_with("network = \"host\" # shown.toml:1\n"));
    assert_eq!(values(&reread(&policy)), values(&policy));
}

#[test]
fn a_comment_cannot_become_policy() {
    let mut policy = Policy::merge(&[], Defaults::run()).unwrap();
    policy.limits.memory.origin =
        Origin::PolicyFile { place: "x\nnetwork = 'host'\r\u{202E}".into() };
    assert!(!policy.to_toml().contains("\nnetwork = 'host'"));
    reread(&policy);
}

#[cfg(unix)]
#[test]
fn paths_that_are_not_utf8_are_mentioned_and_serialized() {
    use std::os::unix::ffi::OsStrExt;
    let mut flags = Layer::command_line("/cwd", None);
    flags.read(std::ffi::OsStr::from_bytes(b"/odd\xff\n"));
    let policy = Policy::merge(&[flags.build().unwrap()], Defaults::run()).unwrap();
    let shown = policy.to_toml();
    assert!(shown.contains("# also, but not writable in TOML: /odd\u{FFFD}\u{FFFD}\n"), "{shown}");
    assert!(serde_json::to_string(&policy).unwrap().contains("/odd\u{FFFD}\\n"));
    reread(&policy);
}

proptest! {
    #[test]
    fn reading_back_gives_the_same_policy(
        read in prop::collection::vec("/[^\0]{0,12}", 0..4),
        deny in prop::collection::vec("(/|\\*\\*/)[^\0]{1,12}", 0..4),
        name in "[^\0=\\pC]{1,8}",
        value in "[^\0]{0,16}",
        memory in prop::option::of(1u64..),
        millicores in prop::option::of(1u32..),
        timeout in prop::option::of(1u64..),
        port in 1u16..,
        host in "[a-z]{1,8}\\.[a-z]{2,3}",
    ) {
        let mut flags = Layer::command_line("/cwd", None);
        read.iter().for_each(|path| { flags.read(path); });
        deny.iter().filter(|path| !read.contains(path)).for_each(|path| { flags.deny(path); });
        flags
            .memory(memory.map(crate::Bytes))
            .cpu(millicores.map(crate::Cores::from_millicores))
            .timeout(timeout.map(crate::Duration::from_millis))
            .listen(port)
            .allow_net(format!("{host}:{port}").parse::<NetRule>().unwrap())
            .env_set(name.parse().unwrap(), value)
            .secret("S".parse().unwrap(), SecretRef::File("/x y".into()));
        prop_assume!(name != "S");
        // Two spellings of one path may still meet in read and deny.
        let Ok(layer) = flags.build() else { return Ok(()) };
        let policy = Policy::merge(&[layer], Defaults::exec()).unwrap();
        prop_assert_eq!(values(&reread(&policy)), values(&policy));
    }
}
