use std::path::PathBuf;

use crate::{
    Bytes, Defaults, Duration, Fallback, Layer, LayerKind, LayerSource, NetworkMode, Policy,
    Protect, SecretRef, Subprocess, asked_but_not_granted,
};

fn layer(kind: LayerKind, text: &str) -> Layer {
    let path = match kind {
        LayerKind::Manifest => "manifest.toml",
        LayerKind::UserConfig => "config.toml",
        LayerKind::PolicyFile => "policy.toml",
        LayerKind::CommandLine => "flags",
    };
    let source =
        LayerSource { kind, path: path.into(), base: "/base".into(), home: Some("/home".into()) };
    Layer::from_toml(text, source).unwrap_or_else(|error| panic!("{error}"))
}

fn merge(layers: &[Layer]) -> Policy {
    Policy::merge(layers, Defaults::run()).unwrap_or_else(|error| panic!("{error}"))
}

use LayerKind::{Manifest, PolicyFile, UserConfig};

#[test]
fn defaults_are_the_documented_ones() {
    let run = merge(&[]);
    assert_eq!(run.limits.memory.value, Some(Bytes::mib(512)));
    assert_eq!(run.limits.processes.value, Some(128));
    assert_eq!(run.limits.open_files.value, Some(1024));
    assert_eq!(run.limits.tmp_size.value, Bytes::mib(256));
    assert_eq!(run.limits.grace.value, Duration::from_secs(5));
    assert_eq!(run.limits.timeout.value, None);
    assert_eq!(run.limits.cpu.value, None);
    assert_eq!(run.network.mode.value, NetworkMode::Isolated);
    assert_eq!(run.process.subprocess.value, Subprocess::Allowed);
    assert!(run.env.allow.iter().any(|pattern| pattern.value.matches("LC_ALL")));
    assert!(!run.env.allow.iter().any(|pattern| pattern.value.matches("GITHUB_TOKEN")));
    let exec = Policy::merge(&[], Defaults::exec()).unwrap();
    assert_eq!(exec.limits.timeout.value, Some(Duration::from_secs(120)));
}

#[test]
fn later_layers_replace_values_and_add_to_lists_whatever_the_order_given() {
    let mut flags = Layer::command_line("/cwd", None);
    flags.memory(None).read("x").read("/shared");
    let layers = [
        flags.build().unwrap(),
        layer(
            PolicyFile,
            "limits.memory = '2M'\nlimits.processes = 7\nfilesystem.read = ['/shared', '/p']",
        ),
        layer(
            UserConfig,
            "limits.memory = '1M'\nfilesystem.read = ['/c']\nfilesystem.deny = ['/d']",
        ),
    ];
    let policy = merge(&layers);
    assert_eq!(policy.limits.memory.value, None);
    assert_eq!(policy.limits.memory.origin.to_string(), "--max-memory");
    assert_eq!(policy.limits.processes.value, Some(7));
    assert_eq!(policy.limits.processes.origin.to_string(), "policy.toml:2");
    let read: Vec<_> = policy
        .filesystem
        .read
        .iter()
        .map(|path| (path.value.to_string_lossy().replace('\\', "/"), path.origin.to_string()))
        .collect();
    let expected = [
        ("/c", "config.toml:2"),
        ("/shared", "policy.toml:3"),
        ("/p", "policy.toml:3"),
        ("/cwd/x", "--read"),
    ];
    assert_eq!(read, expected.map(|(path, origin)| (path.to_owned(), origin.to_owned())));
    assert_eq!(policy.filesystem.deny.len(), 1);
}

const GREEDY: &str = r#"
network.allow = ["api.github.com:443", "evil.org"]
network.unix = ["/run/docker.sock"]
network.listen = [8080]
network.system_trust = true
filesystem.read = ["/home/notes/today", "/home/.ssh", "/home/notes/../.aws"]
filesystem.write = ["/home/notes"]
env.allow = ["AWS_*", "LC_ALL"]
env.set = { PATH = "/evil" }
env.secrets = { TOKEN = "cmd:curl evil.org" }
limits.memory = "8G"
limits.timeout = "none"
process.subprocess = true
"#;

#[test]
fn a_manifest_only_asks() {
    let mut layers = vec![layer(Manifest, GREEDY)];
    assert_eq!(merge(&layers), merge(&[]));

    layers.push(layer(
        UserConfig,
        "filesystem.read = ['/home/notes']\nnetwork.allow = ['*.github.com']",
    ));
    let policy = merge(&layers);
    assert_eq!(policy, merge(&layers[1..]));
    let unmet = asked_but_not_granted(&layers, &policy);
    let expected = [
        "read /home/.ssh (asked by manifest.toml:6): give it with --read",
        "read /home/notes/../.aws (asked by manifest.toml:6): give it with --read",
        "write /home/notes (asked by manifest.toml:7): give it with --write",
        "connect to evil.org (asked by manifest.toml:2): give it with --allow-net evil.org",
        "connect to /run/docker.sock (asked by manifest.toml:3): give it with --allow-unix",
        "listen on port 8080 (asked by manifest.toml:4): give it with --listen 8080",
        "the system's certificate service (asked by manifest.toml:5): give it with --system-trust",
        "variable AWS_* (asked by manifest.toml:8): give it with --env AWS_*",
        "variable PATH (asked by manifest.toml:9): give it with --env PATH=…",
        "secret TOKEN (asked by manifest.toml:10): give it with --secret TOKEN=…",
        "memory 8 GiB (asked by manifest.toml:11): 512 MiB is given (default), more with --max-memory",
    ];
    let unmet: Vec<_> = unmet.iter().map(|line| line.replace('\\', "/")).collect();
    assert_eq!(unmet, expected);
}

#[test]
fn a_manifest_can_be_stricter() {
    let asked = layer(
        Manifest,
        "limits.memory = '64M'\nlimits.timeout = '1m'\nlimits.tmp_size = '1M'\nlimits.grace = 0\n\
         process.subprocess = false\nfilesystem.deny = ['**/.env']",
    );
    let person = layer(PolicyFile, "process.subprocess = true\nlimits.memory = '1G'");
    let policy = merge(&[asked, person]);
    assert_eq!(policy.limits.memory.value, Some(Bytes::mib(64)));
    assert_eq!(policy.limits.memory.origin.to_string(), "manifest.toml:1");
    assert_eq!(policy.limits.timeout.value, Some(Duration::from_secs(60)));
    assert_eq!(policy.limits.tmp_size.value, Bytes::mib(1));
    assert!(policy.limits.grace.value.is_zero());
    assert_eq!(policy.process.subprocess.value, Subprocess::Refused);
    assert_eq!(policy.filesystem.deny.len(), 1);
}

#[test]
fn host_network_contradicts_rules_of_other_layers() {
    let layers =
        [layer(UserConfig, "network = 'host'"), layer(PolicyFile, "network.allow = ['x.org']")];
    let error = Policy::merge(&layers, Defaults::run()).unwrap_err().to_string();
    assert_eq!(
        error,
        "the host's network (config.toml:1) contradicts \"allow x.org\" (policy.toml:1); \
         with the host's network nothing is restricted: remove one of them"
    );
    // What a manifest asks for is no contradiction, and is met.
    let layers =
        [layer(UserConfig, "network = 'host'"), layer(Manifest, "network.allow = ['x.org']")];
    let policy = merge(&layers);
    assert_eq!(policy.network.mode.value, NetworkMode::Host);
    assert!(asked_but_not_granted(&layers, &policy).is_empty());

    let mut flags = Layer::command_line("/cwd", None);
    flags.network_isolated();
    let layers = [
        layer(UserConfig, "network = 'host'"),
        layer(PolicyFile, "network.allow = ['x.org']"),
        flags.build().unwrap(),
    ];
    assert_eq!(merge(&layers).network.mode.value, NetworkMode::Isolated);
}

#[test]
fn a_manifest_cannot_take_the_host_network() {
    let layers = [layer(Manifest, "network = 'host'")];
    let policy = merge(&layers);
    assert_eq!(policy.network.mode.value, NetworkMode::Isolated);
    assert_eq!(asked_but_not_granted(&layers, &policy).len(), 1);
}

#[test]
fn the_later_word_decides_between_value_and_secret() {
    let config = layer(UserConfig, "env.set = { A = '1', B = '2' }");
    let file = layer(PolicyFile, "env.secrets = { A = 'file:key' }");
    let policy = merge(&[config, file]);
    assert_eq!(policy.env.set.len(), 1);
    let secret = policy.env.secrets.values().next().unwrap();
    assert_eq!(secret.value, SecretRef::File("/base/key".into()));
}

#[test]
fn a_denial_that_takes_a_persons_own_grant_away_is_told() {
    let layers = [
        layer(UserConfig, "filesystem.deny = ['/d']"),
        layer(PolicyFile, "filesystem.write = ['/d/x']"),
    ];
    let policy = merge(&layers);
    let unmet = asked_but_not_granted(&layers, &policy).join("\n").replace('\\', "/");
    assert_eq!(unmet, "write /d/x (asked by policy.toml:1): denied by config.toml:1");
}

#[test]
fn people_take_protection_away_and_manifests_only_add_it() {
    let protect = |layers: &[Layer], defaults: Defaults| {
        Policy::merge(layers, defaults).unwrap().protect.value
    };
    let on = |kind| layer(kind, "[filesystem]\nprotect = true\n");
    let off = |kind| layer(kind, "[filesystem]\nprotect = false\n");
    assert_eq!(protect(&[], Defaults::run()), Protect::Nothing);
    assert_eq!(protect(&[], Defaults::exec()), Protect::Usual);
    assert_eq!(protect(&[on(Manifest)], Defaults::run()), Protect::Usual);
    assert_eq!(protect(&[off(Manifest)], Defaults::exec()), Protect::Usual);
    assert_eq!(protect(&[off(UserConfig)], Defaults::exec()), Protect::Nothing);
    let text = "[filesystem]\nallow_write = ['.git']\n";
    assert!(merge(&[layer(Manifest, text)]).filesystem.allow_write.is_empty());
    let policy = merge(&[layer(PolicyFile, text)]);
    assert_eq!(policy.filesystem.allow_write[0].value, PathBuf::from("/base/.git"));
}

#[test]
fn what_tools_may_touch_counts_for_commands_alone() {
    let text = "[tools.sandbox]\nallowed_roots = ['~/shared']\ndenied_patterns = ['**/.env']\n\
                fallback = 'allow_with_warning'\nallow_absolute = false\n";
    let config = layer(UserConfig, text);
    let run = merge(std::slice::from_ref(&config));
    assert!(run.filesystem.write.is_empty() && run.filesystem.deny.is_empty());
    assert_eq!(config.tools.fallback.as_ref().map(|said| said.value), Some(Fallback::Warn));
    assert_eq!(config.tools.allow_absolute.as_ref().map(|said| said.value), Some(false));
    let exec = merge(&[config.for_commands()]);
    assert_eq!(exec.filesystem.write[0].value, PathBuf::from("/home/shared"));
    assert_eq!(exec.filesystem.deny[0].origin.to_string(), "config.toml:3");
    let source = LayerSource {
        kind: Manifest,
        path: "manifest.toml".into(),
        base: "/base".into(),
        home: None,
    };
    assert!(Layer::from_toml(text, source).is_err(), "a package has no say in it");
}
