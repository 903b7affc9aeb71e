//! Programs of other languages that are given as text: `python -c`, `node -e`, a here-document.
//!
//! They are not read as programs. What is looked for are the texts in quotes that they hand to a
//! shell, delete or open: `os.system("rm -rf ~")` is judged as `rm -rf ~` is. The sandbox holds
//! the rest.

mod literals;
mod tables;

use self::literals::{Use, commands};
use self::tables::{
    DECODES, DELETES, ENVIRONMENTS, FETCHES, HOMES, INTERPRETERS, KEYS, LOGIN, OF_CMD,
    WINDOWS_ROOTS, WRITES,
};
use super::Evaluator;
use super::call::Call;
use super::state::State;
use crate::shell::ast::Span;
use crate::value::{Field, Piece, Value};

/// Longer texts are looked at up to here.
const LONGEST: usize = 16 * 1024;

/// Texts in quotes that are judged.
const MOST_LITERALS: usize = 64;

/// Whether it runs a program given as text. Versions in names do not matter.
pub fn is_interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&plain)
}

impl Evaluator<'_> {
    /// Looks into the program that an interpreter is given as text.
    pub fn foreign_text(
        &mut self,
        name: &str,
        arguments: &[Field],
        call: &Call<'_>,
        state: &mut State,
    ) {
        if !is_interpreter(name) {
            return;
        }
        let given = match name {
            // Modules of Python whose word is a program.
            "timeit" => arguments
                .iter()
                .find(|field| !field.value.starts_with('-'))
                .map(|field| (field.value.without_unknown(), field.span.clone())),
            "deno" if arguments.first().is_some_and(|f| f.known().as_deref() == Some("eval")) => {
                arguments
                    .iter()
                    .skip(1)
                    .find(|field| !field.value.starts_with('-'))
                    .map(|field| (field.value.without_unknown(), field.span.clone()))
            }
            _ => program_text(arguments),
        };
        let read = || {
            let text = call.input?.text.as_ref()?.without_unknown();
            Some((text, call.span.clone()))
        };
        if let Some((text, span)) = given.or_else(read) {
            self.known_shapes(&text, span.clone());
            if name == "expect" {
                self.spawned(&text, span.clone(), state);
            }
            self.literals(&text, span, state);
        }
    }

    /// What such a program does to a person without a sandbox, by the words it cannot do without.
    fn known_shapes(&mut self, text: &str, span: Span) {
        let any = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let called =
            |name: &&str| text.contains(&format!("{name}(")) || text.contains(&format!("{name} "));
        let deletes = DELETES.iter().any(called);
        let evaluates = any(&[
            "exec(",
            "eval(",
            "eval ",
            "(eval)",
            "Function(",
            "source(",
            "include(",
            "load(",
            "(load ",
            "instance_eval",
            "runInThisContext",
            "vm.run",
            "marshal.loads",
        ]);
        let fetches = any(FETCHES);
        let decodes = any(DECODES);
        let connects = any(&["socket", "fsockopen", "TCPSocket", "net.connect"]);
        let spawns = any(&[
            "dup2(",
            "pty.spawn",
            "/bin/sh",
            "/bin/bash",
            "exec(\"sh",
            "exec('sh",
            "popen(",
            "Popen(",
        ]);
        let runs = any(&["'bash'", "\"bash\"", "'sh'", "\"sh\"", "os.system(", "child_process"]);
        let forks = any(&["fork(", "fork while", "fork;", "fork }"]);
        let repeats = any(&["while", "for ", "iter(", "loop"]);
        let all_rows =
            any(&[".delete_all", ".destroy_all", "objects.all().delete()", "::truncate("]);
        let everything = any(ENVIRONMENTS);
        let sends = fetches
            && any(&[".post(", "POST", "data=", "?'+", "?\"+", "/'+", "/\"+", "?\".", "?'."]);
        let one_key = sends
            && text
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .any(|word| super::provenance::names_secret(word) || word.ends_with("TOKEN"))
            && !text.contains("uthorization");
        let secret_file =
            sends && any(&[".env'", ".env\"", "/.ssh/", "/.aws/", ".netrc", "/etc/passwd"]);
        for (rule, found) in [
            ("delete-everything", (deletes || text.contains("unlink glob")) && any(HOMES)),
            ("delete-everything", deletes && names_windows_root(text)),
            ("read-secret", any(HOMES) && any(KEYS)),
            ("login-file", any(HOMES) && any(WRITES) && any(LOGIN)),
            ("download-to-shell", (evaluates || runs) && fetches),
            ("fork-bomb", forks && repeats && !text.contains("wait")),
            ("drop-database", all_rows),
            ("decoded-to-shell", evaluates && decodes),
            ("reverse-shell", connects && spawns),
            ("decoded-to-shell", runs && any(&["map(chr", "fromCharCode", "bytes.fromhex"])),
            ("send-environment-argument", fetches && (everything || one_key || secret_file)),
        ] {
            if found {
                self.raise(rule, span.clone());
            }
        }
    }

    /// expect's own way to start a program.
    fn spawned(&mut self, text: &str, span: Span, state: &State) {
        for line in text.split([';', '\n']) {
            if let Some(command) = line.trim().strip_prefix("spawn ") {
                let known = self.findings.len();
                let field = Field::new(Value::text(command), span.clone());
                self.text_of(&field, command, &mut state.clone(), None);
                self.keep_heavier_than_unknown(known);
            }
        }
    }

    fn literals(&mut self, text: &str, span: Span, state: &mut State) {
        for words in commands(text).into_iter().take(MOST_LITERALS) {
            let known = self.findings.len();
            match &words[..] {
                [(Use::Perhaps, command)] => {
                    let field = Field::new(Value::text(command.as_str()), span.clone());
                    self.text_of(&field, command, &mut state.clone(), None);
                    self.keep_destruction(known);
                }
                [(Use::Shell, command)] => {
                    let field = Field::new(Value::text(command.as_str()), span.clone());
                    self.text_of(&field, command, &mut state.clone(), None);
                    let first = command.split([' ', '/']).next().unwrap_or_default();
                    if OF_CMD.contains(&first.to_lowercase().trim_end_matches(".exe")) {
                        self.cmd(
                            &command.replace('/', "\\").replace(" \\", " /"),
                            field.origin(command),
                        );
                    }
                }
                words => {
                    let fields: Vec<Field> =
                        words.iter().map(|(_, word)| path_field(word, &span)).collect();
                    let inner = Call {
                        input: None,
                        writes: &[],
                        reads: &[],
                        assigns: &[],
                        span: span.clone(),
                    };
                    self.call(&fields, &inner, &mut state.clone());
                }
            }
            self.keep_heavier_than_unknown(known);
        }
    }
}

/// Whether one of the places stands there by itself, or with one name below it: a user's home.
fn names_windows_root(text: &str) -> bool {
    let text = text.replace('\\', "/").replace("//", "/");
    let lower = text.to_lowercase();
    WINDOWS_ROOTS.iter().map(|root| root.to_lowercase()).any(|root| {
        lower.match_indices(&root).any(|(at, _)| {
            let rest = &lower[at + root.len()..];
            let end = rest.find(['\'', '"', '`', ')', ',']).unwrap_or(rest.len());
            rest[..end].trim_end_matches(['/', '*']).matches('/').count() <= 1
        })
    })
}

/// The program after `-c`, `-e` and their like, in the same word or the next.
fn program_text(arguments: &[Field]) -> Option<(String, Span)> {
    arguments.iter().enumerate().find_map(|(at, field)| {
        let text = field.known()?;
        let option = text.strip_prefix('-')?;
        let letters = option.bytes().all(|byte| byte.is_ascii_alphabetic());
        let cluster = letters && option.len() < 6 && option.ends_with(['c', 'e', 'E', 'r', 'p']);
        let long = matches!(option, "-eval" | "-print" | "-execute" | "eval" | "-e");
        let glued = option.strip_prefix(['c', 'e', 'E']).filter(|_| !letters);
        match glued {
            Some(program) => Some((program.to_owned(), field.span.clone())),
            None if cluster || long => {
                let next = arguments.get(at + 1)?;
                Some((next.value.without_unknown(), next.span.clone()))
            }
            None => None,
        }
    })
}

/// A word that may begin with the user's home, by any of the usual spellings.
fn path_field(word: &str, span: &Span) -> Field {
    let mut value = Value::default();
    match word.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => {
            value.push(Piece::Home);
            value.push_text(rest);
        }
        None => value.push_text(word),
    }
    Field::new(value, span.clone())
}
