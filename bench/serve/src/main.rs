//! What `mcp serve` costs beside other gateways: calls per second, latency, memory for each session.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("bench-serve: reads /proc, so it runs on Linux only");
    std::process::ExitCode::from(2)
}
