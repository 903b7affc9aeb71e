//! The table `[tools.sandbox]`.

use std::path::Path;

use toml::de::DeValue;

use super::{Entries, Schema};
use crate::error::Error;
use crate::layer::{Layer, LayerKind};
use crate::paths::Tilde;
use crate::tools::{Fallback, GuardMode};

const KEYS: [&str; 5] = ["allowed_roots", "denied_patterns", "allow_absolute", "fallback", "guard"];

impl<'a> Schema<'a> {
    pub(super) fn tools(&self, entries: &Entries<'_, 'a>, layer: &mut Layer) -> Result<(), Error> {
        for (_, value) in entries {
            if self.from.kind == LayerKind::Manifest {
                return Err(self.source.at(
                    value.span(),
                    "a package cannot set what an agent's tools may touch",
                    "remove [tools.sandbox]",
                ));
            }
            let DeValue::Table(table) = value.get_ref() else {
                return Err(self.wrong_type(value, "a table", "write [tools.sandbox]"));
            };
            let entries = self.entries(table, Some("tools.sandbox"), &KEYS)?;
            self.tools_sandbox(&entries, layer)?;
        }
        Ok(())
    }

    fn tools_sandbox(&self, entries: &Entries<'_, 'a>, layer: &mut Layer) -> Result<(), Error> {
        let tools = &mut layer.tools;
        for (key, value) in entries {
            match *key {
                "allowed_roots" => {
                    let roots = self.strings(key, value, |text| self.path(text))?;
                    tools.allowed_roots = self.sourced(roots);
                }
                "denied_patterns" => {
                    let denied = self.strings(key, value, |text| {
                        self.roots.resolve_deny(Path::new(text), Tilde::File)
                    })?;
                    tools.denied_patterns = self.sourced(denied);
                }
                "allow_absolute" => {
                    let DeValue::Boolean(allowed) = value.get_ref() else {
                        let hint = "write allow_absolute = false to keep file tools in the roots";
                        return Err(self.wrong_type(value, "true or false", hint));
                    };
                    tools.allow_absolute = Some(self.said(*allowed, value.span().start));
                }
                "guard" => {
                    let word = self.string(value)?;
                    let known = GuardMode::WORDS.iter().find(|(known, _)| *known == word);
                    let Some((_, mode)) = known else {
                        let hint = "write \"usual\" or \"strict\"";
                        return Err(self.source.at(value.span(), "unknown guard", hint));
                    };
                    tools.guard = Some(self.said(*mode, value.span().start));
                }
                _ => {
                    let word = self.string(value)?;
                    let known = Fallback::WORDS.iter().find(|(known, _)| *known == word);
                    let Some((_, fallback)) = known else {
                        let hint = "write \"deny\", \"prompt\" or \"warn\"";
                        return Err(self.source.at(value.span(), "unknown fallback", hint));
                    };
                    tools.fallback = Some(self.said(*fallback, value.span().start));
                }
            }
        }
        Ok(())
    }
}
