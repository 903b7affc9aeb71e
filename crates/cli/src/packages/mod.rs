//! Packages as every verb needs them: the store, looking for one, fetching and installing it.

pub mod fetch;
pub mod files;
pub mod install;
pub mod kept;
pub mod locate;

use mcp_package::{Reference, Store};

use crate::failure::Failure;
use crate::{paths, progress};

pub fn open_store() -> Result<Store, Failure> {
    let root = paths::store().ok_or_else(|| {
        Failure::Usage("there is no place for packages: set HOME or XDG_DATA_HOME".to_owned())
    })?;
    Ok(Store::at(root).telling(progress::unpacking))
}

/// What grants and kept data are remembered under: the name without a version, or the whole path.
pub fn reference_name(text: &str) -> String {
    match text.parse::<Reference>() {
        Ok(Reference::Path(path)) => {
            paths::real(&path).unwrap_or(path).to_string_lossy().into_owned()
        }
        Ok(reference) => reference.name(),
        Err(_) => text.to_owned(),
    }
}
