use std::time::Instant;

use proptest::prelude::*;

use crate::layer::{LayerKind, MAX_POLICY_FILE};
use crate::{Bytes, Cores, Duration, Layer, LayerSource, NetworkMode, Subprocess};

fn source() -> LayerSource {
    LayerSource {
        kind: LayerKind::PolicyFile,
        path: "policy.toml".into(),
        base: "/srv/app".into(),
        home: Some("/home/me".into()),
    }
}

fn read(text: &str) -> Layer {
    Layer::from_toml(text, source()).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    Layer::from_toml(text, source()).expect_err(text).to_string()
}

#[test]
fn the_design_page_example() {
    let layer = read(
        r#"
[filesystem]
read  = ["/usr/share/dict", "~/notes"]
write = ["./data"]
deny  = ["**/.env", "**/.git/hooks"]
[network]
allow = ["api.github.com:443", "*.example.com", "10.1.0.0/16:5432", "udp://1.1.1.1:53"]
unix  = ["/run/postgresql/.s.PGSQL.5432"]
listen = [8080, 8080]
[process]
subprocess = false
[limits]
memory = "256 MiB"
cpu = 0.5
cpu_time = "60s"
io = "10 MiB/s"
processes = 64
open_files = 256
file_size = "1 GiB"
tmp_size = "256 MiB"
timeout = "5m"
grace = 5
address_space = "none"
[env]
allow = ["LANG", "TZ"]
set = { NODE_ENV = "production" }
secrets = { GITHUB_TOKEN = "env:GITHUB_TOKEN", KEY = "file:~/key" }
"#,
    );
    let paths = |list: &[crate::Sourced<std::path::PathBuf>]| -> Vec<String> {
        list.iter().map(|p| p.value.to_string_lossy().replace('\\', "/")).collect()
    };
    assert_eq!(paths(&layer.filesystem.read), ["/usr/share/dict", "/home/me/notes"]);
    assert_eq!(paths(&layer.filesystem.write), ["/srv/app/data"]);
    assert_eq!(paths(&layer.filesystem.deny), ["**/.env", "**/.git/hooks"]);
    assert_eq!(layer.filesystem.read[0].origin.to_string(), "policy.toml:3");
    assert_eq!(layer.allow.len(), 4);
    assert_eq!(layer.listen.len(), 1);
    assert_eq!(layer.subprocess.unwrap().value, Subprocess::Refused);
    let limits = layer.limits;
    assert_eq!(limits.memory.unwrap().value, Some(Bytes::mib(256)));
    assert_eq!(limits.cpu.unwrap().value, Some(Cores::from_millicores(500)));
    assert_eq!(limits.timeout.unwrap().value, Some(Duration::from_secs(300)));
    assert_eq!(limits.grace.unwrap().value, Duration::from_secs(5));
    assert_eq!(limits.address_space.unwrap().value, None);
    assert_eq!(limits.io.unwrap().value, Some(crate::Rate(Bytes::mib(10))));
    assert_eq!(limits.processes.unwrap().value, Some(64));
    assert_eq!(layer.env.allow.len(), 2);
    assert_eq!(layer.env.set.len(), 1);
    assert_eq!(layer.env.secrets.len(), 2);
}

#[test]
fn host_network_is_a_word() {
    assert_eq!(read("network = 'host'").network_mode.unwrap().value, NetworkMode::Host);
    assert!(refused("network = 'open'").contains("unknown network mode"));
}

#[test]
fn caret_goes_under_the_bad_part() {
    assert_eq!(
        refused("# one\n\n\n\n\n[limits]\nmemory = \"64Q\"\n"),
        r#"policy.toml:7:13: unknown unit "Q" in size
   7 | memory = "64Q"
     |             ^ use B, KiB, MiB, GiB, TiB (or K, M, G, T)"#
    );
    assert_eq!(
        refused("\u{FEFF}[network]\r\nallow = [\r\n\t\"ok.org\",\r\n\t'https://x.org/y',\r\n]\r\n"),
        r#"policy.toml:4:3: a network rule is a host and port, not a URL
   4 |     'https://x.org/y',
     |      ^^^^^^^^ write x.org:443"#
    );
    // Escapes stand between the value and its spelling: the whole string is marked.
    assert!(refused("[limits]\nmemory = \"64\\u0051\"").contains("^^^^^^^^^^ use B"));
}

#[test]
fn unknown_keys_are_named_with_a_suggestion() {
    assert_eq!(
        refused("[limits]\nmemroy = 5"),
        "policy.toml:2:1: unknown key \"memroy\" in [limits]\n   2 | memroy = 5\n     | ^^^^^^ did you mean \"memory\"?"
    );
    assert!(refused("[limit]\n").contains("did you mean \"limits\"?"));
    assert!(refused("memory = 5").contains("memory belongs in [limits]"));
    assert!(
        refused("[network]\ntls = 1").contains("known here: allow, unix, listen, system_trust")
    );
    assert!(refused("[limits]\nmax-pids = 5").contains("did you mean \"processes\"?"));
}

#[test]
fn nonsense_is_refused() {
    for (text, said) in [
        ("[limits]\nmemory = 0", "memory cannot be zero"),
        ("[limits]\nmemory = -1", "cannot be negative"),
        ("[limits]\nmemory = true", "expected a size, found true or false"),
        ("[limits]\nmemory = ''", "empty size"),
        ("[limits]\nmemory = 99999999999999999999", "too large"),
        ("[limits]\ntimeout = '0s'", "timeout cannot be zero"),
        ("[limits]\ntimeout = nan", "expected a number in duration"),
        ("[limits]\ntimeout = inf", "expected a number in duration"),
        ("[limits]\ncpu = 0.0", "cpu cannot be zero"),
        ("[limits]\ncpu = -0.5", "cannot be negative"),
        ("[limits]\nprocesses = 0", "processes cannot be zero"),
        ("[limits]\nprocesses = -3", "cannot be negative"),
        ("[limits]\nprocesses = 5000000000", "too large"),
        ("[limits]\nprocesses = 1.5", "expected a whole number"),
        ("[limits]\nopen_files = 2", "open_files is too small"),
        ("[limits]\ntmp_size = 0", "tmp_size cannot be zero"),
        ("[limits]\ntmp_size = 'none'", "tmp_size cannot be \"none\""),
        ("[limits]\ngrace = 'none'", "grace cannot be \"none\""),
        ("[[limits]]\nmemory = 1", "expected a table, found a list"),
        ("limits = 5", "expected a table"),
        ("[filesystem]\nread = '/x'", "expected a list, found a string"),
        ("[filesystem]\nread = [5]", "expected a string, found a whole number"),
        ("[filesystem]\nread = ['']", "empty path"),
        ("[filesystem]\nread = [\"a\\u0000b\"]", "NUL character"),
        ("[filesystem]\nread = ['~bob/x']", "only one's own home"),
        ("[filesystem]\nread = ['/a']\nread = ['/b']", "given twice"),
        ("[filesystem]\nwrite = ['./a']\ndeny = ['a/']", "in both write and deny"),
        ("[filesystem]\nread = ['./a']\ndeny = ['a/']", "in both read and deny"),
        ("[network]\nlisten = [0]", "not a port"),
        ("[network]\nsystem_trust = 'yes'", "expected true or false"),
        ("[network]\nlisten = [65536]", "not a port"),
        ("[network]\nlisten = ['80']", "expected a port number"),
        ("[process]\nsubprocess = 'no'", "expected true or false"),
        ("[env]\nallow = ['A=B']", "names have no \"=\""),
        ("[env.set]\n'' = 'x'", "empty environment variable name"),
        ("[env.set]\nPORT = 80", "put it in quotes"),
        ("[env]\nset = { A = 'x' }\nsecrets = { A = 'env:A' }", "in both set and secrets"),
        ("[limits\nmemory = 1", "policy.toml:1:8:"),
        ("date = 2020-01-01", "unknown key \"date\""),
        ("process = 2020-01-01", "found a date"),
    ] {
        let error = refused(text);
        assert!(error.contains(said), "{text}\n{error}");
        assert!(error.starts_with("policy.toml:"), "{error}");
    }
}

#[test]
fn zero_is_fine_where_it_means_something() {
    let limits = read("[limits]\ngrace = 0\nfile_size = 0").limits;
    assert!(limits.grace.unwrap().value.is_zero());
    assert_eq!(limits.file_size.unwrap().value, Some(Bytes(0)));
}

#[test]
fn literal_secrets_never_reach_an_error_message() {
    for text in [
        "[env]\nsecrets = { A = 'hunter2', B = 'hunter2' }",
        "[env]\nsecrets = { A = 'env:OK', B = 'hunter2' }",
        "[env.secrets]\nA = 'hunter2'",
        "[env.secrets]\nA = \"\"\"hunter2\"\"\"",
        "[env.secrets]\nA = ['hunter2']",
        "[env]\nsecret = { A = 'hunter2' }",
        "secrets = { A = 'hunter2' }",
        "[env.secrets]\n'A=B' = 'hunter2'",
        "[env.secrets]\nA = hunter2",
        "[env.secrets]\nA = 'hunter2",
        "[env.secrets]\nA = 'x'\nA = 'hunter2'",
        "[env]\nsecrets = { A = 'hunter2' }\nset = { A = 'x' }",
        "[env]\nsecrets = 'hunter2'",
    ] {
        let error = refused(text);
        assert!(!error.contains("hunter2"), "{error}");
    }
    assert_eq!(
        refused("[env.secrets]\nTOKEN = 'hunter2'"),
        r"policy.toml:2:10: secrets are given by reference, not by value
   2 | TOKEN = *********
     |          ^^^^^^^ write env:NAME, file:PATH or cmd:COMMAND"
    );
}

#[test]
fn home_must_be_known_for_tilde() {
    let homeless = LayerSource { home: None, ..source() };
    let error = Layer::from_toml("[filesystem]\nread = ['~/x']", homeless).unwrap_err();
    assert_eq!(error.message(), "the home directory is not known");
    assert_eq!((error.line(), error.column()), (Some(2), Some(10)));
}

#[test]
fn origins_are_short_below_home() {
    let config = LayerSource {
        kind: LayerKind::UserConfig,
        path: "/home/me/.config/mcp/config.toml".into(),
        ..source()
    };
    let layer = Layer::from_toml("[limits]\n\nmemory = 1", config).unwrap();
    let origin = layer.limits.memory.unwrap().origin.to_string().replace('\\', "/");
    assert_eq!(origin, "~/.config/mcp/config.toml:3");
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_line() {
    let error = Layer::from_bytes(b"[limits]\nmemory = '\xff'", source()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "policy.toml:2:11: this is not UTF-8 text; save the file as UTF-8"
    );
    assert!(Layer::from_bytes(b"\xef\xbb\xbf[limits]\r\nmemory = 1\r\n", source()).is_ok());
}

#[test]
fn a_huge_file_is_refused_before_it_is_parsed() {
    let error = refused(&"[".repeat(10 << 20));
    assert_eq!(
        error,
        "policy.toml: this file has more than 1 MiB, too much for a policy; \
         split it, or name directories instead of files"
    );
    // Hostile, but small enough to be read: no stack overflow, no long wait.
    let before = Instant::now();
    let deep = "[".repeat(MAX_POLICY_FILE);
    assert!(Layer::from_toml(&deep, source()).is_err());
    let deep = format!("a = {}", "[".repeat(MAX_POLICY_FILE - 10));
    assert!(Layer::from_toml(&deep, source()).is_err());
    let dotted = format!("{} = 1", "a.".repeat(200_000));
    assert!(Layer::from_toml(&dotted, source()).is_err());
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}

#[test]
fn ten_thousand_rules_are_quick() {
    use std::fmt::Write;
    let mut text = String::from("[filesystem]\nread = [\n");
    for n in 0..10_000 {
        writeln!(text, "  '/data/set-{n}',").unwrap();
    }
    text.push_str("]\ndeny = ['/nothing']\n");
    let before = Instant::now();
    let layer = read(&text);
    let policy = crate::Policy::merge(&[layer], crate::Defaults::run()).unwrap();
    let took = before.elapsed();
    assert_eq!(policy.filesystem.read.len(), 10_000);
    // 100 ms is the promise for a release build; a debug build on a busy machine gets more.
    let most = if cfg!(debug_assertions) { 2_000 } else { 100 };
    assert!(took.as_millis() < most, "{took:?}");
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*|([\\[\\]a-z=\"'{}.,\n #0-9-]{0,60})") {
        let _ = Layer::from_toml(&text, source()).map_err(|error| error.to_string());
    }

    #[test]
    fn no_value_panics(key in prop::sample::select(vec![
        "limits.memory", "limits.cpu", "limits.timeout", "limits.processes", "filesystem.read",
        "network.allow", "network.listen", "network.system_trust", "env.set", "env.secrets", "network", "process.subprocess",
    ]), value in "\\PC{0,20}|[-0-9a-z.+_:'\"\\[\\]{}= ]{0,20}") {
        let text = format!("{key} = {value}");
        let _ = Layer::from_toml(&text, source()).map_err(|error| error.to_string());
        let text = format!("{key} = ['''{value}''']");
        let _ = Layer::from_toml(&text, source()).map_err(|error| error.to_string());
    }
}
