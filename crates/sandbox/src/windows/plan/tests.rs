use mcp_policy::{Defaults, Layer, LayerKind, LayerSource, Policy};
use proptest::prelude::*;

use super::*;
use crate::core::request::{Denied, DeniedKind, Guarded, Protected};
use crate::core::run_spec::{Identity, RunSpec};
use crate::windows::explain_offline;

pub fn request(text: &str) -> Request {
    let source = LayerSource {
        kind: LayerKind::UserConfig,
        path: "p.toml".into(),
        base: "/srv".into(),
        home: None,
    };
    let policy =
        Policy::merge(&[Layer::from_toml(text, source).unwrap()], Defaults::run()).unwrap();
    explain_offline::request(RunSpec {
        policy,
        command: vec!["node".into()],
        cwd: None,
        home: None,
        programs: Vec::new(),
        identity: Identity::None,
    })
    .unwrap()
}

fn usual() -> WindowsFacts {
    WindowsFacts::usual().unwrap()
}

fn fails() -> Fact {
    Fact::Fails { why: "tried, and not so".to_owned() }
}

fn told(text: &str, facts: &WindowsFacts) -> Vec<String> {
    plan(&request(text), facts).steps.iter().map(|planned| planned.step.to_string()).collect()
}

#[test]
fn the_default_policy_has_no_gap_that_stops_it() {
    let plan = plan(&request(""), &usual());
    let stops: Vec<_> = plan.controls.boundary_gaps().map(|(control, _)| control).collect();
    assert_eq!(stops, []);
    assert!(matches!(plan.controls[&Control::Memory], Intent::Enforce { .. }));
}

#[test]
fn without_a_container_every_boundary_of_it_is_named() {
    let facts = WindowsFacts { container: fails(), ..usual() };
    let plan = plan(&request(""), &facts);
    let stops: Vec<_> = plan.controls.boundary_gaps().map(|(control, _)| control).collect();
    assert_eq!(
        stops,
        [Control::Filesystem, Control::Network, Control::ProcessIsolation, Control::Privileges]
    );
    let grants = plan.steps.iter().any(|planned| matches!(planned.step, Step::Grant { .. }));
    assert!(!grants, "no entry is made for a container that is not there");
}

#[test]
fn limits_that_are_not_kept_are_gaps_and_not_set() {
    let facts = WindowsFacts { limits: fails(), cpu_rate: fails(), ..usual() };
    let text = "[limits]\nmemory = '64M'\ncpu = 0.5\ncpu_time = '1s'";
    let plan = plan(&request(text), &facts);
    for control in [Control::Memory, Control::Processes, Control::CpuTime, Control::Cpu] {
        let intent = &plan.controls[&control];
        assert!(matches!(intent, Intent::Unavailable { .. }), "{control} {intent:?}");
        let rests = plan.steps.iter().any(|planned| planned.for_controls.contains(&control));
        assert!(!rests, "{control}");
    }
}

#[test]
fn an_allowlist_is_never_a_capability() {
    let text = "[network]\nallow = ['api.github.com:443']";
    let steps = told(text, &usual());
    assert!(steps.contains(&"make a container mcp.run.run without capabilities".to_owned()));
    let plan = plan(&request(text), &usual());
    let stops: Vec<_> = plan.controls.boundary_gaps().map(|(control, _)| control).collect();
    assert_eq!(stops, []);
}

#[test]
fn grants_become_entries_and_what_is_above_is_seen() {
    let text = "[filesystem]\nread = ['/data/in']\nwrite = ['/data/out']";
    let steps = told(text, &usual());
    for expected in [
        r"let the container read C:\data\in",
        r"let the container read and write C:\data\out",
        r"let the container read attributes of C:\data",
        r"let the container read and write C:\Users\you\AppData\Local\Temp\mcp-run\tmp",
    ] {
        assert!(steps.contains(&expected.to_owned()), "{expected}\n{steps:#?}");
    }
    assert!(
        !steps.iter().any(|step| step.contains("Program Files") && step.starts_with("let")),
        "every container can read it already"
    );
}

fn with_kept(facts: &WindowsFacts) -> Plan<Step> {
    let text = "[filesystem]\nwrite = ['/x']\ndeny = ['**/.env']\nprotect = true";
    let mut request = request(text);
    request.denied = vec![Denied { path: r"C:\x\.env".into(), kind: DeniedKind::File, rule: 0 }];
    let protected = |path: &str, guarded| Protected {
        path: path.into(),
        kind: DeniedKind::Directory,
        guarded,
        why: String::new(),
        id: None,
    };
    request.protected = vec![
        protected(r"C:\x\.git", Guarded::InPlace),
        protected(r"C:\x\.git\hooks", Guarded::ReadOnly),
    ];
    plan(&request, facts)
}

#[test]
fn what_is_denied_and_protected_is_kept_before_grants_and_tried_from_inside() {
    let plan = with_kept(&usual());
    let told: Vec<String> = plan.steps.iter().map(|planned| planned.step.to_string()).collect();
    let at = |text: &str| {
        told.iter().position(|step| step == text).unwrap_or_else(|| panic!("{text}\n{told:#?}"))
    };
    let granted = at(r"let the container read and write C:\x");
    for (exclusion, check) in [
        (r"give no access to C:\x\.env", r"open C:\x\.env"),
        (r"refuse removing and renaming of C:\x\.git", r"remove or rename C:\x\.git"),
        (r"give only read access to C:\x\.git\hooks", r"change C:\x\.git\hooks"),
    ] {
        let check = format!("check from inside that it is refused: {check}");
        assert!(at(exclusion) < granted && granted < at(&check), "{told:#?}");
    }
    for control in [Control::Deny, Control::Protect] {
        assert!(matches!(plan.controls[&control], Intent::Enforce { .. }), "{control}");
    }
}

#[test]
fn without_a_container_nothing_is_kept_and_that_is_said() {
    let plan = with_kept(&WindowsFacts { container: fails(), ..usual() });
    let stops: Vec<_> = plan.controls.boundary_gaps().map(|(control, _)| control).collect();
    assert!(stops.contains(&Control::Deny) && stops.contains(&Control::Protect), "{stops:?}");
    assert!(!plan.steps.iter().any(|planned| matches!(planned.step, Step::Exclusion { .. })));
}

#[test]
fn no_subprocess_rests_on_policy_and_job_and_is_tried() {
    let plan = plan(&request("[process]\nsubprocess = false"), &usual());
    let rests: Vec<String> = plan
        .steps
        .iter()
        .filter(|planned| planned.for_controls.contains(&Control::Subprocess))
        .map(|planned| planned.step.to_string())
        .collect();
    assert!(rests.iter().any(|step| step == "refuse new processes"), "{rests:?}");
    assert!(rests.iter().any(|step| step.ends_with("start a process")), "{rests:?}");
    let job = plan.steps.iter().find_map(|planned| match planned.step {
        Step::Job { limits } => limits.processes,
        _ => None,
    });
    assert_eq!(job, Some(1));
}

#[test]
fn paths_of_other_systems_are_on_drive_c() {
    for (given, expected) in
        [("/srv/x", r"C:\srv\x"), (r"/cwd/D:\data\y", r"D:\data\y"), ("/cwd/d:/data", r"d:\data")]
    {
        assert_eq!(local(Path::new(given)), Path::new(expected), "{given}");
    }
}

fn any_fact() -> impl Strategy<Value = Fact> {
    prop_oneof![Just(Fact::Works), Just(Fact::Assumed), Just(fails())]
}

proptest! {
    /// Whatever a machine can and cannot do, an intent to enforce has a step, and no step of a container
    /// is planned where there is none.
    #[test]
    fn what_is_to_be_enforced_has_a_step(
        facts in prop::collection::vec(any_fact(), 6),
        subprocess in any::<bool>(),
        host in any::<bool>(),
    ) {
        let network = if host { "network = 'host'\n" } else { "" };
        let text = format!("{network}[process]\nsubprocess = {subprocess}\n[limits]\ntimeout = '1s'\ncpu = 0.1");
        let mut given = facts.into_iter();
        let mut next = || given.next().unwrap();
        let facts = WindowsFacts {
            tree_kill: next(), limits: next(), cpu_rate: next(), ui: next(), token: next(),
            container: next(), ..usual()
        };
        let plan = plan(&request(&text), &facts);
        for (control, intent) in &plan.controls {
            let rests = plan.steps.iter().any(|planned| planned.for_controls.contains(control));
            if matches!(intent, Intent::Enforce { .. } | Intent::Partial { .. }) {
                prop_assert!(rests, "{} {:?}", control, intent);
            }
        }
        let contained = plan.steps.iter().any(|planned| matches!(planned.step,
            Step::Container { .. } | Step::Grant { .. } | Step::NoChildren | Step::Identity));
        prop_assert_eq!(contained, facts.container.usable());
        let last = plan.steps.last().unwrap();
        let is_last = matches!(last.step, Step::Execute { .. });
        prop_assert!(is_last);
    }
}

const RULES: &str = "[network]\nallow = ['api.example.com:443']\n";

fn steps_of(text: &str, facts: &WindowsFacts) -> Vec<Step> {
    plan(&request(text), facts).steps.into_iter().map(|planned| planned.step).collect()
}

#[test]
fn an_allowlist_is_a_relay_and_never_a_capability() {
    let steps = steps_of(RULES, &usual());
    let at = |wanted: fn(&Step) -> bool| steps.iter().position(wanted).unwrap();
    let container =
        at(|step| matches!(step, Step::Container { network: ContainerNetwork::Nothing, .. }));
    let relay = at(|step| *step == Step::Relay);
    let reached = at(|step| *step == Step::Reached);
    let connect = at(|step| *step == Step::Refused { act: Act::Connect });
    let execute = at(|step| matches!(step, Step::Execute { .. }));
    assert!(container < relay && relay < reached && connect < execute && reached < execute);
    let Intent::Enforce { by } = &plan(&request(RULES), &usual()).controls[&Control::Network]
    else {
        panic!("not enforced");
    };
    assert!(by.contains("relay") && by.contains("know no proxy"), "{by}");
}

#[test]
fn without_rules_there_is_no_relay() {
    for text in ["", "network = 'host'\n", "[network]\nallow = ['udp://1.1.1.1:53']\n"] {
        let steps = steps_of(text, &usual());
        assert!(!steps.contains(&Step::Relay) && !steps.contains(&Step::Reached), "{text}");
    }
}

#[test]
fn a_relay_that_does_not_work_stops_the_run_and_says_what_helps() {
    let facts = WindowsFacts { relay: fails(), ..usual() };
    let plan = plan(&request(RULES), &facts);
    let stops: Vec<_> = plan.controls.boundary_gaps().map(|(control, _)| control).collect();
    assert_eq!(stops, [Control::Network]);
    let Intent::Unavailable { why, remedy } = &plan.controls[&Control::Network] else {
        panic!("available");
    };
    assert!(why.contains("tried, and not so"), "{why}");
    assert!(remedy.contains("as administrator") && remedy.contains("once"), "{remedy}");
    assert!(!steps_of(RULES, &facts).contains(&Step::Relay));
}

/// The relay still runs (`--fallback warn`), and nothing is claimed.
#[test]
fn without_a_container_the_relay_carries_and_the_network_is_open() {
    let facts = WindowsFacts { container: fails(), ..usual() };
    assert!(steps_of(RULES, &facts).contains(&Step::Relay));
    let intent = &plan(&request(RULES), &facts).controls[&Control::Network];
    assert!(matches!(intent, Intent::Unavailable { .. }), "{intent:?}");
}

#[test]
fn what_cannot_be_carried_is_a_gap() {
    let mixed = "[network]\nallow = ['api.example.com:443', 'udp://1.1.1.1:53']\n";
    let intent = &plan(&request(mixed), &usual()).controls[&Control::Network];
    assert!(matches!(intent, Intent::Partial { .. }), "{intent:?}");
    let unix = "[network]\nunix = ['/run/x.sock']\n";
    let intent = &plan(&request(unix), &usual()).controls[&Control::Network];
    let Intent::Unavailable { remedy, .. } = intent else { panic!("{intent:?}") };
    assert!(remedy.contains("--allow-net 127.0.0.1:PORT"), "{remedy}");
}

const LISTEN: &str = "[network]\nlisten = [8080, 9090]\n";

#[test]
fn each_port_to_listen_on_is_a_relay_that_is_tried() {
    let steps = steps_of(LISTEN, &usual());
    for port in [8080, 9090] {
        let at = |wanted: Step| steps.iter().position(|step| *step == wanted).unwrap();
        let (opened, tried) = (at(Step::ListenRelay { port }), at(Step::Served { port }));
        assert!(opened < tried && tried < steps.len() - 1);
    }
    assert!(!steps.contains(&Step::Relay), "nothing is carried out");
    let closed =
        |step: &Step| matches!(step, Step::Container { network: ContainerNetwork::Nothing, .. });
    assert!(steps.iter().any(closed));
    let Intent::Enforce { by } = &plan(&request(LISTEN), &usual()).controls[&Control::Network]
    else {
        panic!("not enforced");
    };
    assert!(by.contains("[::1]:8080") && by.contains("127.0.0.1:9090"), "{by}");
    let facts = WindowsFacts { relay: fails(), ..usual() };
    let intent = &plan(&request(LISTEN), &facts).controls[&Control::Network];
    assert!(matches!(intent, Intent::Unavailable { .. }), "{intent:?}");
    let is_relayed = |step: &Step| matches!(step, Step::ListenRelay { .. } | Step::Served { .. });
    assert!(!steps_of(LISTEN, &facts).iter().any(is_relayed));
    assert!(!steps_of("", &usual()).iter().any(is_relayed));
}

#[test]
fn a_name_to_commit_with_is_written_into_a_home_of_its_own_and_into_no_other() {
    let mut request = request("");
    let text = "[user]\n".to_owned();
    request.texts = vec![("/home/mcp/.gitconfig".into(), text.clone())];
    let written = |request: &Request| -> Vec<Step> {
        let steps = plan(request, &usual()).steps.into_iter().map(|planned| planned.step);
        steps.filter(|step| matches!(step, Step::Text { .. })).collect()
    };
    let at = usual().home().join(".gitconfig").unwrap();
    assert_eq!(written(&request), [Step::Text { at, text }]);
    request.home = Home::Kept(r"C:\kept".into());
    assert_eq!(written(&request), []);
}
