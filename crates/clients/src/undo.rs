//! Taking an edit back by structure, where the file has changed since.

use crate::client::Client;
use crate::document::{Document, Edited, Member, Node, Splice, Value};
use crate::entry::{Shape, Trail};
use crate::wire::{Added, Undo};

/// What became of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Undone {
    /// Its words are what they were.
    Restored {
        /// The new text of the file.
        text: String,
    },
    /// What was changed in the arguments after wiring is gone with them.
    RestoredOver {
        /// The new text of the file.
        text: String,
    },
    /// A person took it away, or gave it another command: nothing of ours is in it.
    NotOurs,
}

/// Takes one wired entry back. Only what we wrote is touched.
pub fn undo(document: &Document, client: &Client, undo: &Undo) -> Result<Undone, &'static str> {
    let Some(place) = undo.trail.place(document) else {
        return Ok(Undone::NotOurs);
    };
    let (Some(node), Some(parts)) = (
        document.get(&place),
        document.get(&place).and_then(|node| document.parts(client, node, undo.shape)),
    ) else {
        return Ok(Undone::NotOurs);
    };
    let list = parts.args.map(|args| &args.node);
    let now: Vec<String> = list
        .map(|list| list.elements().iter().map(|node| node.as_word().unwrap_or_default()).collect())
        .unwrap_or_default();
    let command = match undo.shape {
        Shape::Argv => now.first().cloned(),
        _ => parts.command.node.as_text().map(str::to_owned),
    };
    if command.as_deref() != Some(&undo.command) {
        return Ok(Undone::NotOurs);
    }
    let mut splices = Vec::new();
    if undo.shape != Shape::Argv {
        splices.push(Splice::new(parts.command.node.span.clone(), &undo.command_raw));
    }
    let is_head_ours = now.starts_with(&undo.head);
    let mut is_over = false;
    match (list, &undo.args_raw) {
        (Some(list), Some(raw)) => {
            let elements = list.elements();
            let length = undo.head.len();
            match (is_head_ours, undo.head_raw.is_empty(), elements.get(length)) {
                (true, false, _) => {
                    let end = elements[length - 1].span.end;
                    let is_there = document.text[end..].starts_with(&undo.left_over);
                    let end = if is_there { end + undo.left_over.len() } else { end };
                    splices.push(Splice::new(elements[0].span.start..end, &undo.head_raw));
                }
                // Nothing was replaced, only put before.
                (true, true, Some(next)) => {
                    splices.push(Splice::new(elements[0].span.start..next.span.start, ""));
                }
                (true, true, None) | (false, ..) => {
                    is_over = !is_head_ours;
                    if let (Some(first), Some(last)) = (elements.first(), elements.last()) {
                        splices.push(Splice::new(first.span.start..last.span.end, raw));
                    }
                }
            }
        }
        (Some(_), None) => {
            is_over = now != undo.head;
            let gone = document.remove_member(parts.map, &client.fields.args);
            splices.extend(gone.ok_or("its arguments cannot be followed")?);
        }
        (None, _) => {}
    }
    splices.extend(without_variables(document, client, node, undo)?);
    let edited = settled(document, client, undo, &place, splices)?;
    Ok(match is_over {
        false => Undone::Restored { text: edited.text },
        true => Undone::RestoredOver { text: edited.text },
    })
}

fn without_variables(
    document: &Document,
    client: &Client,
    node: &Node,
    undo: &Undo,
) -> Result<Vec<Splice>, &'static str> {
    let Some(env) = node.field(&client.fields.env).filter(|_| !undo.added_env.is_empty()) else {
        return Ok(Vec::new());
    };
    let ours = |member: &&Member| undo.added_env.contains(&member.name);
    let members = env.members();
    let mine = members.iter().take_while(ours).count();
    if mine == members.len() && undo.added_env_map {
        return document
            .remove_member(node, &client.fields.env)
            .ok_or("its variables cannot be followed");
    }
    // They were put first, on one line.
    let (Some(first), true) = (members.first(), mine > 0) else {
        return Ok(Vec::new());
    };
    let end = members.get(mine).map_or(members[mine - 1].node.span.end, |next| next.key.start);
    let next_is_near =
        document.text[members[mine - 1].node.span.end..end].trim_matches([' ', ',']).is_empty();
    match next_is_near {
        true => Ok(vec![Splice::new(first.key.start..end, "")]),
        false => {
            let last = members[mine - 1].node.span.end;
            let comma = document.comma(last, end).map_or(last, |at| at + 1);
            let blanks = document.text[comma..end].len()
                - document.text[comma..end].trim_start_matches(' ').len();
            Ok(vec![Splice::new(first.key.start..comma + blanks, "")])
        }
    }
}

/// Carries it out, and sees that nothing but this entry is another one.
fn settled(
    document: &Document,
    client: &Client,
    undo: &Undo,
    place: &[String],
    splices: Vec<Splice>,
) -> Result<Edited, &'static str> {
    if let Some(why) = document.fixed {
        return Err(why);
    }
    let text =
        crate::document::apply(&document.text, splices).ok_or("two edits meet in one place")?;
    let after = Document::parse(document.format, &text).map_err(|_| "the file would not parse")?;
    let mut expected = document.root.clone();
    let (Some(now), Some(then)) = (expected.get_mut(place), after.get(place)) else {
        return Err("the entry cannot be followed");
    };
    // The words of this entry are what they are; all else has to be the same.
    let mine = |member: &Member| {
        [&client.fields.command, &client.fields.args].contains(&&member.name)
            || (!undo.added_env.is_empty() && member.name == client.fields.env)
    };
    let rest = |node: &Node| {
        let others = node.members().iter().filter(|member| !mine(member));
        others.map(|member| (member.name.clone(), member.node.clone())).collect::<Vec<_>>()
    };
    let (one, two) = (rest(now), rest(then));
    let is_same = one.len() == two.len()
        && one.iter().zip(&two).all(|(a, b)| a.0 == b.0 && a.1.is_same(&b.1));
    *now = then.clone();
    match is_same && after.root.is_same(&expected) {
        true => Ok(Edited { text, document: after }),
        false => Err("taking it back would change more than was ours"),
    }
}

/// Takes away an entry that `mcp add` made. `None` where it is gone.
pub fn remove(document: &Document, added: &Added) -> Result<Option<String>, &'static str> {
    remove_entry(document, &added.trail)
}

pub(crate) fn remove_entry(
    document: &Document,
    trail: &Trail,
) -> Result<Option<String>, &'static str> {
    let (Some(place), Some(container)) = (trail.place(document), document.get(&trail.container))
    else {
        return Ok(None);
    };
    let (Some(last), Value::Map(_)) = (place.last(), &container.value) else {
        return Err("the entry is in a list; take it out by hand");
    };
    if container.member(last).is_none() {
        return Ok(None);
    }
    let mut expected = document.root.clone();
    if let Some(Value::Map(members)) =
        expected.get_mut(&trail.container).map(|node| &mut node.value)
    {
        members.retain(|member| member.name != *last);
    }
    let splices = document.remove_server(container, last).ok_or("the entry cannot be followed")?;
    document.edited(splices, &expected).map(|edited| Some(edited.text))
}
