//! Plans as they usually are, in full.

use mcp_policy::{Bytes, Duration};
use mcp_sandbox::macos::{self, Act, MacFacts, Stage, Step};
use mcp_sandbox::{Caller, Control, Fact, Home, Intent, Plan, Request, RunSpec, Stdio};

use crate::support::{PROJECT, plan, policy, profile, request};

fn names(plan: &Plan<Step>) -> Vec<String> {
    plan.steps.iter().map(|planned| planned.step.to_string()).collect()
}

const RUN: &str = "/private/var/folders/xx/user/T/mcp-run";
/// Without `/private`, so that unix sockets fit.
const TMPDIR: &str = "/var/folders/xx/user/T/mcp-run/tmp";

#[test]
fn the_plan_of_an_ordinary_run() {
    let plan = plan(&request(policy(|f| f.write(PROJECT))));
    let parameters = profile(&plan).parameters.len();
    assert_eq!(
        names(&plan),
        [
            format!("make private directories {RUN}"),
            "watch memory of the whole tree, limit 512 MiB".to_owned(),
            "watch processes of the whole tree, at most 128".to_owned(),
            "tie the sandbox to the launcher".to_owned(),
            format!("enter the sandbox /usr/bin/sandbox-exec with {parameters} parameters"),
            "tell the sandbox's processes from others by the name mcp.run.run".to_owned(),
            "start a session".to_owned(),
            format!("check from inside that it is refused: read {RUN}/canary"),
            format!("check from inside that it is refused: create {RUN}/created"),
            "check from inside that it is refused: connect to a port of the launcher".to_owned(),
            "check from inside that it is refused: signal the launcher".to_owned(),
            "check from inside that it is refused: ask about the launcher".to_owned(),
            format!("check from inside that it is refused: make {RUN}/tmp/.set-uid set-uid"),
            "set limit RLIMIT_DATA 536870912".to_owned(),
            "set limit RLIMIT_NPROC 528".to_owned(),
            "set limit RLIMIT_NOFILE 1024".to_owned(),
            "set limit RLIMIT_CORE 0".to_owned(),
            "close file descriptors but 0-2".to_owned(),
            format!(
                "set variables HOME={RUN}/home PWD={RUN}/home TMPDIR={TMPDIR} \
                 PATH=/usr/bin:/bin:/usr/sbin:/sbin:/opt/homebrew/bin:/usr/local/bin xcrun_nocache=1"
            ),
            format!("execute /opt/homebrew/Cellar/node/22/bin/node in {RUN}/home"),
        ]
    );
    let gaps: Vec<Control> = plan.controls.gaps().map(|(control, _)| control).collect();
    assert_eq!(gaps, [Control::Memory, Control::Processes, Control::TmpSize]);
    assert_eq!(plan.controls.boundary_gaps().count(), 0);
}

#[test]
fn a_name_to_commit_with_is_written_into_a_home_of_its_own_and_into_no_other() {
    let mut request = request(policy(|f| f.write(PROJECT)));
    request.texts = vec![("/home/mcp/.gitconfig".into(), "[user]\n".to_owned())];
    let written = format!("write {RUN}/home/.gitconfig");
    assert_eq!(names(&plan(&request))[1], written);
    request.home = Home::Kept("/Users/me/kept".into());
    assert!(!names(&plan(&request)).contains(&written));
}

#[test]
fn launcher_steps_come_before_the_helpers() {
    let plan = plan(&request(policy(|f| f.no_subprocess().timeout(Some(Duration::from_secs(5))))));
    let stages: Vec<Stage> = plan.steps.iter().map(|planned| planned.step.stage()).collect();
    assert!(stages.is_sorted(), "{stages:?}");
    assert!(matches!(plan.steps.last().unwrap().step, Step::Execute { .. }));
}

/// A report is filled from the answers to steps, so what is claimed has to rest on some.
#[test]
fn everything_enforced_rests_on_a_step() {
    let all = policy(|f| {
        f.write(PROJECT).deny("**/.env").no_subprocess().timeout(Some(Duration::from_secs(5)));
        f.cpu_time(Some(Duration::from_secs(5))).file_size(Some(Bytes::mib(1)));
        f.address_space(Some(Bytes::gib(4)))
    });
    for policy in [all, policy(|f| f), policy(|f| f.network_host())] {
        let plan = plan(&request(policy));
        for (control, intent) in &plan.controls {
            let rests = plan.steps.iter().any(|planned| planned.for_controls.contains(control));
            let claimed = matches!(intent, Intent::Enforce { .. } | Intent::Partial { .. });
            assert!(rests || !claimed, "{control}: {intent:?}");
        }
    }
}

#[test]
fn every_boundary_is_tried_from_inside() {
    let plan = plan(&request(policy(|f| f.no_subprocess())));
    for control in [
        Control::Filesystem,
        Control::Network,
        Control::Subprocess,
        Control::ProcessIsolation,
        Control::Privileges,
    ] {
        let tried = plan.steps.iter().any(|planned| {
            matches!(planned.step, Step::Refused { .. }) && planned.for_controls.contains(&control)
        });
        assert!(tried, "{control}");
    }
    let host = super::support::plan(&request(policy(|f| f.network_host())));
    let connects = |p: &Plan<Step>| {
        p.steps.iter().any(|planned| planned.step == Step::Refused { act: Act::Connect })
    };
    assert!(connects(&plan) && !connects(&host));
}

#[test]
fn root_is_refused() {
    let facts = MacFacts {
        caller: Caller { uid: 0, gid: 0, invoker: None, rootless: None },
        ..MacFacts::usual()
    };
    let plan = macos::plan(&request(policy(|f| f)), &facts);
    assert!(plan.controls.boundary_gaps().any(|(control, _)| control == Control::Privileges));
}

#[test]
fn without_membership_the_tree_is_only_partly_found() {
    let fails = || Fact::Fails { why: "no such function".to_owned() };
    let facts = MacFacts { membership: fails(), ..MacFacts::usual() };
    let plan = macos::plan(&request(policy(|f| f)), &facts);
    assert!(matches!(plan.controls[&Control::TreeKill], Intent::Partial { .. }));
    let single = macos::plan(&request(policy(|f| f.no_subprocess())), &facts);
    assert!(matches!(single.controls[&Control::TreeKill], Intent::Enforce { .. }));
    let none = MacFacts { seatbelt: fails(), ..MacFacts::usual() };
    let plan = macos::plan(&request(policy(|f| f.no_subprocess())), &none);
    assert!(matches!(plan.controls[&Control::TreeKill], Intent::Partial { .. }));
}

#[test]
fn limits_that_a_mac_has_not_are_said_to_be_missing() {
    let asked = policy(|f| {
        f.cpu(Some(mcp_policy::Cores::from_millicores(500))).address_space(Some(Bytes::gib(4)))
    });
    let facts =
        MacFacts { address_space: Fact::Fails { why: "EINVAL".to_owned() }, ..MacFacts::usual() };
    let plan = macos::plan(&request(asked), &facts);
    for control in [Control::Cpu, Control::AddressSpace, Control::TmpSize] {
        assert!(matches!(plan.controls[&control], Intent::Unavailable { .. }), "{control}");
    }
    assert!(!names(&plan).iter().any(|name| name.contains("RLIMIT_AS")));
}

#[test]
fn home_and_temporary_directories_are_the_runs_own() {
    let at = |cwd: &str| {
        let plan = plan(&Request { cwd: cwd.into(), ..request(policy(|f| f.write(PROJECT))) });
        names(&plan).last().unwrap().split(" in ").last().unwrap().to_owned()
    };
    assert_eq!(at("/home/mcp"), format!("{RUN}/home"));
    assert_eq!(at("/home/mcp/x"), format!("{RUN}/home/x"));
    assert_eq!(at("/tmp"), format!("{RUN}/tmp"));
    assert_eq!(at(PROJECT), PROJECT);
    let kept = Request { home: Home::Kept("/Users/me/h".into()), ..request(policy(|f| f)) };
    assert!(names(&plan(&kept)).last().unwrap().ends_with(" in /Users/me/h"));
}

#[test]
fn developer_tools_are_found_where_they_are() {
    let developer = Some("/Applications/Xcode.app/Contents/Developer".into());
    let facts = MacFacts { developer, ..MacFacts::usual() };
    let plan = macos::plan(&request(policy(|f| f)), &facts);
    let mac = crate::support::Mac::under(profile(&plan));
    assert!(mac.executes("/Applications/Xcode.app/Contents/Developer/usr/bin/git"));
    assert!(mac.reads("/Applications/Xcode.app/Contents/Info.plist"));
    assert!(!mac.reads("/Applications/Other.app/Contents/Info.plist"));
    assert!(
        names(&plan)
            .iter()
            .any(|n| n.contains("DEVELOPER_DIR=/Applications/Xcode.app/Contents/Developer"))
    );
}

#[test]
fn a_terminal_is_a_parameter_that_the_launcher_fills_in() {
    let stdio = [Stdio::Terminal, Stdio::Direct, Stdio::Direct];
    let at_terminal = plan(&Request { stdio, ..request(policy(|f| f)) });
    let has = |plan: &Plan<Step>| profile(plan).parameters.iter().any(|p| p.name == "TERMINAL");
    assert!(has(&at_terminal) && !has(&plan(&request(policy(|f| f)))));
}

#[test]
fn a_plan_can_be_made_without_a_mac() {
    let spec = RunSpec {
        policy: policy(|f| f.read("/tmp/x").deny("**/.env")),
        command: vec!["server".into()],
        cwd: None,
        home: None,
        programs: Vec::new(),
        identity: mcp_sandbox::Identity::None,
    };
    let plan = macos::explain(spec).unwrap();
    let mac = crate::support::Mac::under(profile(&plan));
    assert!(mac.reads("/private/tmp/x/y") && !mac.reads("/private/tmp/x/.env"));
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains("\"do\":\"seatbelt\"") && json.contains("(deny default "));
}
