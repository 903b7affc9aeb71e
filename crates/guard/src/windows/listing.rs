//! What `Get-ChildItem` hands on, and what is left of it behind a filter.

use super::portable;
use crate::value::{Field, Output, Piece, Value};

/// What a listing hands on: the environment, or the directory that it lists whole.
pub fn listing(name: &str, arguments: &[Field]) -> Output {
    let env =
        |field: &Field| field.known().is_some_and(|text| text.to_lowercase().starts_with("env:"));
    if arguments.iter().any(env) {
        return Output::unknown(portable::ENVIRONMENT);
    }
    let listing = Listing::of(arguments);
    let here = Value::text(".");
    let place = match &listing.places[..] {
        [] => &here,
        [place] => place,
        // Of several the one that is most.
        places => match places.iter().find(|place| is_rooted(place)) {
            Some(place) => place,
            None => return Output::unknown(name),
        },
    };
    match &listing.chosen {
        Chosen::All => Output::known(place.clone(), name),
        // Of a home or a drive the files of a kind are too much still, but a repository is a repository.
        Chosen::ByName(chosen) if is_here(place) || chosen.known().as_deref() == Some(".git") => {
            let mut path = place.clone();
            path.push_text("\\");
            path.extend(chosen);
            Output::known(path.bounded(), name)
        }
        _ => narrowed(name, Some(&Output::known(place.clone(), name))),
    }
}

/// Which of the entries a listing gives.
enum Chosen {
    All,
    ByName(Value),
    ButSome,
}

struct Listing {
    places: Vec<Value>,
    chosen: Chosen,
}

impl Listing {
    fn of(arguments: &[Field]) -> Listing {
        let mut listing = Listing { places: Vec::new(), chosen: Chosen::All };
        let mut option = String::new();
        for field in arguments {
            if field.value.starts_with('-') {
                option = field.value.without_unknown().to_lowercase();
                continue;
            }
            let is = |full: &str| option.len() > 2 && full.starts_with(&option);
            let all = matches!(field.known().as_deref(), Some("*" | "*.*"));
            match listing.chosen {
                Chosen::All if is("-exclude") => listing.chosen = Chosen::ButSome,
                _ if is("-exclude") || all && (is("-filter") || is("-include")) => {}
                _ if is("-filter") || is("-include") => {
                    listing.chosen = Chosen::ByName(field.value.clone());
                }
                _ if VALUED.iter().any(|valued| is(valued)) => option.clear(),
                _ => listing.places.push(field.value.clone()),
            }
        }
        listing
    }
}

/// Options of a listing whose value is no place.
const VALUED: &[&str] = &[
    "-erroraction",
    "-ea",
    "-errorvariable",
    "-ev",
    "-outvariable",
    "-ov",
    "-outbuffer",
    "-ob",
    "-warningaction",
    "-wa",
    "-informationaction",
    "-progressaction",
    "-depth",
    "-attributes",
];

/// A home or a place of a drive.
fn is_rooted(place: &Value) -> bool {
    let text = place.without_unknown();
    matches!(place.pieces.first(), Some(Piece::Home))
        || text.starts_with('~')
        || text.get(1..2) == Some(":")
}

/// Some of what comes in: of the current directory that may be anything, of a home or a drive it is too much still.
pub fn narrowed(name: &str, input: Option<&Output>) -> Output {
    match input.and_then(|input| input.text.clone()).filter(|text| !is_here(text)) {
        Some(text) => Output::known(text, name),
        None => Output::unknown(name),
    }
}

fn is_here(place: &Value) -> bool {
    place.known().is_some_and(|text| text.chars().all(|c| matches!(c, '.' | '\\' | '/')))
}
