//! Programs of other languages that are given as text: `python -c`, `node -e`, a here-document.
//!
//! They are not read as programs. What is looked for are the texts in quotes that they hand to a
//! shell, delete or open: `os.system("rm -rf ~")` is judged as `rm -rf ~` is. The sandbox holds
//! the rest.

use super::Evaluator;
use super::call::Call;
use super::state::State;
use crate::shell::ast::Span;
use crate::value::{Field, Piece, Value};

/// Longer texts are looked at up to here.
const LONGEST: usize = 16 * 1024;

/// Texts in quotes that are judged.
const MOST_LITERALS: usize = 64;

const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "osascript",
    "tclsh",
    "expect",
    "julia",
    "elixir",
    "groovy",
    "emacs",
    "guile",
    "ts-node",
    "tsx",
    "jshell",
    "iex",
    "erl",
    "swipl",
    "raku",
    "crystal",
    "scala",
    "kotlin",
    "swift",
    "ipython",
    "bpython",
    "timeit",
    "pdb",
    "irb",
    "pry",
    "R",
    "octave",
    "ghc",
    "runghc",
    "sbcl",
    "racket",
    "clojure",
    "clj",
];

/// Whether it runs a program given as text. Versions in names do not matter.
pub fn is_interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&plain)
}

/// Names of calls, by their last part, that run a text or words as a command.
const RUNS: &[&str] = &[
    "system",
    "popen",
    "Popen",
    "exec",
    "execSync",
    "execFile",
    "execFileSync",
    "spawn",
    "spawnSync",
    "run",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "getstatusoutput",
    "shell_exec",
    "passthru",
    "qx",
    "execvp",
    "execlp",
    "execute",
    "cmd",
    "Command",
    "fork_exec",
];

/// Names of calls that write to the file they are given.
const WRITES: &[&str] = &[
    "appendFileSync",
    "writeFileSync",
    "appendFile",
    "writeFile",
    "write_text",
    "write_bytes",
    "file_put_contents",
    "createWriteStream",
    "spurt",
];

/// Names of calls that delete what they are given.
const DELETES: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm_r",
    "rmSync",
    "rmdirSync",
    "removeSync",
    "rimraf",
    "remove_dir",
    "remove_tree",
    "removedirs",
    "delTree",
];

/// How languages name the user's home.
const HOMES: &[&str] = &[
    "homedir()",
    "Dir.home",
    "$ENV{HOME}",
    "ENV['HOME']",
    "ENV[\"HOME\"]",
    "environ['HOME']",
    "environ[\"HOME\"]",
    "process.env.HOME",
    "Path.home()",
];

/// Files below a home that hold keys.
const KEYS: &[&str] =
    &["id_rsa", "id_ed25519", ".aws", ".netrc", ".git-credentials", ".gnupg", ".kube"];

/// Files below a home that run at every login.
const LOGIN: &[&str] = &[
    ".bashrc",
    ".zshrc",
    ".profile",
    ".bash_profile",
    ".zshenv",
    "authorized_keys",
    ".gitconfig",
    "autostart",
    "LaunchAgents",
];

/// How they turn what nobody can read into text.
const DECODES: &[&str] = &[
    "b64decode",
    "atob(",
    "decode_base64",
    "base64_decode",
    "unhexlify",
    "'base64'",
    "\"base64\"",
    "fromhex(",
    "pack(\"H",
    "pack('H",
    "pack(\"m",
    "pack('m",
    "unpack(\"m",
    "unpack('u",
    "fromCharCode",
    "map(chr",
    "gzinflate",
    "str_rot13",
    "rot13",
    "zlib.decompress",
    "marshal.loads",
    "codecs.decode",
    "'hex'",
];

/// How they fetch from, or send to, another machine.
const FETCHES: &[&str] = &[
    "urlopen(",
    "urlretrieve(",
    "requests.get(",
    "requests.post(",
    "fetch('http",
    "fetch(\"http",
    "http.get(",
    "https.get(",
    "get(\"http",
    "get('http",
    "Net::HTTP",
    "URI.open",
    "requests.put(",
    "httpx.",
    "urllib3.",
    "aiohttp",
    "axios",
    "http.request(",
    "https.request(",
    "http.client",
    "LWP::",
    "HTTP::Tiny",
    "source(\"http",
    "source('http",
    "download(\"http",
    "load \"http",
    "curl_init",
    "file_get_contents('http",
    "file_get_contents(\"http",
];

/// Calls that only make a path of another one; the call around them counts.
const MAKES_PATH: &[&str] = &[
    "expanduser",
    "Path",
    "str",
    "join",
    "resolve",
    "normpath",
    "abspath",
    "realpath",
    "normalize",
];

/// A text in quotes, and the name of the call it is the first argument of.
struct Literal {
    text: String,
    call: String,
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
        let spawns = any(&["dup2(", "pty.spawn", "/bin/sh", "/bin/bash", "exec(\"sh", "exec('sh"]);
        let runs = any(&["'bash'", "\"bash\"", "'sh'", "\"sh\"", "os.system(", "child_process"]);
        let forks = any(&["fork(", "fork while", "fork;", "fork }"]);
        let repeats = any(&["while", "for ", "iter(", "loop"]);
        let all_rows =
            any(&[".delete_all", ".destroy_all", "objects.all().delete()", "::truncate("]);
        let everything = any(&[
            "dict(os.environ",
            "str(os.environ",
            "json=os.environ",
            "data=os.environ",
            "JSON.stringify(process.env)",
            "ENV.to_h",
            "ENV.to_a",
            "ENV.inspect",
            "%ENV",
            "print_r($_ENV",
            "json_encode(getenv",
            "json_encode($_ENV",
        ]);
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

#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// A text for the shell.
    Shell,
    /// A text that would destroy something if a shell read it; whether one does is not known.
    Perhaps,
    /// A word of a command.
    Word,
}

/// Commands that a text of another language holds: each is a shell text, or words.
fn commands(text: &str) -> Vec<Vec<(Use, String)>> {
    let mut found: Vec<Vec<(Use, String)>> = Vec::new();
    let word = |text: &str| (Use::Word, text.to_owned());
    let mut list: Vec<(Use, String)> = Vec::new();
    let mut open_list = false;
    let literals = literals_of(text);
    for (at, literal) in literals.iter().enumerate() {
        // `spawn('rm', ['-rf', '/'])`: the words come in a list of their own.
        if literal.call == "["
            && let Some([(Use::Shell, program)]) = found.last().map(|words| &words[..])
            && !program.contains(char::is_whitespace)
        {
            list = vec![word(program), word(&literal.text)];
            found.pop();
            open_list = true;
            continue;
        }
        let next = literals.get(at + 1).filter(|next| next.call == ",");
        let opened_to_write = literal.call == "open"
            && next
                .is_some_and(|next| next.text.len() < 4 && next.text.starts_with(['a', 'w', 'x']));
        if open_list && literal.call == "," {
            list.push(word(&literal.text));
            continue;
        }
        if !list.is_empty() {
            found.push(std::mem::take(&mut list));
        }
        open_list = false;
        let last = literal.call.trim_end_matches('[');
        if RUNS.contains(&last) {
            if literal.call.ends_with('[') {
                open_list = true;
                list.push(word(&literal.text));
            } else {
                found.push(vec![(Use::Shell, literal.text.clone())]);
            }
        } else if (WRITES.contains(&last) || opened_to_write || text.contains("File.write"))
            && literal.text.contains('/')
            && !literal.text.contains(char::is_whitespace)
        {
            found.push(vec![word("tee"), word("--"), word(&below_home(&literal.text))]);
        } else if DELETES.contains(&last) {
            found.push(vec![word("rm"), word("-rf"), word(&literal.text)]);
        } else if literal.text.contains('/') && !literal.text.contains(char::is_whitespace) {
            // Any path is taken to be read.
            found.push(vec![word("cat"), word("--"), word(&below_home(&literal.text))]);
        } else if literal.text.contains("rm ") || literal.text.contains("dd ") {
            found.push(vec![(Use::Perhaps, literal.text.clone())]);
        }
    }
    if !list.is_empty() {
        found.push(list);
    }
    found
}

/// `HOME + "/.ssh/id_rsa"` is below the home.
fn below_home(path: &str) -> String {
    match path.strip_prefix("/.") {
        Some(rest) => format!("~/.{rest}"),
        None => path.to_owned(),
    }
}

/// Texts in quotes, each with the name before its parenthesis; `,` for a further one of a list.
fn literals_of(text: &str) -> Vec<Literal> {
    let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let text = &text[..end.unwrap_or_default()];
    let mut all = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, quote)) = chars.next() {
        if !matches!(quote, '"' | '\'' | '`') {
            continue;
        }
        let mut literal = String::new();
        let mut closed = false;
        while let Some((_, c)) = chars.next() {
            match c {
                '\\' => literal.extend(chars.next().map(|(_, c)| c)),
                c if c == quote => {
                    closed = true;
                    break;
                }
                c => literal.push(c),
            }
        }
        if closed {
            all.push(Literal { text: literal, call: called(&text[..at]) });
        }
    }
    all
}

/// The last name before `(` or `([` at the end of a text.
fn called(before: &str) -> String {
    let before = before.trim_end_matches([' ', '\t', '\n', 'r', 'b', 'f']);
    if before.ends_with(',') {
        return ",".to_owned();
    }
    let open = before.trim_end();
    let list = open.ends_with('[');
    let open = open.trim_end_matches('[').trim_end();
    let open = open.strip_suffix('(').unwrap_or(open).trim_end();
    let start = after_last(open, |c| !c.is_ascii_alphanumeric() && c != '_');
    let name = &open[start..];
    if MAKES_PATH.contains(&name) {
        let object = after_last(open, |c| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
        return called(&open[..object]);
    }
    format!("{name}{}", if list { "[" } else { "" })
}

/// Where the text after the last such character begins.
fn after_last(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.char_indices().rev().find(|(_, c)| is(*c)).map_or(0, |(at, c)| at + c.len_utf8())
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
