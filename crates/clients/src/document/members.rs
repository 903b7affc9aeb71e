//! Members of maps: one more after another, and one less.

use super::splice::Splice;
use super::{Document, Member, Node, quote};
use crate::client::Format;
use crate::text;

impl Document {
    /// One more member, directly after the value of another of the same map.
    pub(crate) fn insert_after(&self, map: &Node, after: &Member, name: &str, raw: &str) -> Splice {
        let start = self.text[..after.key.start].rfind('\n').map_or(0, |at| at + 1);
        let lead = &self.text[start..after.key.start];
        let newline = text::newline(&self.text);
        let key = quote::key(self.format, name);
        let is_flow = self.is_flow(map);
        let with = match self.format {
            Format::Toml if !is_flow => format!("{newline}{lead}{key} = {raw}"),
            Format::Toml => format!(", {key} = {raw}"),
            Format::Yaml if !is_flow => {
                let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
                let lead: String = lead.chars().map(blank).collect();
                format!("{newline}{lead}{key}: {raw}")
            }
            Format::Yaml => format!(", {key}: {raw}"),
            _ => {
                let colon = &self.text[after.key.end..after.node.span.start];
                let colon = if colon.trim() == ":" && !colon.contains('\n') { colon } else { ": " };
                match lead.trim().is_empty() {
                    true => format!(",{newline}{lead}{key}{colon}{raw}"),
                    false => format!(", {key}{colon}{raw}"),
                }
            }
        };
        Splice::insert(after.node.span.end, with)
    }

    /// One member less: with what is between it and the one before, where that is no comment.
    pub(crate) fn remove_member(&self, map: &Node, name: &str) -> Option<Vec<Splice>> {
        let members = map.members();
        let at = members.iter().position(|member| member.name == name)?;
        let member = &members[at];
        let whole = member.key.start..member.node.span.end;
        let is_flow = self.is_flow(map);
        if let Some(before) = at.checked_sub(1).map(|at| &members[at]) {
            let gap = before.node.span.end..member.key.start;
            let between = self.text[gap.clone()].trim();
            if between.is_empty() || between == "," {
                return Some(vec![Splice::new(gap.start..whole.end, "")]);
            }
            let mut splices = vec![Splice::new(whole, "")];
            if let Some(comma) = self.comma(gap.start, gap.end).filter(|_| is_flow) {
                splices.push(Splice::new(comma..comma + 1, ""));
            }
            return Some(splices);
        }
        // The first: up to the next, so that its place is taken.
        match members.get(at + 1) {
            Some(next) => Some(vec![Splice::new(whole.start..next.key.start, "")]),
            None => {
                let end = self.comma(whole.end, map.span.end).filter(|_| is_flow);
                Some(vec![Splice::new(whole.start..end.map_or(whole.end, |at| at + 1), "")])
            }
        }
    }

    /// Between braces.
    pub(crate) fn is_flow(&self, map: &Node) -> bool {
        self.text.get(map.span.clone()).is_some_and(|text| text.starts_with('{'))
    }
}
