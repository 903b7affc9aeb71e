//! Objects that a PowerShell text makes of a place, and what their methods do to it: `(Get-Item x).Delete()`,
//! `([IO.DirectoryInfo]'x').Delete()`, `[IO.File]::ReadAllText('x')`.

use super::powershell::{PowerShell, span_of};
use super::tokens::{Token, is_own_path};
use super::types::is_harmless;
use crate::evaluate::Evaluator;
use crate::language::Shell;
use crate::place::Place;
use crate::rules::Invocation;
use crate::value::{Field, Output, Piece, Value};

/// Static methods for which there is a cmdlet, and which do no more than that.
const CMDLETS: &[(&str, &[&str], &str)] = &[
    ("io.file", &["exists"], "test-path"),
    ("io.directory", &["exists"], "test-path"),
    ("io.file", &["readalltext", "readalllines", "readlines", "readallbytes"], "get-content"),
    (
        "io.file",
        &["writealltext", "writealllines", "writeallbytes", "appendalltext", "appendalllines"],
        "set-content",
    ),
];

/// Types that are a place, as what is written behind them or given to `New-Object`.
const OF_PLACE: &[&str] = &["io.directoryinfo", "io.fileinfo", "string"];

/// Types of which a name is enough to reach the machine's services.
const SERVICES: &[&str] = &["wmiclass", "wmi", "wmisearcher", "adsi", "adsisearcher"];

impl Evaluator<'_> {
    /// Types and their members: what only computes is nothing, what a cmdlet does too is judged as that cmdlet.
    pub(super) fn types(&mut self, tokens: &[Token], shell: &mut PowerShell) {
        for (at, token) in tokens.iter().enumerate() {
            let Token::Type(name, span) = token else {
                continue;
            };
            if SERVICES.contains(&plain(name).as_str()) && at + 1 < tokens.len() {
                self.raise("dotnet-call", span.clone());
            }
            let Some(member) = tokens.get(at + 1).and_then(member_of_type) else {
                continue;
            };
            if is_harmless(name) && !member.starts_with("setenvironment") {
                continue;
            }
            if !self.is_cmdlet(&plain(name), &member, &tokens[at..], shell) {
                self.raise("dotnet-call", span.clone());
            }
        }
    }

    /// Judges `[IO.File]::ReadAllText('x')` as `Get-Content x`, where the file is known and none with secrets.
    fn is_cmdlet(
        &mut self,
        name: &str,
        member: &str,
        tokens: &[Token],
        shell: &mut PowerShell,
    ) -> bool {
        let Some(cmdlet) = cmdlet(name, member) else {
            return false;
        };
        let Some(Token::Block('(', given, span)) = tokens.get(2) else {
            return false;
        };
        let file: Vec<Token> = given
            .iter()
            .take_while(|token| !matches!(token, Token::Sign(',', _)))
            .cloned()
            .collect();
        let [file] = &file[..] else {
            return false;
        };
        let field = Field::new(self.value(file, shell), span.clone());
        let known = !field.value.pieces.is_empty()
            && field
                .value
                .pieces
                .iter()
                .all(|p| matches!(p, Piece::Text(_) | Piece::Home | Piece::Name));
        let arguments = [field];
        if !known {
            return false;
        }
        self.show(&Invocation {
            shell: Shell::PowerShell,
            name: cmdlet,
            arguments: &arguments,
            writes: &[],
            reads: &[],
            assigns: &[],
            input: None,
            cwd: &Place::start(),
            span: span_of(tokens),
        });
        // Where the secret goes from there is not followed.
        self.shows(&arguments, Output::default()).from.is_empty()
    }

    /// What a variable that holds a listing gives, `(gci ~).FullName`, and `(gci ~).ForEach({ … })`.
    pub(super) fn of_listing(
        &mut self,
        tokens: &[Token],
        shell: &mut PowerShell,
    ) -> Option<Output> {
        let (of, member, rest) = match tokens {
            [of] => (of, None, &tokens[1..]),
            [of, Token::Word(member, _), rest @ ..] => (of, Some(member), rest),
            _ => return None,
        };
        let is = |name: &str| {
            member.is_some_and(|member| member.without_unknown().eq_ignore_ascii_case(name))
        };
        let each = is(".foreach") || is(".where");
        if !(member.is_none() || each || member.is_some_and(is_own_path)) {
            return None;
        }
        let output = match of {
            Token::Variable(name, _) if shell.listings.contains(&name.to_lowercase()) => {
                Output::known(self.value(of, shell), "get-childitem")
            }
            Token::Block('(', inner, _) if member.is_some() => self.statements(inner, shell),
            _ => return None,
        };
        if let ([Token::Block('(', inner, _), ..], true) = (rest, each) {
            for token in inner {
                if let Token::Block('{', body, _) = token {
                    self.each(super::loops::ITEM, Some(&output), body, shell);
                }
            }
        }
        Some(output)
    }

    /// `(Get-Item x).Delete()`: what stands before the method goes.
    pub(super) fn methods(&mut self, tokens: &[Token], values: &[Value]) {
        for (at, pair) in tokens.windows(2).enumerate() {
            let [Token::Block('(', ..) | Token::Variable(..), Token::Word(member, span)] = pair
            else {
                continue;
            };
            let member = member.without_unknown().to_lowercase();
            let place = &values[at];
            let known = matches!(place.pieces.first(), Some(Piece::Text(_) | Piece::Home));
            if matches!(member.as_str(), ".delete" | ".moveto") && known {
                self.deletes(place.clone(), span.clone());
            }
        }
    }
}

/// Whether a static method of a type is judged as a cmdlet.
pub fn has_cmdlet((of, member): (&str, &str)) -> bool {
    cmdlet(&plain(of), &member.to_lowercase()).is_some()
}

fn cmdlet(of: &str, member: &str) -> Option<&'static str> {
    let is = |(own, members, _): &&(&str, &[&str], &str)| *own == of && members.contains(&member);
    CMDLETS.iter().find(is).map(|(_, _, cmdlet)| *cmdlet)
}

/// `[IO.DirectoryInfo]'C:\x'`: the place that is written behind the type.
pub fn cast<'a>(tokens: &[Token], values: &'a [Value]) -> Option<&'a Value> {
    match tokens {
        [Token::Type(name, _), _] if OF_PLACE.contains(&plain(name).as_str()) => values.get(1),
        _ => None,
    }
}

/// `New-Object IO.DirectoryInfo 'C:\x'`.
pub fn made(arguments: &[Field]) -> Option<Value> {
    let mut operands = arguments.iter().filter(|field| !field.value.starts_with('-'));
    let name = operands.next()?.known()?.into_owned();
    let of_place = OF_PLACE.contains(&plain(&name).as_str());
    operands.next().filter(|_| of_place).map(|field| field.value.clone())
}

fn plain(name: &str) -> String {
    name.to_lowercase().trim_start_matches("system.").to_owned()
}

fn member_of_type(token: &Token) -> Option<String> {
    let Token::Word(value, _) = token else {
        return None;
    };
    value.without_unknown().strip_prefix("::").map(str::to_lowercase)
}
