//! What a PowerShell command hands on: to itself, to another shell, in an encoding.

use std::ops::Range;

use super::aliases::canonical;
use super::powershell::{FETCHERS, PowerShell};
use crate::decode;
use crate::evaluate::Evaluator;
use crate::shell::Origin;
use crate::value::{Field, Output, Piece, Value};

impl Evaluator<'_> {
    /// What a command hands on to another language or to itself.
    pub(super) fn runs(
        &mut self,
        name: &str,
        arguments: &[Field],
        input: Option<&Output>,
        span: Range<usize>,
        shell: &mut PowerShell,
    ) -> Output {
        let operand = arguments.iter().find(|field| !field.value.starts_with('-'));
        match name {
            "invoke-expression" => {
                let fetched = input.is_some_and(|input| {
                    input.from.iter().any(|from| FETCHERS.contains(&from.as_str()))
                });
                if fetched {
                    self.raise("download-to-shell", span.clone());
                }
                let value = operand.map(|field| field.value.clone());
                let value = value.or_else(|| input.and_then(|input| input.text.clone()));
                self.expression_text(value, operand, span, shell);
                Output::unknown(name)
            }
            "powershell" | "pwsh" => {
                self.powershell_call(arguments, input, span);
                Output::unknown(name)
            }
            "cmd" => {
                let at = arguments.iter().position(|field| {
                    field.known().is_some_and(|t| {
                        t.eq_ignore_ascii_case("/c") || t.eq_ignore_ascii_case("/k")
                    })
                });
                if let Some(at) = at {
                    self.joined_cmd(&arguments[at + 1..], span);
                }
                Output::unknown(name)
            }
            "bash" | "sh" | "wsl" => {
                self.posix_shell(name, arguments, span);
                Output::unknown(name)
            }
            "set-alias" | "new-alias" => {
                let words: Vec<String> = arguments
                    .iter()
                    .filter(|field| !field.value.starts_with('-'))
                    .filter_map(|field| field.known().map(|text| text.into_owned()))
                    .collect();
                if let [alias, target, ..] = &words[..]
                    && shell.aliases.len() < 64
                {
                    shell.aliases.insert(alias.to_lowercase(), canonical(target));
                }
                Output::nothing()
            }
            "write-output" | "write-host" => {
                let mut text = Value::default();
                arguments.iter().for_each(|field| text.extend(&field.value));
                Output::known(text, name)
            }
            "get-childitem" => listing(name, arguments),
            "where-object" | "select-object" | "sort-object" => narrowed(name, input),
            // Of one program alone: no longer everything that runs.
            "get-process" if arguments.iter().any(names_one) => {
                Output::unknown("get-process by name")
            }
            "get-location" => Output::known(Value::text("."), name),
            name => Output::unknown(name),
        }
    }

    /// A shell of another kind reads what it is given.
    fn posix_shell(&mut self, name: &str, arguments: &[Field], span: Range<usize>) {
        let text: Vec<String> = arguments
            .iter()
            .map(|field| field.known().map(|t| crate::evaluate::quote(&t)))
            .map(|text| text.unwrap_or_else(|| "$__unknown".to_owned()))
            .collect();
        let program = if name == "wsl" { "" } else { name };
        let text = format!("{program} {}", text.join(" "));
        self.bash_within(text.trim_start(), span);
    }

    fn expression_text(
        &mut self,
        value: Option<Value>,
        operand: Option<&Field>,
        span: Range<usize>,
        shell: &mut PowerShell,
    ) {
        match value.as_ref().map(|value| (value.known(), value)) {
            Some((Some(text), _)) => {
                let origin = match operand {
                    Some(field) => field.origin(&text),
                    None => Origin::Within(span),
                };
                self.powershell_text(&text, origin, shell);
            }
            Some((None, value)) => {
                if value.pieces.contains(&Piece::Fetched) {
                    self.raise("download-to-shell", span.clone());
                }
                self.raise("unknown-text", span);
            }
            None => self.raise("unknown-text", span),
        }
    }

    /// `powershell -enc …`, `-Command …`.
    pub(super) fn powershell_call(
        &mut self,
        arguments: &[Field],
        input: Option<&Output>,
        span: Range<usize>,
    ) {
        let mut at = 0;
        while let Some(field) = arguments.get(at) {
            let Some(word) = field.known() else {
                return self.raise("unknown-text", field.span.clone());
            };
            let lower = word.to_lowercase().replace('/', "-").replace(['–', '—'], "-");
            let option = lower.strip_prefix('-').unwrap_or_default();
            let is = |full: &str| !option.is_empty() && full.starts_with(option);
            if option == "ec" || (is("encodedcommand") && !is("executionpolicy")) || option == "e" {
                return self.encoded(arguments.get(at + 1), span);
            }
            let is_input = |field: &Field| field.known().as_deref() == Some("-");
            if lower == "-" || is("command") && arguments.get(at + 1).is_some_and(is_input) {
                break;
            }
            if is("command") || !lower.starts_with('-') {
                let rest = &arguments[at + usize::from(lower.starts_with('-'))..];
                let words: Vec<String> =
                    rest.iter().map(|field| field.value.without_unknown()).collect();
                if rest.iter().any(|field| field.value.known().is_none()) {
                    self.raise("unknown-text", span.clone());
                }
                let origin = match rest {
                    [only] => only.origin(&words[0]),
                    _ => Origin::Within(span),
                };
                return self.powershell_text(&words.join(" "), origin, &mut PowerShell::default());
            }
            let takes_value = is("executionpolicy")
                || option == "ep"
                || option == "ex"
                || is("windowstyle")
                || is("version")
                || is("outputformat")
                || is("inputformat")
                || is("configurationname");
            if is("file") {
                return;
            }
            at += 1 + usize::from(takes_value);
        }
        if let Some(input) = input {
            match input.text.as_ref().and_then(|text| text.known()) {
                Some(text) => {
                    self.powershell_text(&text, Origin::Within(span), &mut PowerShell::default());
                }
                None => self.raise("unknown-text", span),
            }
        }
    }

    /// What is hidden this way is refused as such, and said what it is.
    fn encoded(&mut self, field: Option<&Field>, span: Range<usize>) {
        let at = field.map_or(span.clone(), |field| field.span.clone());
        self.raise("encoded-command", span.start.min(at.start)..span.end.max(at.end));
        let known = field.and_then(|field| field.known());
        let text = known.and_then(|text| decode::base64(&text)).and_then(|b| decode::utf16(&b));
        match text {
            Some(text) => {
                self.powershell_text(&text, Origin::Within(at), &mut PowerShell::default());
            }
            None => self.raise("unknown-text", at),
        }
    }
}

/// What a listing hands on: the environment, or the directory that it lists whole.
fn listing(name: &str, arguments: &[Field]) -> Output {
    let env =
        |field: &Field| field.known().is_some_and(|text| text.to_lowercase().starts_with("env:"));
    if arguments.iter().any(env) {
        return Output::unknown(super::portable::ENVIRONMENT);
    }
    let filters = |field: &Field| {
        field.known().is_some_and(|text| {
            let text = text.to_lowercase();
            ["-filter", "-include", "-exclude"]
                .iter()
                .any(|f| text.len() > 2 && f.starts_with(&text))
        })
    };
    let (mut places, mut filtered, mut value) = (Vec::new(), false, false);
    for field in arguments {
        if filters(field) {
            (filtered, value) = (true, true);
        } else if field.value.starts_with('-') {
            value = false;
        } else if !value {
            places.push(field);
        }
    }
    match &places[..] {
        [] if filtered => Output::unknown(name),
        [] => Output::known(Value::text("."), name),
        [place] if filtered => narrowed(name, Some(&Output::known(place.value.clone(), name))),
        [place] => Output::known(place.value.clone(), name),
        _ => Output::unknown(name),
    }
}

/// A word that names a process or a few, and not all.
fn names_one(field: &Field) -> bool {
    let all = |text: &str| text.starts_with('-') || text.chars().all(|c| matches!(c, '*' | '?'));
    field.known().is_some_and(|text| !all(&text))
}

/// Some of what comes in: of the current directory that may be anything, of a home or a drive it is too much still.
fn narrowed(name: &str, input: Option<&Output>) -> Output {
    let is_here = |text: &Value| {
        text.known().is_some_and(|text| text.chars().all(|c| matches!(c, '.' | '\\' | '/')))
    };
    match input.and_then(|input| input.text.clone()).filter(|text| !is_here(text)) {
        Some(text) => Output::known(text, name),
        None => Output::unknown(name),
    }
}
