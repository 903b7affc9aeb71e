//! Texts that are handed to a shell: `sh -c`, `eval`, scripts, and what is piped into it.

use super::Evaluator;
use super::call::Call;
use super::state::State;
use crate::options::takes_next;
use crate::shell::Origin;
use crate::shell::ast::Span;
use crate::value::{Field, Output, Piece, Value};

const SHELLS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "pwsh"];

/// Programs that fetch.
const DOWNLOADERS: &[&str] = &[
    "curl",
    "wget",
    "fetch",
    "aria2c",
    "axel",
    "http",
    "https",
    "xh",
    "nc",
    "ncat",
    "socat",
    "lynx",
    "w3m",
    "links",
    "GET",
    "lwp-request",
    "httpie",
];

/// Programs that send what their words say, besides those that fetch.
const SENDERS: &[&str] = &[
    "nslookup",
    "dig",
    "host",
    "drill",
    "kdig",
    "ping",
    "whois",
    "getent",
    "resolvectl",
    "ssh-keyscan",
    "mail",
    "mailx",
    "mutt",
    "sendmail",
    "swaks",
    "gh",
    "glab",
    "slack",
    "xdg-open",
    "open",
    "logger",
    "snmptrap",
    "mosquitto_pub",
    "redis-cli",
    "websocat",
    "wscat",
    "grpcurl",
    "netcat",
    "telnet",
    "ntfy",
    "telegram-send",
    "twilio",
    "ssh",
    "tftp",
    "lftp",
    "ftp",
    "httpie",
];

/// Programs that turn what we cannot read into what a shell runs.
const DECODERS: &[&str] = &[
    "base64", "base32", "basenc", "xxd", "openssl", "rev", "tr", "gunzip", "zcat", "bzcat",
    "xzcat", "gzip", "uudecode", "hexdump", "od", "gpg", "sed", "awk", "perl", "python3", "iconv",
];

/// Programs that pass on a known text whole.
const FAITHFUL: &[&str] = &["echo", "printf", "cat", "tee", "base64", "base32", "xxd", "rev"];

/// Whether what it is given goes to another machine, be it as a name that is looked up.
pub fn is_sender(name: &str) -> bool {
    is_fetcher(name) || SENDERS.contains(&name)
}

pub fn is_fetcher(name: &str) -> bool {
    DOWNLOADERS.contains(&name)
}

/// Whether it came from the network.
pub fn is_fetched(output: &Output) -> bool {
    output.from.iter().any(|from| DOWNLOADERS.contains(&from.as_str()))
}

/// Whether a text was hidden in an encoding before.
pub fn is_decoded(output: &Output) -> bool {
    let decoders = ["base64", "base32", "basenc", "xxd", "rev", "uudecode", "openssl"];
    output.from.iter().any(|from| decoders.contains(&from.as_str()))
}

pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

impl Evaluator<'_> {
    /// A text that a known word holds.
    pub fn text_of(
        &mut self,
        field: &Field,
        text: &str,
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        self.text(text, field.origin(text), state, input)
    }

    /// Words that a shell joins with blanks and reads again.
    pub fn joined(&mut self, fields: &[Field], call: &Call<'_>, state: &mut State) -> Output {
        let fields = match fields {
            [first, rest @ ..] if first.known().as_deref() == Some("--") => rest,
            fields => fields,
        };
        if let [only] = fields
            && let Some(text) = only.known()
        {
            return self.text_of(only, &text, state, call.input);
        }
        let (mut value, mut span): (Value, Option<Span>) = (Value::default(), None);
        for field in fields {
            if span.is_some() {
                value.push_text(" ");
            }
            value.extend(&field.value);
            let own = &field.span;
            span = Some(span.map_or(own.clone(), |s| s.start.min(own.start)..s.end.max(own.end)));
        }
        let span = span.unwrap_or_else(|| call.span.clone());
        self.value_text(&value, span, state, call.input)
    }

    /// A text that may be known in part only.
    pub fn value_text(
        &mut self,
        value: &Value,
        span: Span,
        state: &mut State,
        input: Option<&Output>,
    ) -> Output {
        let mut text = String::new();
        let mut open = false;
        for piece in &value.pieces {
            match piece {
                Piece::Text(known) | Piece::Glob(known) => text.push_str(known),
                Piece::Home => text.push('~'),
                Piece::Name => text.push('0'),
                Piece::Unknown | Piece::Many | Piece::Fetched => {
                    if *piece == Piece::Fetched {
                        self.raise("download-to-shell", span.clone());
                    }
                    open = true;
                    text.push_str("$__unknown");
                }
            }
        }
        if open {
            self.raise("unknown-text", span.clone());
        }
        let origin = Field::new(Value::default(), span).origin(&text);
        self.text(&text, origin, state, input)
    }

    pub fn shell(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) -> Output {
        let within_list = std::mem::take(&mut self.within_list);
        if name == "pwsh" {
            // Another language; what it is given is not read here.
            self.raise("other-shell", first.span.clone());
            if !arguments.is_empty() {
                self.raise("shell-pivot", first.span.clone());
            }
            return Output::unknown(name);
        }
        if matches!(name, "fish" | "csh" | "tcsh") && !arguments.is_empty() {
            self.raise("other-shell", first.span.clone());
        }
        let mut at = 0;
        let (mut text, mut reads) = (false, false);
        while let Some(field) = arguments.get(at) {
            let Some(word) = field.known() else {
                break;
            };
            let option = word.len() > 1 && (word.starts_with('-') || word.starts_with('+'));
            if !option || word == "--" {
                at += usize::from(word == "--");
                break;
            }
            if word == "--version" || word == "--help" {
                return Output::unknown(name);
            }
            let short = word.starts_with('-') && !word.starts_with("--");
            text |= short && word.contains('c');
            reads |= short && word.contains('s');
            let value = takes_next(&word, "oO") || word == "--rcfile" || word == "--init-file";
            at += 1 + usize::from(value);
        }
        if text && !within_list {
            self.raise("shell-pivot", first.span.start..call.span.end.max(first.span.end));
        }
        let mut own = state.clone();
        own.aliases.clear();
        match (arguments.get(at), text) {
            (Some(field), true) => {
                // After the text come $0, $1 …
                own.zero = arguments.get(at + 1).map(|field| field.value.clone());
                let rest = arguments.get(at + 2..).unwrap_or_default();
                own.arguments = std::rc::Rc::new(rest.to_vec());
                match field.known() {
                    Some(known) => self.text_of(field, &known, &mut own, call.input),
                    None => self.value_text(&field.value, field.span.clone(), &mut own, call.input),
                }
            }
            (None, true) => Output::default(),
            (Some(field), false) if !reads => {
                own.arguments = std::rc::Rc::new(arguments[at + 1..].to_vec());
                self.script(field, call, &mut own)
            }
            (_, false) => {
                if let Some(input) = call.input {
                    self.program_text(input, first.span.clone(), &mut own);
                }
                Output::unknown(name)
            }
        }
    }

    /// A script by its file name.
    fn script(&mut self, field: &Field, call: &Call<'_>, state: &mut State) -> Output {
        let name = field.known().unwrap_or_default().into_owned();
        if matches!(name.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
            if let Some(input) = call.input {
                self.program_text(input, field.span.clone(), state);
            }
            return Output::default();
        }
        let written = state.file(&name).is_some();
        if field.feed.is_some() || written {
            let program = self.file(field, state);
            self.program_text(&program, field.span.clone(), state);
        } else if field.value.known().is_none() && field.value.is_many() {
            self.raise("unknown-text", field.span.clone());
        }
        Output::unknown("script")
    }

    /// A script that the same text wrote into a file.
    pub fn script_file(&mut self, script: &Output, call: &Call<'_>, state: &mut State, span: Span) {
        let known = script.text.as_ref().and_then(|text| text.known().map(|t| t.into_owned()));
        // A file of another language is not read here.
        let foreign = known.as_deref().is_some_and(|text| {
            let line = text.lines().next().unwrap_or_default();
            line.starts_with("#!") && !line.contains("sh")
        });
        if !foreign {
            let mut own = state.clone();
            self.program_text(script, span, &mut own);
        }
        let _ = call;
    }

    /// Reads what a shell reads as its program.
    pub fn program_text(&mut self, program: &Output, span: Span, state: &mut State) {
        let through =
            |names: &[&str]| program.from.iter().any(|from| names.contains(&from.as_str()));
        if is_fetched(program) {
            self.raise("download-to-shell", span.clone());
        } else if through(DECODERS) {
            self.raise("decoded-to-shell", span.clone());
        }
        let faithful = program.from.iter().all(|from| FAITHFUL.contains(&from.as_str()));
        match &program.text {
            Some(text) => {
                if !faithful {
                    self.raise("unknown-text", span.clone());
                }
                self.value_text(text, span, &mut state.clone(), None);
            }
            None => self.raise("unknown-text", span),
        }
    }
}

impl Evaluator<'_> {
    /// A program of another language, or a binary, that the same text has fetched.
    pub fn runs_fetched_file(
        &mut self,
        name: &str,
        first: &Field,
        arguments: &[Field],
        state: &State,
    ) {
        let fetched = |field: &Field| {
            let path = field.known()?;
            let file = state.file(&path)?;
            is_fetched(&file).then(|| field.span.clone())
        };
        let program = first.known().is_some_and(|path| path.contains('/')).then_some(first);
        let script = match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "python" | "perl" | "ruby" | "node" | "php" | "lua" | "deno" | "bun" | "Rscript"
            | "installer" | "msiexec" => arguments.iter().find(|f| !f.value.starts_with('-')),
            "java" => arguments.iter().rev().find(|field| !field.value.starts_with('-')),
            _ => None,
        };
        if let Some(span) = program.into_iter().chain(script).find_map(fetched) {
            self.raise("download-to-shell", span);
        }
        let installs = [
            "dpkg",
            "rpm",
            "apt",
            "apt-get",
            "pip",
            "pip3",
            "uv",
            "npm",
            "kubectl",
            "crontab",
            "make",
            "vim",
            "java",
            "ansible-playbook",
            "docker",
            "podman",
            "gem",
            "code",
            "git",
            "patch",
            "psql",
            "helm",
        ];
        if installs.contains(&name)
            && let Some(span) = arguments.iter().find_map(fetched)
        {
            self.raise("run-unpacked-download", span);
        }
        if super::foreign::is_interpreter(name) || installs.contains(&name) {
            // `lua -e "$(curl …)"`, `tclsh <(wget …)`.
            let given = |field: &&Field| {
                field.value.pieces.contains(&Piece::Fetched)
                    || field.feed.as_ref().is_some_and(is_fetched)
            };
            if let Some(field) = arguments.iter().find(given) {
                self.raise("download-to-shell", field.span.clone());
            }
        }
    }

    /// `source file`: as if the text stood here.
    pub fn source(&mut self, arguments: &[Field], state: &mut State) {
        let Some(field) = arguments.first() else {
            return;
        };
        let written = field.known().is_some_and(|name| state.file(&name).is_some());
        if field.feed.is_some() || written {
            let program = self.file(field, state);
            if let Some(text) = &program.text
                && let Some(known) = text.known()
            {
                self.text(&known, Origin::Within(field.span.clone()), state, None);
            }
            self.program_text(&program, field.span.clone(), &mut state.clone());
        } else if let Some("-" | "/dev/stdin" | "/dev/fd/0") = field.known().as_deref() {
            self.raise("unknown-text", field.span.clone());
        }
        state.opaque = true;
    }
}
