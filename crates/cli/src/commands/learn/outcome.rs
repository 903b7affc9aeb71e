//! Where what was learned goes: standard output, a file, an existing policy.

use std::path::Path;

use mcp_learn::{Draft, Grant, Sensitive, Withheld, insert};
use mcp_policy::{Defaults, LayerKind, Policy};
use serde_json::{Value, json};

use crate::args::learn::Result as Wanted;
use crate::commands::run::report_file::ReportFile;
use crate::commands::wire::show;
use crate::failure::Failure;
use crate::layers;
use crate::render::to_json;
use crate::render::{self, Paint};

/// Lines about what is not proposed.
const MOST_WITHHELD: usize = 20;

/// What came out of it.
pub struct Learned {
    pub draft: Draft,
    pub withheld: Vec<Withheld>,
    pub notes: Vec<String>,
}

/// Where a policy is printed that no file was named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Stdout,
    Stderr,
}

/// Whether a person took what was learned, by an answer or a flag. A file of theirs is only then changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    Given,
    Open,
}

impl Place {
    fn print(self, text: &str) {
        match self {
            Place::Stdout => render::print(text),
            Place::Stderr => render::print_to_stderr(text),
        }
    }
}

pub fn sensitive(wanted: &Wanted) -> Sensitive {
    if wanted.sensitive { Sensitive::Proposed } else { Sensitive::Withheld }
}

/// Tells a person what was learned, and writes it where it was wanted.
pub fn deliver(
    learned: &Learned,
    wanted: &Wanted,
    json: bool,
    place: Place,
    acceptance: Acceptance,
) -> Result<(), Failure> {
    for note in &learned.notes {
        render::say(&render::plain(note));
    }
    tell_withheld(&learned.withheld);
    let text = learned.draft.to_toml();
    if json {
        render::print(&(to_json(&described(learned, &text)) + "\n"));
    }
    if let Some(path) = &wanted.merge {
        let merged = Merged::new(path, &learned.draft)?;
        return merged.deliver(path, json, place, acceptance);
    }
    match &wanted.output {
        Some(path) => {
            let file = ReportFile::create(path)?;
            file.write(text.trim_end()).map_err(|e| Failure::file(path, &e))?;
            render::say(&format!("written: {}", render::path(path)));
        }
        None if !json => place.print(&text),
        None => {}
    }
    Ok(())
}

/// A place that is not there is told before anything runs.
pub fn can_be_written(path: &Path) -> Result<(), Failure> {
    let absolute = std::path::absolute(path).map_err(|e| Failure::file(path, &e))?;
    match absolute.parent().is_some_and(Path::is_dir) && !absolute.is_dir() {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "{}: the policy cannot be written there; -o takes a file in a directory that is there",
            render::path(path)
        ))),
    }
}

/// An existing policy with what was learned added. Its own text stays.
pub struct Merged {
    before: String,
    after: String,
    /// What the file gives then.
    pub draft: Draft,
}

impl Merged {
    pub fn new(path: &Path, learned: &Draft) -> Result<Merged, Failure> {
        let refuse = |why: String| Failure::Usage(format!("{}: {why}", render::path(path)));
        let drafted = |layer| Draft::of(&Policy::merge(&[layer], Defaults::run())?).map_err(refuse);
        let given = drafted(layers::file(path, LayerKind::PolicyFile)?)?;
        let before = mcp_files::read_text(path, 4 << 20, mcp_files::Links::Follow)
            .map_err(|e| Failure::input(path, &e))?;
        let after = insert(&before, &given, learned).map_err(|error| refuse(error.to_string()))?;
        let draft = drafted(layers::edited(path, &after)?)?;
        let wanted = || given.grants().chain(learned.grants());
        let is_in = |grant: &Grant, of: &Draft| of.grants().any(|other| other.covers(grant));
        let is_whole = wanted().all(|grant| is_in(grant, &draft))
            && draft.grants().all(|grant| is_in(grant, &given) || is_in(grant, learned))
            && learned.denied().all(|(path, _)| draft.denied().any(|(closed, _)| closed == path));
        if !is_whole {
            return Err(refuse(
                "what was learned cannot be added to it as it is written".to_owned(),
            ));
        }
        Ok(Merged { before, after, draft })
    }

    fn deliver(
        &self,
        path: &Path,
        json: bool,
        place: Place,
        acceptance: Acceptance,
    ) -> Result<(), Failure> {
        let title = render::path(path);
        if self.after == self.before {
            render::say(&format!("{title} has all of it already"));
            return Ok(());
        }
        if !json {
            let (before, after) = (self.before.as_bytes(), self.after.as_bytes());
            place.print(&show::diff(&title, before, after, &[], Paint::stdout()));
        }
        if acceptance == Acceptance::Open {
            render::say(&format!("{title} is as it was: these are proposals"));
            return Ok(());
        }
        let file = ReportFile::create(path)?;
        file.write(self.after.trim_end()).map_err(|e| Failure::file(path, &e))?;
        render::say(&format!("added to {title}"));
        Ok(())
    }
}

pub fn tell_withheld(withheld: &[Withheld]) {
    for one in withheld.iter().take(MOST_WITHHELD) {
        let what = render::plain(&one.what);
        render::say(&format!(
            "asked for, not proposed: {what} ({}); --sensitive proposes it",
            one.why
        ));
    }
    if let Some(more @ 1..) = withheld.len().checked_sub(MOST_WITHHELD) {
        render::say(&format!("{more} more were asked for and are not proposed"));
    }
}

fn described(learned: &Learned, text: &str) -> Value {
    let grant = |(grant, note): (&Grant, &str)| {
        let (table, key) = grant.key();
        json!({ "key": format!("{table}.{key}"), "value": grant.value(), "evidence": note })
    };
    let withheld = |one: &Withheld| json!({ "what": one.what, "why": one.why });
    json!({
        "grants": learned.draft.noted().map(grant).collect::<Vec<_>>(),
        "withheld": learned.withheld.iter().map(withheld).collect::<Vec<_>>(),
        "notes": learned.notes,
        "policy": text,
    })
}
