//! The output of well-known programs, as far as the text determines it.

use super::Evaluator;
use super::provenance;
use super::state::State;
use crate::decode;
use crate::value::{Field, Output, Piece, Value};

impl Evaluator<'_> {
    pub fn output_of(
        &mut self,
        name: &str,
        arguments: &[Field],
        input: Option<&Output>,
        state: &mut State,
    ) -> Output {
        let known = |value: Value| Output::known(value, name);
        let has = |wanted: &[&str]| {
            arguments
                .iter()
                .any(|field| field.known().is_some_and(|t| wanted.contains(&t.as_ref())))
        };
        let operands = || arguments.iter().filter(|field| !field.value.starts_with('-'));
        match name {
            "echo" => known(echo(arguments)),
            "printf" => printf(arguments).map_or_else(|| Output::unknown(name), known),
            // Alone they print what is set.
            "set" | "export" | "declare" | "typeset"
                if arguments.iter().all(|field| {
                    matches!(field.known().as_deref(), Some("-x" | "-p" | "-px" | "-xp"))
                }) =>
            {
                Output::unknown(name)
            }
            "true" | "false" | ":" | "cd" | "export" | "test" | "[" | "mkdir" | "touch" | "cp"
            | "mv" | "rm" | "ln" | "chmod" | "sleep" | "set" | "shift" | "unset" | "wait"
            | "return" | "exit" | "local" | "declare" | "alias" => Output::nothing(),
            "cat" | "tee" => self.cat(name, arguments, input, state),
            "pwd" => known(Value::text(".")),
            "mktemp" => {
                // One name for all of them: what is written there is found again when it is run.
                known(Value::text("/tmp/tmp.mktemp"))
            }
            "date" | "nproc" | "whoami" | "hostname" | "uname" | "id" | "seq" | "wc"
            | "basename" | "sha256sum" | "md5sum" | "uuidgen" | "arch" | "getconf" | "expr"
            | "tput" => known(Value::of(Piece::Name)),
            "which" | "type" | "command" | "realpath" | "readlink" => {
                match operands().next_back() {
                    Some(field) => known(field.value.clone()),
                    None => Output::unknown(name),
                }
            }
            "dirname" => match operands().next().and_then(|field| field.known()) {
                Some(path) => known(Value::text(
                    path.trim_end_matches('/').rsplit_once('/').map_or(".", |(dir, _)| match dir {
                        "" => "/",
                        dir => dir,
                    }),
                )),
                // The directory of the script itself and its like.
                None => Output::unknown(name),
            },
            "ls" => known(listed(arguments)),
            name if made_to_be_evaluated(name, &has) => known(Value::default()),
            "docker" | "podman" | "nerdctl"
                if super::everything::lists_all_containers(arguments) =>
            {
                let mut output = Output::unknown(name);
                output.passed([provenance::ALL_CONTAINERS.to_owned()]);
                output
            }
            "git" if has(&["--show-toplevel"]) => known(Value::text(".")),
            "git" if has(&["rev-parse", "describe", "rev-list"]) => known(Value::of(Piece::Name)),
            "git" if has(&["ls-files", "--name-only"]) => known(some_files()),
            "grep" | "rg" | "ag" if has(&["-l", "-rl", "-lr", "-L", "--files-with-matches"]) => {
                known(some_files())
            }
            "fd" | "fdfind" => known(some_files()),
            "sort" | "uniq" | "head" | "tail" | "grep" | "sed" | "awk" | "cut" => {
                filtered(name, input)
            }
            "base64" | "base32" | "rev" | "xxd" => decoded(name, arguments, input),
            _ => Output::unknown(name),
        }
    }

    fn cat(
        &mut self,
        name: &str,
        arguments: &[Field],
        input: Option<&Output>,
        state: &mut State,
    ) -> Output {
        let mut files = arguments.iter().filter(|field| !field.value.starts_with('-')).peekable();
        if name == "tee" || files.peek().is_none() {
            let output = input.cloned().unwrap_or_default();
            if name == "tee" {
                let files: Vec<Field> = files.cloned().collect();
                self.keep_files(&files, &output, state);
            }
            let mut from = output.from;
            from.push(name.to_owned());
            return Output { text: output.text, from };
        }
        let mut all = Output::known(Value::default(), name);
        for file in files {
            let part = match file.known().as_deref() {
                Some("-") => input.cloned().unwrap_or_default(),
                _ => self.file(file, state),
            };
            all = all.then(part);
        }
        all
    }
}

/// `ls DIR` prints names without the directory; of files and patterns it prints what it was given.
fn listed(arguments: &[Field]) -> Value {
    let mut operands = arguments.iter().filter(|field| !field.value.starts_with('-'));
    let pattern = |field: &&Field| field.value.pieces.iter().any(|p| matches!(p, Piece::Glob(_)));
    let as_given = arguments
        .iter()
        .filter_map(|field| field.known())
        .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains('d'));
    match operands.next() {
        Some(field) if as_given || pattern(&field) => field.value.clone(),
        _ => Value::of(Piece::Glob("*".to_owned())),
    }
}

/// Paths below here.
fn some_files() -> Value {
    let mut value = Value::text("./");
    value.push(Piece::Name);
    value
}

/// Some of the lines; of a list of files, still files.
fn filtered(name: &str, input: Option<&Output>) -> Output {
    let Some(input) = input else {
        return Output::unknown(name);
    };
    let list = |text: &&Value| text.pieces.contains(&Piece::Name);
    let keeps = matches!(name, "sort" | "uniq" | "head" | "tail" | "grep");
    let text = input.text.as_ref().filter(|text| keeps || list(text)).cloned();
    // What sed or awk make of a list is not that list.
    let text = if keeps { text } else { None };
    let mut from = input.from.clone();
    from.push(name.to_owned());
    Output { text, from }
}

fn decoded(name: &str, arguments: &[Field], input: Option<&Output>) -> Output {
    let flag = |letters: &str| {
        arguments.iter().any(|field| {
            field
                .known()
                .is_some_and(|text| text.starts_with('-') && text.contains(|c| letters.contains(c)))
        })
    };
    let text = input.and_then(|input| input.text.as_ref()?.known().map(|text| text.into_owned()));
    let decoded = text.and_then(|text| match name {
        "rev" => {
            let line = |line: &str| line.chars().rev().chain(['\n']).collect::<String>();
            Some(text.lines().map(line).collect())
        }
        "base64" if flag("dD") => decode::base64(&text).and_then(|b| String::from_utf8(b).ok()),
        "xxd" if flag("r") => decode::hex(&text).and_then(|b| String::from_utf8(b).ok()),
        _ => None,
    });
    let mut from = input.map(|input| input.from.clone()).unwrap_or_default();
    from.push(name.to_owned());
    Output { text: decoded.map(Value::text), from }
}

fn echo(arguments: &[Field]) -> Value {
    let mut value = Value::default();
    let (mut newline, mut escapes, mut started) = (true, false, false);
    for field in arguments {
        if !started {
            match field.known().as_deref() {
                Some("-n") => {
                    newline = false;
                    continue;
                }
                Some("-e") => {
                    escapes = true;
                    continue;
                }
                Some("-ne" | "-en") => {
                    (newline, escapes) = (false, true);
                    continue;
                }
                _ => {}
            }
        } else {
            value.push_text(" ");
        }
        started = true;
        for piece in &field.value.pieces {
            match piece {
                Piece::Text(text) if escapes => value.push_text(&decode::escapes(text)),
                piece => value.push(piece.clone()),
            }
        }
    }
    if newline {
        value.push_text("\n");
    }
    value
}

/// `None` for what is not followed.
fn printf(arguments: &[Field]) -> Option<Value> {
    let (format, mut rest) = arguments.split_first()?;
    let format = format.known()?;
    if format == "-v" {
        return Some(Value::default());
    }
    let format = if format == "--" {
        let (format, others) = rest.split_first()?;
        rest = others;
        format.known()?
    } else {
        format
    };
    let mut value = Value::default();
    let mut words = rest.iter();
    loop {
        let before = words.len();
        let mut text = format.as_ref();
        while let Some(at) = text.find('%') {
            value.push_text(&decode::escapes(&text[..at]));
            let kind = text[at + 1..].chars().next()?;
            match kind {
                '%' => value.push_text("%"),
                's' | 'q' => {
                    if let Some(word) = words.next() {
                        value.extend(&word.value);
                    }
                }
                'b' => {
                    if let Some(word) = words.next() {
                        value.push_text(&decode::escapes(&word.known()?));
                    }
                }
                'd' | 'i' | 'u' | 'x' | 'o' => {
                    words.next();
                    value.push(Piece::Name);
                }
                _ => return None,
            }
            text = &text[at + 1 + kind.len_utf8()..];
        }
        value.push_text(&decode::escapes(text));
        // The format is used again for what is left.
        if words.len() == 0 || words.len() == before || value.length() > crate::value::LONGEST {
            return Some(value);
        }
    }
}

/// Programs made to be evaluated; what they print is their own.
fn made_to_be_evaluated(name: &str, has: &dyn Fn(&[&str]) -> bool) -> bool {
    match name {
        "ssh-agent" | "dircolors" | "keychain" | "lesspipe" | "locale" => true,
        "brew" if has(&["shellenv"]) => true,
        "pyenv" | "rbenv" | "nodenv" | "goenv" | "jenv" | "starship" | "zoxide" | "atuin"
        | "direnv" | "mise" | "rtx" | "asdf" | "fnm" | "conda" | "mamba" | "micromamba"
        | "opam" | "luarocks" | "minikube" | "docker-machine" | "thefuck" | "pipenv" | "hatch"
            if has(&[
                "init",
                "hook",
                "env",
                "activate",
                "shell.bash",
                "shell.zsh",
                "shell",
                "path",
                "docker-env",
                "--alias",
                "export",
                "--completion",
                "virtualenv-init",
            ]) =>
        {
            true
        }
        "register-python-argcomplete" => true,
        "kubectl" | "helm" | "gh" | "npm" | "pip" | "pip3" | "rustup" | "cargo" | "docker"
        | "poetry"
            if has(&["completion", "completions"]) =>
        {
            true
        }
        _ => false,
    }
}
