//! `mcp unwire`: the files of clients as they were before `mcp wire` and `mcp add`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use mcp_clients::journal::{self, Change, Journal, TakenBack};
use mcp_clients::{Bytes, Document, Format, Original, Trail, Undone};
use serde_json::json;

use crate::args::wire::{Selection, Unwire};
use crate::commands::wire::survey::{self, WireContext};
use crate::commands::wire::{apply, plan, servers, show};
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

pub fn run(args: &Unwire) -> Result<u8, Failure> {
    survey::clients(&args.selection.client)?;
    let scene = WireContext::new(&args.selection, None)?;
    // The lock first: what another one is about to note belongs to it.
    let journal = apply::journal(&scene)?;
    let records =
        journal::records(&scene.journal).map_err(|e| Failure::file(&scene.journal, &e))?;
    let mut files: BTreeMap<PathBuf, Vec<Change>> = BTreeMap::new();
    for change in journal::standing(&records) {
        if is_meant(&scene, &change) {
            files.entry(change.file.clone()).or_default().push(change);
        }
    }
    let one = |(path, changes): (&PathBuf, &Vec<Change>)| one(&journal, args, path, changes);
    let mut planned: Vec<_> = files.iter().map(one).collect();
    if !args.dry_run {
        carry_out(&journal, &mut planned).map_err(|error| Failure::file(&scene.journal, &error))?;
    }
    let surveyed = match args.dry_run && !args.json {
        true => survey::files(&scene, &args.selection)?,
        false => Vec::new(),
    };
    let (mut failed, mut count, mut reports) = (false, 0, Vec::new());
    for (path, planned) in files.keys().zip(planned) {
        match planned {
            Ok(PlannedRestore { report, original, bytes, .. }) => {
                count += report.restored.len();
                if let Some(original) = original.filter(|_| args.dry_run && !args.json) {
                    let title = show::path(&scene, path);
                    let contents = surveyed.iter().filter_map(|file| file.content.as_ref().ok());
                    let hidden: Vec<String> = contents
                        .filter(|content| content.original.real == *path)
                        .flat_map(plan::secrets)
                        .collect();
                    let diff =
                        show::diff(&title, &original.bytes, &bytes, &hidden, Paint::stdout());
                    render::print(&diff);
                }
                if !args.json {
                    report.tell(&scene, path);
                }
                reports.push(report.json(path));
            }
            Err(failure) => {
                failed = true;
                render::say(&failure.to_string());
                reports.push(json!({"path": path.to_string_lossy(), "error": failure.to_string()}));
            }
        }
    }
    if args.json {
        render::print(&(to_json(&json!({"files": reports, "servers": count})) + "\n"));
    } else if count == 0 && !failed {
        render::say("nothing to take back");
    } else if !args.dry_run {
        render::say(&format!("{} put back; restart the clients", servers(count)));
    }
    Ok(u8::from(failed))
}

/// In a project only what is below it; without one, everything.
fn is_meant(scene: &WireContext, change: &Change) -> bool {
    scene.project.as_ref().is_none_or(|project| change.file.starts_with(project))
}

fn is_selected(selection: &Selection, client: &str, trail: &Trail) -> bool {
    (selection.client.is_empty() || selection.client.iter().any(|id| id == client))
        && (selection.server.is_empty() || selection.server.contains(&trail.name))
}

#[derive(Default)]
struct RestoreReport {
    restored: Vec<String>,
    gone: Vec<String>,
    over: Vec<String>,
    is_exact: bool,
}

impl RestoreReport {
    fn tell(&self, scene: &WireContext, path: &Path) {
        let shown = show::path(scene, path);
        let list = |names: &[String]| render::plain(&names.join(", "));
        if !self.restored.is_empty() {
            let how =
                if self.is_exact { "as it was, byte for byte" } else { "its entries as they were" };
            render::say(&format!("{shown}: {how}: {}", list(&self.restored)));
        }
        if !self.gone.is_empty() {
            render::say(&format!(
                "{shown}: taken away or changed since, and left alone: {}",
                list(&self.gone)
            ));
        }
        if !self.over.is_empty() {
            render::say(&format!(
                "{shown}: options that were changed after wiring went with them: {}",
                list(&self.over)
            ));
        }
    }

    fn json(&self, path: &Path) -> serde_json::Value {
        json!({"path": path.to_string_lossy(), "restored": self.restored, "left_alone": self.gone,
               "exact": self.is_exact})
    }
}

/// What is to become of one file.
struct PlannedRestore {
    report: RestoreReport,
    /// None where the file is gone.
    original: Option<Original>,
    bytes: Vec<u8>,
    /// `mcp add` made the file, and nothing is left in it.
    is_removed: bool,
    taken_back: TakenBack,
}

/// One file: the newest change first.
fn one(
    journal: &Journal,
    args: &Unwire,
    path: &Path,
    changes: &[Change],
) -> Result<PlannedRestore, Failure> {
    let up_to = changes.iter().map(|change| change.id).max().unwrap_or(0);
    let whole = TakenBack::Whole { file: path.to_owned(), up_to };
    let mut report = RestoreReport::default();
    if !path.exists() {
        report.gone = names(changes);
        let bytes = Vec::new();
        let (original, is_removed) = (None, false);
        return Ok(PlannedRestore { report, original, bytes, is_removed, taken_back: whole });
    }
    let original = mcp_clients::read(path).map_err(apply::failure)?;
    let mut bytes = original.bytes.clone();
    report.is_exact = true;
    let (mut is_whole, mut is_made) = (true, false);
    let mut alone = Vec::new();
    for change in changes.iter().rev() {
        let entries = change.entries.iter().map(|undo| (&undo.client, &undo.trail));
        let added = change.added.iter().map(|added| (&added.client, &added.trail));
        let all: Vec<_> = entries.chain(added).collect();
        let meant = all
            .iter()
            .filter(|(client, trail)| is_selected(&args.selection, client, trail))
            .count();
        if meant == 0 {
            is_whole = false;
            continue;
        }
        let exact = journal.original(change).filter(|_| journal::digest(&bytes) == change.after);
        let is_all = meant == all.len();
        if let Some(before) = exact.filter(|_| is_all && is_complete(change)) {
            report.restored.extend(all.iter().map(|(_, trail)| trail.name.clone()));
            is_made = change.added.iter().any(|added| added.made_file);
            bytes = before;
        } else {
            is_whole &= is_all;
            report.is_exact = false;
            let trails = by_structure(&mut bytes, path, change, &args.selection, &mut report)?;
            alone.push((change.id, trails));
        }
    }
    let is_removed = is_made && bytes.is_empty();
    let taken_back = if is_whole { whole } else { TakenBack::Servers(alone) };
    Ok(PlannedRestore { report, original: Some(original), bytes, is_removed, taken_back })
}

/// Writes the files, then notes what was taken back. A file that could not be written keeps its changes.
fn carry_out(journal: &Journal, planned: &mut [Result<PlannedRestore, Failure>]) -> io::Result<()> {
    let mut edits = Vec::new();
    for (at, one) in planned.iter().enumerate() {
        if let Ok(PlannedRestore { original: Some(original), bytes, is_removed: false, .. }) = one
            && original.bytes != *bytes
        {
            edits.push((at, (original, bytes.as_slice())));
        }
    }
    let (places, edits): (Vec<usize>, Vec<_>) = edits.into_iter().unzip();
    let mut failures: Vec<_> = places.into_iter().zip(mcp_clients::write(&edits)).collect();
    for (at, one) in planned.iter().enumerate() {
        if let Ok(PlannedRestore { original: Some(original), is_removed: true, .. }) = one {
            failures.push((at, mcp_clients::remove_file(original)));
        }
    }
    for (at, result) in failures {
        if let Err(error) = result {
            planned[at] = Err(apply::failure(error));
        }
    }
    journal.undone(planned.iter().flatten().map(|one| &one.taken_back))
}

/// Whether the copy of the file stands for all that the change did: none of it was taken back alone.
fn is_complete(change: &Change) -> bool {
    change.count == change.entries.len() + change.added.len()
}

fn names(changes: &[Change]) -> Vec<String> {
    let entries =
        changes.iter().flat_map(|change| &change.entries).map(|undo| undo.trail.name.clone());
    let added =
        changes.iter().flat_map(|change| &change.added).map(|added| added.trail.name.clone());
    entries.chain(added).collect()
}

/// Only our entries; the trails that are done with.
fn by_structure(
    bytes: &mut Vec<u8>,
    path: &Path,
    change: &Change,
    selection: &Selection,
    report: &mut RestoreReport,
) -> Result<Vec<Trail>, Failure> {
    let mut done = Vec::new();
    let refused =
        |why: &str| Failure::Client(format!("{}: {why}; put it back by hand", render::path(path)));
    for undo in change.entries.iter().rev() {
        if !is_selected(selection, &undo.client, &undo.trail) {
            continue;
        }
        let (client, document, has_mark) = parsed(bytes, path, &undo.client)?;
        let outcome = mcp_clients::undo(&document, client, undo).map_err(refused)?;
        let text = match outcome {
            Undone::Restored { text } => text,
            Undone::RestoredOver { text } => {
                report.over.push(undo.trail.name.clone());
                text
            }
            _ => {
                report.gone.push(undo.trail.name.clone());
                done.push(undo.trail.clone());
                continue;
            }
        };
        *bytes = marked(has_mark, &text);
        report.restored.push(undo.trail.name.clone());
        done.push(undo.trail.clone());
    }
    for added in change.added.iter().rev() {
        if !is_selected(selection, &added.client, &added.trail) {
            continue;
        }
        let (_, document, has_mark) = parsed(bytes, path, &added.client)?;
        match mcp_clients::remove(&document, added).map_err(refused)? {
            Some(text) => {
                *bytes = marked(has_mark, &text);
                report.restored.push(added.trail.name.clone());
            }
            None => report.gone.push(added.trail.name.clone()),
        }
        done.push(added.trail.clone());
    }
    Ok(done)
}

fn marked(has_mark: bool, text: &str) -> Vec<u8> {
    Bytes { has_mark, text: "" }.with(text)
}

fn parsed(
    bytes: &[u8],
    path: &Path,
    client: &str,
) -> Result<(&'static mcp_clients::Client, Document, bool), Failure> {
    let unknown = || {
        Failure::Client(format!(
            "{}: was wired for {client}, which this mcp does not know",
            render::path(path)
        ))
    };
    let client = mcp_clients::find(client).ok_or_else(unknown)?;
    let text = Bytes::new(bytes).ok_or_else(|| {
        Failure::Client(format!(
            "{}: is not UTF-8 text; the file is left alone",
            render::path(path)
        ))
    })?;
    let format = match path.extension().and_then(|end| end.to_str()) {
        Some("toml") => Format::Toml,
        Some("yaml" | "yml") => Format::Yaml,
        _ => client.format,
    };
    let document = Document::parse(format, text.text).map_err(|fault| {
        Failure::Client(format!("{}:{fault}; the file is left alone", render::path(path)))
    })?;
    Ok((client, document, text.has_mark))
}
