//! The one matcher for `*`: deny rules, names of variables and the guard's patterns differ in what a piece of a pattern
//! admits, and not in how a run is found.

/// Whether `pattern` admits all of `text`. A piece for which `is_run` holds stands for any number of items, every
/// other one for one item that it `admits`.
///
/// At most as many steps as the lengths multiplied: of two runs only the last one is ever tried anew, because the
/// earliest place for what is between them is as good as any.
pub fn matches<P, T>(
    mut pattern: P,
    mut text: T,
    is_run: impl Fn(&P::Item) -> bool,
    admits: impl Fn(&P::Item, &T::Item) -> bool,
) -> bool
where
    P: Iterator + Clone,
    T: Iterator + Clone,
{
    // What follows the last run, and the text that the run has not taken yet.
    let mut last: Option<(P, T)> = None;
    loop {
        let here = text.clone();
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some(piece), _) if is_run(&piece) => {
                last = Some((pattern.clone(), here.clone()));
                text = here;
                continue;
            }
            (Some(piece), Some(item)) if admits(&piece, &item) => continue,
            _ => {}
        }
        let Some((after, mut left)) = last else {
            return false;
        };
        if left.next().is_none() {
            return false;
        }
        (pattern, text) = (after.clone(), left.clone());
        last = Some((after, left));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn fast(pattern: &str, text: &str) -> bool {
        super::matches(pattern.chars(), text.chars(), |c| *c == '*', |a, b| a == b)
    }

    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|at| slow(rest, &text[at..])),
            [first, rest @ ..] => text.first() == Some(first) && slow(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_says_what_trying_everything_says(pattern in "[ab*]{0,7}", text in "[ab]{0,9}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(fast(&pattern, &text), slow(&chars(&pattern), &chars(&text)));
        }
    }
}
