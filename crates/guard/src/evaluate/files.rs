//! Files that a program reads or writes because one of its options says so: `dd if=`, `curl -o`,
//! `wget --post-file=`. They count as redirections do.

use crate::value::{Field, Piece, Value};

/// The files of one call.
#[derive(Default)]
pub struct Files {
    pub reads: Vec<Field>,
    pub writes: Vec<Field>,
}

#[derive(Clone, Copy, PartialEq)]
enum FileUse {
    Reads,
    Writes,
    /// Reads the file after the `@` (`curl -d @file`), or after `=@` and `=<` in a form field.
    ReadsAfterSign,
}

/// One option and what its value is. `short` is a letter, `long` a name with its dashes.
struct FileOption {
    programs: &'static [&'static str],
    short: Option<char>,
    long: &'static str,
    used: FileUse,
}

const fn option(
    programs: &'static [&'static str],
    short: Option<char>,
    long: &'static str,
    used: FileUse,
) -> FileOption {
    FileOption { programs, short, long, used }
}

const COMPILERS: &[&str] = &["cc", "gcc", "g++", "clang", "clang++", "ld", "rustc", "go", "tcc"];

const OPTIONS: &[FileOption] = &[
    option(&["curl"], Some('o'), "--output", FileUse::Writes),
    option(&["curl"], Some('D'), "--dump-header", FileUse::Writes),
    option(&["curl"], Some('c'), "--cookie-jar", FileUse::Writes),
    option(&["curl"], None, "--trace", FileUse::Writes),
    option(&["curl"], None, "--trace-ascii", FileUse::Writes),
    option(&["curl"], None, "--stderr", FileUse::Writes),
    option(&["curl"], Some('T'), "--upload-file", FileUse::Reads),
    option(&["curl"], Some('K'), "--config", FileUse::Reads),
    option(&["curl"], Some('d'), "--data", FileUse::ReadsAfterSign),
    option(&["curl"], None, "--data-binary", FileUse::ReadsAfterSign),
    option(&["curl"], None, "--data-ascii", FileUse::ReadsAfterSign),
    option(&["curl"], None, "--data-urlencode", FileUse::ReadsAfterSign),
    option(&["curl"], None, "--json", FileUse::ReadsAfterSign),
    option(&["curl"], Some('F'), "--form", FileUse::ReadsAfterSign),
    option(&["curl"], Some('H'), "--header", FileUse::ReadsAfterSign),
    option(&["wget"], Some('O'), "--output-document", FileUse::Writes),
    option(&["wget"], Some('o'), "--output-file", FileUse::Writes),
    option(&["wget"], Some('a'), "--append-output", FileUse::Writes),
    option(&["wget"], None, "--save-cookies", FileUse::Writes),
    option(&["wget"], None, "--post-file", FileUse::Reads),
    option(&["wget"], None, "--body-file", FileUse::Reads),
    option(&["wget"], Some('i'), "--input-file", FileUse::Reads),
    option(&["aria2c", "axel", "http", "https", "xh"], Some('o'), "--out", FileUse::Writes),
    option(&["http", "https", "xh"], None, "--output", FileUse::Writes),
    option(&["sort", "jq", "yq", "patch"], Some('o'), "--output", FileUse::Writes),
    option(COMPILERS, Some('o'), "", FileUse::Writes),
    option(&["openssl"], None, "-out", FileUse::Writes),
    option(&["openssl"], None, "-in", FileUse::Reads),
    option(&["gpg", "gpg2", "age"], Some('o'), "--output", FileUse::Writes),
    option(&["ssh-keygen"], Some('f'), "", FileUse::Writes),
    option(&["tcpdump", "tshark"], Some('w'), "", FileUse::Writes),
    option(&["strace", "ltrace", "time"], Some('o'), "--output", FileUse::Writes),
    option(&["xxd", "base64", "iconv"], Some('o'), "--output", FileUse::Writes),
    option(&["pandoc", "dot", "convert"], Some('o'), "--output", FileUse::Writes),
    option(
        &["grep", "egrep", "fgrep", "rg", "awk", "gawk", "mawk"],
        Some('f'),
        "--file",
        FileUse::Reads,
    ),
    option(&["xargs"], Some('a'), "--arg-file", FileUse::Reads),
    option(&["curl"], Some('b'), "--cookie", FileUse::Reads),
    option(&["wc", "du", "sort"], None, "--files0-from", FileUse::Reads),
    option(&["file", "date"], Some('f'), "--files-from", FileUse::Reads),
    option(&["rsync", "tar"], None, "--files-from", FileUse::Reads),
    option(&["ssh-keygen"], Some('y'), "", FileUse::Reads),
    option(&["mosquitto_pub"], Some('f'), "--file", FileUse::Reads),
    option(&["kubectl"], None, "--from-file", FileUse::Reads),
    option(&["kubectl"], None, "--from-env-file", FileUse::Reads),
];

/// What the options of a call name.
pub fn of(name: &str, arguments: &[Field]) -> Files {
    let mut files = Files::default();
    if name == "dd" {
        files.writes.extend(arguments.iter().filter_map(|field| after(field, "of=")));
        files.reads.extend(arguments.iter().filter_map(|field| after(field, "if=")));
        return files;
    }
    for option in OPTIONS.iter().filter(|option| option.programs.contains(&name)) {
        for value in values(arguments, option) {
            match option.used {
                FileUse::Reads => files.reads.push(value),
                FileUse::Writes => files.writes.push(value),
                FileUse::ReadsAfterSign => files.reads.extend(after_sign(&value)),
            }
        }
    }
    files.reads.extend(arguments.iter().filter_map(named_by_option));
    if matches!(name, "tar" | "bsdtar" | "gtar" | "zip" | "git") {
        files.reads.extend(below_directory(arguments));
    }
    files.writes.extend(saved_by_name(name, arguments));
    files.writes.retain(is_file);
    files.reads.retain(is_file);
    files
}

/// `--from-file=/path`, `--from-file=name=/path`: a file outside of the project that an option names. Options that
/// say who is asking are left alone: `--kubeconfig`, `--private-key`, and what an option writes.
fn named_by_option(field: &Field) -> Option<Field> {
    let Some(Piece::Text(text)) = field.value.pieces.first() else {
        return None;
    };
    let (option, value) = text.strip_prefix("--")?.split_once('=')?;
    let identifies = ["key", "config", "cert", "identity", "cred", "login", "auth", "profile"];
    let writes = ["out", "prefix", "dest", "target", "dir", "log", "cache", "path", "root", "home"];
    if identifies.iter().chain(&writes).any(|part| option.contains(part)) {
        return None;
    }
    let value = value.rsplit_once('=').map_or(value, |(_, value)| value);
    let home = value.is_empty() && field.value.pieces.get(1) == Some(&Piece::Home);
    (home || value.starts_with(['/', '~'])).then(|| rest_of(field, value))
}

/// `tar -C ~ -cf x .ssh`: the words after the directory are below it.
fn below_directory(arguments: &[Field]) -> Vec<Field> {
    let is = |field: &Field| {
        field.known().is_some_and(|text| text == "-C" || text == "--directory" || text == "-cC")
    };
    let Some(at) = arguments.iter().position(is) else {
        return Vec::new();
    };
    let (Some(directory), rest) =
        (arguments.get(at + 1), &arguments[(at + 2).min(arguments.len())..])
    else {
        return Vec::new();
    };
    let below = |field: &Field| {
        let mut value = directory.value.clone();
        value.push_text("/");
        value.extend(&field.value);
        Field::new(value.bounded(), field.span.clone())
    };
    rest.iter().filter(|field| !field.value.starts_with('-')).map(below).collect()
}

/// `-` is standard input or output.
fn is_file(field: &Field) -> bool {
    field.known().as_deref() != Some("-")
}

/// The rest of a word that begins with a text.
fn after(field: &Field, start: &str) -> Option<Field> {
    let Some(Piece::Text(text)) = field.value.pieces.first() else {
        return None;
    };
    Some(rest_of(field, text.strip_prefix(start)?))
}

/// The word with its first piece replaced by what is left of it. A `~` there is not expanded by
/// the shell; programs such as curl do not either, but a person who wrote it meant the home.
fn rest_of(field: &Field, left: &str) -> Field {
    let mut value = Value::default();
    match left.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => {
            value.push(Piece::Home);
            value.push_text(rest);
        }
        None => value.push_text(left),
    }
    field.value.pieces[1..].iter().for_each(|piece| value.push(piece.clone()));
    Field::new(value, field.span.clone())
}

/// All values of an option: `-oX`, `-o X`, `-sLo X`, `--output X`, `--output=X`.
fn values(arguments: &[Field], option: &FileOption) -> Vec<Field> {
    let mut found = Vec::new();
    for (at, field) in arguments.iter().enumerate() {
        let Some(Piece::Text(text)) = field.value.pieces.first() else {
            continue;
        };
        let whole = field.known();
        if whole.as_deref() == Some("--") {
            break;
        }
        if !option.long.is_empty() && whole.as_deref() == Some(option.long) {
            found.extend(arguments.get(at + 1).cloned());
        } else if !option.long.is_empty()
            && let Some(value) = text.strip_prefix(option.long).and_then(|t| t.strip_prefix('='))
        {
            found.push(rest_of(field, value));
        } else if let Some(letter) = option.short
            && let Some(cluster) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'))
            && let Some((before, value)) = cluster.split_once(letter)
            && before.chars().all(|c| c.is_ascii_alphabetic())
        {
            match value.is_empty() && field.value.pieces.len() == 1 {
                true => found.extend(arguments.get(at + 1).cloned()),
                false => found.push(rest_of(field, value)),
            }
        }
    }
    found
}

/// `@file`, `name=@file`, `name=<file`, `name@file`.
fn after_sign(value: &Field) -> Option<Field> {
    let Some(Piece::Text(text)) = value.value.pieces.first() else {
        return None;
    };
    let at = text.find(['@', '<'])?;
    let (name, file) = (&text[..at], &text[at + 1..]);
    let is_name = name.trim_end_matches('=').chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // A form field's file may be followed by `;type=…`.
    let file = file.split(';').next().unwrap_or_default();
    is_name.then(|| rest_of(value, file))
}

/// `curl -O URL` and `wget URL` write a file named like the end of the address.
fn saved_by_name(name: &str, arguments: &[Field]) -> Vec<Field> {
    let short = |letter: char| {
        arguments.iter().filter_map(|field| field.known()).any(|text| {
            text.strip_prefix('-')
                .is_some_and(|rest| !rest.starts_with('-') && rest.contains(letter))
        })
    };
    let long =
        |wanted: &str| arguments.iter().any(|field| field.known().as_deref() == Some(wanted));
    let saves = match name {
        "curl" => short('O') || long("--remote-name") || long("--remote-name-all"),
        "wget" => !short('O') && !long("--output-document") && !long("--spider"),
        "aria2c" | "axel" => !short('o'),
        _ => false,
    };
    if !saves {
        return Vec::new();
    }
    let directory = arguments.iter().enumerate().find_map(|(at, field)| {
        let text = field.known()?;
        match text.as_ref() {
            "-P" | "--directory-prefix" | "--output-dir" | "-d" | "--dir"
                if name != "curl" || text != "-d" =>
            {
                arguments.get(at + 1).cloned()
            }
            text => ["--directory-prefix=", "--output-dir=", "--dir=", "-P"]
                .iter()
                .find_map(|option| text.strip_prefix(option))
                .filter(|rest| !rest.is_empty())
                .map(|rest| rest_of(field, rest)),
        }
    });
    let file = |field: &Field| {
        let text = field.known()?;
        if text.starts_with('-') || !(text.contains("://") || text.contains('/')) {
            return None;
        }
        let path = text.split(['?', '#']).next().unwrap_or_default();
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let mut value = match &directory {
            Some(directory) => directory.value.clone(),
            None => Value::default(),
        };
        if !value.pieces.is_empty() {
            value.push_text("/");
        }
        value.push_text(last);
        (!last.is_empty()).then(|| Field::new(value, field.span.clone()))
    };
    arguments.iter().filter_map(file).collect()
}
