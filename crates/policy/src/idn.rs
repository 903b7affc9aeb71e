//! Host names that people write in their own script, in the form that DNS knows: `bücher` is
//! `xn--bcher-kva` (RFC 3492).
//!
//! Only what needs no tables is turned: letters and digits, in lower case, each a character of
//! its own. Ligatures, wide forms, joiners and loose accents would first have to be mapped
//! (UTS 46), and a rule must not guess: for those the `xn--` form has to be written.

/// The name with each label in ASCII; `None` when one cannot be turned for sure.
pub(crate) fn to_ascii(name: &str) -> Option<String> {
    let labels: Option<Vec<String>> = name.split('.').map(label_to_ascii).collect();
    labels.map(|labels| labels.join("."))
}

fn label_to_ascii(label: &str) -> Option<String> {
    if label.is_ascii() {
        return Some(label.to_owned());
    }
    let letters: Option<Vec<char>> = label.chars().map(plain_letter).collect();
    Some(format!("xn--{}", punycode(&letters?)?))
}

fn plain_letter(c: char) -> Option<char> {
    if c.is_ascii() {
        return (c.is_ascii_alphanumeric() || c == '-').then(|| c.to_ascii_lowercase());
    }
    let mut lower = c.to_lowercase();
    let (Some(letter), None) = (lower.next(), lower.next()) else { return None };
    (letter.is_alphanumeric() && !stands_for_another(letter)).then_some(letter)
}

/// Blocks whose characters are other spellings of characters elsewhere, and those that melt
/// with their neighbours.
fn stands_for_another(c: char) -> bool {
    matches!(c,
        '\u{aa}' | '\u{b2}'..='\u{be}' | '\u{132}'..='\u{133}' | '\u{149}' | '\u{17f}'
        | '\u{1c4}'..='\u{1cc}' | '\u{1f1}'..='\u{1f3}' | '\u{2b0}'..='\u{36f}'
        | '\u{3d0}'..='\u{3d6}' | '\u{3f0}'..='\u{3f5}' | '\u{1100}'..='\u{11ff}'
        | '\u{1d00}'..='\u{1dff}' | '\u{2000}'..='\u{2bff}' | '\u{2e80}'..='\u{2fff}'
        | '\u{3130}'..='\u{318f}' | '\u{3200}'..='\u{33ff}' | '\u{a640}'..='\u{a7ff}'
        | '\u{a960}'..='\u{a97f}' | '\u{d7b0}'..='\u{d7ff}' | '\u{f900}'..='\u{ffff}'
        | '\u{10000}'..)
}

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;

/// RFC 3492, 6.3. `None` on overflow, which no label of 63 characters reaches.
fn punycode(letters: &[char]) -> Option<String> {
    let mut output: String = letters.iter().filter(|c| c.is_ascii()).collect();
    let basic = u32::try_from(output.len()).ok()?;
    if basic > 0 {
        output.push('-');
    }
    let (mut n, mut delta, mut bias, mut handled) = (128u32, 0u32, 72u32, basic);
    while (handled as usize) < letters.len() {
        let next = letters.iter().map(|c| u32::from(*c)).filter(|c| *c >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(handled + 1)?)?;
        n = next;
        for c in letters.iter().map(|c| u32::from(*c)) {
            if c < n {
                delta = delta.checked_add(1)?;
            }
            if c == n {
                write_delta(&mut output, delta, bias);
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(output)
}

fn write_delta(output: &mut String, mut delta: u32, bias: u32) {
    let digit = |value: u32| char::from_digit(value, 10 + 26);
    let mut k = BASE;
    loop {
        let threshold = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
        // Punycode's digits are a to z, then 0 to 9; char's are the other way round.
        let letter = |value: u32| digit(if value < 26 { value + 10 } else { value - 26 });
        if delta < threshold {
            output.extend(letter(delta));
            return;
        }
        output.extend(letter(threshold + (delta - threshold) % (BASE - threshold)));
        delta = (delta - threshold) / (BASE - threshold);
        k += BASE;
    }
}

fn adapt(delta: u32, points: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / 700 } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > ((BASE - T_MIN) * T_MAX) / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (BASE - T_MIN + 1) * delta / (delta + 38)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts() {
        for (written, ascii) in [
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("faß.de", "xn--fa-hia.de"),
            ("münchen-ost.de", "xn--mnchen-ost-9db.de"),
            ("пример.рф", "xn--e1afmkfd.xn--p1ai"),
            ("例え.jp", "xn--r8jz45g.jp"),
            ("中文.com", "xn--fiq228c.com"),
            ("한국.kr", "xn--3e0b707e.kr"),
            ("ελλάδα.gr", "xn--hxakic4aa.gr"),
            ("plain.example", "plain.example"),
        ] {
            assert_eq!(to_ascii(written).as_deref(), Some(ascii), "{written}");
        }
    }

    #[test]
    fn what_would_need_a_table_is_not_guessed() {
        for written in [
            "bu\u{308}cher.example",
            "ｅxample.com",
            "a\u{200d}b.example",
            "a。b",
            "ﬁle.example",
            "x².example",
            "İ.example",
            "a\u{0}é.example",
            "é b.example",
            "😀.example",
            "ª.example",
        ] {
            assert_eq!(to_ascii(written), None, "{written:?}");
        }
    }
}
