//! `{a,b}` and `{1..5}`.

use crate::shell::ast::Part;

/// More alternatives than this are not followed.
const MOST: usize = 128;

/// Each may have to be looked at to the end of the word.
const MOST_GROUPS: usize = 48;

/// A piece of a word before its expansions: text that may hold braces, or a part of the tree.
#[derive(Clone)]
pub enum Bit<'a> {
    Plain(String),
    Part(&'a Part),
}

#[derive(Clone)]
enum Atom<'a> {
    Char(char),
    Part(&'a Part),
}

/// All words that a word stands for, or nothing when they are too many.
pub fn expand(parts: &[Part]) -> Option<Vec<Vec<Bit<'_>>>> {
    let opens = |part: &Part| match part {
        Part::Plain(text) => text.bytes().filter(|byte| *byte == b'{').count(),
        _ => 0,
    };
    if parts.iter().map(opens).sum::<usize>() > MOST_GROUPS {
        return None;
    }
    let braces = parts.iter().any(|part| matches!(part, Part::Plain(text) if text.contains('{')));
    if !braces {
        fn bit(part: &Part) -> Bit<'_> {
            match part {
                Part::Plain(text) => Bit::Plain(text.clone()),
                part => Bit::Part(part),
            }
        }
        return Some(vec![parts.iter().map(bit).collect()]);
    }
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            Part::Plain(text) => atoms.extend(text.chars().map(Atom::Char)),
            part => atoms.push(Atom::Part(part)),
        }
    }
    let mut all = Vec::new();
    let mut fuel = 4096;
    alternatives(Vec::new(), &atoms, &mut all, &mut fuel, 0)?;
    Some(all.into_iter().map(join).collect())
}

fn join(atoms: Vec<Atom<'_>>) -> Vec<Bit<'_>> {
    let mut bits = Vec::new();
    for atom in atoms {
        match (atom, bits.last_mut()) {
            (Atom::Char(c), Some(Bit::Plain(text))) => text.push(c),
            (Atom::Char(c), _) => bits.push(Bit::Plain(c.to_string())),
            (Atom::Part(part), _) => bits.push(Bit::Part(part)),
        }
    }
    bits
}

/// Adds `done` followed by each reading of `rest`.
fn alternatives<'a>(
    done: Vec<Atom<'a>>,
    rest: &[Atom<'a>],
    all: &mut Vec<Vec<Atom<'a>>>,
    fuel: &mut usize,
    depth: usize,
) -> Option<()> {
    *fuel = fuel.checked_sub(1)?;
    let open = (0..rest.len()).find_map(|at| group(&rest[at..]).map(|group| (at, group)));
    let Some((at, (choices, length))) = open else {
        if all.len() >= MOST {
            return None;
        }
        all.push([&done[..], rest].concat());
        return Some(());
    };
    if depth > 16 {
        return None;
    }
    let before = [&done[..], &rest[..at]].concat();
    for choice in choices {
        let mut inner = Vec::new();
        alternatives(Vec::new(), &choice, &mut inner, fuel, depth + 1)?;
        for one in inner {
            alternatives([&before[..], &one].concat(), &rest[at + length..], all, fuel, depth + 1)?;
        }
    }
    Some(())
}

/// The choices of the group at the start, and its length.
fn group<'a>(atoms: &[Atom<'a>]) -> Option<(Vec<Vec<Atom<'a>>>, usize)> {
    if !matches!(atoms.first(), Some(Atom::Char('{'))) {
        return None;
    }
    let (mut depth, mut start, mut choices) = (0usize, 1, Vec::new());
    for (at, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Char('{') => depth += 1,
            Atom::Char(',') if depth == 1 => {
                choices.push(atoms[start..at].to_vec());
                start = at + 1;
            }
            Atom::Char('}') => {
                depth -= 1;
                if depth > 0 {
                    continue;
                }
                if choices.is_empty() {
                    return sequence(&atoms[1..at]).map(|choices| (choices, at + 1));
                }
                choices.push(atoms[start..at].to_vec());
                return Some((choices, at + 1));
            }
            _ => {}
        }
    }
    None
}

/// `1..5`, `a..e`, `1..9..2`.
fn sequence<'a>(inside: &[Atom<'a>]) -> Option<Vec<Vec<Atom<'a>>>> {
    let mut text = String::new();
    for atom in inside {
        match atom {
            Atom::Char(c) => text.push(*c),
            Atom::Part(_) => return None,
        }
    }
    let mut ends = text.split("..");
    let (from, to) = (ends.next()?, ends.next()?);
    let step = ends.next().map_or(Some(1), |step| step.parse::<i64>().ok())?;
    let word = |text: String| text.chars().map(Atom::Char).collect();
    let letters = (one_char(from), one_char(to));
    let (from, to, letters) = match (from.parse::<i64>(), to.parse::<i64>(), letters) {
        (Ok(from), Ok(to), _) => (from, to, false),
        (_, _, (Some(from), Some(to))) => (i64::from(from), i64::from(to), true),
        _ => return None,
    };
    let step = usize::try_from(step.unsigned_abs().max(1)).ok()?;
    // One more than is followed, so that the whole is given up.
    let range: Vec<i64> = if from <= to {
        (from..=to).step_by(step).take(MOST + 1).collect()
    } else {
        (to..=from).rev().step_by(step).take(MOST + 1).collect()
    };
    let spell = |value: i64| match letters {
        true => u8::try_from(value).map_or_else(|_| String::new(), |byte| char::from(byte).into()),
        false => value.to_string(),
    };
    Some(range.into_iter().map(|value| word(spell(value))).collect())
}

fn one_char(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Some(*byte),
        _ => None,
    }
}
