//! "Did you mean": the known word nearest to one that is not known.

/// The nearest of `known`, if it is near enough to be a slip.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // The distance is quadratic in length, and no slip is this long.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase().replace('-', "_");
    if let Some(alias) = ALIASES.iter().find(|(alias, _)| *alias == word) {
        return known.iter().copied().find(|known| *known == alias.1);
    }
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&word, known), *known))
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(1))
        .min()
        .map(|(_, known)| known)
}

/// What the flags and other tools call our keys.
const ALIASES: [(&str, &str); 11] = [
    ("max_memory", "memory"),
    ("mem", "memory"),
    ("ram", "memory"),
    ("max_cpu", "cpu"),
    ("max_pids", "processes"),
    ("pids", "processes"),
    ("max_fds", "open_files"),
    ("fds", "open_files"),
    ("nofile", "open_files"),
    ("fs", "filesystem"),
    ("environment", "env"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let known = ["memory", "cpu", "cpu_time", "processes", "open_files", "timeout"];
        for (word, expected) in [
            ("memroy", Some("memory")),
            ("Memory", Some("memory")),
            ("cpu-time", Some("cpu_time")),
            ("max_pids", Some("processes")),
            ("timeouts", Some("timeout")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), expected, "{word}");
        }
    }
}
