//! By pip: resolved to a report, installed from requirements with digests.

use mcp_package::install::{Distributions, requirements};
use mcp_sandbox::Sandbox;

use super::super::step;
use super::{Dependencies, Installing, cache, sandbox, set_index};
use crate::failure::Failure;

/// Requirements with the digest of every wheel, and the version of the one that was asked for.
pub fn resolve(
    installing: &Installing<'_>,
    wanted: &[String],
    name: &str,
    dependencies: Dependencies,
) -> Result<(String, String), Failure> {
    let work = installing.work;
    let mut resolve = pip(installing);
    resolve.args(["install", "--dry-run", "--ignore-installed", "--report", "report.json"]);
    resolve.args(wheels(installing));
    if dependencies == Dependencies::Left {
        resolve.arg("--no-deps");
    }
    resolve.arg("--").args(wanted);
    step("resolving with pip", work, &mut resolve, &[&installing.index.url])?;
    let locked = requirements(&work.read("report.json")?, name, installing.kinds)?;
    work.remove("report.json");
    Ok(locked)
}

pub fn install(installing: &Installing<'_>) -> Result<(), Failure> {
    let mut install = pip(installing);
    install.args([
        "install",
        "--require-hashes",
        "--no-deps",
        "--no-compile",
        "--target",
        "site",
        "--requirement",
        "requirements.txt",
    ]);
    install.args(wheels(installing));
    step("pip install", installing.work, &mut install, &[&installing.index.url])?;
    Ok(())
}

fn wheels(installing: &Installing<'_>) -> &'static [&'static str] {
    match installing.kinds {
        Distributions::Wheels => &["--only-binary", ":all:"],
        Distributions::AnyKind => &[],
    }
}

/// No configuration file: what holds for pip is said here.
fn pip(installing: &Installing<'_>) -> Sandbox {
    let mut sandbox = sandbox(installing, "python3", "PIP_CERT");
    for (name, value) in [
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_NO_INPUT", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_NO_COLOR", "1"),
        ("PIP_QUIET", "1"),
        ("PIP_PROGRESS_BAR", "off"),
    ] {
        sandbox.env(name, value);
    }
    let cache = cache(installing, &mut sandbox);
    sandbox.env("PIP_CACHE_DIR", cache);
    set_index(&mut sandbox, "PIP_INDEX_URL", installing.index);
    // Not -I: that would leave out pip's own variables. There is nothing of the user's inside.
    sandbox.args(["-m", "pip"]);
    sandbox
}
