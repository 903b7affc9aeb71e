//! What the things programs do all the time cost inside a sandbox, against the same done bare.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("bench-steady: compares Linux sandboxes, so it runs on Linux only");
    std::process::ExitCode::from(2)
}
