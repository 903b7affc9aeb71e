//! `mcp wire`: the servers of every client on the machine, behind `mcp run`.

use mcp_clients::journal::Replacement;
use mcp_clients::{Access, Kind, Proposal};
use serde_json::{Value, json};

use crate::args::wire::{Access as AccessFlag, Wire};
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

pub mod apply;
pub mod ask;
pub mod known;
mod own_path;
pub mod plan;
pub mod show;
mod status;
pub mod survey;
mod weak_entries;

use plan::Step;
use survey::{File, WireContext};

pub use plan::shell_line;

/// Nothing is written, because no person could be asked.
pub const NOT_ASKED: u8 = 4;

pub fn run(args: &Wire) -> Result<u8, Failure> {
    let scene = WireContext::new(&args.selection, args.binary.as_deref())?;
    let files = survey::files(&scene, &args.selection)?;
    match () {
        () if args.check => return Ok(status::check(&scene, &files, args.json)),
        () if args.status => return Ok(status::table(&scene, &files, &args.selection, args.json)),
        () if args.leave => return status::leave(&scene, &files),
        () => {}
    }
    let mut work = Work {
        scene: &scene,
        args,
        paint: Paint::stderr(),
        json: Vec::new(),
        failed: false,
        declined: false,
        stop: false,
        asked: false,
    };
    let changes = work.choose(&files)?;
    if let Some(warning) = scene.own.warning.as_ref().filter(|_| !changes.is_empty()) {
        render::say(&format!("warning: {warning}"));
    }
    let written = work.carry_out(&changes)?;
    work.finish(&files, &changes, written)
}

/// The changes of one file.
struct FileChange<'a> {
    file: &'a File,
    servers: Vec<(usize, Proposal)>,
    edited: apply::Edited,
}

struct Work<'a> {
    scene: &'a WireContext,
    args: &'a Wire,
    paint: Paint,
    json: Vec<Value>,
    /// Something could not be read or written.
    failed: bool,
    /// A server was left as it is, because the person said so.
    declined: bool,
    /// The person has had enough.
    stop: bool,
    /// A question was asked.
    asked: bool,
}

impl Work<'_> {
    /// Shows what each server would become, and asks.
    fn choose<'f>(&mut self, files: &'f [File]) -> Result<Vec<FileChange<'f>>, Failure> {
        let mut changes = Vec::new();
        for file in files {
            if self.stop {
                break;
            }
            let content = match &file.content {
                Ok(content) => content,
                Err(error) => {
                    self.failed = true;
                    render::say(&render::plain(&error.to_string()));
                    self.json.push(show::file_json(file, Vec::new()));
                    continue;
                }
            };
            let mut chosen = Vec::new();
            let mut servers = Vec::new();
            let mut is_headed = false;
            for (at, server) in content.servers.iter().enumerate() {
                if self.stop {
                    break;
                }
                let step = plan::step(self.scene, file, server);
                let mut value = show::server_json(server);
                if let (Step::Change(proposal), Kind::Stdio(stdio)) = (&step, &server.entry.kind) {
                    let mut proposal = (**proposal).clone();
                    self.head(file, &mut is_headed);
                    if self.agreed(server, stdio, &mut proposal) {
                        value["after"] = json!(proposal.words(stdio));
                        value["proposal"] = json!(proposal);
                        chosen.push((at, proposal));
                    }
                } else if let Step::Stay(why) = &step {
                    self.head(file, &mut is_headed);
                    value["stays"] = json!(why);
                    self.tell(&format!(
                        "  {} stays as it is: {}\n",
                        render::plain(&server.entry.name),
                        render::plain(why)
                    ));
                }
                servers.push(value);
            }
            self.json.push(show::file_json(file, servers));
            if let Some(edited) = apply::edit(file, &chosen).filter(|_| !chosen.is_empty()) {
                for (name, why) in &edited.refused {
                    self.failed = true;
                    self.tell_by_hand(file, name, why, &chosen);
                }
                if !edited.undo.is_empty() {
                    changes.push(FileChange { file, servers: chosen, edited });
                }
            }
        }
        Ok(changes)
    }

    fn head(&self, file: &File, is_headed: &mut bool) {
        if !std::mem::replace(is_headed, true) {
            self.tell(&(show::heading(self.scene, file, self.paint) + "\n"));
            for line in plan::allowlists(file, &self.scene.surroundings()) {
                self.tell(&format!(
                    "  {}\n",
                    self.paint.warn(&format!("note: {}", render::plain(&line)))
                ));
            }
            if survey::is_project(&file.found) {
                self.tell("  note: a file of a project may be shared; the path of mcp in it is this machine's\n");
            }
        }
    }

    /// To the person; with --json stdout is the program's, and stderr stays quiet.
    fn tell(&self, text: &str) {
        if !self.args.json {
            render::tell(text);
        }
    }

    fn agreed(
        &mut self,
        server: &survey::SurveyedServer,
        stdio: &mcp_clients::Stdio,
        proposal: &mut Proposal,
    ) -> bool {
        let access = match self.args.directories {
            AccessFlag::Read => None,
            AccessFlag::Write => Some(Access::Write),
        };
        plan::set_access(proposal, access.as_slice());
        self.tell(&show::proposal(server, stdio, proposal, self.paint));
        if self.args.yes || self.args.dry_run || self.args.json || !ask::is_possible() {
            return true;
        }
        if !std::mem::replace(&mut self.asked, true) {
            render::say(
                "nothing is written before the last answer; q writes what you agreed to so far, ^C nothing",
            );
        }
        match ask::server(proposal) {
            ask::WireAnswer::Yes(chosen) => {
                plan::set_access(proposal, &chosen);
                true
            }
            ask::WireAnswer::No => {
                self.declined = true;
                false
            }
            ask::WireAnswer::Quit => {
                (self.declined, self.stop) = (true, true);
                false
            }
        }
    }

    /// What an editor of ours would not keep whole is printed instead.
    fn tell_by_hand(&self, file: &File, name: &str, why: &str, chosen: &[(usize, Proposal)]) {
        render::say(&format!(
            "{} in {} is not edited, because {why}; write this in its place by hand:",
            render::plain(name),
            show::path(self.scene, &file.found.path)
        ));
        let Ok(content) = &file.content else {
            return;
        };
        for (at, proposal) in chosen {
            let server = &content.servers[*at];
            if server.entry.name != name {
                continue;
            }
            if let Kind::Stdio(stdio) = &server.entry.kind {
                let words = proposal.words(stdio);
                let (command, args) =
                    words.split_first().map_or((String::new(), Vec::new()), |(first, rest)| {
                        (first.clone(), rest.to_vec())
                    });
                let new = mcp_clients::NewServer::new(name.to_owned(), command, args, Vec::new());
                render::tell(&render::printable(&mcp_clients::printed(server.client, &new)));
            }
        }
    }

    /// Writes, or shows what would be written. Which changes were written; none where no person could be asked.
    fn carry_out<'c>(
        &mut self,
        changes: &'c [FileChange<'_>],
    ) -> Result<Option<Vec<&'c FileChange<'c>>>, Failure> {
        if self.args.dry_run {
            for change in changes.iter().filter(|_| !self.args.json) {
                let hidden = change.file.content.as_ref().map(plan::secrets).unwrap_or_default();
                let title = show::path(self.scene, &change.file.found.path);
                let diff = show::diff(
                    &title,
                    &change.edited.before,
                    &change.edited.after,
                    &hidden,
                    Paint::stdout(),
                );
                render::print(&diff);
            }
            return Ok(None);
        }
        if changes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if !self.args.yes && (self.args.json || !ask::is_possible()) {
            return Ok(None);
        }
        let journal = apply::journal(self.scene)?;
        let replacement = |change: &'c FileChange<'_>| {
            let content = change.file.content.as_ref().ok()?;
            let after = change.edited.after.as_slice();
            let entries = change.edited.undo.clone();
            Some(Replacement { original: &content.original, after, entries, added: Vec::new() })
        };
        let (changes, replacements): (Vec<_>, Vec<_>) =
            changes.iter().filter_map(|change| Some((change, replacement(change)?))).unzip();
        let results = apply::write(&journal, self.scene, replacements)?;
        let mut written = Vec::new();
        for (change, result) in changes.into_iter().zip(results) {
            match result {
                Ok(()) => written.push(change),
                Err(failure) => {
                    self.failed = true;
                    render::say(&failure.to_string());
                }
            }
        }
        Ok(Some(written))
    }

    fn finish(
        &self,
        files: &[File],
        changes: &[FileChange<'_>],
        written: Option<Vec<&FileChange<'_>>>,
    ) -> Result<u8, Failure> {
        let count: usize = changes.iter().map(|change| change.edited.undo.len()).sum();
        let not_asked = written.is_none() && !self.args.dry_run && count > 0;
        if self.args.json {
            let value = json!({
                "mcp": self.scene.own.text,
                "warning": self.scene.own.warning,
                "files": self.json,
                "not_covered": status::not_covered_json(self.scene, files),
                "changes": count,
                "written": written.map_or(0, |written| written.len()),
            });
            render::print(&(to_json(&value) + "\n"));
        } else {
            self.summary(files, count, &written.unwrap_or_default());
        }
        if not_asked {
            render::say(
                "nothing is written: there is no terminal to ask on; give --yes to agree to all of it, or --dry-run to look",
            );
            return Ok(NOT_ASKED);
        }
        Ok(u8::from(self.failed))
    }

    fn summary(&self, files: &[File], count: usize, written: &[&FileChange<'_>]) {
        for line in status::not_covered(self.scene, files) {
            self.tell(&(self.paint.faint(&line) + "\n"));
        }
        let files_written = if written.len() == 1 { "file" } else { "files" };
        match count {
            0 if files.is_empty() => render::say(
                "no file of a known client is here; mcp wire --status lists the clients that mcp knows",
            ),
            0 if self.declined => render::say("nothing is written"),
            0 => render::say("nothing to wire"),
            _ if !written.is_empty() => {
                let count = written.iter().map(|change| change.edited.undo.len()).sum();
                render::say(&format!(
                    "{} in {} {files_written} wired; restart the client{}. To take it back: mcp unwire",
                    servers(count),
                    written.len(),
                    if written.len() == 1 { "" } else { "s" }
                ));
                let mut packages: Vec<&str> = written
                    .iter()
                    .flat_map(|change| &change.servers)
                    .filter_map(|(_, proposal)| proposal.reference.as_deref())
                    .collect();
                packages.sort_unstable();
                packages.dedup();
                if !packages.is_empty() {
                    render::say(&format!(
                        "their packages are installed at the first start; to have that done: mcp pull {}",
                        render::plain(&packages.join(" "))
                    ));
                }
            }
            _ => {}
        }
    }
}

pub fn servers(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}
