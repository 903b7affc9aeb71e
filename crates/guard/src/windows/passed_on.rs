//! What PowerShell's commands pass on: downloads into files, secrets to the network, listings to what deletes.

use std::ops::Range;

use super::powershell::FETCHERS;
use super::tokens::Token;
use crate::evaluate::Evaluator;
use crate::language::Shell;
use crate::place::Place;
use crate::rules::Invocation;
use crate::value::{Field, Output, Piece, Value};

impl Evaluator<'_> {
    /// `$env:NODE_OPTIONS = '--require x'` makes programs run other code than their own, as it does in a POSIX shell.
    pub(super) fn sets_variable(&mut self, name: &str, value: &Value, span: Range<usize>) {
        let Some(name) = name.to_uppercase().strip_prefix("ENV:").map(str::to_owned) else {
            return;
        };
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name && name != "PATH" {
            let value = crate::evaluate::quote(&value.without_unknown());
            self.bash_within(&format!("export {name}={value}"), span);
        }
    }

    /// A whole home or drive that is moved elsewhere is as good as gone.
    pub(super) fn moves_away(&mut self, name: &str, arguments: &[Field]) {
        if !matches!(name, "move-item" | "move") {
            return;
        }
        let operand =
            |field: &&Field| !field.value.starts_with('-') && !field.value.starts_with('/');
        let Some(first) = arguments.iter().find(operand) else {
            return;
        };
        let text = first.value.without_unknown();
        let is_home =
            matches!(first.value.pieces.first(), Some(Piece::Home)) || text.starts_with('~');
        if is_home || text.get(1..2) == Some(":") {
            self.deletes(first.value.clone(), first.span.clone());
        }
    }

    /// A place that goes entry by entry.
    pub(super) fn deletes(&mut self, place: Value, span: Range<usize>) {
        let place = Field::new(place, span.clone());
        let recursive = Field::new(Value::text("-Recurse"), span.clone());
        self.show(&Invocation {
            shell: Shell::PowerShell,
            name: "remove-item",
            arguments: &[place, recursive],
            writes: &[],
            reads: &[],
            assigns: &[],
            input: None,
            cwd: &Place::start(),
            span,
        });
    }

    /// What a cmdlet saves came from the network.
    pub(super) fn fetches(&mut self, name: &str, arguments: &[Field]) {
        if !FETCHERS.contains(&name) {
            return;
        }
        let option = |field: &Field| {
            field.known().is_some_and(|text| {
                let text = text.to_lowercase();
                text == "-o"
                    || text.len() > 3
                        && ("-outfile".starts_with(&text) || "-destination".starts_with(&text))
            })
        };
        let named = arguments.iter().position(option).and_then(|at| arguments.get(at + 1));
        let second = || match name {
            "start-bitstransfer" => arguments.iter().filter(|f| !f.value.starts_with('-')).nth(1),
            _ => None,
        };
        if let Some(file) = named.or_else(second) {
            self.keeps(file, Output::unknown("curl"));
        }
    }

    /// What came from the network into a file: `irm x | Set-Content y`.
    pub(super) fn saves(&mut self, name: &str, arguments: &[Field], input: Option<&Output>) {
        let saves = ["set-content", "add-content", "out-file", "tee-object"];
        let operand = |field: &&Field| !field.value.starts_with('-');
        let Some(file) = arguments.iter().find(operand).filter(|_| saves.contains(&name)) else {
            return;
        };
        if let Some(input) = input {
            self.keeps_fetched(std::slice::from_ref(file), input);
        }
    }

    /// Remembers that files hold what came from the network.
    pub(super) fn keeps_fetched(&mut self, files: &[Field], output: &Output) {
        let fetched =
            output.from.iter().any(|from| from == "curl" || FETCHERS.contains(&from.as_str()));
        for file in files.iter().filter(|_| fetched) {
            self.keeps(file, Output::unknown("curl"));
        }
    }

    /// `gci ~ | % Delete`.
    pub(super) fn calls_member(&mut self, arguments: &[Field], input: Option<&Output>) {
        let deletes =
            |field: &Field| field.known().is_some_and(|text| text.eq_ignore_ascii_case("delete"));
        let place = input.filter(|input| is_listing(input)).and_then(|input| input.text.clone());
        if let (Some(place), Some(field)) = (place, arguments.iter().find(|field| deletes(field))) {
            self.deletes(place, field.span.clone());
        }
    }

    /// A key of the environment, or a file with secrets, that a command prints or sends.
    pub(super) fn tells_secret(&mut self, name: &str, words: &[Token], span: Range<usize>) {
        let named = |field: &str| is_secret_variable(&field.replace('*', ""));
        let lists = |token: &Token| {
            matches!(token, Token::Word(value, _) | Token::Text(value, _)
                if value.known().is_some_and(|text| named(&text.replace(['\\', '/'], ""))))
        };
        if matches!(name, "get-childitem" | "get-item") && words.iter().any(lists) {
            self.raise("print-secret-variable", span.clone());
        }
        let variable = words.iter().any(|token| match token {
            Token::Variable(name, _) => is_secret_variable(name),
            Token::Word(value, _) | Token::Text(value, _) => value
                .without_unknown()
                .split('\u{1}')
                .skip(1)
                .any(|part| is_secret_variable(part.split('\u{2}').next().unwrap_or_default())),
            _ => false,
        });
        let sends = FETCHERS.contains(&name)
            || matches!(
                name,
                "send-mailmessage" | "resolve-dnsname" | "nslookup" | "test-connection"
            );
        let header = words.iter().any(|token| {
            let option =
                |text: String| "-headers".starts_with(&text) && text.len() > 1 || text == "-token";
            matches!(token, Token::Word(value, _) if option(value.without_unknown().to_lowercase()))
        });
        if sends && self.windows.secret {
            self.raise("send-environment-argument", span.clone());
        }
        if variable && sends && !header {
            self.raise("send-secret-variable", span);
        } else if variable && matches!(name, "write-output" | "write-host" | "out-string") {
            self.raise("print-secret-variable", span);
        }
    }
}

/// `$env:NAME` of a key or a password, by its name.
pub fn is_secret_variable(name: &str) -> bool {
    let upper = name.to_uppercase();
    upper.strip_prefix("ENV:").is_some_and(crate::evaluate::names_secret)
}

/// `gci ~ -Recurse | Remove-Item`: what a listing of everything hands on is the directory itself. The same in a loop
/// over it, where `item` is what its variable stands for.
pub fn listed(
    name: &str,
    arguments: &[Field],
    input: Option<&Output>,
    item: Option<&Value>,
) -> Vec<Field> {
    let recursive = || Field::new(Value::text("-Recurse"), 0..0);
    let is_item = |field: &Field| item == Some(&field.value);
    if matches!(name, "remove-item" | "clear-content") && arguments.iter().any(is_item) {
        return vec![recursive()];
    }
    let Some((input, place)) = input.and_then(|input| input.text.clone().map(|text| (input, text)))
    else {
        return Vec::new();
    };
    let begins = matches!(place.pieces.first(), Some(Piece::Text(_) | Piece::Home));
    let listing = is_listing(input);
    let takes = match (READING.contains(&name), DELETING.contains(&name)) {
        (true, _) => listing,
        // A text that comes in is a path, too.
        (_, true) => (listing || name == "remove-item" && begins) && !names_place(arguments),
        _ => false,
    };
    if !takes {
        return Vec::new();
    }
    let mut fields = vec![Field::new(place, 0..0)];
    if listing && matches!(name, "remove-item" | "clear-content" | "set-content") {
        fields.push(recursive());
    }
    fields
}

/// Cmdlets that take away what comes in, and those that read it.
const DELETING: &[&str] =
    &["remove-item", "clear-item", "clear-content", "move-item", "set-content"];
const READING: &[&str] = &[
    "get-content",
    "copy-item",
    "compress-archive",
    "select-string",
    "format-hex",
    "import-clixml",
];

/// Whether an output is that of a listing, or of one place of it.
pub fn is_listing(output: &Output) -> bool {
    output.from.iter().any(|from| from == "get-childitem" || from == "get-item")
}

/// Whether a command names its own place besides what comes in: a word that is neither an option nor the value of one.
fn names_place(arguments: &[Field]) -> bool {
    let mut value = false;
    arguments.iter().any(|field| {
        let text = field.known().map(|text| text.to_lowercase()).unwrap_or_default();
        let of_option = std::mem::replace(
            &mut value,
            matches!(
                text.as_str(),
                "-value" | "-encoding" | "-erroraction" | "-ea" | "-destination"
            ),
        );
        !of_option && !field.value.starts_with('-')
    })
}
