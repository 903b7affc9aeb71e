use mcp_policy::{Bytes, LayerSource, Origin};

use super::*;

fn told(build: fn(&mut Sandbox) -> &mut Sandbox) -> String {
    let mut sandbox = Sandbox::new("true");
    build(&mut sandbox);
    sandbox.order().err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_is_wrong_is_told_at_the_start() {
    for (said, expected) in [
        (told(|s| s.read("")), "policy: --read: empty path"),
        (told(|s| s.allow_net("http://x")), "allow_net: "),
        (told(|s| s.env("A=B", "x")), "env: environment variable names"),
        (told(|s| s.env("A", "x\0")), "policy: --env: NUL"),
        (told(|s| s.pass_env("")), "pass_env: empty"),
        (told(|s| s.secret("A", "")), "secret A: its value is empty"),
        (told(|s| s.secret("A", "hunter2\0")), "secret A: its value contains a NUL"),
        (told(|s| s.memory(Bytes(0))), "memory cannot be zero"),
        (told(|s| s.home("/no/such/home")), "home /no/such/home: "),
        (told(|s| s.network_host().listen(1)), "the host's network"),
    ] {
        assert!(said.contains(expected) && !said.contains("hunter2"), "{expected:?}: {said:?}");
    }
    assert_eq!(told(|s| s.read("a").memory(None)), "");
}

#[test]
fn a_policy_is_the_ground_and_the_setters_stand_on_it() {
    let source = LayerSource {
        kind: LayerKind::UserConfig,
        path: "config.toml".into(),
        base: "/srv".into(),
        home: None,
    };
    let text = "[filesystem]\nread = ['/a']\n[limits]\nmemory = '1 GiB'\nprocesses = 7";
    let given =
        Policy::merge(&[Layer::from_toml(text, source).unwrap()], Defaults::exec()).unwrap();

    let mut sandbox = Sandbox::new("true");
    assert_eq!(sandbox.policy(given.clone()).effective_policy().unwrap(), given);

    let policy = sandbox.read("/b").memory(Bytes::mib(1)).effective_policy().unwrap();
    let read: Vec<PathBuf> = policy.filesystem.read.iter().map(|path| path.value.clone()).collect();
    // By their names alone: Windows puts a drive in front.
    let names: Vec<_> = read.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(policy.limits.memory.value, Some(Bytes::mib(1)));
    assert_eq!(policy.limits.processes, given.limits.processes);
    assert_eq!(policy.limits.timeout.origin, Origin::Default);
}

#[test]
fn a_program_that_never_dispatched_is_not_started_twice() {
    let error = Sandbox::new("true").spawn().unwrap_err();
    assert!(error.to_string().contains("dispatch() was not called"), "{error}");
}

#[test]
fn a_given_stream_serves_once_and_says_so() {
    let mut stream = Stream::Given(Stdio::null());
    assert!(stream.take("stdout", Stdio::inherit).is_ok());
    let error = stream.take("stdout", Stdio::inherit).unwrap_err();
    assert_eq!(error.to_string(), "stdout: was used by an earlier start; set it again");
    let mut unsaid = Stream::Unsaid;
    assert!(unsaid.take("stdin", Stdio::null).is_ok());
    assert!(unsaid.take("stdin", Stdio::null).is_ok());
}

#[test]
fn secrets_are_not_shown() {
    let mut sandbox = Sandbox::new("true");
    sandbox.secret("A", "hunter1").secret("A", "hunter2");
    assert!(!format!("{sandbox:?}").contains("hunter"));
    assert_eq!(sandbox.secrets.len(), 1);
}
