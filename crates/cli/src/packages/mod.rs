//! Packages as every verb needs them: the store, looking for one, fetching and installing it.

pub mod fetch;
pub mod files;
pub mod install;
pub mod locate;

use mcp_package::Store;

use crate::failure::Failure;
use crate::{paths, progress};

pub fn open_store() -> Result<Store, Failure> {
    let root = paths::store().ok_or_else(|| {
        Failure::Usage("there is no place for packages: set HOME or XDG_DATA_HOME".to_owned())
    })?;
    Ok(Store::at(root).telling(progress::unpacking))
}
