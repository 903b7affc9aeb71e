//! One virtual machine, from its start to its end.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Result;
use crate::vm::kernel::{self, Bootable, Kernel};
use crate::vm::{Temporary, tools};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Cgroup {
    /// The command is in a cgroup that belongs to its user, as systemd's user manager does it
    Delegate,
    /// The command is in a cgroup of root's, as after a login on a plain terminal
    Session,
    /// Not mounted
    None,
    /// A real systemd with a user manager; the command is a service of its own
    Systemd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    Ordinary,
    Root,
}

impl User {
    fn id(self) -> u32 {
        match self {
            User::Ordinary => 1000,
            User::Root => 0,
        }
    }
}

/// What becomes of what the command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output<'a> {
    /// Passed on as it comes.
    Shown,
    /// Written to a file as it comes, to be looked at meanwhile.
    Logged(&'a Path),
}

pub struct Guest {
    pub kernel: Kernel,
    pub sysctls: Vec<String>,
    pub append: Vec<String>,
    pub cgroup: Cgroup,
    pub user: User,
    /// MiB.
    pub memory: u32,
    pub processors: u32,
    pub limit: Duration,
}

pub struct Finished {
    /// None when it took too long.
    pub code: Option<u8>,
    pub stdout: String,
    /// As `uname -r` says it.
    pub release: String,
}

impl Guest {
    /// Runs a shell script in a new guest.
    pub fn run(&self, cache: &Path, script: &str, output: Output<'_>) -> Result<Finished> {
        fs::create_dir_all(cache).map_err(|e| format!("{}: {e}", cache.display()))?;
        let bootable = kernel::prepare(self.kernel, cache)?;
        let orders = Temporary::below(cache, "orders")?;
        let orders = orders.0.as_path();
        fs::write(orders.join("command"), script)?;
        fs::write(orders.join("settings"), self.settings())?;
        give_input(orders, output)?;
        let disk = disk(cache)?;
        let mut qemu = self.qemu(&bootable, orders, &disk);
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = qemu.spawn().map_err(|error| tools::missing(&qemu, &error))?;
        let (out, err) = sinks(output)?;
        let (stdout, stderr) = (copied(child.stdout.take(), out), copied(child.stderr.take(), err));
        let status = ended(&mut child, self.limit)?;
        let (stdout, stderr) = (joined(stdout)?, joined(stderr)?);
        let code = match fs::read_to_string(orders.join("code")) {
            Ok(code) => Some(code.trim().parse()?),
            Err(_) if status.is_none() => None,
            Err(_) => {
                let console = fs::read(orders.join("console")).unwrap_or_default();
                let console = String::from_utf8_lossy(&console);
                return Err(format!("the guest ended early:\n{}\n{stderr}", console.trim()).into());
            }
        };
        Ok(Finished { code, stdout, release: bootable.release })
    }

    fn settings(&self) -> String {
        let kind = match self.cgroup {
            Cgroup::Delegate => "delegate",
            Cgroup::Session => "session",
            Cgroup::None => "none",
            Cgroup::Systemd => "systemd",
        };
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let cwd = std::env::current_dir().unwrap_or_default();
        format!(
            "KIND={kind}\nUID_={}\nSYSCTLS={}\nCWD={}\n",
            self.user.id(),
            quoted(&self.sysctls.join(" ")),
            quoted(&cwd.to_string_lossy())
        )
    }

    fn qemu(&self, bootable: &Bootable, orders: &Path, disk: &Path) -> Command {
        let orders = orders.display();
        // Quick to boot, and stopped instead of started again.
        let mut words = "console=ttyS0 quiet loglevel=4 panic=-1 reboot=t mitigations=off nokaslr \
                         random.trust_cpu=on cryptomgr.notests no_timer_check tsc=reliable \
                         8250.nr_uarts=1 rcupdate.rcu_expedited=1 audit=0"
            .to_owned();
        for word in &self.append {
            words += &format!(" {word}");
        }
        let share = "security_model=none,multidevs=remap";
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        qemu.args(["-M", "q35,smm=off,hpet=off,vmport=off,usb=off,sata=off", "-cpu", "max"]);
        qemu.args(["-accel", "tcg,thread=multi", "-m", &self.memory.to_string()]);
        qemu.args(["-smp", &self.processors.to_string()]);
        qemu.arg("-kernel").arg(&bootable.image).arg("-initrd").arg(&bootable.initrd);
        qemu.args(["-append", &words]);
        qemu.args(["-virtfs", &format!("local,path=/,mount_tag=host,readonly=on,{share}")]);
        qemu.args(["-virtfs", &format!("local,path={orders},mount_tag=orders,{share}")]);
        let drive = format!("file={},format=raw,if=virtio,snapshot=on", disk.display());
        qemu.args(["-drive", &drive, "-device", "virtio-serial-pci"]);
        for (name, path) in [("out", "/dev/stdout"), ("err", "/dev/stderr")] {
            qemu.args(["-chardev", &format!("file,id={name},path={path},append=on")]);
            qemu.args(["-device", &format!("virtserialport,chardev={name},name={name}")]);
        }
        qemu.args(["-serial", &format!("file:{orders}/console")]);
        qemu
    }
}

/// What the caller gives on standard input; a terminal gives nothing.
fn give_input(orders: &Path, output: Output<'_>) -> Result<()> {
    let mut input = Vec::new();
    if output == Output::Shown && !io::IsTerminal::is_terminal(&io::stdin()) {
        io::stdin().read_to_end(&mut input)?;
    }
    Ok(fs::write(orders.join("input"), input)?)
}

/// An empty file system that all guests begin with; none of them changes it.
fn disk(cache: &Path) -> Result<std::path::PathBuf> {
    let path = cache.join("disk.ext4");
    if !path.exists() {
        let new = cache.join("disk.new");
        fs::File::create(&new)?.set_len(2 << 30)?;
        tools::output(tools::administrative("mkfs.ext4").arg("-qF").arg(&new))?;
        fs::rename(&new, &path)?;
    }
    Ok(path)
}

type Copied = JoinHandle<io::Result<Vec<u8>>>;

type Sink = Box<dyn Write + Send>;

/// Where what the guest prints on its two streams is written to.
fn sinks(output: Output<'_>) -> Result<(Sink, Sink)> {
    Ok(match output {
        Output::Shown => (Box::new(io::stdout()), Box::new(io::stderr())),
        Output::Logged(path) => {
            let log = fs::File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
            (Box::new(log.try_clone()?), Box::new(log))
        }
    })
}

fn copied(from: Option<impl Read + Send + 'static>, mut to: Sink) -> Option<Copied> {
    let mut from = from?;
    Some(thread::spawn(move || {
        let mut all = Vec::new();
        let mut buffer = [0; 8192];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 {
                return Ok(all);
            }
            all.extend(&buffer[..count]);
            to.write_all(&buffer[..count])?;
            to.flush()?;
        }
    }))
}

fn joined(copied: Option<Copied>) -> Result<String> {
    let Some(copied) = copied else {
        return Ok(String::new());
    };
    let bytes = copied.join().map_err(|_| "copying output failed")??;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Waits for the end, or makes it: None.
fn ended(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
