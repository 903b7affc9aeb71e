//! A bundle of type `uv`, made into one that has its dependencies inside.

use std::fs;
use std::path::Path;

use mcp_package::install::{hosts_in_simple_page, pypi_index, uv_bundle};
use mcp_package::store::Under;
use mcp_package::{Digest, Store, normal_pypi};

use super::pypi::{Installing, Python, Tool};
use super::{InstallDirectory, variable};
use crate::args::package::Fetching;
use crate::failure::Failure;
use crate::{progress, render};

/// Makes it. The store has it as made from that digest, under no name. `root` has the files of the bundle.
pub fn make(
    store: &Store,
    of: &Digest,
    root: &Path,
    manifest: &str,
    how: &Fetching,
) -> Result<Digest, Failure> {
    let python = Python::of_this_machine()?;
    let tool = Tool::of_this_machine()?;
    let path = root.join("pyproject.toml");
    let pyproject = mcp_files::read_text(&path, 4 << 20, mcp_files::Links::Refuse)
        .map_err(|e| Failure::file(&path, &e))?;
    let bundle = uv_bundle(manifest, &pyproject, &python.version)?;
    let mut work = InstallDirectory::new(store)?;
    if let Some(first) = bundle.dependencies.first() {
        let index = match &tool {
            Tool::Pip(config) => pypi_index(config, &variable)?,
            Tool::Uv => super::pypi::uv::index()?,
        };
        let end = first.find(|c: char| !c.is_ascii_alphanumeric() && !"-._".contains(c));
        let first = normal_pypi(&first[..end.unwrap_or(first.len())]);
        let kinds = super::pypi::kinds(how, &index)?;
        let name = if matches!(tool, Tool::Uv) { "uv" } else { "pip" };
        work = work.remembering(name, &index);
        let files = hosts_in_simple_page(&super::pypi::project_page(&index, &first)?);
        progress::note(&render::plain(&format!(
            "installing what {} depends on, in a sandbox of its own",
            bundle.name
        )));
        let (work, more) = (&work, how.install_net.as_slice());
        let (index, files, python) = (&index, files.as_slice(), &python);
        let installing = Installing { work, index, files, python, more, kinds };
        super::pypi::install_locked(&tool, &installing, &bundle.dependencies, &first)?;
    }
    copy(root, &work.path("bundle"))?;
    work.write("start.py", &bundle.start)?;
    work.keep(store, &bundle.manifest, Under::Derived { from: *of }, None)
}

/// Files and directories; what was unpacked by the store has no other kind but links within.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::file(from, &e);
    fs::create_dir(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            copy(&path, &target)?;
        } else if kind.is_file() {
            fs::copy(&path, &target).map_err(failed)?;
        } else if fs::metadata(&path).is_ok_and(|found| found.is_file()) {
            fs::copy(path.canonicalize().map_err(failed)?, &target).map_err(failed)?;
        }
    }
    Ok(())
}
