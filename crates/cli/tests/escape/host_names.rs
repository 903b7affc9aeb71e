//! Names that only the host's other sources know (mDNS, LDAP): asked of `getent`, for allowed names
//! alone, with nothing of the caller's, and judged as every other address.

use crate::require;
use crate::support::{Run, World, allowed};

#[test]
fn a_name_that_only_the_host_knows_is_reached() {
    require!("userns");
    let world = World::new().with("host=box.local>9.9.9.9");
    let run = Run::new().world(&world).env("MCP_TEST_SECRET", "secret-of-the-caller");
    let run = run.allow_net("box.local:443").allow_net("api.test:443");
    let heard = allowed(run.probe(&["talk", "box.local:443"]));
    assert_eq!(heard.detail, "hello from 9.9.9.9:443\n");
    assert!(world.saw("dns box.local"), "DNS is not asked first\n{}", world.log());
    assert!(world.saw("getent ahosts box.local\n"), "{}", world.log());
    assert!(!world.saw("secret-of-the-caller"), "{}", world.log());
    // The control: DNS knows this one, and no other source is asked.
    let run = Run::new().world(&world).allow_net("api.test:443");
    allowed(run.probe(&["talk", "api.test:443"]));
    assert!(!world.saw("getent ahosts api.test"), "{}", world.log());
}

/// Asking the host is asking its network.
#[test]
fn it_is_not_asked_of_names_that_no_rule_allows() {
    require!("userns");
    let world = World::new().with("host=box.local>9.9.9.9").with("host=data.local>9.9.9.9");
    let run = Run::new().world(&world).allow_net("box.local:443");
    let finished = run.probe(&["talk", "data.local:443"]).run();
    assert!(!finished.last("talk").ok, "{finished}");
    assert!(!world.saw("getent"), "{}", world.log());
}

#[test]
fn what_the_host_says_may_not_be_private_either() {
    require!("userns");
    let world = World::new().with("host=box.local>192.168.7.7");
    let run = Run::new().world(&world).allow_net("box.local:443");
    let finished = run.probe(&["talk", "box.local:443"]).run();
    assert!(!finished.last("talk").ok, "{finished}");
    let line = "mcp: blocked box.local:443, for its address 192.168.7.7";
    assert!(finished.stderr.contains(line), "{finished}");
    assert!(!world.saw("connected"), "{}", world.log());
    // The control: a rule names the network.
    let run = Run::new().world(&world).allow_net("box.local:443").allow_net("192.168.7.7:443");
    let heard = allowed(run.probe(&["talk", "box.local:443"]));
    assert_eq!(heard.detail, "hello from 192.168.7.7:443\n");
}

#[test]
fn a_source_that_never_answers_is_an_ordinary_error() {
    require!("userns");
    let world = World::new().with("host=slow.local>never");
    let run = Run::new().world(&world).allow_net("slow.local:443").allow_net("api.test:443");
    let run = run.probe(&["talk", "slow.local:443"]).probe(&["talk", "api.test:443"]);
    let finished = run.run();
    assert!(finished.last("talk").ok, "others wait for it\n{finished}");
    assert!(finished.stderr.contains("could not reach slow.local:443: no such name"), "{finished}");
    assert!(world.saw("getent ahosts slow.local"), "{}", world.log());
}
