//! Writing: the journal first, then the files.

use mcp_clients::journal::{Journal, Replacement};
use mcp_clients::{Bytes, Entry, Error, Proposal, Undo};

use super::survey::{File, WireContext};
use crate::failure::Failure;

/// A file with the changes that were agreed to.
pub struct Edited {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
    pub undo: Vec<Undo>,
    /// Entries that could not be changed, and why.
    pub refused: Vec<(String, &'static str)>,
}

/// Carries out all changes of one file, in memory.
pub fn edit(file: &File, chosen: &[(usize, Proposal)]) -> Option<Edited> {
    let content = file.content.as_ref().ok()?;
    let bytes = Bytes::new(&content.original.bytes)?;
    let mut document = content.document.clone();
    let (mut undo, mut refused) = (Vec::new(), Vec::new());
    for (at, proposal) in chosen {
        let server = content.servers.get(*at)?;
        let entry: &Entry = &server.entry;
        let done = document.wire(server.client, entry, proposal);
        match done {
            Ok((edited, one)) => {
                document = edited.document;
                undo.push(one);
            }
            Err(why) => refused.push((entry.name.clone(), why)),
        }
    }
    let after = bytes.with(&document.text);
    Some(Edited { before: content.original.bytes.clone(), after, undo, refused })
}

pub fn journal(scene: &WireContext) -> Result<Journal, Failure> {
    Journal::open(&scene.journal).map_err(|error| Failure::file(&scene.journal, &error))
}

/// Writes all of these, or nothing where the journal cannot be written.
pub fn write(
    journal: &Journal,
    scene: &WireContext,
    changes: Vec<Replacement<'_>>,
) -> Result<Vec<Result<(), Failure>>, Failure> {
    let results =
        journal.carry_out(changes).map_err(|error| Failure::file(&scene.journal, &error))?;
    Ok(results.into_iter().map(|result| result.map_err(failure)).collect())
}

pub fn failure(error: Error) -> Failure {
    Failure::Client(error.to_string())
}
