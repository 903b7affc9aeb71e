//! `mcp policy diff A B`: what the second gives more, and what it gives less.

use std::path::Path;

use mcp_learn::{Change, Effect, diff};
use mcp_policy::{Defaults, LayerKind, Policy};

use crate::failure::Failure;
use crate::layers;
use crate::render::to_json;
use crate::render::{self, Paint};

/// As `diff` does: 0 where they are the same, 1 where they differ.
pub fn run(first: &Path, second: &Path, json: bool) -> Result<u8, Failure> {
    let read = |path: &Path| -> Result<Policy, Failure> {
        let layer = layers::file(path, LayerKind::PolicyFile)?;
        Ok(Policy::merge(&[layer], Defaults::run())?)
    };
    let changes = diff(&read(first)?, &read(second)?);
    if json {
        render::print(&(to_json(&changes) + "\n"));
    } else {
        let paint = Paint::stdout();
        for change in &changes {
            render::print(&(line(change, paint) + "\n"));
        }
        if changes.is_empty() {
            render::say("both policies grant the same");
        }
    }
    Ok(u8::from(!changes.is_empty()))
}

fn line(change: &Change, paint: Paint) -> String {
    let Change { key, from, to, effect } = change;
    let text = match (from, to) {
        (Some(from), Some(to)) => {
            format!("~ {key}: {} → {}", render::plain(from), render::plain(to))
        }
        (Some(from), None) => format!("- {key}: {}", render::plain(from)),
        (None, to) => format!("+ {key}: {}", render::plain(to.as_deref().unwrap_or_default())),
    };
    match effect {
        Effect::Wider => paint.warn(&format!("{text}  (wider)")),
        Effect::Narrower => paint.good(&format!("{text}  (narrower)")),
        Effect::Other => text,
    }
}
