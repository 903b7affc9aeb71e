use mcp_policy::{Defaults, Layer, LayerKind, LayerSource, Policy};

use super::*;
use crate::{Control, Intent};

fn server(toml: &str) -> Server {
    let source = LayerSource {
        kind: LayerKind::PolicyFile,
        path: "policy.toml".into(),
        base: "/srv".into(),
        home: None,
    };
    let layer = Layer::from_toml(toml, source).unwrap();
    Server {
        name: "notes".to_owned(),
        policy: Policy::merge(&[layer], Defaults::run()).unwrap(),
        options: Vec::new(),
        start: Start::Command(vec!["notes-server".to_owned()]),
    }
}

fn options() -> Options {
    Options {
        mcp: "/usr/bin/mcp".to_owned(),
        listen: "127.0.0.1:8808".parse().unwrap(),
        activation: Activation::Socket,
        user: None,
        resolvers: vec!["192.168.1.1".parse().unwrap()],
    }
}

fn service(server: &Server, options: &Options) -> String {
    export(server, &Settings::default(), options).unwrap().files[0].text.clone()
}

fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn a_server_without_rules_has_no_network() {
    let unit = service(&server(""), &options());
    assert_eq!(values(&unit, "PrivateNetwork"), ["yes"]);
    assert_eq!(values(&unit, "IPAddressDeny"), ["any"]);
    assert!(values(&unit, "IPAddressAllow").is_empty());
    // A service that listens itself needs the host's network, and accepts its own clients only.
    let listening = Options { activation: Activation::Service, ..options() };
    let unit = service(&server(""), &listening);
    assert!(values(&unit, "PrivateNetwork").is_empty());
    assert_eq!(values(&unit, "IPAddressAllow"), ["localhost"]);
}

#[test]
fn rules_open_their_networks_only() {
    let unit = service(&server("[network]\nallow = ['10.1.0.0/16:5432']\n"), &options());
    assert_eq!(values(&unit, "IPAddressAllow"), ["localhost", "10.1.0.0/16"]);
    let unit = service(&server("[network]\nallow = ['api.example.com']\n"), &options());
    let allowed = values(&unit, "IPAddressAllow");
    assert_eq!(allowed[..2], ["localhost", "192.168.1.1"]);
    assert!(!allowed.iter().any(|it| it.contains("any") || it.contains("0.0.0.0/0")));
    let unit = service(&server("network = 'host'\n"), &options());
    assert!(values(&unit, "IPAddressDeny").is_empty());
}

#[test]
fn limits_are_sums_over_all_sandboxes() {
    let text = "[limits]\nmemory = '64M'\ncpu = 0.5\nprocesses = 10\n";
    let unit = service(&server(text), &options());
    let memory: u64 = values(&unit, "MemoryMax")[0].parse().unwrap();
    assert_eq!(memory, 8 * ((64 + 16) << 20) + (128 << 20) + 8 * (256 << 20));
    assert_eq!(values(&unit, "CPUQuota"), ["400%"]);
    assert_eq!(values(&unit, "TasksMax"), [(8 * 14 + 64).to_string()]);
}

#[test]
fn hostile_paths_stay_paths_or_are_refused() {
    let unit = service(&server("[filesystem]\nread = ['/srv/a b%n\"c']\n"), &options());
    assert_eq!(values(&unit, "BindReadOnlyPaths"), ["\"/srv/a b%%n\\\"c\""]);
    for path in ["/srv/a:/etc", "/srv/a\\nExecStart=/bin/sh"] {
        let server = server(&format!("[filesystem]\nread = [\"{path}\"]\n"));
        assert!(export(&server, &Settings::default(), &options()).is_err(), "{path}");
    }
    let user = Options { user: Some("a\nb".to_owned()), ..options() };
    assert!(export(&server(""), &Settings::default(), &user).is_err());
}

#[test]
fn secrets_and_tokens_are_credentials() {
    let settings = Settings::read("[auth]\ntokens = 'tokens'\n").unwrap();
    let export =
        export(&server("[env.secrets]\nTOKEN = 'env:X'\n"), &settings, &options()).unwrap();
    let loaded = values(&export.files[0].text, "LoadCredential");
    assert!(loaded.contains(&"TOKEN:/etc/mcp/mcp-notes/secrets/TOKEN"), "{loaded:?}");
    assert!(loaded.contains(&"tokens:/etc/mcp/mcp-notes/tokens"), "{loaded:?}");
    let policy = export.files.iter().find(|file| file.name.ends_with("policy.toml")).unwrap();
    assert!(policy.text.contains("file:/run/credentials/mcp-notes.service/TOKEN"));
}

#[test]
fn a_package_is_fetched_by_a_unit_of_its_own() {
    let mut server = server("");
    server.start = Start::Package {
        reference: "npm:x%n $y".to_owned(),
        fetching: vec!["--plain-http".to_owned()],
        arguments: Vec::new(),
    };
    let export = export(&server, &Settings::default(), &options()).unwrap();
    let pull = export.files.iter().find(|file| file.name == "mcp-notes-pull.service").unwrap();
    assert_eq!(
        values(&pull.text, "ExecStart"),
        ["/usr/bin/mcp pull --plain-http \"npm:x%%n $$y\""]
    );
    assert!(values(&export.files[0].text, "Requires").contains(&"mcp-notes-pull.service"));
}

#[test]
fn every_control_has_an_answer() {
    let text = "[filesystem]\nwrite = ['/srv']\ndeny = ['**/.env']\n[limits]\nio = '10M/s'\ncpu = 1\ncpu_time = '1m'\n";
    let export = export(&server(text), &Settings::default(), &options()).unwrap();
    assert_eq!(export.controls.len(), Control::ALL.len());
    for (control, intent) in &export.controls {
        if let Intent::Unavailable { why, .. } = intent {
            assert!(!why.contains("is not known there"), "{control}");
        }
    }
    assert!(matches!(export.controls[&Control::Io], Intent::Partial { .. }));
}
