//! All mistakes of a file at once, for `mcp policy check`: a start names the first and goes no further.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Schema, TABLES, Value};
use crate::error::Error;
use crate::layer::{Layer, LayerSource};
use crate::paths::PathRoots;
use crate::toml_source::TomlSource;

/// Every mistake of a file, each found as if it were the only one; none for a good file.
pub(crate) fn mistakes(text: &str, from: &LayerSource) -> Vec<Error> {
    let mut source = TomlSource::new(text, from.shown_path());
    let root = match source.parse() {
        Ok(root) => root,
        Err(error) => return vec![error],
    };
    let roots = PathRoots { base: from.base.clone(), home: from.home.clone() };
    let schema = Schema { source, from: from.clone(), roots };
    let mut all: Vec<(usize, Error)> = Vec::new();
    let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
    let (known, unknown) = schema.sorted(&root, None, &names);
    all.extend(unknown);
    for (name, value) in known {
        let mut layer = Layer::empty(from.kind);
        let DeValue::Table(table) = value.get_ref() else {
            let whole =
                DeTable::from_iter([(Spanned::new(value.span(), name.into()), value.clone())]);
            all.extend(
                schema.read(&whole, &[], &mut layer).err().map(|error| (value.span().start, error)),
            );
            continue;
        };
        let keys = TABLES.iter().find(|table| table.0 == name).map_or(&[][..], |table| table.1);
        let (entries, unknown) = schema.sorted(table, Some(name), keys);
        all.extend(unknown);
        let before = all.len();
        for (key, value) in &entries {
            for part in parts(value) {
                let mut layer = Layer::empty(from.kind);
                let one = [(*key, &part)];
                let read = schema.table(name, &one, &mut layer);
                all.extend(read.err().map(|error| (part.span().start, error)));
            }
        }
        // What only shows between several: a path in both read and deny.
        if all.len() == before {
            let read = schema.table(name, &entries, &mut layer);
            all.extend(read.err().map(|error| (value.span().start, error)));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, error)| error).collect()
}

/// A list or a table as several with one entry each, so that each entry is judged.
fn parts<'a>(value: &Value<'a>) -> Vec<Value<'a>> {
    match value.get_ref() {
        DeValue::Array(items) if items.len() > 1 => {
            let one = |item: &Value<'a>| {
                Spanned::new(item.span(), DeValue::Array([item.clone()].into_iter().collect()))
            };
            items.iter().map(one).collect()
        }
        DeValue::Table(table) if table.len() > 1 => {
            let one = |(key, value): (&Spanned<Cow<'a, str>>, &Value<'a>)| {
                let table = DeTable::from_iter([(key.clone(), value.clone())]);
                Spanned::new(value.span(), DeValue::Table(table))
            };
            table.iter().map(one).collect()
        }
        _ => vec![value.clone()],
    }
}

#[cfg(test)]
mod tests {
    use crate::{Layer, LayerKind, LayerSource};

    fn mistakes(text: &str) -> Vec<String> {
        let source = LayerSource {
            kind: LayerKind::PolicyFile,
            path: "p.toml".into(),
            base: "/".into(),
            home: None,
        };
        let errors = Layer::mistakes(text.as_bytes(), &source);
        let first =
            |error: &crate::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        errors.iter().map(first).collect()
    }

    #[test]
    fn each_is_told_in_the_order_of_the_file() {
        let text = "[filesystem]\nraed = ['x']\nread = [3, '/a', 4]\n[limts]\nmemory = '1'\n[limits]\nmemory = 'lots'\ncpu = 'x'\n\
                    [network]\nallow = ['http://x', 'good.example', '*']\n[env.set]\n'A=B' = 'x'\nC = 1\n";
        let found = mistakes(text);
        let lines: Vec<&str> = found.iter().map(|line| line.split(':').nth(1).unwrap()).collect();
        assert_eq!(lines, ["2", "3", "3", "4", "7", "8", "10", "10", "12", "13"], "{found:#?}");
        assert!(found[0].contains("unknown key \"raed\" in [filesystem]"), "{found:#?}");
    }

    #[test]
    fn a_good_file_has_none_and_what_only_shows_between_two_is_found() {
        assert_eq!(mistakes("[filesystem]\nread = ['/a']\n[limits]\nmemory = '64M'\n"), [""; 0]);
        let both = mistakes("[filesystem]\nread = ['/a', '/b']\ndeny = ['/a']\n");
        assert!(both.len() == 1 && both[0].contains("both read and deny"), "{both:?}");
        assert_eq!(mistakes("[filesystem").len(), 1);
    }
}
