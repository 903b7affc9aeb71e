//! Functions that start themselves without end.

use crate::shell::ast::{Command, Item, Kind, List, Pipeline, Word};

/// A function that starts itself twice, or itself in the background.
pub fn bomb(name: &str, body: &Command) -> bool {
    let list = match &body.kind {
        Kind::Group(list) | Kind::Subshell(list) => list,
        _ => return false,
    };
    list.iter().any(|item| item_bombs(name, item))
}

fn item_bombs(name: &str, item: &Item) -> bool {
    let pipelines = std::iter::once(&item.first).chain(item.rest.iter().map(|(_, next)| next));
    pipelines.into_iter().any(|pipeline| {
        let own = calls(name, pipeline);
        own > 0 && (item.background || pipeline.stages.len() > 1)
            || pipeline.stages.iter().any(|stage| inner_bombs(name, stage))
    })
}

fn inner_bombs(name: &str, command: &Command) -> bool {
    let inside = |list: &List| list.iter().any(|item| item_bombs(name, item));
    match &command.kind {
        Kind::Group(list) | Kind::Subshell(list) => inside(list),
        Kind::While { body, .. } | Kind::For { body, .. } | Kind::ArithmeticFor { body, .. } => {
            inside(body)
        }
        Kind::If { branches, otherwise } => {
            inside(otherwise) || branches.iter().any(|(_, body)| inside(body))
        }
        _ => false,
    }
}

fn calls(name: &str, pipeline: &Pipeline) -> usize {
    let is = |command: &&Command| match &command.kind {
        Kind::Simple { words, .. } => words.first().and_then(Word::bare) == Some(name),
        Kind::Group(list) | Kind::Subshell(list) => {
            list.iter().any(|item| calls(name, &item.first) > 0)
        }
        _ => false,
    };
    pipeline.stages.iter().filter(is).count()
}
