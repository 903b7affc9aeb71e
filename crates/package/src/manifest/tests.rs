use std::collections::BTreeSet;
use std::path::Path;

use mcp_policy::{LayerKind, Subprocess};
use proptest::prelude::*;

use super::*;
use crate::Package;

const LINUX: Platform = Platform { os: "linux", arch: "x86_64" };
const WINDOWS: Platform = Platform { os: "windows", arch: "x86_64" };

fn read(mcpb: Option<&str>, ours: Option<&str>, platform: &Platform) -> Result<Manifest> {
    let files = Files { mcpb: mcpb.map(str::to_owned), ours: ours.map(str::to_owned) };
    Manifest::read(&files, platform, "/bundle".into(), Some("/home/me".into()))
}

/// A path that was made here, as this system writes it.
fn native(path: &str) -> String {
    path.replace('/', std::path::MAIN_SEPARATOR_STR)
}

fn places() -> Places {
    Places {
        directory: "/bundle".into(),
        home: Some("/home/me".into()),
        desktop: Some("/home/me/Desktop".into()),
        documents: Some("/home/me/Documents".into()),
        downloads: None,
    }
}

fn launch(manifest: &Manifest, given: &[(&str, &str)]) -> Result<Launch> {
    let given = Given(given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
    manifest.launch(&LaunchContext { places: &places(), given: &given, cwd: Path::new("/cwd") })
}

fn with_server(server: &str, more: &str) -> String {
    format!(
        r#"{{"manifest_version": "0.3", "name": "t", "version": "1.0.0", "description": "d",
            "author": {{"name": "a"}}, "server": {server}{more}}}"#
    )
}

const FILES: &str = r#", "user_config": {
    "dirs": {"type": "directory", "title": "Directories", "multiple": true, "required": true,
             "default": ["${HOME}/notes", "${DESKTOP}"]},
    "key": {"type": "string", "sensitive": true, "required": false},
    "port": {"type": "number", "default": 10, "min": 1, "max": 100},
    "loud": {"type": "boolean", "default": false}}"#;
const SERVER: &str = r#"{"type": "node", "entry_point": "server/index.js", "mcp_config": {
    "command": "node", "args": ["${__dirname}/server/index.js", "${user_config.dirs}", "--port=${user_config.port}"],
    "env": {"KEY": "${user_config.key}", "LOUD": "${user_config.loud}"},
    "platform_overrides": {"win32": {"command": "node.exe", "env": {"X": "${/}"}}}}}"#;

#[test]
fn a_bundle_is_started_as_it_says() {
    let manifest = read(Some(&with_server(SERVER, FILES)), None, &LINUX).unwrap();
    assert_eq!(manifest.warnings, Vec::<String>::new());
    let launch = launch(&manifest, &[]).unwrap();
    assert_eq!(launch.program, "node");
    assert_eq!(
        launch.args,
        ["/bundle/server/index.js", "/home/me/notes", "/home/me/Desktop", "--port=10"]
    );
    let env: Vec<_> = launch.env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(env, [("LOUD", "false")]);
    // Defaults of the package's are asked for, not given.
    assert_eq!(launch.asks[0].kind, LayerKind::Manifest);
    let asked: Vec<_> =
        launch.asks[0].filesystem.write.iter().map(|p| p.value.display().to_string()).collect();
    assert_eq!(asked, ["/home/me/notes", "/home/me/Desktop"].map(native));
    assert!(launch.given.filesystem.write.is_empty());
}

#[test]
fn what_the_user_sets_is_given() {
    let manifest = read(Some(&with_server(SERVER, FILES)), None, &LINUX).unwrap();
    let given = [("dirs", "a"), ("dirs", "~/b"), ("key", "env:MY_KEY"), ("port", "99")];
    let launch = launch(&manifest, &given).unwrap();
    assert_eq!(launch.args[1..], ["/cwd/a", "/home/me/b", "--port=99"].map(native));
    let written: Vec<_> = launch.given.filesystem.write.iter().map(|p| p.value.clone()).collect();
    assert_eq!(written, [PathBuf::from("/cwd/a"), PathBuf::from("/home/me/b")]);
    let secret = launch.given.env.secrets.iter().next().unwrap();
    assert_eq!((secret.0.as_str(), secret.1.value.to_string()), ("KEY", "env:MY_KEY".to_owned()));
    assert!(launch.asks[0].filesystem.write.is_empty());
}

#[test]
fn settings_are_checked() {
    let manifest = read(Some(&with_server(SERVER, FILES)), None, &LINUX).unwrap();
    for (given, said) in [
        (("port", "101"), "from 1 to 100"),
        (("port", "x"), "expected a number"),
        (("loud", "yes"), "expected true or false"),
        (("key", "hunter2"), "given by reference"),
        (("nope", "1"), "no such setting; it has: dirs, key, loud, port"),
    ] {
        let error = launch(&manifest, &[given]).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let needs =
        r#", "user_config": {"k": {"type": "string", "title": "The key", "required": true}}"#;
    let manifest = read(
        Some(&with_server(
            SERVER
                .replace("dirs", "k")
                .replace("port", "k")
                .replace("user_config.key", "user_config.k")
                .replace("loud", "k")
                .as_str(),
            needs,
        )),
        None,
        &LINUX,
    )
    .unwrap();
    let error = launch(&manifest, &[]).unwrap_err().to_string();
    assert_eq!(error, "the package needs the setting k (The key); give it with --config k=VALUE");
}

#[test]
fn a_secret_never_gets_onto_a_command_line() {
    let settings = r#", "user_config": {"key": {"type": "string", "sensitive": true}}"#;
    for place in [
        r#""args": ["${user_config.key}"]"#,
        r#""args": ["--key=${user_config.key}"]"#,
        r#""env": {"A": "Bearer ${user_config.key}"}"#,
    ] {
        let server = format!(r#"{{"type": "node", "mcp_config": {{"command": "node", {place}}}}}"#);
        let manifest = read(Some(&with_server(&server, settings)), None, &LINUX).unwrap();
        let error = launch(&manifest, &[("key", "env:K")]).unwrap_err().to_string();
        assert!(error.contains("sensitive setting"), "{error}");
    }
}

#[test]
fn platforms_and_defaults() {
    let windows = read(Some(&with_server(SERVER, FILES)), None, &WINDOWS).unwrap();
    assert_eq!(windows.server.command, "node.exe");
    assert_eq!(windows.server.env["X"], "${/}");
    for (kind, command) in
        [("node", "node"), ("python", "python"), ("binary", "/bundle/bin/x"), ("uv", "uv")]
    {
        let server = format!(r#"{{"type": "{kind}", "entry_point": "bin/x"}}"#);
        let manifest = read(Some(&with_server(&server, "")), None, &LINUX).unwrap();
        assert_eq!(launch(&manifest, &[]).unwrap().program, native(command));
    }
    let only = r#", "compatibility": {"platforms": ["darwin"], "runtimes": {"node": ">=16"}}"#;
    let error = read(Some(&with_server(SERVER, only)), None, &LINUX).unwrap_err().to_string();
    assert!(error.contains("is for darwin, and this is linux"), "{error}");
}

#[test]
fn all_versions_are_read_and_others_named() {
    for version in ["0.1", "0.2", "0.3", "0.4"] {
        let text = with_server(SERVER, FILES).replace("0.3", version);
        read(Some(&text), None, &LINUX).unwrap();
        read(Some(&text.replace("manifest_version", "dxt_version")), None, &LINUX).unwrap();
    }
    let error =
        read(Some(&with_server(SERVER, FILES).replace("0.3", "1.0")), None, &LINUX).unwrap_err();
    assert!(error.to_string().contains("known: 0.1, 0.2, 0.3, 0.4"), "{error}");
}

#[test]
fn unknown_keys_warn_in_foreign_files_and_fail_in_ours() {
    let text = with_server(SERVER, FILES).replacen("\"name\"", "\"surprise\": 1, \"name\"", 1);
    let manifest = read(Some(&text), None, &LINUX).unwrap();
    assert_eq!(manifest.warnings, ["manifest.json: unknown key \"surprise\" is ignored"]);
    for (ours, said) in [
        ("surprise = 1", "unknown key \"surprise\""),
        ("[package]\nname = 'a/b'\nversion = '1.0.0'\nsurprise = 1", "unknown field `surprise`"),
        ("[server]\ncommand = 'x'\nsurprise = 1", "unknown field `surprise`"),
        ("[server.platform.linux]\nsurprise = 1", "unknown field `surprise`"),
        ("[server.platform.beos]\ncommand = 'x'", "no such platform"),
        ("[limits]\nmemroy = 1", "did you mean \"memory\"?"),
        ("[server]\ntransport = 'pigeon'", "unknown variant `pigeon`"),
        ("[package]\nname = 'A'\nversion = '1.0.0'", "is no name and version"),
        ("[package]\nname = 'a/b'\nversion = '1'", "version \"1\""),
        ("[user_config]\nx = 'read'", "no directory or file of that name"),
    ] {
        let error =
            read(Some(&with_server(SERVER, FILES)), Some(ours), &LINUX).unwrap_err().to_string();
        assert!(error.contains(said), "{ours}: {error}");
    }
}

#[test]
fn ours_alone_and_over_a_bundle() {
    let ours = "[package]\nname = 'acme/test'\nversion = '1.0.0'\n[server]\ncommand = './bin/run'\nargs = ['${HOME}']\n\
                [server.platform.linux-x86_64]\ncommand = 'bin/x64'\n[server.platform.linux]\nargs = ['l']\n\
                [network]\nallow = ['api.example.com:443']\n[process]\nsubprocess = false\n[limits]\nmemory = '64M'\n";
    let manifest = read(None, Some(ours), &LINUX).unwrap();
    assert_eq!(
        (manifest.name.as_str(), manifest.server.command.as_str()),
        ("acme/test", "bin/x64")
    );
    assert_eq!(manifest.server.args, ["l"]);
    let asks = manifest.asks.as_ref().unwrap();
    assert_eq!(asks.kind, LayerKind::Manifest);
    assert_eq!(asks.subprocess.as_ref().unwrap().value, Subprocess::Refused);
    assert_eq!(launch(&manifest, &[]).unwrap().program, native("/bundle/bin/x64"));
    let other = Platform { os: "linux", arch: "riscv64" };
    assert_eq!(
        launch(&read(None, Some(ours), &other).unwrap(), &[]).unwrap().program,
        native("/bundle/bin/run")
    );

    let over = read(
        Some(&with_server(SERVER, FILES)),
        Some("[user_config]\ndirs = 'read'\n[filesystem]\nread = ['~/x']"),
        &LINUX,
    )
    .unwrap();
    let launch = launch(&over, &[("dirs", "/d")]).unwrap();
    assert_eq!(launch.given.filesystem.read[0].value, PathBuf::from("/d"));
    assert_eq!(launch.asks[0].filesystem.read[0].value, PathBuf::from("/home/me/x"));
    let error = read(
        Some(&with_server(SERVER, FILES)),
        Some("[package]\nname='a/b'\nversion='2.0.0'"),
        &LINUX,
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("has version 2.0.0, and manifest.json has 1.0.0"),
        "{error}"
    );
}

#[test]
fn commands_stay_in_the_package() {
    for command in ["../x", "bin/../../x", "./../x", ""] {
        let ours = format!("[package]\nname='a/b'\nversion='1.0.0'\n[server]\ncommand={command:?}");
        let manifest = read(None, Some(&ours), &LINUX).unwrap();
        assert!(launch(&manifest, &[]).is_err(), "{command}");
    }
    for entry in ["../x.js", "/etc/passwd", "a/../../b", ""] {
        let server = format!(r#"{{"type": "node", "entry_point": {entry:?}}}"#);
        assert!(read(Some(&with_server(&server, "")), None, &LINUX).is_err(), "{entry}");
    }
}

#[test]
fn the_schema_has_every_key_that_is_read() {
    let schema = schema();
    let limits = &schema["$defs"]["Limits"]["properties"];
    let keys: Vec<&String> = limits.as_object().unwrap().keys().collect();
    for key in keys {
        let value = if ["processes", "open_files"].contains(&key.as_str()) { "64" } else { "'64'" };
        let value = match key.as_str() {
            "io" => "'64M/s'",
            "cpu_time" | "timeout" | "grace" => "'64s'",
            "memory" | "file_size" | "tmp_size" | "address_space" => "'64M'",
            _ => value,
        };
        let text = format!(
            "[package]\nname='a/b'\nversion='1.0.0'\n[server]\ncommand='x'\n[limits]\n{key} = {value}"
        );
        read(None, Some(&text), &LINUX).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
    let names = |of: &serde_json::Value| -> BTreeSet<String> {
        of.as_object().unwrap().keys().cloned().collect()
    };
    // What an agent's tools may do is no business of a package's.
    for (table, keys) in mcp_policy::TABLES.iter().filter(|(table, _)| *table != "tools") {
        let definition = match *table {
            "filesystem" => "Filesystem",
            "network" => "NetworkRules",
            "process" => "Process",
            "limits" => "Limits",
            _ => "Env",
        };
        let keys: BTreeSet<String> = keys.iter().map(|&key| key.to_owned()).collect();
        assert_eq!(names(&schema["$defs"][definition]["properties"]), keys, "[{table}]");
    }
    let top: Vec<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        top,
        ["env", "filesystem", "limits", "network", "package", "process", "server", "user_config"]
    );
}

const SERVER_JSON: &str = r#"{"$schema": "x", "name": "io.github.user/weather", "description": "d", "version": "1.0.2",
    "packages": [{"registryType": "npm", "registryBaseUrl": "https://registry.npmjs.org", "identifier": "@user/weather",
    "version": "1.0.2", "transport": {"type": "stdio"},
    "runtimeArguments": [{"type": "positional", "value": "-y"}],
    "packageArguments": [{"type": "positional", "value": "start"}, {"type": "named", "name": "--units", "default": "metric"},
        {"type": "positional", "valueHint": "data_dir", "format": "filepath", "isRequired": true}],
    "environmentVariables": [{"name": "API_KEY", "isSecret": true, "isRequired": true},
        {"name": "URL", "value": "https://{host}/", "variables": {"host": {"default": "h"}}}]}]}"#;

#[test]
fn a_registry_entry_becomes_a_package_with_settings() {
    let server = ServerJson::read(SERVER_JSON).unwrap();
    assert_eq!(server.warnings, Vec::<String>::new());
    let package = Package {
        name: "@user/weather".into(),
        version: Some("1.0.2".into()),
        ..Package::default()
    };
    assert_eq!(server.origin, Origin::Npm(package));
    let mut manifest =
        read(Some(&with_server(r#"{"type": "node", "entry_point": "x.js"}"#, "")), None, &LINUX)
            .unwrap();
    server.onto(&mut manifest);
    let launch = launch(&manifest, &[("API_KEY", "env:K"), ("data_dir", "d")]).unwrap();
    let made = native("/cwd/d");
    assert_eq!(launch.args, ["/bundle/x.js", "start", "--units", "metric", made.as_str()]);
    assert_eq!(launch.env.iter().next().unwrap().1, "https://h/");
    assert_eq!(launch.given.env.secrets.len(), 1);
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let package =
        |text: &str| format!(r#"{{"name": "a.b/c", "version": "1.0.0", "packages": [{text}]}}"#);
    for (text, said) in [
        (package(r#"{"registryType": "oci", "identifier": "docker.io/a/b:1"}"#), "container image"),
        (
            package(r#"{"registryType": "nuget", "identifier": "A.B", "version": "1.0.0"}"#),
            ".NET tool",
        ),
        (
            package(r#"{"registryType": "npm", "identifier": "a", "version": "latest"}"#),
            "no exact version",
        ),
        (package(r#"{"registryType": "npm", "identifier": "a"}"#), "has no version"),
        (package(r#"{"registryType": "mcpb", "identifier": "https://x/y.mcpb"}"#), "no fileSha256"),
        (
            package(r#"{"registryType": "npm", "identifier": "--global", "version": "1.0.0"}"#),
            "expected a package name",
        ),
        (
            package(
                r#"{"registryType": "npm", "identifier": "a", "version": "1.0.0", "transport": {"type": "sse"}}"#,
            ),
            "over HTTP",
        ),
        (
            r#"{"name": "a.b/c", "version": "1", "remotes": [{"type": "sse", "url": "u"}]}"#
                .to_owned(),
            "remote server",
        ),
    ] {
        let error = ServerJson::read(&text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_readers(text in "\\PC{0,80}", json in "[\\[\\]{}\":,a-z0-9 ${}._-]{0,120}") {
        let _ = read(Some(&text), None, &LINUX);
        let _ = read(Some(&json), Some(&text), &LINUX);
        let _ = ServerJson::read(&json);
        let server = format!(r#"{{"type": "node", "mcp_config": {{"command": {text:?}, "args": [{json:?}]}}}}"#);
        if let Ok(manifest) = read(Some(&with_server(&server, FILES)), None, &LINUX) {
            let _ = launch(&manifest, &[]);
        }
    }

    #[test]
    fn values_are_not_looked_at_again(value in "[${}a-z_.]{1,20}") {
        let server = r#"{"type": "node", "mcp_config": {"command": "node", "args": ["${user_config.v}"]}}"#;
        let settings = r#", "user_config": {"v": {"type": "string"}}"#;
        let manifest = read(Some(&with_server(server, settings)), None, &LINUX).unwrap();
        prop_assert_eq!(&launch(&manifest, &[("v", &value)]).unwrap().args[0], &value);
    }

    #[test]
    fn a_manifest_only_asks(dir in "[a-z]{1,8}") {
        let ours = format!("[package]\nname='a/b'\nversion='1.0.0'\n[server]\ncommand='x'\n[filesystem]\nwrite=['~/{dir}']\n[network]\nallow=['{dir}.example.com']");
        let manifest = read(None, Some(&ours), &LINUX).unwrap();
        let launch = launch(&manifest, &[]).unwrap();
        let mut layers = launch.asks.clone();
        layers.push(launch.given);
        let policy = mcp_policy::Policy::merge(&layers, mcp_policy::Defaults::run()).unwrap();
        prop_assert!(policy.filesystem.write.is_empty() && policy.network.allow.is_empty());
    }
}
