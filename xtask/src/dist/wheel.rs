//! A wheel for each platform: `packaging/python`, and the program as the scripts `mcp` and `mcp-sandbox`.
//!
//! Both are the program itself: a wheel has no links, and a script of Python's would cost more time than a start. The
//! Python SDK of MCP also installs an `mcp`; the one that comes later wins, and `mcp-sandbox` stays.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::Release;
use super::archive::Files;
use super::platform::Platform;
use crate::Result;

const NAME: &str = "mcp_sandbox";

pub fn make(release: &Release, platform: &Platform, program: &[u8]) -> Result<(String, Vec<u8>)> {
    let version = &release.version;
    let (info, data) = (format!("{NAME}-{version}.dist-info"), format!("{NAME}-{version}.data"));
    let mut files = Files::default();
    let package = crate::workspace().join("packaging/python");
    for entry in fs::read_dir(package.join(NAME))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".py") || name == "py.typed" {
            files.file(format!("{NAME}/{name}"), fs::read(entry.path())?);
        }
    }
    for name in ["mcp", "mcp-sandbox"] {
        files.program(format!("{data}/scripts/{name}{}", platform.suffix), program);
    }
    if !platform.is_windows() {
        for (name, text) in &release.shared.man_pages {
            files.file(format!("{data}/data/share/man/man1/{name}"), text.clone());
        }
        for completion in &release.shared.completions {
            files.file(format!("{data}/data/{}", completion.place), completion.text.clone());
        }
    }
    let readme = fs::read_to_string(package.join("README.md"))?;
    files.file(format!("{info}/METADATA"), metadata(version, &readme));
    files.file(format!("{info}/WHEEL"), wheel(platform));
    files.file(format!("{info}/sboms/mcp.cdx.json"), release.sbom.clone());
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files.file(format!("{info}/licenses/{name}"), release.shared.document(name));
    }
    let record = record(&files, &info);
    files.file(format!("{info}/RECORD"), record);
    let tags = platform.wheel.join(".");
    Ok((format!("{NAME}-{version}-py3-none-{tags}.whl"), files.zip()?))
}

fn metadata(version: &str, readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4\n\
         Name: mcp-sandbox\n\
         Version: {version}\n\
         Summary: Run programs and commands that are not trusted in the sandbox of mcp\n\
         License-Expression: MIT OR Apache-2.0\n\
         License-File: LICENSE-MIT\n\
         License-File: LICENSE-APACHE\n\
         Requires-Python: >=3.10\n\
         Classifier: Typing :: Typed\n\
         Description-Content-Type: text/markdown\n\n{readme}"
    )
}

fn wheel(platform: &Platform) -> String {
    let tags: String = platform.wheel.iter().map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    format!("Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\n{tags}")
}

fn record(files: &Files, info: &str) -> String {
    let mut lines: String = files
        .contents()
        .map(|(path, content)| {
            let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
            format!("{path},sha256={digest},{}\n", content.len())
        })
        .collect();
    lines += &format!("{info}/RECORD,,\n");
    lines
}
