//! Words that are no command and no package anywhere, and what was meant.

use std::ffi::OsString;
use std::path::Path;

use super::super::quoted;
use super::line::run_with;
use crate::args::Variable;
use crate::failure::Failure;
use crate::render;

/// Words that only a shell knows.
const OF_SHELL: &[&str] = &[
    "alias", "cd", "eval", "export", "history", "pushd", "set", "shopt", "source", "type",
    "ulimit", "unset",
];

pub fn command(words: &[OsString], variables: &[Variable]) -> Result<(), Failure> {
    let Some(word) = words.first().and_then(|word| word.to_str()) else {
        return Ok(());
    };
    let told = not_a_program(word, words).or_else(|| script(word, words));
    if let Some(why) = told {
        return Err(Failure::Usage(render::plain(&why)));
    }
    let sets_path = variables.iter().any(|variable| match variable {
        Variable::Set(name, _) => name.as_str() == "PATH",
        Variable::Pass(_) => false,
    });
    if cfg!(unix) && !sets_path && !word.contains('/') && !on_path(word) {
        return Err(Failure::NotFound(render::plain(&missing(word, words))));
    }
    Ok(())
}

fn not_a_program(word: &str, words: &[OsString]) -> Option<String> {
    let rest = rest_of(words);
    let rest = rest.as_str();
    if word.starts_with('@') && word.contains('/') {
        return Some(format!("{word} is no command; a package of npm is written npm:{word}"));
    }
    if let Some((name, _)) = word.split_once('=')
        && name.parse::<mcp_policy::EnvName>().is_ok()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        // Not the value: it may be a secret.
        let run = run_with(&[format!("-e {name}=…")]);
        return Some(format!("variables are given with -e; type: {run} {rest}"));
    }
    if word.contains("://") || word.starts_with("git+") {
        return Some(format!(
            "{word} is an address; mcp runs packages (npm:NAME, pypi:NAME, oci://HOST/NAME) and programs that are \
             here: get it, then type: mcp run -r DIR PROGRAM"
        ));
    }
    if word.contains(char::is_whitespace) && !Path::new(word).exists() {
        let of_shell = word.contains(['|', '&', ';', '<', '>', '$', '`', '*', '\'', '"']);
        return Some(match of_shell {
            true => format!(
                "\"{word}\" is a text for a shell; type: mcp exec '{}'",
                word.replace('\'', r"'\''")
            ),
            false => {
                let run = run_with(&[]);
                format!("\"{word}\" is one word here; write its words apart: {run} {word} {rest}")
            }
        })
        .map(|told| told.trim_end().to_owned());
    }
    let is_bare =
        |allowed: &[&str]| words[1..].iter().all(|word| allowed.iter().any(|known| word == known));
    if matches!(word, "npx" | "pnpx" | "bunx" | "uvx") && is_bare(&["-y", "--yes", "-q"]) {
        let yes = if word == "npx" { " -y" } else { "" };
        return Some(format!(
            "{word} is given no package; type: {} {word}{yes} NAME",
            run_with(&[])
        ));
    }
    if matches!(word, "sudo" | "doas" | "su") {
        return Some(format!(
            "{word} has no effect in a sandbox, and mcp needs no root; leave it out: {} {rest}",
            run_with(&[])
        ));
    }
    None
}

/// The words after the first, as a shell takes them.
fn rest_of(words: &[OsString]) -> String {
    let rest: Vec<String> = words.iter().skip(1).map(|word| quoted(word)).collect();
    rest.join(" ")
}

/// A script that is run by its interpreter.
fn script(word: &str, words: &[OsString]) -> Option<String> {
    let path = Path::new(word);
    let interpreter = interpreter(path)?;
    if !path.is_file() || is_executable(path) && word.contains('/') {
        return None;
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.map_or_else(|| ".".to_owned(), |parent| parent.display().to_string());
    let granted = format!("-r {}", quoted(directory.as_ref()));
    let run = run_with(&[]);
    let run = if run.contains(&granted) { run } else { format!("{run} {granted}") };
    let line = format!("{run} {interpreter} {} {}", quoted(word.as_ref()), rest_of(words));
    Some(format!("{word} is a script, not a program; type: {}", line.trim_end()))
}

/// What runs a file of this ending.
fn interpreter(path: &Path) -> Option<&'static str> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("py") => Some("python3"),
        Some("js" | "mjs" | "cjs") => Some("node"),
        Some("ts" | "mts") => Some("npx tsx"),
        Some("rb") => Some("ruby"),
        Some("sh") => Some("bash"),
        _ => None,
    }
}

fn missing(word: &str, words: &[OsString]) -> String {
    if OF_SHELL.contains(&word) {
        let all: Vec<String> =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        return format!(
            "{word} is a word of the shell's, not a program; type: mcp exec '{} …'",
            all.join(" ")
        );
    }
    if interpreter(Path::new(word)).is_some() {
        let here = std::env::current_dir().unwrap_or_default();
        return format!("there is no {word} in {}", here.display());
    }
    // A name of another system's, or of an older one.
    let other = match word {
        "python" | "py" => "python3",
        "pip" => "pip3",
        "node" => "nodejs",
        "nodejs" => "node",
        _ => "",
    };
    if !other.is_empty() && on_path(other) {
        let line = format!("{} {other} {}", run_with(&[]), rest_of(words));
        return format!("{word}: command not found; {other} is here: {}", line.trim_end());
    }
    let is_name = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    match is_name && word.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        true => format!(
            "{word}: command not found; if it is a package: mcp run npm:{word} or mcp run pypi:{word} (mcp search {word} \
             looks for it)"
        ),
        false if word.is_empty() => "nothing to run: the command is empty".to_owned(),
        false => format!("{word}: command not found"),
    }
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).exists())
}

/// A package that is a path: with the `./` it needs, and what to do with a directory that is none.
pub fn package(word: &mut OsString) -> Result<(), Failure> {
    let Some(text) = word.to_str().map(str::to_owned) else {
        return Ok(());
    };
    if text.to_ascii_lowercase().ends_with(".mcpb")
        && !mcp_package::is_path(&text)
        && !text.contains(':')
    {
        *word = format!("./{text}").into();
    }
    let path = Path::new(&*word).to_owned();
    if text.to_ascii_lowercase().ends_with(".mcpb")
        && !path.exists()
        && !text.starts_with('~')
        && !text.contains(':')
    {
        return Err(Failure::Usage(render::plain(&format!(
            "{}: there is no such bundle here; mcp pack DIR makes one of a directory with a manifest",
            path.display()
        ))));
    }
    if !path.is_dir() || !mcp_package::is_path(&text) {
        return Ok(());
    }
    // Whatever it is: what cannot be read as a manifest is told by who reads it.
    let has = |name: &str| path.join(name).symlink_metadata().is_ok();
    if has("manifest.json") || has("mcp.toml") {
        return Ok(());
    }
    let shown = path.display();
    let way = if has("package.json") {
        format!(
            "it is a project of npm; start its program: mcp run -r {shown} node {shown}/FILE.js"
        )
    } else if has("pyproject.toml") {
        format!(
            "it is a project of Python; start its program: mcp run uv --directory {shown} run NAME"
        )
    } else {
        format!("start a program in it: mcp run -r {shown} PROGRAM")
    };
    Err(Failure::Usage(render::plain(&format!(
        "{shown} is no package (neither a manifest.json nor an mcp.toml); {way}"
    ))))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}
