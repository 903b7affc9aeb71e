//! The client that runs inside each sandbox: connects, counts, times, and prints what it saw.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Result;

/// The hidden mode of this program: `__client JOB HOST PORT COUNT WAY`.
pub const CLIENT: &str = "__client";
const WAIT: Duration = Duration::from_secs(20);
const WARM_UP: u32 = 20;
/// Clients at one time during the load.
const LOADERS: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Connect, a byte there and back, close; one after the other, each timed.
    Sequence,
    /// All connections open at one time.
    AtOnce,
    /// Read for this number of seconds.
    Download,
    /// As `Sequence`, by several threads, for this number of seconds.
    Load,
}

impl Job {
    const ALL: [(Self, &str); 4] = [
        (Self::Sequence, "sequence"),
        (Self::AtOnce, "at-once"),
        (Self::Download, "download"),
        (Self::Load, "load"),
    ];

    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(job, _)| *job == self).map_or("", |(_, word)| word)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, it)| *it == word).map(|(job, _)| *job)
    }
}

/// How the sandbox lets programs out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// As if there were no sandbox.
    Plain,
    /// By CONNECT to the proxy in `HTTPS_PROXY`.
    Proxy,
}

impl Route {
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Proxy => "proxy",
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Done {
    pub good: u32,
    pub nanoseconds: Vec<u64>,
    pub bytes_per_second: f64,
}

pub fn main(words: impl Iterator<Item = String>) -> ExitCode {
    match work(&words.collect::<Vec<_>>()) {
        Ok(done) => {
            println!("{}", serde_json::json!(done));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("client: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(words: &[String]) -> Result<Done> {
    let [job, host, port, count, route] = words else {
        return Err("client: JOB HOST PORT COUNT WAY".into());
    };
    let job = Job::parse(job).ok_or("client: unknown job")?;
    let route = if route == Route::Proxy.word() { Route::Proxy } else { Route::Plain };
    let (port, count) = (port.parse()?, count.parse()?);
    let goal = Goal::new(host, port, route)?;
    match job {
        Job::Sequence => {
            for _ in 0..WARM_UP {
                goal.one()?;
            }
            Ok(sequence(&goal, count))
        }
        Job::AtOnce => Ok(Done { good: at_once(&goal, count), ..Done::default() }),
        Job::Download => download(&goal, Duration::from_secs(count.into())),
        Job::Load => Ok(load(&goal, Duration::from_secs(count.into()))),
    }
}

/// Where to connect to, found out once.
#[derive(Clone)]
struct Goal {
    at: SocketAddr,
    /// What to ask the proxy for.
    connect: Option<String>,
}

impl Goal {
    fn new(host: &str, port: u16, route: Route) -> Result<Self> {
        let resolve = |host: &str, port| -> Result<SocketAddr> {
            (host, port).to_socket_addrs()?.next().ok_or_else(|| "no address".into())
        };
        if route == Route::Plain {
            return Ok(Self { at: resolve(host, port)?, connect: None });
        }
        let proxy = std::env::var("HTTPS_PROXY").or_else(|_| std::env::var("https_proxy"))?;
        let proxy = proxy.trim_start_matches("http://").trim_end_matches('/');
        let (_, place) = proxy.rsplit_once('@').unwrap_or(("", proxy));
        let (proxy_host, proxy_port) = place.rsplit_once(':').ok_or("HTTPS_PROXY has no port")?;
        let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        if let Some((login, _)) = proxy.rsplit_once('@') {
            let field = format!("\r\nProxy-Authorization: Basic {}\r\n\r\n", base64(login));
            request = request.replace("\r\n\r\n", &field);
        }
        // `localhost` has two addresses, and the proxy may be at one of them only; it may also be
        // started together with the client.
        let places: Vec<_> = (proxy_host, proxy_port.parse::<u16>()?).to_socket_addrs()?.collect();
        let at = (0..50).find_map(|_| {
            let at = places.iter().find(|at| TcpStream::connect_timeout(at, WAIT).is_ok());
            if at.is_none() {
                thread::sleep(Duration::from_millis(100));
            }
            at.copied()
        });
        Ok(Self { at: at.ok_or("no server listens at HTTPS_PROXY")?, connect: Some(request) })
    }

    fn connect(&self) -> Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.at, WAIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WAIT))?;
        if let Some(request) = &self.connect {
            stream.write_all(request.as_bytes())?;
            let mut answer = BufReader::with_capacity(1, &stream);
            let mut line = String::new();
            answer.read_line(&mut line)?;
            if !line.contains(" 200") {
                return Err(format!("the proxy says {line}").into());
            }
            while !line.trim().is_empty() {
                line.clear();
                answer.read_line(&mut line)?;
            }
        }
        Ok(stream)
    }

    fn one(&self) -> Result<Duration> {
        let start = Instant::now();
        let mut stream = self.connect()?;
        talk(&mut stream, b'x')?;
        drop(stream);
        Ok(start.elapsed())
    }
}

/// A byte there and the same one back.
fn talk(stream: &mut TcpStream, byte: u8) -> Result<()> {
    stream.write_all(&[byte])?;
    let mut back = [0];
    stream.read_exact(&mut back)?;
    if back == [byte] { Ok(()) } else { Err("another byte came back".into()) }
}

fn sequence(goal: &Goal, count: u32) -> Done {
    let mut done = Done::default();
    for _ in 0..count {
        match goal.one() {
            Ok(took) => {
                done.good += 1;
                done.nanoseconds.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            }
            Err(error) => eprintln!("client: {error}"),
        }
    }
    done
}

fn at_once(goal: &Goal, count: u32) -> u32 {
    let connect = |_| match goal.connect() {
        Ok(stream) => Some(stream),
        Err(error) => {
            eprintln!("client: {error}");
            None
        }
    };
    let mut open: Vec<TcpStream> = (0..count).filter_map(connect).collect();
    let mut good = 0;
    for (index, stream) in open.iter_mut().enumerate() {
        match talk(stream, b'a' + (index % 26) as u8) {
            Ok(()) => good += 1,
            Err(error) => eprintln!("client: {error}"),
        }
    }
    good
}

fn download(goal: &Goal, limit: Duration) -> Result<Done> {
    let mut stream = goal.connect()?;
    let mut buffer = vec![0; 256 << 10];
    let start = Instant::now();
    let mut bytes = 0usize;
    while start.elapsed() < limit {
        match stream.read(&mut buffer)? {
            0 => return Err("the server stopped".into()),
            count => bytes += count,
        }
    }
    let bytes_per_second = bytes as f64 / start.elapsed().as_secs_f64();
    Ok(Done { good: 1, bytes_per_second, ..Done::default() })
}

fn load(goal: &Goal, limit: Duration) -> Done {
    let end = Instant::now() + limit;
    let loaders = (0..LOADERS).map(|_| {
        let goal = goal.clone();
        thread::spawn(move || {
            let mut good = 0;
            while Instant::now() < end {
                good += u32::from(goal.one().is_ok());
            }
            good
        })
    });
    let loaders: Vec<_> = loaders.collect();
    let good = loaders.into_iter().map(|loader| loader.join().unwrap_or(0)).sum();
    Done { good, ..Done::default() }
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            encoded.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    encoded
}
