//! "Did you mean": the known word nearest to one that is not known.

/// The nearest of `known`, if it is near enough to be a slip.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
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
        .map(|known| (distance(&word, known), *known))
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

/// Edits between two words, a swap of neighbours counting as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + differs);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

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
