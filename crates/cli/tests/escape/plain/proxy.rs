//! An allowlist without namespaces: the only sockets lead to the launcher's proxy, which judges as
//! the transparent way does. The host's network is all around, and none of it is to be reached.

use super::{bare, plain};
use crate::require;
use crate::support::{
    Finished, Ground, Run, Scratch, UNREACHABLE, World, allowed, blocked, has_program,
};

/// What proxy variables say inside.
const PROXY: &str = "127.18.0.53:3128";

/// A connection that was taken and then closed.
const NO_ANSWER: &[&str] =
    &["ECONNRESET", "EPIPE", "EOF", "unexpected end of file", "ECONNREFUSED"];

fn inside(world: &World, rule: &str) -> Run {
    plain().world(world).allow_net(rule)
}

fn outside(world: &World) -> Run {
    bare().world(world)
}

fn connect_to(place: &str) -> String {
    format!("CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\nhello\\n")
}

/// A SOCKS 5 request for a name of these bytes, and a word for the server.
fn socks(name: &[u8], port: u16) -> String {
    let length = u8::try_from(name.len()).unwrap();
    let head = [5, 1, 0, 5, 1, 0, 3, length];
    let parts = [&head[..], name, &port.to_be_bytes(), b"hello\n"].concat();
    parts.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn says(finished: &Finished, line: &str) {
    assert!(finished.stderr.contains(line), "no line {line:?}\n{finished}");
}

/// Talks to the proxy, and asserts that what it heard contains this and nothing of any server.
#[track_caller]
fn hears(run: Run, text: &str) -> Finished {
    let shown = run.to_string();
    let finished = run.run();
    let outcome = finished.last(&shown);
    let heard = &outcome.detail;
    assert!(!heard.contains("hello from"), "answered: {shown}\n{finished}");
    assert!(heard.contains(text), "does not hear {text:?}: {shown}\n{finished}");
    finished
}

#[test]
fn what_is_allowed_is_reached_in_every_language() {
    require!("plain", "userns");
    let world = World::new();
    let words = ["talk", PROXY, &connect_to("api.test:80")];
    let heard = allowed(inside(&world, "api.test:80").probe(&words));
    let answer = "HTTP/1.1 200 Connection established\r\n\r\nhello from 9.9.9.9:80\n";
    assert_eq!(heard.detail, answer);
    let words = ["talk-hex", PROXY, &socks(b"api.test", 80)];
    let heard = allowed(inside(&world, "api.test:80").probe(&words));
    assert!(heard.detail.ends_with("hello from 9.9.9.9:80\n"), "{}", heard.detail);
    let words = ["tunnel-tls", PROXY, "api.test:443", "api.test"];
    let heard = allowed(inside(&world, "api.test:443").probe(&words));
    assert_eq!(heard.detail, "hello from 9.9.9.9:443\n");
    let get = "GET http://api.test/ HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n";
    let heard = allowed(inside(&world, "api.test").probe(&["talk", PROXY, get]));
    assert_eq!(heard.detail, "hello from 9.9.9.9:80\n");
    // The server speaks first.
    let words = ["talk", PROXY, &connect_to("api.test:22")];
    let heard = allowed(inside(&world, "api.test:22").probe(&words));
    assert!(heard.detail.contains("hello from 9.9.9.9:22"), "{}", heard.detail);
    // Addresses that rules spell out need no proxy.
    for rule in ["9.9.9.9:443", "9.9.9.0/24:443"] {
        let heard = allowed(inside(&world, rule).probe(&["talk", "9.9.9.9:443"]));
        assert_eq!(heard.detail, "hello from 9.9.9.9:443\n");
    }
    for (rule, place) in
        [("127.0.0.1:443", "127.0.0.1:443"), ("localhost:443,tls=off", "localhost:443")]
    {
        let heard = allowed(inside(&world, rule).probe(&["talk", PROXY, &connect_to(place)]));
        assert!(heard.detail.ends_with("hello from 127.0.0.1:443\n"), "{}", heard.detail);
        allowed(inside(&world, rule).probe(&["talk", "127.0.0.1:443"]));
    }
}

#[test]
fn what_is_not_allowed_is_not_and_the_flag_is_told() {
    require!("plain", "userns");
    let world =
        World::new().with("ip=8.8.8.8").with("name=leak.test>8.8.8.8").with("serve=8.8.8.8:443");
    allowed(outside(&world).probe(&["talk", "leak.test:443"]));
    let before = world.log();
    let refused = |place: &str, line: &str| {
        let run = inside(&world, "api.test:443").probe(&["talk", PROXY, &connect_to(place)]);
        let finished = hears(run, "403 Forbidden");
        says(&finished, line);
    };
    refused("leak.test:443", "mcp: blocked leak.test:443 (add --allow-net leak.test:443)");
    refused("api.test:80", "mcp: blocked api.test:80 (add --allow-net api.test:80)");
    for place in [
        "api.test.evil.test:443",
        "evilapi.test:443",
        "x.api.test:443",
        "9.9.9.9:443",
        "8.8.8.8:443",
        "127.0.0.1:443",
        "127.0.0.2:443",
        "0.0.0.0:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
        "[64:ff9b::7f00:1]:443",
        "169.254.169.254:80",
        "192.168.7.7:443",
        "localhost:443",
    ] {
        refused(place, "mcp: blocked ");
    }
    // Not allowed by a wide rule either.
    for place in ["127.0.0.1:443", "192.168.7.7:443", "169.254.169.254:443"] {
        let run = inside(&world, "0.0.0.0/0:443").probe(&["talk", PROXY, &connect_to(place)]);
        hears(run, "403 Forbidden");
    }
    assert_eq!(world.log(), before, "something got out");
    let words = ["tunnel-tls", PROXY, "leak.test:443", "leak.test"];
    allowed(inside(&world, "leak.test:443").probe(&words));
}

#[test]
fn names_that_are_none_are_refused() {
    require!("plain", "userns");
    let world = World::new();
    for name in [&b"evil\0.api.test"[..], b"api.test\0", b"api.test\n", b"a b.api.test"] {
        let words = ["talk-hex", PROXY, &socks(name, 443)];
        // The answer of SOCKS that it cannot be.
        hears(inside(&world, "*.api.test").probe(&words), "\u{5}\u{8}");
    }
    for place in ["127.1:443", "0x7f.1:443", "2130706433:443", "api.test", "api.test:0"] {
        let words = ["talk", PROXY, &connect_to(place)];
        hears(inside(&world, "api.test").probe(&words), "400 Bad Request");
    }
    assert!(!world.saw("connected") && !world.saw("dns "), "{}", world.log());
}

#[test]
fn a_name_does_not_lead_to_private_places() {
    require!("plain", "userns");
    for place in ["127.0.0.1", "169.254.169.254", "192.168.7.7", "::ffff:127.0.0.1", "::1"] {
        let world = World::new().with(format!("name=rebound.test>{place}"));
        let words = ["talk", PROXY, &connect_to("rebound.test:443")];
        let finished = hears(inside(&world, "rebound.test").probe(&words), "502 Bad Gateway");
        says(&finished, "mcp: blocked rebound.test:443, for its address ");
        assert!(!world.saw("connected"), "{place}: {}", world.log());
    }
    let world = World::new().with("name=mine.test>127.0.0.1");
    let words = ["tunnel-tls", PROXY, "mine.test:443", "mine.test"];
    allowed(inside(&world, "mine.test").allow_net("127.0.0.1:443").probe(&words));
}

/// The tunnel is for the name that was asked for.
#[test]
fn tls_and_http_ask_for_the_host_that_was_asked_for() {
    require!("plain", "userns");
    let world = World::new();
    let tls = |name: &str| {
        let words = ["tunnel-tls", PROXY, "api.test:443", name];
        inside(&world, "api.test:443").probe(&words).run()
    };
    let finished = tls("api.test");
    assert!(finished.last("tls").detail.contains("hello from"), "{finished}");
    for (name, why) in [("leak.test", "TLS asked for leak.test instead"), ("-", "TLS without a")] {
        let finished = tls(name);
        assert!(!finished.last("tls").ok, "{finished}");
        says(&finished, &format!("mcp: blocked api.test:443: {why}"));
    }
    let words = ["tunnel-tls", PROXY, "api.test:443", "leak.test"];
    allowed(inside(&world, "api.test:443,tls=off").probe(&words));
    let http =
        "CONNECT api.test:80 HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: leak.test\\r\\n\\r\\n";
    let finished = inside(&world, "api.test").probe(&["talk", PROXY, http]).run();
    assert!(!finished.last(http).detail.contains("hello from"), "{finished}");
    says(&finished, "HTTP asked for leak.test instead");
    let other = "GET http://api.test/ HTTP/1.1\\r\\nHost: leak.test\\r\\n\\r\\n";
    hears(inside(&world, "api.test").probe(&["talk", PROXY, other]), "400 Bad Request");
}

#[test]
fn the_host_s_network_is_not_reached_directly() {
    require!("plain", "userns");
    let world = World::new();
    for place in [
        "9.9.9.9:443",
        "127.0.0.1:443",
        "192.168.7.7:443",
        "127.18.0.53:3129",
        "127.18.0.54:3128",
        "127.0.0.1:3128",
        "[::1]:443",
    ] {
        blocked(inside(&world, "api.test").probe(&["connect", place]), UNREACHABLE);
    }
    for place in ["9.9.9.9:443", "127.0.0.1:443", "192.168.7.7:443"] {
        allowed(outside(&world).probe(&["connect", place]));
    }
    for words in [
        &["udp-send", "9.9.9.9:99"][..],
        &["fastopen", "9.9.9.9:443"],
        &["offer", "0"],
        &["listen", "0"],
        // UDP, MPTCP, SCTP, raw, unix, netlink, packet, vsock; high bits mean nothing.
        &["socket", "2", "2", "0"],
        &["socket", "2", "1", "262"],
        &["socket", "2", "1", "132"],
        &["socket", "2", "3", "6"],
        &["socket", "10", "2", "17"],
        &["socket", "1", "1", "0"],
        &["socket", "1", "2", "0"],
        &["socket", "0x100000001", "1", "0"],
        &["socket", "2", "0x100000002", "0"],
        &["socket", "16", "3", "0"],
        &["socket", "17", "3", "0"],
        &["socket", "40", "1", "0"],
        &["syscall", "425", "8"],
    ] {
        let errors = [UNREACHABLE, &["EAFNOSUPPORT", "EPROTONOSUPPORT", "ENOSYS"]].concat();
        blocked(inside(&world, "api.test").probe(words), &errors);
    }
    assert!(!world.saw("udp"), "{}", world.log());
    allowed(outside(&world).probe(&["udp-send", "9.9.9.9:99"]));
    allowed(outside(&world).probe(&["offer", "0"]));
    allowed(outside(&world).probe(&["listen", "0"]));
    allowed(inside(&world, "api.test").probe(&["socket", "2", "1", "0"]));
    allowed(inside(&world, "api.test").probe(&["socket", "10", "0x80001", "6"]));
}

#[test]
fn sockets_of_the_host_s_programs_stay_closed() {
    require!("plain", "userns");
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let path = path.to_str().unwrap();
    let run = || plain().read(scratch.path()).allow_net("api.test");
    blocked(run().probe(&["unix-connect", path]), UNREACHABLE);
    blocked(run().probe(&["unix-abstract", "mcp-test"]), UNREACHABLE);
    allowed(bare().probe(&["unix-connect", path]));
    drop(listener);
}

/// The address is read once, and what is then done does not depend on memory.
#[test]
fn an_address_that_changes_meanwhile_leads_nowhere_else() {
    require!("plain", "userns");
    let world = World::new();
    let words = ["connect-racing", "9.9.9.9:443", "127.0.0.1:443", "400"];
    let heard = allowed(inside(&world, "9.9.9.9:443").probe(&words)).detail;
    assert!(heard.contains("hello from 9.9.9.9:443: "), "never reached what it may: {heard}");
    assert!(heard.contains("refused: "), "the race was never lost: {heard}");
    assert!(!heard.contains("127.0.0.1") && !world.saw("127.0.0.1"), "{heard}\n{}", world.log());
    let heard = allowed(outside(&world).probe(&words)).detail;
    assert!(heard.contains("hello from 127.0.0.1:443: "), "{heard}");
}

#[test]
fn a_socket_that_was_handed_out_has_no_second_use() {
    require!("plain", "userns");
    let world = World::new();
    for first in ["9.9.9.9:443", PROXY] {
        for how in ["connect", "fastopen", "deferred", "listen"] {
            let words = ["second-use", first, "127.0.0.1:443", how];
            let run = inside(&world, "9.9.9.9:443").probe(&words);
            let errors = [UNREACHABLE, NO_ANSWER, &["EISCONN", "EINVAL", "EAFNOSUPPORT"]].concat();
            blocked(run, &errors);
        }
    }
    assert!(!world.saw("127.0.0.1"), "{}", world.log());
    for how in ["connect", "fastopen", "listen"] {
        let words = ["second-use", "9.9.9.9:443", "127.0.0.1:443", how];
        allowed(outside(&world).probe(&words));
    }
}

#[test]
fn nonsense_is_answered_and_ends() {
    require!("plain", "userns");
    let world = World::new();
    let long = "x".repeat(100_000);
    for said in [
        "\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n\\r\\n".to_owned(),
        "GET / HTTP/1.1\\r\\n\\r\\n".to_owned(),
        "GET ftp://api.test/ HTTP/1.1\\r\\n\\r\\n".to_owned(),
        "CONNECT\\r\\n\\r\\n".to_owned(),
        "SSH-2.0-x\\r\\n\\r\\n".to_owned(),
        format!("GET http://api.test/{long} HTTP/1.1\\r\\n\\r\\n"),
        format!("CONNECT api.test:443 HTTP/1.1\\r\\nX: {long}\\r\\n\\r\\n"),
    ] {
        let run = inside(&world, "api.test").probe(&["talk", PROXY, &said]);
        let finished = hears(run, "400 Bad Request");
        says(&finished, "mcp: blocked what the proxy was asked for: ");
    }
    // SOCKS 4; BIND and UDP ASSOCIATE of SOCKS 5; something that begins like neither.
    for hex in ["040101bb09090909", "05010005020001090909090050", "05010005030001090909090050"] {
        let finished = inside(&world, "api.test").probe(&["talk-hex", PROXY, hex]).run();
        assert!(!finished.last(hex).detail.contains("hello from"), "{finished}");
    }
    assert!(!world.saw("connected"), "{}", world.log());
    let words = ["talk", PROXY, &connect_to("api.test:80")];
    let run = inside(&world, "api.test").probe(&["talk", PROXY, "x\\r\\n\\r\\n"]).probe(&words);
    assert!(allowed(run).detail.contains("hello from"));
}

#[test]
fn a_thousand_connections_at_once() {
    require!("plain", "userns");
    let world = World::new();
    let count = |run: Run| allowed(run).detail;
    let words = ["talk-at-once", "9.9.9.9:443", "1000"];
    let run = inside(&world, "9.9.9.9:443").flag("--max-fds").arg("2000").probe(&words);
    assert_eq!(count(run), "1000");
}

#[test]
fn the_report_is_true() {
    require!("plain", "userns");
    let world = World::new();
    let scratch = Scratch::new();
    let report = scratch.join("report");
    let words = ["talk", PROXY, &connect_to("api.test:80")];
    let other = ["talk", PROXY, &connect_to("leak.test:443")];
    let run = inside(&world, "api.test:80").flag("--report").arg(&report);
    run.probe(&words).probe(&other).run();
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let network = &report["controls"]["network"];
    assert_eq!(network["status"], "enforced", "{network}");
    assert!(network["by"].as_str().unwrap().contains("programs that know no proxy"), "{network}");
    assert_eq!(report["network"]["reached"]["api.test:80"]["connections"], 1, "{report}");
    let refused = &report["network"]["refused"]["leak.test:443"];
    assert_eq!(refused["flag"], "--allow-net leak.test:443", "{report}");
    // A rule that does not work here is named, and stops the run.
    for (flag, value, missing) in
        [("--allow-net", "udp://1.1.1.1:53", "udp"), ("--listen", "8080", "listened")]
    {
        let run = || inside(&world, "api.test").flag(flag).arg(value);
        let finished = run().probe(&["cwd"]).run();
        finished.code_is(125);
        says(&finished, missing);
        let warned = run().flag("--fallback").arg("warn");
        assert!(allowed(warned.probe(&words)).detail.contains("hello from"));
    }
}

/// The user's own way out is taken by the broker, and not by the command.
#[test]
fn the_variables_are_the_launcher_s() {
    require!("plain", "userns");
    let world = World::new();
    let run = inside(&world, "api.test").env("https_proxy", "http://127.0.0.1:9");
    let run = run.flag("--env").arg("https_proxy");
    let finished = run.shell("echo $https_proxy $HTTP_PROXY $NO_PROXY").run();
    assert_eq!(finished.text(), format!("http://{PROXY} http://{PROXY}\n"), "{finished}");
    let words = ["talk", PROXY, &connect_to("api.test:443")];
    let run = inside(&world, "api.test").env("https_proxy", "http://127.0.0.1:9");
    says(&hears(run.probe(&words), "502"), "could not reach api.test:443: the proxy 127.0.0.1:9");
    // Where there is a network namespace, none of it is set.
    let run = Run::new().on(Ground::AsItIs).allow_net("api.test");
    assert_eq!(run.shell("echo $HTTP_PROXY").run().text(), "\n");
}

#[test]
fn programs_that_know_proxies_work() {
    require!("plain", "userns");
    let world = World::new();
    let script = "curl --http0.9 -sS -m 20 http://api.test/; \
                  curl --http0.9 -sS -m 20 -p http://api.test/; \
                  curl --http0.9 -sS -m 20 -x socks5h://127.18.0.53:3128 http://api.test/; \
                  curl --http0.9 -sS -m 20 -o /dev/null -w '%{http_code}\\n' http://leak.test/";
    if !has_program("curl") {
        return;
    }
    let finished = inside(&world, "api.test").shell(script).run();
    let hello = "hello from 9.9.9.9:80\n";
    assert_eq!(finished.text(), format!("{hello}{hello}{hello}403\n"), "{finished}");
}

/// `public` is judged as everywhere: by name and by address, and the host's loopback, which is shared here, is none of it.
#[test]
fn public_is_the_internet_alone() {
    require!("plain", "userns");
    let world = World::new().with("name=loop.test>127.0.0.1").with("name=lan.test>192.168.7.7");
    let run = || inside(&world, "public");
    allowed(run().probe(&["talk", "9.9.9.9:443"]));
    let heard = allowed(run().probe(&["talk", PROXY, &connect_to("api.test:80")]));
    assert!(heard.detail.contains("hello from 9.9.9.9:80"), "{heard:?}");
    for place in ["127.0.0.1:443", "192.168.7.7:443", "[::1]:443", "0.0.0.0:443"] {
        blocked(run().probe(&["talk", place]), UNREACHABLE);
    }
    for place in
        ["loop.test:443", "lan.test:443", "127.0.0.1:443", "localhost:443", "nas.local:443"]
    {
        hears(run().probe(&["talk", PROXY, &connect_to(place)]), "HTTP/1.1 ");
    }
    assert!(!world.saw("connected 127.") && !world.saw("connected 192."), "{}", world.log());
}
