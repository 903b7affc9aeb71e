//! Encodings that commands hide in.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// As `base64 -d` and PowerShell read it: blanks are left out, padding may be missing, both alphabets count.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let plain: String = text
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '=')
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            c => c,
        })
        .collect();
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    // One letter too many holds no whole byte.
    let whole = if plain.len() % 4 == 1 { plain.get(..plain.len() - 1)? } else { &plain };
    GeneralPurpose::new(&STANDARD, lenient).decode(whole).ok()
}

pub fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    Some(
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect(),
    )
}

/// UTF-16, little end first, as PowerShell's encoded commands are.
pub fn utf16(bytes: &[u8]) -> Option<String> {
    let units: Vec<u16> =
        bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).ok()
}

/// The escapes of `echo -e` and printf; what is none stays.
pub fn escapes(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        match chars.next() {
            Some('n') => bytes.push(b'\n'),
            Some('t') => bytes.push(b'\t'),
            Some('r') => bytes.push(b'\r'),
            Some('\\') => bytes.push(b'\\'),
            Some(kind @ ('x' | '0'..='7')) => {
                let radix = if kind == 'x' { 16 } else { 8 };
                let mut value = kind.to_digit(8).unwrap_or(0);
                let most = if kind == 'x' { 2 } else { 3 };
                for _ in 0..most {
                    match chars.peek().and_then(|c| c.to_digit(radix)) {
                        Some(digit) => value = (value * radix + digit) & 0xff,
                        None => break,
                    }
                    chars.next();
                }
                bytes.push(value as u8);
            }
            Some(c) => {
                bytes.push(b'\\');
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(base64("cm0gLXJmIC8=").unwrap(), b"rm -rf /");
        assert_eq!(base64("cm0g\nLXJmIC8").unwrap(), b"rm -rf /");
        assert!(base64("rm -rf *").is_none());
        assert_eq!(hex("72 6d").unwrap(), b"rm");
        assert_eq!(escapes(r"\x72\155\n"), "rm\n");
        assert_eq!(escapes(r"a\q"), r"a\q");
        assert_eq!(utf16(&[b'd', 0, b'i', 0, b'r', 0]).unwrap(), "dir");
    }
}
