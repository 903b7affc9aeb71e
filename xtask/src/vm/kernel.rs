//! Kernels, from Debian's packages: through the machine's own apt, but in lists and caches apart,
//! so that nothing of the machine changes.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::vm::{boot_image, initrd, tools};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kernel {
    /// Debian 11; no Landlock, no id-mapped mounts
    #[value(name = "5.10")]
    V5_10,
    /// Debian 12; Landlock 2
    #[value(name = "6.1")]
    V6_1,
    /// Debian 13; Landlock 6
    #[value(name = "6.12")]
    V6_12,
    /// The newest that Debian has for its stable release
    #[value(name = "newest")]
    Newest,
}

/// Which of Debian's archives a suite is in.
enum Archive {
    Main,
    Security,
}

impl Kernel {
    pub const ALL: [Kernel; 4] = [Kernel::V5_10, Kernel::V6_1, Kernel::V6_12, Kernel::Newest];

    pub fn name(self) -> &'static str {
        match self {
            Kernel::V5_10 => "5.10",
            Kernel::V6_1 => "6.1",
            Kernel::V6_12 => "6.12",
            Kernel::Newest => "newest",
        }
    }

    fn source(self) -> (Archive, &'static str) {
        match self {
            Kernel::V5_10 => (Archive::Security, "bullseye-security"),
            Kernel::V6_1 => (Archive::Security, "bookworm-security"),
            Kernel::V6_12 => (Archive::Main, "bookworm-backports"),
            Kernel::Newest => (Archive::Main, "trixie-backports"),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel that can be booted.
pub struct Bootable {
    pub image: PathBuf,
    pub initrd: PathBuf,
    /// As `uname -r` says it.
    pub release: String,
}

/// Fetches and unpacks it the first time. The initrd is made anew: it holds this program's scripts.
pub fn prepare(kernel: Kernel, cache: &Path) -> Result<Bootable> {
    let directory = cache.join("kernels").join(kernel.name());
    let (image, modules) = (directory.join("vmlinux"), directory.join("modules"));
    if !directory.join("release").exists() {
        eprintln!("xtask: fetching Linux {kernel}");
        let packages = fetch(kernel, &directory.join("apt"))?;
        unpack(&packages, &directory)?;
    }
    let release = fs::read_to_string(directory.join("release"))?.trim().to_owned();
    let path = directory.join("initrd");
    fs::write(&path, initrd::make(&modules.join("lib/modules").join(&release))?)?;
    Ok(Bootable { image, initrd: path, release })
}

/// Downloads the packages of the kernel and gives their paths.
fn fetch(kernel: Kernel, apt: &Path) -> Result<Vec<PathBuf>> {
    for directory in ["lists/partial", "cache/archives/partial", "packages"] {
        fs::create_dir_all(apt.join(directory))?;
    }
    let (archive, suite) = kernel.source();
    let signed = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg";
    let line = format!("deb [{signed}] {} {suite} main\n", mirror(&archive)?);
    fs::write(apt.join("sources.list"), line)?;
    fs::write(apt.join("status"), "")?;
    tools::output(apart("apt-get", apt).arg("update"))?;
    let mut names = kernel_packages(apt, "linux-image-amd64", |name| {
        name.starts_with("linux-image-") && name.contains(|c: char| c.is_ascii_digit())
    })?;
    let image = names.first().cloned().ok_or("no kernel in this suite")?;
    // Newer ones come in several pieces, each named after the same version.
    let version = image.trim_start_matches("linux-image-").to_owned();
    let is_piece = |name: &str| name.starts_with("linux-") && name.ends_with(&version);
    let mut next = 0;
    names.truncate(1);
    while let Some(name) = names.get(next).cloned() {
        for piece in kernel_packages(apt, &name, is_piece)? {
            if !names.contains(&piece) {
                names.push(piece);
            }
        }
        next += 1;
    }
    let packages = apt.join("packages");
    let mut download = apart("apt-get", apt);
    tools::output(download.arg("download").args(&names).current_dir(&packages))?;
    let entries = fs::read_dir(&packages)?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(entries.filter(|path| path.extension() == Some(OsStr::new("deb"))).collect())
}

/// What a package depends on, as far as it is wanted.
fn kernel_packages(apt: &Path, of: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let text = tools::output(apart("apt-cache", apt).args(["depends", "--no-recommends", of]))?;
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    Ok(names.filter(|name| wanted(name)).map(str::to_owned).collect())
}

/// Where this machine gets its own packages from.
fn mirror(archive: &Archive) -> Result<String> {
    let mut command = Command::new("apt-get");
    let arguments = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
    let text = tools::output(command.args(arguments))?;
    mirror_among(archive, &text)
        .ok_or_else(|| "apt knows no mirror of Debian on this machine".into())
}

fn mirror_among(archive: &Archive, targets: &str) -> Option<String> {
    let ending = |name: &str| {
        let found = targets.lines().map(|line| line.trim_end_matches('/'));
        found.filter(|line| line.ends_with(name)).map(str::to_owned).next()
    };
    let main = ending("/debian");
    match archive {
        Archive::Main => main,
        // A mirror of the one mostly is one of the other.
        Archive::Security => ending("/debian-security").or(main.map(|main| main + "-security")),
    }
}

/// An apt with lists, state and cache of its own.
fn apart(program: &str, apt: &Path) -> Command {
    let mut command = Command::new(program);
    let mut option = |name: &str, value: &Path| {
        command.arg("-o").arg(format!("{name}={}", value.display()));
    };
    option("Dir::Etc::sourcelist", &apt.join("sources.list"));
    option("Dir::Etc::sourceparts", Path::new("-"));
    option("Dir::State::lists", &apt.join("lists"));
    option("Dir::State::status", &apt.join("status"));
    option("Dir::Cache", &apt.join("cache"));
    // Root's apt would become another user, who cannot write here.
    option("APT::Sandbox::User", Path::new("root"));
    command.arg("-q=2");
    command
}

fn unpack(packages: &[PathBuf], directory: &Path) -> Result<()> {
    let all = directory.join("unpacked");
    for package in packages {
        tools::output(Command::new("dpkg-deb").arg("-x").arg(package).arg(&all))?;
    }
    let found = find(&all, &|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    });
    let packaged = found.ok_or("the packages hold no kernel")?;
    let is_release = |path: &Path| path.parent().is_some_and(|it| it.ends_with("lib/modules"));
    let modules = find(&all, &is_release).ok_or("the packages hold no modules")?;
    let release = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
    boot_image::extract(&packaged, &directory.join("vmlinux"))?;
    let kept = directory.join("modules/lib/modules");
    let _ = fs::remove_dir_all(&kept);
    fs::create_dir_all(&kept)?;
    fs::rename(&modules, kept.join(&release))?;
    let mut depmod = tools::administrative("depmod");
    tools::output(depmod.arg("-b").arg(directory.join("modules")).arg(&release))?;
    fs::remove_dir_all(&all)?;
    fs::remove_dir_all(directory.join("apt"))?;
    Ok(fs::write(directory.join("release"), release)?)
}

/// The first path below that fits, links not followed.
fn find(directory: &Path, fits: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    for entry in fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        if fits(&path) {
            return Some(path);
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Some(found) = find(&path, fits)
        {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_machines_own() {
        let targets = "https://one.example/other/\nhttp://two.example/debian/\n\
                       http://three.example/debian-security/\n";
        let among = |archive, targets| mirror_among(&archive, targets);
        assert_eq!(among(Archive::Main, targets).unwrap(), "http://two.example/debian");
        let security = among(Archive::Security, targets).unwrap();
        assert_eq!(security, "http://three.example/debian-security");
        let one = "http://two.example/debian/\n";
        assert_eq!(among(Archive::Security, one).unwrap(), "http://two.example/debian-security");
        assert_eq!(among(Archive::Main, "https://one.example/other/\n"), None);
    }
}
