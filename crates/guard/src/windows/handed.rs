//! What a PowerShell command hands on: to itself, to another shell, in an encoding.

use std::ops::Range;

use super::aliases::canonical;
use super::listing::{listing, narrowed};
use super::powershell::{FETCHERS, PowerShell};
use crate::decode;
use crate::evaluate::Evaluator;
use crate::language::Shell;
use crate::place::Place;
use crate::rules::Invocation;
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
                self.cmd_call(arguments, input, span);
                Output::unknown(name)
            }
            "bash" | "sh" | "wsl" => {
                self.posix_shell(name, arguments, span);
                Output::unknown(name)
            }
            "forfiles" => {
                self.for_files(arguments, span);
                Output::unknown(name)
            }
            "join-path" => path_of(name, arguments),
            // Where the history is; of its other settings nothing is read.
            "get-psreadlineoption" => Output::known(crate::windows_place::history(), name),
            "start-process" => {
                self.started(arguments, input, span, shell);
                Output::unknown(name)
            }
            "set-alias" | "new-alias" => {
                self.names_alias(arguments, span, shell);
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
            "foreach-object" => {
                self.calls_member(arguments, input);
                Output::unknown(name)
            }
            "get-item" => operand.map_or_else(
                || Output::unknown(name),
                |place| Output::known(place.value.clone(), name),
            ),
            "new-object" => match super::objects::made(arguments) {
                Some(place) => Output::known(place, name),
                None => Output::unknown(name),
            },
            "get-location" => Output::known(Value::text("."), name),
            name => Output::unknown(name),
        }
    }

    /// `Set-Alias name command`.
    fn names_alias(&mut self, arguments: &[Field], span: Range<usize>, shell: &mut PowerShell) {
        let words: Vec<String> = arguments
            .iter()
            .filter(|field| !field.value.starts_with('-'))
            .filter_map(|field| field.known().map(|text| text.into_owned()))
            .collect();
        if let [alias, ..] = &words[..]
            && super::aliases::is_command(alias)
        {
            self.raise("shadow-command", span);
        }
        if let [alias, target, ..] = &words[..]
            && shell.aliases.len() < 64
        {
            shell.aliases.insert(alias.to_lowercase(), canonical(target));
        }
    }

    /// `cmd /c text`, or lines that come in.
    fn cmd_call(&mut self, arguments: &[Field], input: Option<&Output>, span: Range<usize>) {
        let at = arguments.iter().position(|field| {
            field
                .known()
                .is_some_and(|t| t.eq_ignore_ascii_case("/c") || t.eq_ignore_ascii_case("/k"))
        });
        match (at, input) {
            (Some(at), _) => self.joined_cmd(&arguments[at + 1..], span),
            // It runs the lines that come in.
            (None, Some(input)) => match input.text.as_ref().and_then(|text| text.known()) {
                Some(text) => self.cmd(&text, Origin::Within(span)),
                None => self.raise("unknown-text", span),
            },
            (None, None) => {}
        }
    }

    /// `Start-Process cmd -ArgumentList '/c', '…'`: the program with its arguments, as if it stood there.
    fn started(
        &mut self,
        arguments: &[Field],
        input: Option<&Output>,
        span: Range<usize>,
        shell: &mut PowerShell,
    ) {
        let mut words: Vec<&Field> = Vec::new();
        let mut skipped = false;
        for field in arguments {
            let text = field.known().map(|text| text.to_lowercase()).unwrap_or_default();
            let is = |option: &str| text.len() > 1 && option.starts_with(&text);
            match std::mem::take(&mut skipped) {
                true => {}
                // Options of `Start-Process` itself; what begins with a dash among the arguments of a program does too.
                false if is("-filepath") || is("-argumentlist") || text == "-args" => {}
                false if OWN_SWITCHES.iter().any(|own| is(own)) && text.len() > 2 => {}
                false if OWN_OPTIONS.iter().any(|own| is(own)) && text.len() > 2 => skipped = true,
                false => words.push(field),
            }
        }
        let Some((program, rest)) = words.split_first() else {
            return;
        };
        let Some(name) = program.known().map(|name| canonical(&name)) else {
            return;
        };
        // One text for several arguments is split by the program.
        let mut given = Vec::new();
        for field in rest {
            match field.known() {
                Some(text) if text.contains(' ') && rest.len() == 1 => {
                    let words = text.split(' ').filter(|word| !word.is_empty());
                    let field = |word| Field::new(Value::text(word), field.span.clone());
                    given.extend(words.map(field));
                }
                _ => given.push((*field).clone()),
            }
        }
        if matches!(name.as_str(), "cmd" | "powershell" | "pwsh" | "wsl" | "bash" | "sh") {
            self.runs(&name, &given, input, span, shell);
            return;
        }
        self.show(&Invocation {
            shell: Shell::PowerShell,
            name: &name,
            arguments: &given,
            writes: &[],
            reads: &[],
            assigns: &[],
            input: None,
            cwd: &Place::start(),
            span: span.clone(),
        });
        self.portable(&name, &given, &[], None, span);
    }

    /// `forfiles /c "cmd /c …"`.
    pub(super) fn for_files(&mut self, arguments: &[Field], span: Range<usize>) {
        let is = |field: &Field| {
            field.known().is_some_and(|text| matches!(text.as_ref(), "/c" | "/C" | "-c" | "-C"))
        };
        if let Some(at) = arguments.iter().position(is) {
            self.joined_cmd(&arguments[at + 1..], span);
        }
    }

    /// A shell of another kind reads what it is given.
    pub(super) fn posix_shell(&mut self, name: &str, arguments: &[Field], span: Range<usize>) {
        let arguments = if name == "wsl" { behind_options_of_wsl(arguments) } else { arguments };
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
                if let Some(file) = arguments.get(at + 1) {
                    self.starts_file(file);
                }
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

/// Switches of `Start-Process`, and options with a value.
const OWN_SWITCHES: &[&str] = &["-wait", "-nonewwindow", "-passthru", "-usenewenvironment"];
const OWN_OPTIONS: &[&str] = &[
    "-verb",
    "-windowstyle",
    "-workingdirectory",
    "-redirectstandardoutput",
    "-redirectstandarderror",
    "-redirectstandardinput",
    "-credential",
];

/// The command that wsl is to run.
fn behind_options_of_wsl(arguments: &[Field]) -> &[Field] {
    let mut at = 0;
    while let Some(text) = arguments.get(at).and_then(|field| field.known()) {
        at += match text.as_ref() {
            "-d" | "--distribution" | "-u" | "--user" | "--cd" | "--shell-type" => 2,
            "-e" | "--exec" | "--" => return arguments.get(at + 1..).unwrap_or_default(),
            _ => break,
        };
    }
    arguments.get(at..).unwrap_or_default()
}

/// `Join-Path $_ .git`.
fn path_of(name: &str, arguments: &[Field]) -> Output {
    let mut path = Value::default();
    for field in arguments.iter().filter(|field| !field.value.starts_with('-')) {
        match field.known() {
            // What stands behind `$_` is its member.
            Some(member) if member.eq_ignore_ascii_case(".fullname") => continue,
            _ if path.pieces.is_empty() => {}
            _ => path.push_text("\\"),
        }
        path.extend(&field.value);
    }
    Output::known(path.bounded(), name)
}

/// A word that names a process or a few, and not all.
fn names_one(field: &Field) -> bool {
    let all = |text: &str| text.starts_with('-') || text.chars().all(|c| matches!(c, '*' | '?'));
    field.known().is_some_and(|text| !all(&text))
}
