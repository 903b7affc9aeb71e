//! What a sandbox costs at start-up, over a bare spawn of the same command.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("bench-startup: compares Linux namespaces, so it runs on Linux only");
    std::process::ExitCode::from(2)
}
