//! Whether a rule is about a command.

use super::flags::{is_flag, is_option, message_options, options_with_value};
use super::patterns::{Among, Entry, Item};
use super::{Rule, Rules, Unsure, When};
use crate::language::{NetworkAccess, Shell};
use crate::place::Place;
use crate::shell::ast::Span;
use crate::tri::Tri;
use crate::value::{Field, Output, Piece, Value};
use crate::wildcard::{Weigh, matches, matches_value};
use crate::windows_place::place_is;

/// A program about to be started, its words expanded as far as the text tells.
#[derive(Debug)]
pub struct Invocation<'a> {
    pub shell: Shell,
    /// Without directories; empty for a redirection alone.
    pub name: &'a str,
    pub arguments: &'a [Field],
    /// Files written to by redirections and options.
    pub writes: &'a [Field],
    /// Files read by redirections and options.
    pub reads: &'a [Field],
    /// Variables set for it alone, or by it.
    pub assigns: &'a [String],
    pub input: Option<&'a Output>,
    pub cwd: &'a Place,
    pub span: Span,
}

/// How sure a match is, and the text it is about.
pub struct Match {
    pub sure: Tri,
    pub span: Span,
}

impl Rule {
    pub(crate) fn test(
        &self,
        words: &Words<'_>,
        rules: &Rules,
        network: NetworkAccess,
    ) -> Option<Match> {
        let call = words.call;
        // What is quick to see comes first.
        if (self.when == When::NoNetwork && network == NetworkAccess::Given)
            || (!self.redirect.is_empty() && call.writes.is_empty())
            || (!self.reads.is_empty() && call.reads.is_empty())
            || (!self.assign.is_empty() && call.assigns.is_empty())
            || self.not_command.iter().any(|name| name_matches(rules, name, call.name))
            || (!self.cwd.is_empty() && !words.runs_in(rules, &self.cwd))
            || !self.test_surroundings(call, rules)
        {
            return None;
        }
        let mut sure = Tri::Yes;
        let mut spans = Vec::new();
        let (flags, spent) = self.test_flags(words);
        sure = sure.and(flags);
        if sure == Tri::No {
            return None;
        }
        if !self.first.is_empty() {
            sure = sure.and(Tri::any(self.first.iter().map(|first| words.begin_with(first))));
        }
        if sure == Tri::No
            || (self.at_loopback && !words.aims_at_loopback())
            || (self.elsewhere && words.aims_at_loopback())
            || (self.foreign_address && !words.foreign_address(rules))
            || (self.password_in_address && !words.password_in_address())
        {
            return None;
        }
        let weigh = match self.unsure {
            Unsure::Allow => Weigh::SureOnly,
            Unsure::Unknown => Weigh::Possible,
        };
        let weighed = Weighed { weigh, case: self.ignore_case.into() };
        for (among, items) in self.conditions() {
            let (found, span) = words.find(rules, items, among, spent, weighed);
            sure = sure.and(found);
            if sure == Tri::No {
                return None;
            }
            spans.extend(span);
        }
        if self.reads_program && !words.reads_program(call.input) {
            return None;
        }
        let span = match spans.first() {
            // From the command's name to what makes it wrong.
            Some(span) => call.span.start.min(span.start)..call.span.end.max(span.end),
            None => call.span.clone(),
        };
        Some(Match { sure, span })
    }

    /// Whether the flags are there, and whether that takes an unknown word to be one.
    fn test_flags(&self, words: &Words<'_>) -> (Tri, Spent) {
        let mut sure = Tri::Yes;
        for wanted in &self.flags {
            sure = sure.and(Tri::any(wanted.split('|').map(|flag| words.flag(flag))));
        }
        let spent = if sure == Tri::Maybe { Spent::One } else { Spent::None };
        for unwanted in &self.without {
            if unwanted.split('|').any(|flag| words.flag(flag) == Tri::Yes) {
                return (Tri::No, spent);
            }
        }
        (sure, spent)
    }

    fn test_surroundings(&self, call: &Invocation<'_>, rules: &Rules) -> bool {
        let fed = self.fed_by.is_empty()
            || call.input.is_some_and(|input| {
                let is =
                    |from: &String| self.fed_by.iter().any(|name| name_matches(rules, name, from));
                input.from.iter().any(is)
            });
        let assigned = self.assign.is_empty()
            || call
                .assigns
                .iter()
                .any(|name| self.assign.iter().any(|pattern| name_matches(rules, pattern, name)));
        fed && assigned
    }
}

fn name_matches(rules: &Rules, pattern: &str, name: &str) -> bool {
    match rules.class(pattern) {
        Some(class) => class.iter().any(|entry| matches(&entry.text, name)),
        None => matches(pattern, name),
    }
}

/// Whether an unknown word already had to be taken for a flag.
#[derive(Clone, Copy, PartialEq)]
enum Spent {
    None,
    One,
}

/// How patterns are compared.
#[derive(Clone, Copy)]
struct Weighed {
    weigh: Weigh,
    case: Case,
}

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Exact,
    Any,
}

impl From<bool> for Case {
    fn from(ignored: bool) -> Case {
        if ignored { Case::Any } else { Case::Exact }
    }
}

/// A word that is compared with the patterns of a condition.
struct ComparedWord<'a> {
    call: &'a Invocation<'a>,
    value: &'a Value,
    /// In lower case, where case does not matter.
    lower: Option<Value>,
    place: std::cell::OnceCell<Place>,
    weigh: Weighed,
}

impl<'a> ComparedWord<'a> {
    fn new(call: &'a Invocation<'a>, value: &'a Value, weigh: Weighed) -> ComparedWord<'a> {
        // Windows does not tell letters by case.
        let folds = call.shell != Shell::Bash || weigh.case == Case::Any;
        let lower = folds.then(|| {
            let mut lower = value.clone();
            for piece in &mut lower.pieces {
                if let Piece::Text(text) = piece {
                    *text = text.to_lowercase();
                }
            }
            lower
        });
        ComparedWord { call, value, lower, place: std::cell::OnceCell::new(), weigh }
    }

    /// Of a class, unless an exception of the class names it.
    fn is_of(&self, class: &[Entry]) -> Tri {
        if self.call.shell != Shell::Bash {
            let plain = self.value.known().is_some_and(|text| !text.contains(['/', '\\', '~']));
            let is = |except: bool| {
                // A plain name is no place of more than one name; most words are plain.
                let of = class.iter().filter(move |entry| {
                    entry.except == except && !(plain && entry.text.contains('/'))
                });
                Tri::any(of.map(|entry| place_is(self.value, &entry.text)))
            };
            return if is(true) == Tri::Yes { Tri::No } else { is(false) };
        }
        let excepted = |entry: &&Entry| entry.except && self.is(entry) == Tri::Yes;
        if class.iter().any(|entry| excepted(&entry)) {
            return Tri::No;
        }
        Tri::any(class.iter().filter(|entry| !entry.except).map(|entry| self.is(entry)))
    }

    fn is(&self, entry: &Entry) -> Tri {
        match &entry.place {
            Some(wanted) if self.call.shell == Shell::Bash => {
                self.place.get_or_init(|| self.call.cwd.join(self.value)).is(wanted)
            }
            _ => self.pattern(&entry.text),
        }
    }

    fn pattern(&self, pattern: &str) -> Tri {
        match (&self.lower, self.call.shell) {
            (None, _) => matches_value(pattern, self.value, self.weigh.weigh),
            // Patterns of rules that ignore case are in lower case already.
            (Some(lower), Shell::Bash) => matches_value(pattern, lower, self.weigh.weigh),
            (Some(lower), _) => matches_value(&pattern.to_lowercase(), lower, self.weigh.weigh),
        }
    }
}

/// An invocation with its options told from its operands.
pub struct Words<'a> {
    call: &'a Invocation<'a>,
    /// Which arguments are options, and which are not.
    operands: Vec<&'a Field>,
    /// All but texts for people, such as a commit's message.
    told: Vec<&'a Field>,
}

impl<'a> Words<'a> {
    pub fn new(call: &'a Invocation<'a>) -> Words<'a> {
        let (mut operands, mut told): (Vec<&Field>, Vec<&Field>) = (Vec::new(), Vec::new());
        let (mut ended, mut value, mut message) = (false, false, false);
        let with_value = options_with_value(call.name);
        for field in call.arguments {
            let known = field.known();
            if std::mem::take(&mut message) && known.is_some() {
                continue;
            }
            told.push(field);
            let subcommand = operands.first().and_then(|field| field.known());
            message = !ended
                && known.as_deref().zip(subcommand.as_deref()).is_some_and(|(text, subcommand)| {
                    message_options(call.name, subcommand).contains(&text)
                });
            if std::mem::take(&mut value) {
                continue;
            }
            value = operands.is_empty()
                && known.as_deref().is_some_and(|text| with_value.contains(&text));
            if !ended && known.as_deref() == Some("--") && call.shell == Shell::Bash {
                ended = true;
                continue;
            }
            if ended || !is_option(&field.value, call.shell) {
                operands.push(field);
            }
        }
        Words { call, operands, told }
    }

    pub(super) fn name(&self) -> &str {
        self.call.name
    }

    pub(super) fn arguments(&self) -> &[Field] {
        self.call.arguments
    }

    fn flag(&self, wanted: &str) -> Tri {
        let mut sure = Tri::No;
        for field in self.call.arguments {
            let found = match field.known() {
                Some(text) if text == "--" && self.call.shell == Shell::Bash => break,
                Some(text) => is_flag(&text, wanted, self.call.shell).into(),
                // A known start that is no dash makes it no flag.
                None if field.value.is_many() => Tri::Maybe,
                None => match field.value.pieces.first() {
                    Some(Piece::Text(text)) if !text.starts_with('-') => Tri::No,
                    Some(Piece::Glob(_) | Piece::Home) => Tri::No,
                    Some(Piece::Text(text)) if is_flag(text, wanted, self.call.shell) => Tri::Yes,
                    _ => Tri::Maybe,
                },
            };
            sure = sure.or(found);
        }
        sure
    }

    /// The first words that are no options.
    fn begin_with(&self, wanted: &str) -> Tri {
        let mut sure = Tri::Yes;
        let mut operands = self.operands.iter();
        for word in wanted.split(' ') {
            let Some(field) = operands.next() else {
                return Tri::No;
            };
            sure = sure.and(matches_value(word, &field.value, Weigh::Possible));
        }
        sure
    }

    fn find(
        &self,
        rules: &Rules,
        items: &[Item],
        among: Among,
        spent: Spent,
        weigh: Weighed,
    ) -> (Tri, Option<Span>) {
        let all: Vec<&Field> = match among {
            Among::Operands => self.operands.clone(),
            Among::LastOperand => self.operands.last().copied().into_iter().collect(),
            Among::All => self.told.clone(),
            Among::Writes => self.call.writes.iter().collect(),
            Among::Reads => self.call.reads.iter().collect(),
        };
        let mut best = (Tri::No, None);
        let mut perhaps = 0;
        for field in all {
            let word = ComparedWord::new(self.call, &field.value, weigh);
            let sure = Tri::any(items.iter().map(|item| match item {
                Item::Class(name) => word.is_of(rules.class_named(name)),
                Item::Own(entry) => word.is(entry),
            }));
            let single_unknown = sure == Tri::Maybe
                && !field.value.is_many()
                && matches!(field.value.pieces.first(), Some(Piece::Unknown));
            if single_unknown {
                perhaps += 1;
                // One unknown word cannot be both the flag and what it is about.
                if spent == Spent::One && perhaps < 2 {
                    continue;
                }
            }
            if sure > best.0 {
                best = (sure, Some(field.span.clone()));
            }
        }
        best
    }

    /// Whether the command runs in one of these places.
    fn runs_in(&self, rules: &Rules, places: &[String]) -> bool {
        let is = |entry: &Entry| {
            entry.place.as_ref().is_some_and(|wanted| self.call.cwd.is(wanted) == Tri::Yes)
        };
        places.iter().any(|place| match rules.class(place) {
            Some(class) => class.iter().any(is),
            None => is(&Entry::new(place)),
        })
    }

    /// It is given no file and no text, so it runs what it reads.
    fn reads_program(&self, input: Option<&Output>) -> bool {
        let program = |field: &&&Field| field.known().as_deref() != Some("-");
        let operands = self.operands.iter().filter(program).count();
        let version = ["--version", "-V", "-v", "--help", "-h"];
        let asked = self
            .call
            .arguments
            .iter()
            .any(|field| field.known().is_some_and(|text| version.contains(&text.as_ref())));
        let substituted = self.operands.iter().any(|field| field.feed.is_some());
        substituted || operands == 0 && !asked && input.is_some()
    }
}
