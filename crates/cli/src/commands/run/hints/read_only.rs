//! Writes to what can only be read, where no word of the command names the file.
//!
//! The kernel tells such a refusal to the process alone. So these lines come after a failure that nothing else
//! explains, only where the program may have written there, and say "if".

use super::facts::{Facts, Seen, Starts};
use super::{Hint, Runs, variables, verbs};

pub fn after(facts: &Facts) -> Option<Hint> {
    match facts.runs {
        Runs::Command => current_directory(facts),
        Runs::Package => own_directory(facts),
        Runs::Agent => None,
    }
}

/// A script, or a program of the user's own, in a directory that was granted by `--read`.
fn current_directory(facts: &Facts) -> Option<Hint> {
    let program = facts.program.as_str();
    let may_write = verbs::INTERPRETERS.contains(&program) || !facts.is_of_system;
    let is_read_only = facts.starts == Starts::Here && facts.here_seen == Seen::ReadOnly;
    (may_write && is_read_only).then(|| {
        Hint::new(
            "the current directory",
            format!(
                "{program} can read the current directory and not write there; if that was it: -w ."
            ),
        )
    })
}

/// What code says of the directory it is in, and how it writes files.
const OWN: [&str; 4] = ["__dirname", "import.meta.url", "import.meta.dirname", "__file__"];
const WRITES: [&str; 9] = [
    "writeFile",
    "appendFile",
    "createWriteStream",
    "mkdirSync",
    "mkdir(",
    "write_text",
    "sqlite3.connect",
    "better-sqlite3",
    "makedirs",
];

/// A package whose own files say that it writes beside them: they are locked by digest.
fn own_directory(facts: &Facts) -> Option<Hint> {
    let mut writes = false;
    variables::each_file(&facts.server.files, &mut |bytes| {
        let has = |words: &[&str]| words.iter().any(|word| holds(bytes, word.as_bytes()));
        writes = writes || has(&OWN) && has(&WRITES);
    });
    writes.then(|| {
        Hint::new(
            "the package's own directory",
            "its files name their own directory and write files; that directory can only be read. If that was it: \
             give it a path below HOME, and --home NAME to keep HOME",
        )
    })
}

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
