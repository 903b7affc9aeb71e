//! The network is closed: no host port, no unix socket of the host, no resolver.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use crate::support::{Run, UNREACHABLE, allowed, blocked};
use crate::{require, shared_attacks};

shared_attacks! { "seatbelt", network:
    host_tcp_port_is_out_of_reach;
    host_tcp_port_is_out_of_reach_over_ipv6 needs "ipv6";
    host_unix_socket_is_not_there;
}

#[test]
fn host_udp_port_is_out_of_reach() {
    require!("seatbelt");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let mut buffer = [0; 64];
    allowed(Run::bare().probe(&["udp-send", &address, "control"]));
    assert_eq!(socket.recv(&mut buffer).unwrap(), 7);
    blocked(Run::new().probe(&["udp-send", &address, "attack"]), UNREACHABLE);
    allowed(Run::bare().probe(&["udp-send", &address, "after"]));
    let count = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], b"after");
}

#[test]
fn other_networks_are_unreachable() {
    require!("seatbelt");
    for address in ["192.0.2.1:80", "1.1.1.1:53", "169.254.169.254:80", "10.0.0.1:22"] {
        blocked(Run::new().probe(&["connect", address]), UNREACHABLE);
    }
}

#[test]
fn names_do_not_leave() {
    require!("seatbelt");
    let outcome = Run::new().probe(&["resolve", "leak.example.com"]).run();
    assert!(!outcome.last("resolve").ok, "{outcome}");
}

/// All that the profile opens is the launcher's proxy, which wants the password of the run.
#[test]
fn an_allowlist_is_the_launcher_s_proxy_and_nothing_else() {
    require!("seatbelt");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let run = || Run::new().flag("--allow-net").arg(&address);
    // Programs ask the proxy; what they try by themselves is refused, allowed or not.
    blocked(run().probe(&["connect", &address]), UNREACHABLE);
    let ask = |place: &str| {
        format!(
            "p=${{HTTP_PROXY#http://}}; l=$(printf %s \"${{p%@*}}\" | base64); h=${{p#*@}}; \
             printf 'CONNECT {place} HTTP/1.1\\r\\nProxy-Authorization: Basic %s\\r\\n\\r\\n' \"$l\" | \
             nc -w 5 \"${{h%:*}}\" \"${{h#*:}}\" | head -1"
        )
    };
    let finished = run().shell(&ask(&address)).run();
    assert!(finished.text().contains(" 200 "), "{finished}");
    let finished = run().shell(&ask("127.0.0.1:9")).run();
    assert!(finished.text().contains(" 403 "), "{finished}");
    assert!(finished.stderr.contains("mcp: blocked 127.0.0.1:9"), "{finished}");
    let stranger = "p=${HTTP_PROXY#*@}; printf 'CONNECT x:1 HTTP/1.1\\r\\n\\r\\n' | \
                    nc -w 5 \"${p%:*}\" \"${p#*:}\" | head -1";
    let finished = run().shell(stranger).run();
    assert!(finished.text().contains(" 407 "), "{finished}");
}

#[test]
fn udp_rules_are_refused_since_they_cannot_be_kept() {
    require!("seatbelt");
    let run = Run::new().flag("--allow-net").arg("udp://1.1.1.1:53").probe(&["cwd"]).run();
    run.code_is(125).is_clear_error();
    assert!(run.stderr.contains("--fallback warn"), "{run}");
}
