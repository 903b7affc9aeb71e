//! By uv: resolved with digests, installed with those digests, for the interpreter that is there.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use mcp_package::install::{Distributions, Index, uv_index, uv_requirements};
use mcp_sandbox::Sandbox;

use super::super::{file_text, is_on_path, step, variable};
use super::{Dependencies, Installing, cache, sandbox, set_index};
use crate::failure::Failure;
use crate::paths;

/// From uv's own configuration, read as uv would.
pub fn index() -> Result<Index, Failure> {
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| paths::home().map(|home| home.join(".config")));
    let named = variable("UV_CONFIG_FILE").map(PathBuf::from);
    let user = config.map(|config| config.join("uv/uv.toml"));
    let files = named.into_iter().chain(user).chain([PathBuf::from("/etc/uv/uv.toml")]);
    let texts: Vec<Option<String>> =
        files.map(|path| file_text(&path)).collect::<Result<_, _>>()?;
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    Ok(uv_index(&texts, &variable)?)
}

/// Whether there is one, and it starts: a version manager has stand-ins for programs that are not installed.
pub fn works() -> bool {
    let version = Command::new("uv")
        .arg("--version")
        .current_dir(std::path::MAIN_SEPARATOR_STR)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    is_on_path("uv") && version.is_ok_and(|status| status.success())
}

pub fn resolve(
    installing: &Installing<'_>,
    wanted: &[String],
    name: &str,
    dependencies: Dependencies,
) -> Result<(String, String), Failure> {
    let work = installing.work;
    work.write("requirements.in", &(wanted.join("\n") + "\n"))?;
    let mut resolve = uv(installing, "compile");
    resolve.args([
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
        "--quiet",
        "--output-file",
        "requirements.txt",
        "requirements.in",
    ]);
    if dependencies == Dependencies::Left {
        resolve.arg("--no-deps");
    }
    step("resolving with uv", work, &mut resolve, &[&installing.index.url])?;
    let locked = uv_requirements(&work.read("requirements.txt")?, name)?;
    work.remove("requirements.in");
    Ok(locked)
}

pub fn install(installing: &Installing<'_>) -> Result<(), Failure> {
    let mut install = uv(installing, "install");
    install.args([
        "--require-hashes",
        "--no-deps",
        "--link-mode",
        "copy",
        "--quiet",
        "--target",
        "site",
        "--requirement",
        "requirements.txt",
    ]);
    step("uv pip install", installing.work, &mut install, &[&installing.index.url])?;
    // A lock and a note of uv's own, with times in them.
    installing.work.remove("site/.lock");
    Ok(())
}

fn uv(installing: &Installing<'_>, verb: &str) -> Sandbox {
    let mut sandbox = sandbox(installing, "uv", "SSL_CERT_FILE");
    // It asks the interpreter about itself; what is in the system is there anyway.
    for prefix in installing.python.prefixes.iter().filter(|path| !path.starts_with("/usr")) {
        sandbox.read(prefix);
    }
    for (name, value) in [
        ("UV_NO_CONFIG", "1"),
        ("UV_NO_PROGRESS", "1"),
        ("UV_PYTHON_DOWNLOADS", "never"),
        ("UV_KEYRING_PROVIDER", "disabled"),
        // The system's certificates, as we ask the index with; the second is what older ones call it.
        ("UV_SYSTEM_CERTS", "1"),
        ("UV_NATIVE_TLS", "1"),
        ("NO_COLOR", "1"),
    ] {
        sandbox.env(name, value);
    }
    let cache = cache(installing, &mut sandbox);
    sandbox.env("UV_CACHE_DIR", cache);
    set_index(&mut sandbox, "UV_DEFAULT_INDEX", installing.index);
    sandbox.args(["pip", verb]);
    if installing.kinds == Distributions::Wheels {
        sandbox.args(["--only-binary", ":all:"]);
    }
    sandbox.arg("--python");
    sandbox.arg(&installing.python.program);
    sandbox
}
