//! What is the same for every platform: man pages, completions, licences, and what to read.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::build::{self, Given};
use crate::Result;

pub struct Completion {
    /// As an archive to unpack has it.
    pub file: &'static str,
    /// Below a prefix such as /usr, where packages put it.
    pub place: &'static str,
    pub text: Vec<u8>,
}

pub struct Shared {
    /// `mcp.1`, `mcp-run.1` and so on.
    pub man_pages: Vec<(String, Vec<u8>)>,
    pub completions: Vec<Completion>,
    pub documents: Vec<(&'static str, Vec<u8>)>,
}

/// Shell, file, place.
const SHELLS: [(&str, &str, &str); 4] = [
    ("bash", "mcp.bash", "share/bash-completion/completions/mcp"),
    ("zsh", "_mcp", "share/zsh/site-functions/_mcp"),
    ("fish", "mcp.fish", "share/fish/vendor_completions.d/mcp.fish"),
    ("powershell", "mcp.ps1", "share/powershell/completions/mcp.ps1"),
];

const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

impl Shared {
    /// By the program itself, run on this machine.
    pub fn make(given: &[Given]) -> Result<Shared> {
        let program = build::runnable(given)?;
        let mut completions = Vec::new();
        for (shell, file, place) in SHELLS {
            let text = said(&program, &["completions", shell])?;
            completions.push(Completion { file, place, text });
        }
        let workspace = crate::workspace();
        let mut documents = Vec::new();
        for name in DOCUMENTS {
            documents.push((name, fs::read(workspace.join(name))?));
        }
        Ok(Shared { man_pages: man_pages(&program)?, completions, documents })
    }

    pub fn document(&self, wanted: &str) -> Vec<u8> {
        let found = self.documents.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

fn man_pages(program: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let scratch = crate::target_directory().join(format!("man-{}", std::process::id()));
    let directory = scratch.to_str().ok_or("the target directory's name is no text")?;
    said(program, &["completions", "man", "--dir", directory])?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(&scratch)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        pages.push((name, fs::read(entry.path())?));
    }
    fs::remove_dir_all(&scratch)?;
    pages.sort();
    // The other name of the program has a page that leads there.
    pages.push(("mcp-sandbox.1".to_owned(), b".so man1/mcp.1\n".to_vec()));
    Ok(pages)
}

fn said(program: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program).args(words).output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{} {}: {why}", program.display(), words.join(" ")).into());
    }
    Ok(output.stdout)
}
