//! The text of a policy file: from byte spans to lines, columns and printable excerpts.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Position};
use crate::excerpt::{Excerpt, floor_char};
use crate::{SecretRef, ValueError};

pub(crate) struct TomlSource<'a> {
    text: &'a str,
    /// The path as the user knows it.
    file: String,
    line_starts: Vec<usize>,
    /// Values that may be secrets a person wrote out: never shown.
    masks: Vec<Range<usize>>,
}

impl<'a> TomlSource<'a> {
    pub fn new(text: &'a str, file: String) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self { text, file, line_starts, masks: Vec::new() }
    }

    /// Reads the syntax; from here on literal secrets are masked in excerpts.
    pub fn parse(&mut self) -> Result<DeTable<'a>, Error> {
        let table = DeTable::parse(self.text).map_err(|error| self.syntax_error(&error))?;
        let table = table.into_inner();
        mask_secrets(&table, Secrecy::Open, &mut self.masks);
        Ok(table)
    }

    fn syntax_error(&mut self, error: &toml::de::Error) -> Error {
        let span = error.span().unwrap_or(0..0);
        // There is no table to tell secrets by, so near the word nothing but keys is shown.
        let at = floor_char(self.text, span.end.max(span.start));
        if self.text[..at].to_ascii_lowercase().contains("secret") {
            let line = self.line_starts[self.line_index(span.start)];
            let end = self.text[line..].find('\n').map_or(self.text.len(), |end| line + end);
            let value = self.text[line..end].find('=').map_or(line, |equals| line + equals + 1);
            self.masks.push(value..end);
        }
        let (message, hint) = match error.message() {
            "duplicate key" => ("this key is given twice", "keep one of them"),
            message => (message, ""),
        };
        self.at(span, message, hint)
    }

    fn line_index(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    pub fn line(&self, at: usize) -> usize {
        self.line_index(at) + 1
    }

    /// An error about a part of the file.
    pub fn at(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Error {
        let index = self.line_index(span.start);
        let line = &self.text[self.line_starts[index]..floor_char(self.text, span.start)];
        let position = Position { line: index + 1, column: line.chars().count() + 1 };
        let excerpt = Excerpt::new(self.text, span, &self.masks);
        Error::in_file(self.file.clone(), message, hint).at(position, Some(excerpt))
    }

    /// An error in a value: the caret goes under the bad part where the file spells the
    /// value as it is, and under all of it where escapes stand between.
    pub fn in_value(&self, span: Range<usize>, value: &str, error: ValueError) -> Error {
        let written = self.text.get(span.clone()).unwrap_or_default();
        let quotes = [0, 1, 3].into_iter().find(|quotes| {
            written.get(*quotes..written.len().saturating_sub(*quotes)) == Some(value)
        });
        let span = match quotes {
            Some(quotes) if !error.span.is_empty() => {
                let start = span.start + quotes;
                start + error.span.start..start + error.span.end
            }
            // Nothing to point at in an empty part: the whole value with its quotes.
            _ => span,
        };
        self.at(span, error.message, error.hint)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Secrecy {
    Open,
    Secret,
}

/// Finds values under keys that speak of secrets and are not references. Misspelt and
/// misplaced keys count too: those are the ones that end up in error messages.
fn mask_secrets(table: &DeTable<'_>, secrecy: Secrecy, masks: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        let secrecy = if key.get_ref().to_ascii_lowercase().contains("secret") {
            Secrecy::Secret
        } else {
            secrecy
        };
        mask_value(value, secrecy, masks);
    }
}

fn mask_value(value: &Spanned<DeValue<'_>>, secrecy: Secrecy, masks: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => mask_secrets(table, secrecy, masks),
        DeValue::Array(items) => items.iter().for_each(|item| mask_value(item, secrecy, masks)),
        DeValue::String(text) if text.parse::<SecretRef>().is_ok() => {}
        _ if secrecy == Secrecy::Secret => masks.push(value.span()),
        _ => {}
    }
}
