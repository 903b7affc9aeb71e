//! Where the programs come from: built here by `tools/cross`, or given.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::SKIPPED;
use super::platform::{self, Platform};
use crate::Result;

pub enum BuiltProgram {
    Program(PathBuf),
    /// Not possible on this machine; `tools/cross` has said why.
    NotHere,
}

#[derive(Clone)]
pub struct Given {
    triple: &'static str,
    path: PathBuf,
}

/// `TRIPLE=PATH`
pub fn given(word: &str) -> std::result::Result<Given, String> {
    let (triple, path) = word.split_once('=').ok_or("write TRIPLE=PATH")?;
    let path = Path::new(path);
    let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Given { triple: platform::known(triple)?.triple, path })
}

pub fn host() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc does not say what this machine is")?.to_owned())
}

pub fn program(platform: &Platform, given: &[Given]) -> Result<BuiltProgram> {
    if let Some(given) = of(platform.triple, given) {
        is_for(&fs::read(given)?, platform)
            .map_err(|why| format!("--binary {}={}: {why}", platform.triple, given.display()))?;
        return Ok(BuiltProgram::Program(given.to_owned()));
    }
    println!("-- {}", platform.triple);
    let workspace = crate::workspace();
    let status = Command::new(workspace.join("tools/cross"))
        .args(["build", platform.triple, "--release", "--locked", "--package", "mcp-cli"])
        .args(["--bin", "mcp", "--config"])
        .arg(remapped(&workspace)?)
        .current_dir(&workspace)
        .stdin(Stdio::null())
        .status()?;
    if status.code() == Some(i32::from(SKIPPED)) {
        return Ok(BuiltProgram::NotHere);
    }
    if !status.success() {
        return Err(format!("mcp does not build for {}", platform.triple).into());
    }
    let directory = crate::target_directory().join(platform.triple).join("release");
    let program = directory.join(format!("mcp{}", platform.suffix));
    is_for(&fs::read(&program)?, platform)?;
    Ok(BuiltProgram::Program(program))
}

/// A program that runs on this machine: given, or built for tests.
pub fn runnable(given: &[Given]) -> Result<PathBuf> {
    let host = host()?;
    if let Some(path) = of(&host, given) {
        return Ok(path.to_owned());
    }
    let name = format!("mcp{}", env::consts::EXE_SUFFIX);
    let released = crate::target_directory().join(host).join("release").join(name);
    match released.is_file() {
        true => Ok(released),
        false => crate::launcher::build("build", &[]),
    }
}

fn of<'a>(triple: &str, given: &'a [Given]) -> Option<&'a Path> {
    given.iter().find(|it| it.triple == triple).map(|it| it.path.as_path())
}

/// A setting of cargo's that keeps this machine's directories out of the program, added to those of
/// `.cargo/config.toml`.
fn remapped(workspace: &Path) -> Result<OsString> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let cargo = cargo.ok_or("neither CARGO_HOME nor a home directory is known")?;
    let pairs = [(workspace.canonicalize()?, "/mcp"), (cargo, "/cargo")];
    let flags: Vec<String> = pairs
        .iter()
        .map(|(from, to)| {
            // JSON's strings are TOML's, too.
            serde_json::to_string(&format!("--remap-path-prefix={}={to}", from.display()))
        })
        .collect::<std::result::Result<_, _>>()?;
    Ok(format!("target.'cfg(all())'.rustflags=[{}]", flags.join(",")).into())
}

/// By its first bytes, so that no package holds the program of another platform.
fn is_for(program: &[u8], platform: &Platform) -> Result<()> {
    let machine = platform.triple.split('-').next().unwrap_or_default();
    let half = |at: usize| program.get(at..at + 2).map(|it| u16::from_le_bytes([it[0], it[1]]));
    let found = match platform.node.0 {
        "linux" => {
            let expected = if machine == "aarch64" { 183 } else { 62 };
            program.starts_with(b"\x7fELF\x02\x01") && half(18) == Some(expected)
        }
        "darwin" => {
            let expected = if machine == "aarch64" { 0x0c } else { 0x07 };
            program.starts_with(&[0xcf, 0xfa, 0xed, 0xfe, expected, 0, 0, 1])
        }
        _ => program.starts_with(b"MZ"),
    };
    match found {
        true => Ok(()),
        false => Err(format!("this is no program for {}", platform.triple).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_another_machine_is_refused() {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(64, 0);
        elf[18] = 62;
        assert!(is_for(&elf, platform::known("x86_64-unknown-linux-gnu").unwrap()).is_ok());
        assert!(is_for(&elf, platform::known("aarch64-unknown-linux-gnu").unwrap()).is_err());
        assert!(is_for(&elf, platform::known("x86_64-pc-windows-gnu").unwrap()).is_err());
        assert!(is_for(b"", platform::known("x86_64-apple-darwin").unwrap()).is_err());
    }

    #[test]
    fn a_given_program_is_named_with_its_target() {
        assert!(given("mcp").is_err_and(|why| why.contains("TRIPLE=PATH")));
        assert!(given("sparc=/dev/null").is_err_and(|why| why.contains("nothing is released")));
        assert!(given("x86_64-apple-darwin=/does/not/exist").is_err());
    }
}
