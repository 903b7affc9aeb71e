//! The network is empty: no host port, no abstract socket, no unix socket of the host.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::time::Duration;

use crate::support::{Run, UNREACHABLE, allowed, blocked, refused};
use crate::{require, shared_attacks};

shared_attacks! { "userns", network:
    host_tcp_port_is_out_of_reach;
    host_tcp_port_is_out_of_reach_over_ipv6 needs "ipv6";
    host_unix_socket_is_not_there;
}

#[test]
fn host_tcp_port_is_out_of_reach_by_fast_open() {
    require!("userns");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    blocked(
        Run::new().probe(&["fastopen", &address]),
        &[UNREACHABLE, &["EINPROGRESS", "EOPNOTSUPP"]].concat(),
    );
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn host_udp_port_is_out_of_reach() {
    require!("userns");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let mut buffer = [0; 64];
    allowed(Run::bare().probe(&["udp-send", &address, "control"]));
    assert_eq!(socket.recv(&mut buffer).unwrap(), 7);
    // Sending into one's own empty loopback is no error; only the receiver can tell.
    Run::new().probe(&["udp-send", &address, "attack"]).run().code_is(0);
    allowed(Run::bare().probe(&["udp-send", &address, "after"]));
    let count = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], b"after");
}

#[test]
fn other_networks_are_unreachable() {
    require!("userns");
    allowed(Run::new().probe(&["listen", "0"]));
    for address in ["192.0.2.1:80", "1.1.1.1:53", "169.254.169.254:80", "10.0.0.1:22"] {
        blocked(Run::new().probe(&["connect", address]), UNREACHABLE);
    }
    blocked(Run::new().probe(&["udp-send", "1.1.1.1:53"]), UNREACHABLE);
}

#[test]
fn only_loopback_exists_and_is_up() {
    require!("userns");
    let interfaces = allowed(Run::new().probe(&["net-ifaces"]));
    assert_eq!(interfaces.field("lo"), ["up", "127.0.0.1"], "{interfaces:?}");
    for line in interfaces.lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        assert!(name == "lo" || rest.starts_with("down"), "{line}");
    }
}

#[test]
fn own_loopback_works() {
    require!("userns");
    allowed(Run::new().probe(&["listen", "0"]));
}

#[test]
fn low_ports_are_free_inside() {
    require!("userns");
    allowed(Run::new().probe(&["listen", "80"]));
}

#[test]
fn names_do_not_leave() {
    require!("userns");
    assert!(allowed(Run::new().probe(&["resolve", "localhost"])).detail.contains("127.0.0.1"));
    let outcome = Run::new().probe(&["resolve", "leak.example.com"]).run();
    assert!(!outcome.last("resolve").ok, "{outcome}");
}

#[test]
fn host_abstract_sockets_are_out_of_reach() {
    require!("userns");
    let name = format!("mcp-escape-{}", std::process::id());
    let stream = SocketAddr::from_abstract_name(format!("{name}-s")).unwrap();
    let _listener = UnixListener::bind_addr(&stream).unwrap();
    let datagram = SocketAddr::from_abstract_name(format!("{name}-d")).unwrap();
    let _receiver = UnixDatagram::bind_addr(&datagram).unwrap();
    for words in
        [["unix-abstract", &format!("{name}-s")], ["abstract-dgram-send", &format!("{name}-d")]]
    {
        refused(Run::new().probe(&words), Run::bare().probe(&words), UNREACHABLE);
    }
}

#[test]
fn host_network_has_the_hosts_interfaces_only_when_asked() {
    require!("userns");
    let bare = allowed(Run::bare().probe(&["net-ifaces"])).detail;
    let host = allowed(Run::new().flag("--network").arg("host").probe(&["net-ifaces"])).detail;
    assert_eq!(bare, host);
}

/// Without a rule, what was tried is told all the same, once; a service of the host's loopback with the rule that leads to it.
#[test]
fn an_address_that_was_tried_is_told_once() {
    require!("userns");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let own = format!("127.0.0.1:{port}");
    for (place, line) in [
        ("10.1.2.3:5432", "blocked 10.1.2.3:5432 (add --allow-net 10.1.2.3:5432)".to_owned()),
        ("8.8.8.8:53", "blocked 8.8.8.8:53 (add --allow-net 8.8.8.8:53)".to_owned()),
        (
            &own,
            format!("blocked {own}, a service of this machine (add --allow-net localhost:{port})"),
        ),
    ] {
        let twice = Run::new().probe(&["connect", place]).probe(&["connect", place]);
        let finished = twice.run();
        assert!(!finished.last(place).ok, "{finished}");
        assert_eq!(finished.stderr.matches("blocked").count(), 1, "{finished}");
        assert!(finished.stderr.contains(&line), "{finished}");
        blocked(Run::new().probe(&["connect", place]), UNREACHABLE);
    }
    // The rule that was named leads there, and a port on which nothing listens needs no hint.
    let finished =
        Run::new().allow_net(format!("localhost:{port}")).probe(&["connect", &own]).run();
    assert!(finished.last("connect").ok && !finished.stderr.contains("blocked"), "{finished}");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let finished = Run::new().probe(&["connect", &free.to_string()]).run();
    assert!(!finished.last("connect").ok && !finished.stderr.contains("blocked"), "{finished}");
}

#[test]
fn ipv6_addresses_are_told_too() {
    require!("userns", "ipv6");
    let finished = Run::new().probe(&["connect", "[fd00::7]:5432"]).run();
    assert!(!finished.last("connect").ok, "{finished}");
    let line = "blocked [fd00::7]:5432 (add --allow-net '[fd00::7]:5432')";
    assert!(finished.stderr.contains(line), "{finished}");
}
