//! `cargo xtask dist`: everything a release consists of, made on one machine.
//!
//! Linux programs are static, against glibc: the C library that every test of this project runs with. macOS programs
//! are linked by zig against Apple's names; they carry the linker's own signature, without which Apple's processors run
//! nothing, and no certificate. Nothing depends on the time, the user or the directory: what goes into archives has the
//! time of SOURCE_DATE_EPOCH, or of the commit.

mod archive;
mod build;
mod deb;
mod homebrew;
mod npm;
mod platform;
mod sbom;
mod shared;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::Result;
use archive::{Files, hex_sha256};
use build::BuiltProgram;
use platform::{PLATFORMS, Platform};
use shared::Shared;

/// As `tools/cross` says it: nothing was found wrong, and not everything was made.
const SKIPPED: u8 = 77;

/// Make what is released: programs, .deb, wheels, npm packages, a Homebrew formula, checksums, an SBOM
///
/// Exit status: 0 when all of it was made; 77 when some could not be built on this machine, which is said and left
/// out; 1 when something failed.
#[derive(clap::Args)]
pub struct Args {
    /// Where it goes; what is there from an earlier time is removed [default: dist in the target directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only for this target (may be given again; default: all)
    #[arg(long, value_name = "TRIPLE", value_parser = platform::known)]
    target: Vec<&'static Platform>,
    /// Only for this machine
    #[arg(long, conflicts_with = "target")]
    host: bool,
    /// Take this program for a target instead of building it: TRIPLE=PATH
    #[arg(long, value_name = "TRIPLE=PATH", value_parser = build::given)]
    binary: Vec<build::Given>,
    /// Where the archives can be downloaded once they are published; the Homebrew formula names it
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
}

/// What every part is made from.
struct Release {
    version: String,
    /// Seconds since 1970, for what must have a time.
    epoch: u64,
    shared: Shared,
    sbom: Vec<u8>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let wanted = wanted(args)?;
    let out = args.out.clone().unwrap_or_else(|| crate::target_directory().join("dist"));
    check(&out)?;
    let epoch = epoch()?;
    let mut built = Vec::new();
    let mut skipped = Vec::new();
    for platform in wanted {
        match build::program(platform, &args.binary)? {
            BuiltProgram::Program(path) => built.push((platform, fs::read(path)?)),
            BuiltProgram::NotHere => skipped.push(platform.triple),
        }
    }
    if built.is_empty() {
        return Err("no program could be built here, so there is nothing to pack".into());
    }
    let release = Release {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        epoch,
        shared: Shared::make(&args.binary)?,
        sbom: sbom::make(env!("CARGO_PKG_VERSION"))?,
    };
    let mut made = vec![(format!("mcp-{}.cdx.json", release.version), release.sbom.clone())];
    for (platform, program) in &built {
        made.extend(of_platform(&release, platform, program)?);
    }
    let platforms: Vec<&Platform> = built.iter().map(|(platform, _)| *platform).collect();
    made.push(npm::main_package(&release, &PLATFORMS)?);
    match &args.base_url {
        Some(url) => made.push(homebrew::formula(&release, url, &platforms, &made)?),
        None => println!("no Homebrew formula: it needs --base-url URL"),
    }
    write(&out, made)?;
    for triple in &skipped {
        println!("SKIPPED: {triple}: not built on this machine (the reason is above)");
    }
    Ok(ExitCode::from(if skipped.is_empty() { 0 } else { SKIPPED }))
}

fn of_platform(
    release: &Release,
    platform: &Platform,
    program: &[u8],
) -> Result<Vec<(String, Vec<u8>)>> {
    let mut made = vec![
        portable(release, platform, program)?,
        wheel::make(release, platform, program)?,
        npm::platform_package(release, platform, program)?,
    ];
    if let Some(architecture) = platform.debian {
        made.push(deb::make(release, architecture, program)?);
    }
    Ok(made)
}

/// An archive to unpack anywhere.
fn portable(release: &Release, platform: &Platform, program: &[u8]) -> Result<(String, Vec<u8>)> {
    let top = portable_name(release, platform);
    let mut files = Files::default();
    files.program(format!("{top}/mcp{}", platform.suffix), program);
    if platform.is_windows() {
        // Links need a privilege there.
        files.program(format!("{top}/mcp-sandbox{}", platform.suffix), program);
    } else {
        files.link(format!("{top}/mcp-sandbox"), "mcp");
    }
    for (name, text) in &release.shared.documents {
        files.file(format!("{top}/{name}"), text.clone());
    }
    for (name, text) in &release.shared.man_pages {
        files.file(format!("{top}/man/{name}"), text.clone());
    }
    for completion in &release.shared.completions {
        files.file(format!("{top}/completions/{}", completion.file), completion.text.clone());
    }
    files.file(format!("{top}/mcp.cdx.json"), release.sbom.clone());
    Ok(match platform.is_windows() {
        true => (format!("{top}.zip"), files.zip()?),
        false => (format!("{top}.tar.gz"), files.tar_gz(release.epoch)?),
    })
}

fn portable_name(release: &Release, platform: &Platform) -> String {
    format!("mcp-{}-{}", release.version, platform.triple)
}

fn wanted(args: &Args) -> Result<Vec<&'static Platform>> {
    let host = build::host()?;
    let mut wanted: Vec<&Platform> = match (args.host, args.target.as_slice()) {
        (true, _) => vec![platform::known(&host)?],
        (false, []) => PLATFORMS.iter().collect(),
        (false, named) => named.to_vec(),
    };
    // This machine's own first: it is the quickest to fail.
    wanted.sort_by_key(|platform| platform.triple != host);
    Ok(wanted)
}

/// What will be replaced is an earlier release: a directory that holds something else is left alone.
fn check(out: &Path) -> Result<()> {
    if out.exists() && fs::read_dir(out)?.next().is_some() && !out.join(SUMS).is_file() {
        return Err(format!("{} is not empty and holds no {SUMS}", out.display()).into());
    }
    Ok(())
}

const SUMS: &str = "SHA256SUMS";

fn write(out: &Path, mut made: Vec<(String, Vec<u8>)>) -> Result<()> {
    made.sort();
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    fs::create_dir_all(out)?;
    let mut sums = String::new();
    for (name, content) in &made {
        fs::write(out.join(name), content)?;
        sums += &format!("{}  {name}\n", hex_sha256(content));
        println!("{:>9}  {name}", content.len());
    }
    fs::write(out.join(SUMS), sums)?;
    println!("in {}", out.display());
    Ok(())
}

/// Of the environment, or of the commit: the same input gives the same bytes.
fn epoch() -> Result<u64> {
    if let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let parsed = value.to_str().and_then(|text| text.parse().ok());
        return parsed.ok_or_else(|| {
            format!("SOURCE_DATE_EPOCH is {}, and must be seconds since 1970", value.display())
                .into()
        });
    }
    let output = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(crate::workspace())
        .output()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().map_err(|_| {
        "git does not know when the last commit was: set SOURCE_DATE_EPOCH to seconds since 1970"
            .into()
    })
}
