//! Removes user names and paths from a report, so that it can be pasted in public. Pure.

/// Beginnings of paths that every machine of a system has.
const SYSTEM: [&str; 16] = [
    "/usr/",
    "/bin/",
    "/sbin/",
    "/dev/",
    "/proc/",
    "/sys/",
    "/System/",
    "/Library/",
    "/opt/homebrew/",
    "/opt/local/",
    "/nix/",
    "/etc/",
    "/private/etc/",
    r"C:\Windows\",
    r"C:\Program Files\",
    r"C:\Program Files (x86)\",
];

/// Names of users that say nothing.
const COMMON: [&str; 6] = ["root", "user", "users", "home", "admin", "administrator"];

/// What is known of a machine.
#[derive(Debug, Default)]
pub struct Known {
    /// Paths, each with what takes its place.
    pub paths: Vec<(String, &'static str)>,
    /// Names, as whole words.
    pub names: Vec<(String, &'static str)>,
}

impl Known {
    pub fn path(&mut self, path: &str, instead: &'static str) {
        // Also as JSON and Rust print it, and as some programs of Windows do.
        for spelling in [path.to_owned(), path.replace('\\', r"\\"), path.replace('\\', "/")] {
            if spelling.len() > 2 && !self.paths.iter().any(|(known, _)| *known == spelling) {
                self.paths.push((spelling, instead));
            }
        }
    }

    pub fn name(&mut self, name: &str, instead: &'static str) {
        let is_word = name.chars().any(char::is_alphabetic);
        if is_word && name.len() > 1 && !COMMON.iter().any(|word| name.eq_ignore_ascii_case(word)) {
            self.names.push((name.to_owned(), instead));
        }
    }
}

/// Replaces paths and names that are known, then every path that is not the system's.
pub fn redact(text: &str, known: &Known) -> String {
    let mut text = text.to_owned();
    for (path, instead) in &known.paths {
        text = text.replace(path.as_str(), instead);
    }
    for (name, instead) in &known.names {
        text = without_word(&text, name, instead);
    }
    let mut clean = String::new();
    let mut rest = text.as_str();
    while let Some(at) = start_of_path(rest) {
        let (before, path) = rest.split_at(at);
        let length = path.find(|c: char| c.is_whitespace() || "\"'`<>|,;)]}".contains(c));
        let length = length.unwrap_or(path.len());
        // A colon behind a path belongs to the sentence.
        let length = path.get(..length).map_or(length, |path| path.trim_end_matches(':').len());
        let (path, after) = path.split_at(length);
        clean += before;
        let is_system = SYSTEM
            .iter()
            .any(|start| format!("{path}/").starts_with(start) || path.starts_with(start))
            || path == r"C:\"
            || path == "/";
        clean += if is_system { path } else { "<path>" };
        rest = after;
    }
    clean + rest
}

/// Without a name that stands by itself, in any case.
fn without_word(text: &str, name: &str, instead: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (mut clean, mut at) = (String::new(), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let is_it = rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = rest.get(name.len()..).and_then(|after| after.chars().next());
        if is_it && !is_part(before) && !is_part(after) {
            clean += instead;
            at += name.len();
        } else {
            let first = rest.chars().next().unwrap_or_default();
            clean.push(first);
            at += first.len_utf8();
        }
    }
    clean
}

/// Where the first absolute path begins: `/x` or `C:\x`, not in the middle of a word or of a URL.
fn start_of_path(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|at| {
        let before =
            at.checked_sub(1).and_then(|before| bytes.get(before)).copied().unwrap_or(b' ');
        let is_inside = before.is_ascii_alphanumeric() || b"/\\:.<>~_-".contains(&before);
        let drive = bytes.get(at + 1) == Some(&b':')
            && matches!(bytes.get(at + 2), Some(b'\\' | b'/'))
            && bytes.get(*at).is_some_and(u8::is_ascii_alphabetic);
        let slash = bytes.get(*at) == Some(&b'/')
            && bytes
                .get(at + 1)
                .is_some_and(|next| next.is_ascii_alphanumeric() || b"._".contains(next));
        text.is_char_boundary(*at) && !is_inside && (drive || slash)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_paths_are_gone_and_the_systems_stay() {
        let mut known = Known::default();
        known.path("/home/ada", "~");
        known.name("ada", "<user>");
        let none = Known::default();
        let text = "cat: /home/ada/key: denied; /srv/data/x refused ('/Users/bob/.ssh/id') near /usr/bin/cat";
        let clean = redact(text, &known);
        assert_eq!(clean, "cat: ~/key: denied; <path> refused ('<path>') near /usr/bin/cat");
        assert_eq!(
            redact(r"open D:\work\x: no; C:\Windows\System32\cmd.exe", &none),
            r"open <path>: no; C:\Windows\System32\cmd.exe"
        );
        assert_eq!(redact("a /dev of its own", &none), "a /dev of its own");
        assert_eq!(redact("https://pypi.org/simple 1/2", &none), "https://pypi.org/simple 1/2");
    }

    /// A home with blanks and quotes, a short name, a name that is part of words, and one that is a word of ours.
    #[test]
    fn odd_names_are_gone_and_ordinary_words_stay() {
        let mut known = Known::default();
        known.path(r"C:\Users\Zoë O'Neil", "~");
        known.name("Zoë O'Neil", "<user>");
        known.name("bo", "<user>");
        known.name("root", "<user>");
        for (text, clean) in [
            (r"open C:\Users\Zoë O'Neil\key: denied", r"open ~\key: denied"),
            (r#"{"path":"C:\\Users\\Zoë O'Neil\\key"}"#, r#"{"path":"~\\key"}"#),
            ("open C:/Users/Zoë O'Neil/key", "open ~/key"),
            ("Zoë O'Neil has no right", "<user> has no right"),
            ("user BO is not bobbin", "user <user> is not bobbin"),
            ("pivot_root of root", "pivot_root of root"),
        ] {
            assert_eq!(redact(text, &known), clean);
        }
    }

    proptest! {
        #[test]
        fn no_path_of_a_home_survives(name in "[a-z]{3,8}", before in "[a-z ]{0,9}", file in "[a-z.]{1,9}") {
            let clean = redact(&format!("{before} /home/{name}/{file} end"), &Known::default());
            prop_assert!(!clean.contains("/home/"), "{}", clean);
        }

        /// Whatever letters, blanks and quotes a user's name and home have.
        #[test]
        fn no_known_name_survives(name in "[a-zA-ZäöüßéЖ日' .()-]{2,12}", file in "[0-9]{1,5}") {
            let mut known = Known::default();
            let home = format!("/home/{name}");
            known.path(&home, "~");
            known.name(&name, "<user>");
            let text = format!("cat: {home}/{file}: denied to {name}; {home}: no");
            let clean = redact(&text, &known);
            prop_assert!(!clean.contains(&home), "{}", clean);
            let is_word = name.chars().any(char::is_alphabetic) && !COMMON.contains(&name.to_lowercase().as_str());
            prop_assert!(!is_word || !clean.contains(&format!("to {name};")), "{}", clean);
        }
    }
}
