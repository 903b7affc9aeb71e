//! A layer from the text of a file.

use crate::error::{Error, Position};
use crate::layer::{Layer, LayerSource, MAX_POLICY_FILE};

impl Layer {
    /// Reads a policy file's text.
    pub fn from_toml(text: &str, source: LayerSource) -> Result<Self, Error> {
        Self::from_toml_beside(text, source, &[])
    }

    /// Every mistake of a policy file, in the order of the file.
    pub fn mistakes(bytes: &[u8], source: &LayerSource) -> Vec<Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.len() <= MAX_POLICY_FILE => {
                super::mistakes(text.strip_prefix('\u{FEFF}').unwrap_or(text), source)
            }
            _ => Self::from_bytes(bytes, source.clone()).err().into_iter().collect(),
        }
    }

    /// Reads a policy out of a file that has other top-level keys, too; `others` are left to
    /// whoever knows them.
    pub fn from_toml_beside(
        text: &str,
        source: LayerSource,
        others: &[&str],
    ) -> Result<Self, Error> {
        if text.len() > MAX_POLICY_FILE {
            return Err(source.too_large());
        }
        super::layer(text.strip_prefix('\u{FEFF}').unwrap_or(text), source, others)
    }

    /// Reads a policy file as it is on disk.
    pub fn from_bytes(bytes: &[u8], source: LayerSource) -> Result<Self, Error> {
        if bytes.len() > MAX_POLICY_FILE {
            return Err(source.too_large());
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::from_toml(text, source),
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let line = valid.matches('\n').count() + 1;
                let column = valid.rsplit('\n').next().unwrap_or("").chars().count() + 1;
                Err(Error::in_file(
                    source.shown_path(),
                    "this is not UTF-8 text",
                    "save the file as UTF-8",
                )
                .at(Position { line, column }, None))
            }
        }
    }
}
