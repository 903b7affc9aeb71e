//! The host's network. The same attack on every system; the caller has checked that the boundary is there.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use crate::support::{ABSENT, Run, Scratch, UNREACHABLE, allowed, refused};
pub fn host_tcp_port_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let words = ["connect", &address];
    refused(Run::new().probe(&words), Run::bare().probe(&words), UNREACHABLE);
    allowed(Run::new().flag("--network").arg("host").probe(&words));
}

pub fn host_tcp_port_is_out_of_reach_over_ipv6() {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let words = ["connect6", &address];
    refused(Run::new().probe(&words), Run::bare().probe(&words), UNREACHABLE);
}

pub fn host_unix_socket_is_not_there() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    let _listener = UnixListener::bind(&path).unwrap();
    let words = ["unix-connect", path.to_str().unwrap()];
    refused(Run::new().probe(&words), Run::bare().probe(&words), ABSENT);
    allowed(Run::new().flag("--allow-unix").arg(&path).probe(&words));
}
