//! A world of its own for network tests: a network namespace with the addresses, names and
//! servers that a test asks for, and a command that runs in it. No packet leaves it.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::spec::{Args, Failure, Said};
use crate::sys::{Arg, call};

use super::{c_string, command};

/// What the servers saw, one line each.
#[derive(Clone)]
struct Log(Arc<Mutex<fs::File>>);

impl Log {
    fn note(&self, line: &str) {
        if let Ok(mut file) = self.0.lock() {
            let _ = writeln!(file, "{}", line.replace(['\n', '\r'], " "));
        }
    }
}

/// `world LOG SPEC COMMAND ARGS…`. The words of SPEC are separated by `;`:
///
/// ```text
/// ip=9.9.9.9            an address somewhere else, as far as anybody can see
/// dead=2606:4700::1     an address somewhere else, from which never comes an answer
/// own=192.168.7.7       an address of this machine; with `/24` it is in a network
/// name=api.test>9.9.9.9 what the name server on 127.0.0.1 says; several lines, several addresses;
///                       `*.api.test` is every name below
/// slow=late.test>9.9.9.9 the same, answered after a second
/// mute=dead.test        a name for which, and below which, the name server never answers
/// serve=9.9.9.9:443     answers the first words of a client with "hello from 9.9.9.9:443"
/// banner=9.9.9.9:22     speaks first, then echoes
/// echo=9.9.9.9:80       echoes until the end
/// urgent=9.9.9.9:70     100,000 bytes, an urgent one, 100,000 more, the end
/// full=9.9.9.9:444      takes no connection and refuses none
/// udp=9.9.9.9:53        answers each datagram with "hello from 9.9.9.9:53"
/// hosts=box.test>9.9.9.9 a line of the host's /etc/hosts
/// host=box.local>9.9.9.9 what the host knows beside DNS; `never` instead of an address: no answer
/// proxy=127.0.0.1:3128  an HTTP proxy that leads to a server which says "hello by proxy"
/// ```
pub(crate) fn world(args: Args<'_>) -> Said {
    let log_path = args.path(0).to_owned();
    enter()?;
    interface_up()?;
    let file = OpenOptions::new().append(true).create(true).open(&log_path)?;
    let log = Log(Arc::new(Mutex::new(file)));
    let (mut names, mut slow, mut mute, mut known) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut hosts = "127.0.0.1 localhost\n".to_owned();
    let spec = args.text(1).into_owned();
    for word in spec.split(';').map(str::trim).filter(|word| !word.is_empty()) {
        let (kind, value) = word.split_once('=').ok_or_else(|| bad(word))?;
        let address = || value.parse::<SocketAddr>().map_err(|_| bad(word));
        match kind {
            "ip" => route_here(value.parse().map_err(|_| bad(word))?)?,
            "dead" => route_nowhere(value.parse().map_err(|_| bad(word))?)?,
            "own" => {
                let (ip, prefix) = value.split_once('/').unwrap_or((value, ""));
                let ip: IpAddr = ip.parse().map_err(|_| bad(word))?;
                let full = if ip.is_ipv4() { 32 } else { 128 };
                let prefix = if prefix.is_empty() { Ok(full) } else { prefix.parse() };
                add_address(ip, prefix.map_err(|_| bad(word))?)?;
            }
            "name" => {
                let (name, ip) = value.split_once('>').ok_or_else(|| bad(word))?;
                names.push((name.to_owned(), ip.parse::<IpAddr>().map_err(|_| bad(word))?));
            }
            "slow" => {
                let (name, ip) = value.split_once('>').ok_or_else(|| bad(word))?;
                names.push((name.to_owned(), ip.parse::<IpAddr>().map_err(|_| bad(word))?));
                slow.push(name.to_owned());
            }
            "mute" => mute.push(value.to_owned()),
            "hosts" => {
                let (name, ip) = value.split_once('>').ok_or_else(|| bad(word))?;
                hosts += &format!("{ip} {name}\n");
            }
            "host" => known.push(value.split_once('>').ok_or_else(|| bad(word))?),
            "serve" => serve(address()?, &log, greet)?,
            "banner" => serve(address()?, &log, speak_first)?,
            "echo" => serve(address()?, &log, echo)?,
            "proxy" => serve(address()?, &log, proxy)?,
            "urgent" => serve(address()?, &log, speak_urgently)?,
            "full" => take_nobody(address()?)?,
            "udp" => serve_datagrams(address()?, &log)?,
            _ => return Err(bad(word)),
        }
    }
    name_server(names, (slow, mute), &log)?;
    configure(&log_path, &hosts)?;
    if !known.is_empty() {
        know_more(&log_path, &known)?;
    }
    let status = Command::new(args.path(2)).args(args.rest(3)).status()?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // Nothing of the world's own is said: the output is the command's.
    std::process::exit(code)
}

fn bad(word: &str) -> Failure {
    Failure::usage(format!("not a word of a world: {word}"))
}

/// A network and mounts of its own; as an ordinary user by way of a user namespace in which the
/// user stays who it is.
fn enter() -> Result<(), Failure> {
    let uid = call(libc::SYS_geteuid, &mut [])?;
    let gid = call(libc::SYS_getegid, &mut [])?;
    let spaces = libc::CLONE_NEWNET | libc::CLONE_NEWNS;
    if uid == 0 {
        call(libc::SYS_unshare, &mut [Arg::Num(spaces as u64)])?;
    } else {
        call(libc::SYS_unshare, &mut [Arg::Num((spaces | libc::CLONE_NEWUSER) as u64)])?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    let root = c_string("/")?;
    let flags = Arg::Num(libc::MS_REC | libc::MS_PRIVATE);
    call(libc::SYS_mount, &mut [Arg::Null, Arg::Text(&root), Arg::Null, flags, Arg::Null])?;
    Ok(())
}

fn interface_up() -> Result<(), Failure> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut request = [0u8; 40];
    request[..2].copy_from_slice(b"lo");
    request[16..18].copy_from_slice(&((libc::IFF_UP | libc::IFF_RUNNING) as u16).to_ne_bytes());
    let fd = Arg::Num(std::os::fd::AsRawFd::as_raw_fd(&socket) as u64);
    call(libc::SYS_ioctl, &mut [fd, command!(SIOCSIFFLAGS), Arg::Bytes(&mut request)])?;
    // Servers have addresses that no interface has; hosts may be without IPv6.
    let _ = fs::write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1");
    // Other programs' servers may be an ordinary user's.
    let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    Ok(())
}

/// RTM_NEWADDR for the first interface, which is `lo`.
fn add_address(ip: IpAddr, prefix: u8) -> Result<(), Failure> {
    let (family, octets) = parts(ip);
    const NO_DUPLICATES: u8 = 2;
    let mut body = vec![family, prefix, NO_DUPLICATES, 0, 1, 0, 0, 0];
    attribute(&mut body, 2, &octets);
    attribute(&mut body, 1, &octets);
    ask_kernel(20, &body)
}

/// RTM_NEWROUTE: local, but no interface has it.
fn route_here(ip: IpAddr) -> Result<(), Failure> {
    let (family, octets) = parts(ip);
    let mut body = vec![family, octets.len() as u8 * 8, 0, 0, 255, 4, 254, 2, 0, 0, 0, 0];
    attribute(&mut body, 1, &octets);
    attribute(&mut body, 4, &1u32.to_ne_bytes());
    ask_kernel(24, &body)
}

/// RTM_NEWROUTE: a packet leaves by `lo` and comes in again; no socket here has its address, so the kernel drops it silently.
fn route_nowhere(ip: IpAddr) -> Result<(), Failure> {
    let (family, octets) = parts(ip);
    let mut body = vec![family, octets.len() as u8 * 8, 0, 0, 254, 4, 253, 1, 0, 0, 0, 0];
    attribute(&mut body, 1, &octets);
    attribute(&mut body, 4, &1u32.to_ne_bytes());
    ask_kernel(24, &body)
}

fn parts(ip: IpAddr) -> (u8, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (libc::AF_INET as u8, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6 as u8, ip.octets().to_vec()),
    }
}

fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend((4 + value.len() as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

/// One rtnetlink request, acknowledged.
fn ask_kernel(kind: u16, body: &[u8]) -> Result<(), Failure> {
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(0x405u16.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    let fd = call(
        libc::SYS_socket,
        &mut [
            Arg::Num(libc::AF_NETLINK as u64),
            Arg::Num((libc::SOCK_RAW | libc::SOCK_CLOEXEC) as u64),
            Arg::Num(0),
        ],
    )?;
    let length = Arg::Num(message.len() as u64);
    let text = Arg::Bytes(&mut message);
    let [flags, to, size] = [Arg::Num(0), Arg::Null, Arg::Num(0)];
    call(libc::SYS_sendto, &mut [Arg::Num(fd), text, length, flags, to, size])?;
    let mut answer = [0u8; 256];
    let room = Arg::Num(answer.len() as u64);
    let text = Arg::Bytes(&mut answer);
    let [flags, from, size] = [Arg::Num(0), Arg::Null, Arg::Null];
    call(libc::SYS_recvfrom, &mut [Arg::Num(fd), text, room, flags, from, size])?;
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    let errno = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-errno).into()) }
}

/// Puts the world's own files over the host's.
fn configure(log: &Path, hosts: &str) -> Result<(), Failure> {
    let resolv = "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n";
    cover(&beside(log, "resolv"), "/etc/resolv.conf", resolv)?;
    cover(&beside(log, "hosts"), "/etc/hosts", hosts)
}

/// A source of names beside the file and DNS, and a `getent` that knows what it says, and notes
/// how it was asked.
fn know_more(log: &Path, known: &[(&str, &str)]) -> Result<(), Failure> {
    let cases: String = known
        .iter()
        .map(|(name, ip)| match *ip {
            "never" => format!("{name}) exec sleep 600;;\n"),
            ip => format!("{name}) echo '{ip} STREAM {name}'; echo '{ip} DGRAM';;\n"),
        })
        .collect();
    let script = format!(
        "#!/bin/sh\n{{ echo \"getent $*\"; tr '\\0' ' ' </proc/$$/environ; echo; }} >>'{}'\n\
         case \"$2\" in\n{cases}*) exit 2;;\nesac\n",
        log.display()
    );
    let path = beside(log, "getent");
    cover(&path, "/usr/bin/getent", &script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    cover(&beside(log, "nsswitch"), "/etc/nsswitch.conf", "hosts: files dns other\n")
}

fn beside(log: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}.{end}", log.display()))
}

fn cover(path: &Path, target: &str, text: &str) -> Result<(), Failure> {
    fs::write(path, text)?;
    let (from, to) = (c_string(path)?, c_string(target)?);
    let flags = Arg::Num(libc::MS_BIND);
    call(libc::SYS_mount, &mut [Arg::Text(&from), Arg::Text(&to), Arg::Null, flags, Arg::Null])?;
    Ok(())
}

type Serve = fn(TcpStream, SocketAddr, &Log) -> io::Result<()>;

fn serve(at: SocketAddr, log: &Log, each: Serve) -> Result<(), Failure> {
    let listener = TcpListener::bind(at)?;
    let log = log.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = log.clone();
            thread::spawn(move || {
                let _ = each(stream, at, &log);
            });
        }
    });
    Ok(())
}

fn first_words(stream: &mut TcpStream) -> io::Result<String> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut words = [0; 2048];
    let count = stream.read(&mut words)?;
    Ok(String::from_utf8_lossy(&words[..count]).into_owned())
}

fn greet(mut stream: TcpStream, at: SocketAddr, log: &Log) -> io::Result<()> {
    log.note(&format!("tcp {at} connected"));
    let words = first_words(&mut stream)?;
    log.note(&format!("tcp {at} heard {words}"));
    stream.write_all(format!("hello from {at}\n").as_bytes())
}

fn speak_first(mut stream: TcpStream, at: SocketAddr, log: &Log) -> io::Result<()> {
    log.note(&format!("tcp {at} connected"));
    stream.write_all(format!("hello from {at}\r\n").as_bytes())?;
    echo(stream, at, log)
}

fn echo(mut stream: TcpStream, at: SocketAddr, log: &Log) -> io::Result<()> {
    let mut copy = stream.try_clone()?;
    let count = io::copy(&mut stream, &mut copy)?;
    log.note(&format!("tcp {at} echoed {count}"));
    copy.shutdown(std::net::Shutdown::Write)
}

fn proxy(mut stream: TcpStream, at: SocketAddr, log: &Log) -> io::Result<()> {
    let request = first_words(&mut stream)?;
    log.note(&format!("proxy {at} heard {request}"));
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let words = first_words(&mut stream)?;
    log.note(&format!("proxy {at} carried {words}"));
    stream.write_all(b"hello by proxy\n")
}

fn speak_urgently(mut stream: TcpStream, at: SocketAddr, log: &Log) -> io::Result<()> {
    log.note(&format!("tcp {at} connected"));
    let _ = first_words(&mut stream)?;
    stream.write_all(&[b'a'; 100_000])?;
    let fd = Arg::Num(std::os::fd::AsRawFd::as_raw_fd(&stream) as u64);
    let (mut byte, flags) = (*b"!", Arg::Num(libc::MSG_OOB as u64));
    let byte = Arg::Bytes(&mut byte);
    let no_address = (Arg::Null, Arg::Num(0));
    let words = &mut [fd, byte, Arg::Num(1), flags, no_address.0, no_address.1];
    call(libc::SYS_sendto, words).map_err(|_| io::ErrorKind::Other)?;
    stream.write_all(&[b'b'; 100_000])
}

/// A listener whose queue is full: the kernel drops what further clients say.
fn take_nobody(at: SocketAddr) -> Result<(), Failure> {
    let listener = TcpListener::bind(at)?;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&listener) as u64;
    call(libc::SYS_listen, &mut [Arg::Num(fd), Arg::Num(0)])?;
    let queued: Vec<_> = (0..4)
        .map_while(|_| TcpStream::connect_timeout(&at, Duration::from_millis(200)).ok())
        .collect();
    std::mem::forget((listener, queued));
    Ok(())
}

fn serve_datagrams(at: SocketAddr, log: &Log) -> Result<(), Failure> {
    let socket = UdpSocket::bind(at)?;
    let log = log.clone();
    thread::spawn(move || {
        let mut datagram = [0; 2048];
        while let Ok((count, from)) = socket.recv_from(&mut datagram) {
            log.note(&format!("udp {at} heard {}", String::from_utf8_lossy(&datagram[..count])));
            let _ = socket.send_to(format!("hello from {at}").as_bytes(), from);
        }
    });
    Ok(())
}

/// Answers A and AAAA on 127.0.0.1, and notes every name it hears.
fn name_server(
    names: Vec<(String, IpAddr)>,
    (slow, mute): (Vec<String>, Vec<String>),
    log: &Log,
) -> Result<(), Failure> {
    let socket = UdpSocket::bind("127.0.0.1:53")?;
    let log = log.clone();
    thread::spawn(move || {
        let mut message = [0; 1500];
        while let Ok((count, from)) = socket.recv_from(&mut message) {
            let Some((name, answer)) = answer(&message[..count], &names, &mute, &log) else {
                continue;
            };
            match slow.contains(&name).then(|| socket.try_clone()) {
                Some(Ok(socket)) => drop(thread::spawn(move || {
                    thread::sleep(Duration::from_secs(1));
                    let _ = socket.send_to(&answer, from);
                })),
                _ => drop(socket.send_to(&answer, from)),
            }
        }
    });
    Ok(())
}

fn answer(
    message: &[u8],
    names: &[(String, IpAddr)],
    mute: &[String],
    log: &Log,
) -> Option<(String, Vec<u8>)> {
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        let length = usize::from(*message.get(at)?);
        if length == 0 {
            break;
        }
        let label = message.get(at + 1..at + 1 + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + length;
    }
    let name = labels.join(".");
    let kind = u16::from_be_bytes([*message.get(at + 1)?, *message.get(at + 2)?]);
    log.note(&format!("dns {name} {kind}"));
    if mute.iter().any(|mute| name == *mute || is_below(&name, mute)) {
        return None;
    }
    let is_it = |known: &str| match known.strip_prefix("*.") {
        Some(above) => is_below(&name, above),
        None => known == name,
    };
    let known = names.iter().any(|(known, _)| is_it(known));
    let records: Vec<Vec<u8>> = names
        .iter()
        .filter(|(known, _)| is_it(known))
        .filter_map(|(_, ip)| match (kind, ip) {
            (1, IpAddr::V4(ip)) => Some(ip.octets().to_vec()),
            (28, IpAddr::V6(ip)) => Some(ip.octets().to_vec()),
            _ => None,
        })
        .collect();
    let mut reply = message.get(..2)?.to_vec();
    reply.extend([0x81, if known { 0x80 } else { 0x83 }, 0, 1]);
    reply.extend((records.len() as u16).to_be_bytes());
    reply.extend([0; 4]);
    reply.extend(message.get(12..at + 5)?);
    for octets in records {
        reply.extend([0xc0, 12]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 1]);
        reply.extend((octets.len() as u16).to_be_bytes());
        reply.extend(octets);
    }
    Some((name, reply))
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|start| start.ends_with('.'))
}
