//! The words of a list: the first ones replaced, the rest left as they stand, comments between them too.

use super::splice::Splice;
use super::{Document, Node, quoted};
use crate::client::Format;
use crate::text;

impl Document {
    /// Puts `head` in the place of the first words, so that the last `keep` stay untouched.
    pub(crate) fn replace_head(&self, list: &Node, head: &[String], keep: usize) -> Vec<Splice> {
        let old = list.elements();
        let dropped = old.len().saturating_sub(keep);
        let between = self.separator(list);
        let written: Vec<String> = head.iter().map(|word| quoted(self.format, word)).collect();
        let (Some(first), false) = (old.first(), head.is_empty()) else {
            // After the bracket: what else is between the two stays.
            return vec![Splice::insert(list.span.start + 1, written.join(", "))];
        };
        if dropped == 0 {
            return vec![Splice::insert(first.span.start, written.join(&between) + &between)];
        }
        let mut splices = Vec::new();
        let (last, fixed) = (dropped.min(written.len()) - 1, dropped - 1);
        for (at, word) in written.iter().enumerate().take(last) {
            splices.push(Splice::new(old[at].span.clone(), word));
        }
        let rest = match dropped <= written.len() {
            true => written[last..].join(&between),
            false => written[last].clone(),
        };
        splices.push(Splice::new(old[last].span.clone(), rest));
        for at in last + 1..=fixed {
            splices.extend(self.removed(&old[at - 1], &old[at]).0);
        }
        splices
    }

    /// What stays of the words that go: comments between them, up to where the last of them ended.
    pub(crate) fn left_over(&self, list: &Node, head: usize, keep: usize) -> String {
        let old = list.elements();
        let dropped = old.len().saturating_sub(keep);
        (head..dropped)
            .filter(|at| *at > 0)
            .map(|at| self.removed(&old[at - 1], &old[at]).1)
            .collect()
    }

    /// A word and the comma before it; comments stay.
    fn removed(&self, before: &Node, node: &Node) -> (Vec<Splice>, String) {
        let (from, to) = (before.span.end, node.span.start);
        let gap = &self.text[from..to];
        let whole = || (vec![Splice::new(from..node.span.end, "")], String::new());
        if matches!(gap.trim(), "," | "-") {
            return whole();
        }
        // In a block of YAML the dash goes with its word, and comments stay on their lines.
        let dash = gap.rfind('-').filter(|_| self.format == Format::Yaml).map(|at| from + at);
        match (self.comma(from, to), dash) {
            (Some(comma), _) => {
                let left = [&self.text[from..comma], &self.text[comma + 1..to]].concat();
                let gone = [Splice::new(comma..comma + 1, ""), Splice::new(node.span.clone(), "")];
                (gone.into(), left)
            }
            (None, Some(dash)) => {
                (vec![Splice::new(dash..node.span.end, "")], self.text[from..dash].to_owned())
            }
            (None, None) => whole(),
        }
    }

    /// The comma between two words, which may have comments around it.
    pub(crate) fn comma(&self, from: usize, to: usize) -> Option<usize> {
        let mut at = from;
        while at < to {
            let rest = self.text.get(at..to)?;
            let line =
                |mark: &str| rest.starts_with(mark).then(|| rest.find('\n').unwrap_or(rest.len()));
            let comment = match self.format {
                Format::Toml | Format::Yaml => line("#"),
                _ if rest.starts_with("/*") => rest.find("*/").map(|end| end + 2),
                _ => line("//"),
            };
            match comment {
                Some(length) => at += length,
                None if rest.starts_with(',') => return Some(at),
                None => at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
        None
    }

    /// What is between two words of this list, as its writer has it.
    fn separator(&self, list: &Node) -> String {
        let old = list.elements();
        let Some(first) = old.first() else {
            return ", ".to_owned();
        };
        let newline = text::newline(&self.text);
        let is_flow = self.text[list.span.clone()].starts_with('[');
        if !is_flow {
            // A block of YAML: everything on the line before the word, the dash in it.
            let start = self.text[..first.span.start].rfind('\n').map_or(0, |at| at + 1);
            let column = self.text[start..first.span.start].rfind('-').unwrap_or(0);
            let dash = self.text[start..first.span.start].chars().take(column).map(|c| match c {
                '\t' => '\t',
                _ => ' ',
            });
            let gap = &self.text[start + column..first.span.start];
            return format!("{newline}{}{gap}", dash.collect::<String>());
        }
        if let Some(second) = old.get(1) {
            let between = &self.text[first.span.end..second.span.start];
            if between.trim() == "," && !between.starts_with(['\r', '\n']) {
                return between.to_owned();
            }
        }
        let lead = &self.text[list.span.start + 1..first.span.start];
        match lead.contains('\n') {
            true => format!(",{newline}{}", text::indent(&self.text, first.span.start)),
            false => ", ".to_owned(),
        }
    }
}
