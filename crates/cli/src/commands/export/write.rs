//! Where an export goes: standard output, or files.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use mcp_export::Export;

use crate::failure::Failure;
use crate::render;

/// Every file, each with its name before it unless there is one only.
pub fn joined(exports: &[Export]) -> String {
    let files: Vec<_> = exports.iter().flat_map(|export| &export.files).collect();
    let is_stream = files.iter().all(|file| file.name.ends_with(".yaml"));
    files
        .iter()
        .map(|file| match is_stream {
            true => file.text.clone(),
            false => format!("# ==> {}\n{}\n", file.name, file.text),
        })
        .collect()
}

/// All files or none: what is there stays as it is, unless it may be replaced.
pub fn write(directory: &Path, exports: &[Export], force: bool) -> Result<(), Failure> {
    let files: Vec<(PathBuf, &str)> = exports
        .iter()
        .flat_map(|export| &export.files)
        .map(|file| (directory.join(&file.name), file.text.as_str()))
        .collect();
    if let Some((path, _)) =
        files.iter().find(|(path, _)| !force && path.symlink_metadata().is_ok())
    {
        return Err(Failure::Usage(format!(
            "{} is there already; --force replaces it",
            render::path(path)
        )));
    }
    for (path, text) in &files {
        let failed = |e: std::io::Error| Failure::file(path, &e);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        // A link that was put there meanwhile is not followed.
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        render::say(&format!("wrote {}", render::path(path)));
    }
    Ok(())
}
