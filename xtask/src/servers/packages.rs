//! The same servers as packages: `mcp run npm:…` and `pypi:…`, first from an empty store, then
//! once more where no registry can be reached.

use std::fs;
use std::path::{Path, PathBuf};

use super::exercise::Server;
use super::scene::Scene;
use super::session::{Reach, Setting};
use super::{Run, table};
use crate::Result;

pub struct PackageRow {
    reference: &'static str,
    fresh: Result<Run>,
    /// None when there is nothing in the store to be run.
    offline: Option<Result<Run>>,
}

/// A server that is published as a package, in both settings.
pub fn run(
    server: Server,
    launcher: &Path,
    mut once: impl FnMut(&Setting) -> Result<Run>,
) -> Option<PackageRow> {
    let reference = server.reference()?;
    eprintln!("{reference}");
    let mut both = || -> Result<(Result<Run>, Option<Result<Run>>)> {
        let store = Scene::new("store")?;
        let data = store.granted();
        let mut with = |reach| {
            let (launcher, data) = (launcher.to_owned(), data.clone());
            once(&Setting::Packaged { launcher, reference, data, reach })
        };
        let fresh = with(Reach::Registries);
        let fresh = fresh.and_then(|run| is_stored(&data, reference).map(|()| run));
        let offline = fresh.is_ok().then(|| with(Reach::Nothing));
        Ok((fresh, offline))
    };
    let (fresh, offline) = both().unwrap_or_else(|error| (Err(error), None));
    Some(PackageRow { reference, fresh, offline })
}

/// The store was really used: whatever was run is in its index.
fn is_stored(data: &Path, reference: &str) -> Result<()> {
    let index: PathBuf = data.join("mcp/store/index.json");
    let text = fs::read_to_string(&index).map_err(|e| format!("{}: {e}", index.display()))?;
    match text.contains(&format!("\"{reference}\"")) {
        true => Ok(()),
        false => Err(format!("{reference} is not in {}", index.display()).into()),
    }
}

impl PackageRow {
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let fault = match (&self.fresh, &self.offline) {
            (Err(error), _) => format!("from an empty store: {error}"),
            (_, Some(Err(error))) => format!("offline: {error}"),
            (Ok(_), None) => "was not run offline".into(),
            (Ok(fresh), Some(Ok(offline))) if fresh.tools != offline.tools => {
                format!("shows {} tools at first, {} offline", fresh.tools, offline.tools)
            }
            _ => return None,
        };
        Some((self.reference, fault))
    }

    fn cells(&self) -> [String; 6] {
        let fresh = self.fresh.as_ref().ok();
        let offline = self.offline.as_ref().and_then(|run| run.as_ref().ok());
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".into());
        let initialize = |run: &Run| run.initialize.as_millis().to_string();
        [
            self.reference.into(),
            or_dash(offline.or(fresh).map(|run| run.tools.to_string())),
            or_dash(offline.map(initialize)),
            or_dash(fresh.map(initialize)),
            or_dash(offline.map(|run| run.calls.clone())),
            if self.fault().is_none() { "ok" } else { "FAILED" }.into(),
        ]
    }
}

pub fn print(rows: &[PackageRow]) {
    let head = ["package", "tools", "initialize ms", "(installing)", "call", "ok"];
    table(head, rows.iter().map(PackageRow::cells));
}
