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
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(mcp: &Path, bundle: &Path, flags: &[&str]) -> Result<Server> {
        let mut child = Command::new(mcp)
            .args(["run", "--quiet", "--yes", "--ephemeral"])
            .args(flags)
            .arg(bundle)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no pipe")?;
        let stdout = BufReader::with_capacity(64 << 10, child.stdout.take().ok_or("no pipe")?);
        let mut server = Server { child, stdin, stdout };
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
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    let mut direct = Server::start(mcp, &bundle, &["--raw"])?;
    let mut filtered = Server::start(mcp, &bundle, &[])?;
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..rounds {
        for turn in 0..2 {
            let which = usize::from((round + turn) % 2 == 1);
            let server = if which == 0 { &mut direct } else { &mut filtered };
            for _ in 0..TRIPS {
                times[which].push(server.call(0)?);
            }
            for _ in 0..LARGE_TRIPS {
                times[2 + which].push(server.call(LARGE)?);
            }
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    let [small_direct, small, large_direct, large] = times.map(|it| Summary::of(it).median);
    let told = json!({
        "machine": super::machine(),
        "round_trip_ms": {"direct": small_direct, "filtered": small, "ratio": small / small_direct},
        "one_mebibyte_ms": {"direct": large_direct, "filtered": large, "ratio": large / large_direct},
    });
    if as_json {
        println!("{}", serde_json::to_string_pretty(&told)?);
    } else {
        println!("{told}");
    }
    Ok(())
}
