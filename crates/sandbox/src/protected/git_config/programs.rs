//! Which settings make git run something, and the files that a command line names. Pure.
//!
//! Leaves open: what such a program itself reads or runs (a Makefile, a module that a script imports).

use super::pathname::{Homes, Pathname, expand, path};

/// What the value of a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueNames {
    /// A directory; git runs the files in it by their names.
    Hooks,
    /// A directory that is copied into each new repository, hooks and all.
    Templates,
    /// A command line, or the path of a program.
    Command,
}

/// Keys in lower case; `*` stands for a name of the user's.
const COMMANDS: &[&str] = &[
    "alias.*",
    "browser.*.cmd",
    "browser.*.path",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "credential.*.helper",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "difftool.*.cmd",
    "difftool.*.path",
    "filter.*.clean",
    "filter.*.process",
    "filter.*.smudge",
    "gc.recentobjectshook",
    "gpg.program",
    "gpg.*.program",
    "gpg.ssh.defaultkeycommand",
    "guitool.*.cmd",
    "hook.*.command",
    "imap.tunnel",
    "instaweb.httpd",
    "interactive.difffilter",
    "lfs.customtransfer.*.path",
    "lfs.extension.*.clean",
    "lfs.extension.*.smudge",
    "man.*.cmd",
    "man.*.path",
    "merge.*.driver",
    "mergetool.*.cmd",
    "mergetool.*.path",
    "pager.*",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "remote.*.url",
    "remote.*.pushurl",
    "sendemail.cccmd",
    "sendemail.headercmd",
    "sendemail.sendmailcmd",
    "sendemail.smtpserver",
    "sendemail.tocmd",
    "sendemail.*.cccmd",
    "sendemail.*.headercmd",
    "sendemail.*.sendmailcmd",
    "sendemail.*.smtpserver",
    "sendemail.*.tocmd",
    "sequence.editor",
    "submodule.*.update",
    "svn.authorsprog",
    "tar.*.command",
    "trailer.*.cmd",
    "trailer.*.command",
    "uploadpack.packobjectshook",
];

/// The hooks that git runs (githooks(5)).
pub const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// What a setting names, if git acts on it.
pub fn names(key: &[u8], value: &[u8]) -> Option<ValueNames> {
    match key {
        b"core.hookspath" => return Some(ValueNames::Hooks),
        b"init.templatedir" => return Some(ValueNames::Templates),
        _ => {}
    }
    let is_command = COMMANDS.iter().any(|pattern| fits(pattern.as_bytes(), key));
    // Other addresses, aliases and ways to update are no commands.
    let is_plain = match key {
        _ if key.starts_with(b"remote.") && key.ends_with(b"url") => !value.starts_with(b"ext::"),
        _ if key.starts_with(b"alias.") || key.starts_with(b"submodule.") => {
            !value.starts_with(b"!")
        }
        _ => false,
    };
    (is_command && !is_plain).then_some(ValueNames::Command)
}

/// Whether a key is one of a pattern with at most one `*`.
pub fn fits(pattern: &[u8], key: &[u8]) -> bool {
    match pattern.iter().position(|c| *c == b'*') {
        None => pattern == key,
        Some(star) => {
            let (head, tail) = (&pattern[..star], &pattern[star + 1..]);
            key.len() > head.len() + tail.len() && key.starts_with(head) && key.ends_with(tail)
        }
    }
}

/// They run the file that they are given.
const INTERPRETERS: &[&str] = &[
    ".", "ash", "bash", "bun", "dash", "deno", "fish", "ksh", "lua", "node", "perl", "php", "pwsh",
    "python", "python2", "python3", "ruby", "sh", "source", "tsx", "zsh",
];
/// A command follows them.
const PREFIXES: &[&str] = &[
    "!", "{", "builtin", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup",
    "sudo", "then", "time", "until", "while", "xargs",
];
/// A text in a text in a text.
const DEEPEST: usize = 4;

/// The programs and scripts that a command line names by a path.
pub fn files(command: &[u8], homes: &Homes) -> Vec<Pathname> {
    let command = command.strip_prefix(b"ext::").unwrap_or(command);
    let command = command.strip_prefix(b"!").unwrap_or(command);
    let mut found = Vec::new();
    // The path of a program may have blanks that no user quoted.
    if command.contains(&b'/') {
        found.extend(expand(command, homes));
    }
    gather(command, homes, 0, &mut found);
    found
}

/// What comes next in a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Command,
    /// The script of an interpreter.
    Script,
    /// The text that follows `-c`.
    Text,
    Argument,
}

fn gather(command: &[u8], homes: &Homes, depth: usize, found: &mut Vec<Pathname>) {
    let mut expected = Expected::Command;
    for word in words(command) {
        let Word::Text(text) = word else {
            expected = Expected::Command;
            continue;
        };
        let last = text.rsplit(|c| *c == b'/').next().unwrap_or_default();
        let is_interpreter = INTERPRETERS.iter().any(|name| name.as_bytes() == last);
        let is_prefix = PREFIXES.iter().any(|name| name.as_bytes() == text);
        let is_option = text.starts_with(b"-");
        match expected {
            Expected::Command if is_option || is_assignment(&text) || is_prefix => {}
            Expected::Command => {
                if text.contains(&b'/') {
                    found.extend(named(&text, homes));
                }
                expected = match is_interpreter {
                    true => Expected::Script,
                    false => Expected::Argument,
                };
            }
            // `sh -ec`, `node -e`: what follows is no file.
            Expected::Script if is_option && text.ends_with(b"c") => expected = Expected::Text,
            Expected::Script if is_option || text == b"run" => {}
            Expected::Script => {
                found.extend(named(&text, homes));
                expected = Expected::Argument;
            }
            Expected::Text => {
                if depth < DEEPEST {
                    gather(&text, homes, depth + 1, found);
                }
                expected = Expected::Argument;
            }
            Expected::Argument => {}
        }
    }
}

/// A path in a command line; a variable at its start may be anything.
fn named(word: &[u8], homes: &Homes) -> Vec<Pathname> {
    for home in [&b"$HOME/"[..], b"${HOME}/"] {
        if let Some(rest) = word.strip_prefix(home) {
            return expand(&[b"~/", rest].concat(), homes);
        }
    }
    let mut meanings = expand(word, homes);
    if let Some(variable) = word.iter().rposition(|c| *c == b'$') {
        let mut rest = word.iter().skip(variable).skip_while(|c| **c != b'/').copied();
        rest.next();
        meanings.push(Pathname::Within(path(&rest.collect::<Vec<u8>>())));
    }
    meanings
}

fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|c| *c == b'=').next().unwrap_or_default();
    name.len() < word.len()
        && !name.is_empty()
        && name.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'_')
}

enum Word {
    Text(Vec<u8>),
    /// Something after which a command begins.
    Separator,
}

fn words(command: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut current: Option<Vec<u8>> = None;
    let mut quote: Option<u8> = None;
    let mut bytes = command.iter().copied();
    while let Some(c) = bytes.next() {
        match (quote, c) {
            (Some(b'"') | None, b'\\') => {
                current.get_or_insert_default().extend(bytes.next());
            }
            (Some(open), c) if c == open => quote = None,
            // Commands run within double quotes too.
            (None, b';' | b'&' | b'|' | b'(' | b')' | b'\n' | b'`')
            | (Some(b'"'), b'(' | b')' | b'`') => {
                words.extend(current.take().map(Word::Text));
                words.push(Word::Separator);
                // `$(git rev-parse --show-toplevel)/x`
                let mut rest = bytes.clone().skip_while(|c| *c == b'"');
                if matches!(c, b')' | b'`') && rest.next() == Some(b'/') {
                    current = Some(b"$".to_vec());
                }
            }
            (Some(_), c) => current.get_or_insert_default().push(c),
            (None, b'"' | b'\'') => {
                quote = Some(c);
                current.get_or_insert_default();
            }
            (None, b' ' | b'\t' | b'\r' | b'<' | b'>') => {
                words.extend(current.take().map(Word::Text));
            }
            (None, c) => current.get_or_insert_default().push(c),
        }
    }
    words.extend(current.take().map(Word::Text));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_run_something() {
        for (key, value) in [
            ("core.fsmonitor", "x"),
            ("diff.pdf.textconv", "x"),
            ("filter.a.b.clean", "x"),
            ("alias.st", "!x"),
            ("remote.origin.url", "ext::sh -c x"),
            ("submodule.a.update", "!x"),
        ] {
            assert_eq!(names(key.as_bytes(), value.as_bytes()), Some(ValueNames::Command), "{key}");
        }
        for (key, value) in [
            ("alias.st", "status"),
            ("remote.origin.url", "../x"),
            ("submodule.a.update", "rebase"),
            ("core.bare", "false"),
            ("core.worktree", ".."),
        ] {
            assert_eq!(names(key.as_bytes(), value.as_bytes()), None, "{key}");
        }
    }

    #[test]
    fn the_lists_are_in_order() {
        assert!(COMMANDS.iter().all(|key| key.to_ascii_lowercase() == *key));
        assert!(HOOKS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn files_of_a_command_line() {
        let at = |path: &str| Pathname::At(path.into());
        let homes = Homes::at("/home/me".as_ref());
        for (command, file) in [
            ("tools/watch --fast", "tools/watch"),
            ("!f() { ./do \"$@\"; }; f", "./do"),
            ("python3 -u conv.py %A", "conv.py"),
            ("A=1 env B=2 sh 'my tools/x'", "my tools/x"),
            ("cat | ./x", "./x"),
            ("sh -c './x && true'", "./x"),
            ("sh -c \"bash -ec 'tools/y'\"", "tools/y"),
            ("\"$HOME/p/x\" a", "/home/me/p/x"),
            ("~/p/x", "/home/me/p/x"),
            ("my tools/x", "my tools/x"),
            ("echo `./x`", "./x"),
        ] {
            let found = files(command.as_bytes(), &homes);
            assert!(found.contains(&at(file)), "{command}: {found:?}");
        }
        for (command, file) in [
            ("\"$TOP\"/tools/x a", "tools/x"),
            ("$(git rev-parse --show-toplevel)/tools/x", "tools/x"),
            ("\"$(git rev-parse --show-toplevel)\"/tools/x", "tools/x"),
            ("sh \"`git rev-parse --show-toplevel`/tools/x\"", "tools/x"),
        ] {
            let found = files(command.as_bytes(), &homes);
            assert!(found.contains(&Pathname::Within(file.into())), "{command}: {found:?}");
        }
        for command in ["less -R", "git-lfs clean -- %f", "grep src/x", "true", "git log README"] {
            let found = files(command.as_bytes(), &homes);
            let whole = at(command);
            assert!(found.iter().all(|name| *name == whole), "{command}: {found:?}");
        }
    }
}
