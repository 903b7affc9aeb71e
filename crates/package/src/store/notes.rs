//! What was found out about files of this machine, as long as they are the same files.

use std::path::{Path, PathBuf};

use super::Store;
use super::record::stamp;
use crate::digest::Digest;

impl Store {
    fn note_path(&self, of: &Path) -> PathBuf {
        let name = Digest::of(of.as_os_str().as_encoded_bytes()).hex();
        self.path("notes").join(name)
    }

    /// The answer to a question about a file, asked only where it was never asked, or of another
    /// file. A note that cannot be written costs the next start the question.
    pub fn noted(&self, of: &Path, ask: impl FnOnce() -> Option<String>) -> Option<String> {
        let stamp = stamp(of)?;
        let path = self.note_path(of);
        if let Ok(note) = mcp_files::read_text(&path, 64 << 10, mcp_files::Links::Refuse)
            && let Some(answer) = note.strip_prefix(&stamp)
        {
            return Some(answer.to_owned());
        }
        let answer = ask()?;
        let _ = self
            .lock()
            .and_then(|_lock| self.replace(&path, format!("{stamp}{answer}").as_bytes()));
        Some(answer)
    }
}
