//! `cargo xtask vm`: one command on another kernel, in a virtual machine that is thrown away.
//!
//! The guest's root is this machine's own, read-only, beneath a layer of its own; the kernel is
//! one of Debian's. It is emulated, so it needs no privilege and works inside virtual machines,
//! and it is 5 to 17 times slower. Needs Debian's apt, busybox-static, qemu-system-x86, kmod, e2fsprogs.

mod boot_image;
mod containers;
mod document;
pub mod guest;
mod initrd;
pub mod kernel;
mod matrix;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::Result;
use guest::{Cgroup, Guest, Output, User};
use kernel::Kernel;

/// Run a command on another kernel, in a virtual machine that is thrown away
///
/// It sees this machine's files, can write to a layer that is gone afterwards, and has a disk of its
/// own at /scratch (TMPDIR and HOME are there). Standard streams and the exit code pass through;
/// 124 means that it took too long.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<VmVerb>,
    #[command(flatten)]
    one: One,
}

#[derive(clap::Subcommand)]
enum VmVerb {
    Containers(containers::Args),
    Matrix(matrix::Args),
}

#[derive(clap::Args)]
struct One {
    /// The kernel
    #[arg(long, value_enum, default_value_t = Kernel::V6_12)]
    kernel: Kernel,
    /// A kernel setting made before the command starts: user.max_user_namespaces=0
    #[arg(long, value_name = "NAME=VALUE")]
    sysctl: Vec<String>,
    /// A word for the kernel's command line: lsm=lockdown,yama
    #[arg(long, value_name = "WORD")]
    append: Vec<String>,
    /// How cgroup v2 is set up
    #[arg(long, value_enum, default_value_t = Cgroup::Delegate)]
    cgroup: Cgroup,
    /// Run the command as root instead of uid 1000
    #[arg(long)]
    root: bool,
    /// Seconds until it is given up
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,
    #[command(flatten)]
    machine: Machine,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What the virtual machines are made of and where.
#[derive(clap::Args)]
struct Machine {
    /// Memory of the guest, in MiB
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    memory: u32,
    /// Processors of the guest; on a busy machine more of them wait for each other and take longer
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    processors: u32,
    /// Where kernels and results are kept [default: vm in the target directory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Machine {
    fn cache(&self) -> PathBuf {
        self.cache.clone().unwrap_or_else(|| crate::target_directory().join("vm"))
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.verb {
        Some(VmVerb::Containers(containers)) => containers::run(containers),
        Some(VmVerb::Matrix(matrix)) => matrix::run(matrix),
        None => one(&args.one),
    }
}

fn one(args: &One) -> Result<ExitCode> {
    if args.command.is_empty() {
        return Err("no command: cargo xtask vm --kernel 6.1 -- uname -a".into());
    }
    let user = if args.root { User::Root } else { User::Ordinary };
    let guest = Guest {
        kernel: args.kernel,
        sysctls: args.sysctl.clone(),
        append: args.append.clone(),
        cgroup: args.cgroup,
        user,
        memory: args.machine.memory,
        processors: args.machine.processors,
        limit: Duration::from_secs(args.timeout),
    };
    let finished = guest.run(&args.machine.cache(), &shell_words(&args.command), Output::Shown)?;
    Ok(finished.code.map_or(ExitCode::from(124), ExitCode::from))
}

/// The words as a line of shell that means exactly them.
fn shell_words<S: AsRef<str>>(words: &[S]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.as_ref().replace('\'', r"'\''")));
    format!("exec {}\n", quoted.collect::<Vec<_>>().join(" "))
}

/// A directory that is removed with its value.
struct Temporary(PathBuf);

impl Temporary {
    fn below(parent: &Path, name: &str) -> Result<Temporary> {
        let path = parent.join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Temporary(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(shell_words(&["echo", "it's $HOME"]), "exec 'echo' 'it'\\''s $HOME'\n");
    }
}
