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

/// Replaces names that are known, then every path that is not the system's.
pub fn redact(text: &str, known: &[(String, &str)]) -> String {
    let mut text = text.to_owned();
    for (name, instead) in known.iter().filter(|(name, _)| name.len() > 1) {
        text = text.replace(name.as_str(), instead);
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
        let known = [("/home/ada".to_owned(), "~"), ("ada".to_owned(), "<user>")];
        let text = "cat: /home/ada/key: denied; /srv/data/x refused ('/Users/bob/.ssh/id') near /usr/bin/cat";
        let clean = redact(text, &known);
        assert_eq!(clean, "cat: ~/key: denied; <path> refused ('<path>') near /usr/bin/cat");
        assert_eq!(
            redact(r"open D:\work\x: no; C:\Windows\System32\cmd.exe", &[]),
            r"open <path>: no; C:\Windows\System32\cmd.exe"
        );
        assert_eq!(redact("a /dev of its own", &[]), "a /dev of its own");
        assert_eq!(redact("https://pypi.org/simple 1/2", &[]), "https://pypi.org/simple 1/2");
    }

    proptest! {
        #[test]
        fn no_path_of_a_home_survives(name in "[a-z]{3,8}", before in "[a-z ]{0,9}", file in "[a-z.]{1,9}") {
            let clean = redact(&format!("{before} /home/{name}/{file} end"), &[]);
            prop_assert!(!clean.contains("/home/"), "{}", clean);
        }
    }
}
