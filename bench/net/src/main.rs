//! What the network allowlist costs: new connections, throughput, many at once, memory.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("bench-net: compares Linux sandboxes, so it runs on Linux only");
    std::process::ExitCode::from(2)
}
