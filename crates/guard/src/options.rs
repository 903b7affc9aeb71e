//! Short options that share a word.

/// Whether a cluster such as `-xu` ends in an option whose value is the next word.
pub fn takes_next(option: &str, with_value: &str) -> bool {
    let Some(cluster) = option.strip_prefix('-') else {
        return false;
    };
    let mut letters = cluster.chars();
    while let Some(letter) = letters.next() {
        if with_value.contains(letter) {
            return letters.next().is_none();
        }
    }
    false
}
