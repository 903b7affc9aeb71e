//! What it costs that the launcher reads a package's output and looks whether it is JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bench_common::Summary;
use serde_json::json;

use super::Result;

const TRIPS: usize = 200;
const LARGE_TRIPS: usize = 10;
const LARGE: usize = 1 << 20;

struct Server {
    child: Child,
    copier: Option<Child>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// What stands between a server and its client.
#[derive(Clone, Copy)]
enum Between {
    Nothing,
    /// `cat`: a process that reads and writes, which is the least that anything in between can do.
    Copier,
    Filter,
}

impl Server {
    fn start(mcp: &Path, bundle: &Path, between: Between) -> Result<Server> {
        let mut child = Command::new(mcp)
            .args(["run", "--quiet", "--yes", "--ephemeral"])
            .args((!matches!(between, Between::Filter)).then_some("--raw"))
            .arg(bundle)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no pipe")?;
        let mut stdout = child.stdout.take().ok_or("no pipe")?;
        let mut copier = None;
        if let Between::Copier = between {
            let mut cat = Command::new("cat").stdin(stdout).stdout(Stdio::piped()).spawn()?;
            stdout = cat.stdout.take().ok_or("no pipe")?;
            copier = Some(cat);
        }
        let stdout = BufReader::with_capacity(64 << 10, stdout);
        let mut server = Server { child, copier, stdin, stdout };
        server.call(0)?;
        Ok(server)
    }

    fn call(&mut self, size: usize) -> Result<Duration> {
        let began = Instant::now();
        let params = format!(r#"{{"name":"echo","arguments":{{"size":{size}}}}}"#);
        writeln!(
            self.stdin,
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
        )?;
        let mut line = Vec::new();
        self.stdout.read_until(b'\n', &mut line)?;
        if line.len() < size + 20 {
            return Err(format!("an answer of {} bytes", line.len()).into());
        }
        Ok(began.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in [Some(&mut self.child), self.copier.as_mut()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A bundle with this program in it.
fn bundle(mcp: &Path, directory: &Path) -> Result<std::path::PathBuf> {
    let source = directory.join("source");
    std::fs::create_dir_all(&source)?;
    std::fs::copy(std::env::current_exe()?, source.join("bench-serve"))?;
    let server = "[server]\ncommand = '${__dirname}/bench-serve'\nargs = ['server']\n";
    std::fs::write(
        source.join("mcp.toml"),
        format!("[package]\nname = 'bench/serve'\nversion = '1.0.0'\n{server}"),
    )?;
    let bundle = directory.join("bench.mcpb");
    let status = Command::new(mcp)
        .arg("pack")
        .arg(&source)
        .arg("-o")
        .arg(&bundle)
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(bundle) } else { Err(format!("mcp pack: {status}").into()) }
}

pub fn compare(mcp: &Path, rounds: u32, as_json: bool) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("bench-filter-{}", std::process::id()));
    let bundle = bundle(mcp, &directory)?;
    let mut servers = Vec::new();
    for between in [Between::Nothing, Between::Copier, Between::Filter] {
        servers.push(Server::start(mcp, &bundle, between)?);
    }
    let mut small: [Vec<Duration>; 3] = Default::default();
    let mut large: [Vec<Duration>; 3] = Default::default();
    for round in 0..rounds as usize {
        for turn in 0..servers.len() {
            let which = (round + turn) % servers.len();
            for _ in 0..TRIPS {
                small[which].push(servers[which].call(0)?);
            }
            for _ in 0..LARGE_TRIPS {
                large[which].push(servers[which].call(LARGE)?);
            }
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    let row = |times: [Vec<Duration>; 3]| {
        let [direct, copier, filtered] = times.map(|it| Summary::of(it).median);
        let (ratio, to_copier) = (filtered / direct, filtered / copier);
        json!({"direct": direct, "through_cat": copier, "filtered": filtered, "ratio": ratio, "to_cat": to_copier})
    };
    let told = json!({
        "machine": super::machine(),
        "round_trip_ms": row(small),
        "one_mebibyte_ms": row(large),
    });
    if as_json {
        println!("{}", serde_json::to_string_pretty(&told)?);
    } else {
        println!("{told}");
    }
    Ok(())
}
