use mcp_policy::{Defaults, Layer, LayerKind, LayerSource};
use proptest::prelude::*;

use super::*;

fn read_back(text: &str) -> Policy {
    let source = LayerSource {
        kind: LayerKind::PolicyFile,
        path: "learned.toml".into(),
        base: "/".into(),
        home: None,
    };
    let layer = Layer::from_toml(text, source).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Policy::merge(&[layer], Defaults::run()).unwrap()
}

fn evidence(times: u64, first: &str) -> Evidence {
    Evidence { times, first: first.to_owned() }
}

#[test]
fn each_line_has_its_evidence() {
    let mut draft = Draft::default();
    draft.learn(Grant::Read("/srv/b".into()), &evidence(12, "read_file"));
    draft.learn(Grant::Read("/srv/a".into()), &evidence(1, "start"));
    draft.learn(Grant::Net("api.github.com:443".parse().unwrap()), &evidence(2, ""));
    draft.learn(Grant::Secret("TOKEN".parse().unwrap()), &evidence(1, "its files"));
    draft.limit_memory(Bytes::mib(112), "peak 68 MiB");
    let expected = r#"[filesystem]
read = [
    "/srv/a", # once, first by start
    "/srv/b", # 12 times, first by read_file
]

[network]
allow = [
    "api.github.com:443", # 2 times
]

[limits]
memory = "112 MiB" # peak 68 MiB

[env.secrets]
TOKEN = "env:TOKEN" # once, first by its files
"#;
    assert_eq!(draft.to_toml(), expected);
    read_back(expected);
}

#[test]
fn what_was_given_is_kept_and_read_back() {
    let text = r#"[filesystem]
read = ["/a"]
deny = ["**/.env"]
protect = false
[network]
listen = [80]
allow = ["*.example.com"]
[process]
subprocess = false
[limits]
memory = "64 MiB"
cpu = 0.5
timeout = "none"
[env]
allow = ["LC_*", "DEBUG"]
set = { MODE = "a\"b" }
secrets = { T = "cmd:pass show x" }
"#;
    let policy = read_back(text);
    let again = read_back(&Draft::of(&policy).unwrap().to_toml());
    assert_eq!(crate::diff(&policy, &again), []);
    // Defaults are not repeated.
    assert_eq!(Draft::of(&read_back("")).unwrap(), Draft::default());
    let host = read_back("network = 'host'\n");
    assert_eq!(crate::diff(&host, &read_back(&Draft::of(&host).unwrap().to_toml())), []);
}

proptest! {
    #[test]
    fn every_draft_reads_back(
        paths in prop::collection::vec(("/[ -~é\u{202e}\n\"\\\\]{1,12}", any::<bool>(), "[ -~\n\u{7}]{0,20}"), 0..12),
    ) {
        let mut draft = Draft::default();
        for (path, is_write, first) in &paths {
            let path = std::path::PathBuf::from(path);
            let grant = if *is_write { Grant::Write(path) } else { Grant::Read(path) };
            draft.learn(grant, &evidence(2, first));
        }
        let policy = read_back(&draft.to_toml());
        let count = policy.filesystem.read.len() + policy.filesystem.write.len();
        prop_assert_eq!(count, draft.grants().count());
    }
}
