//! Sizes. Every unit is 1024-based: `64M`, `64MB`, `64mb` and `64 MiB` are the same size,
//! because that is what people who write `64M` for a memory limit mean, and a limit that
//! changes by 5 % with the spelling is a trap.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::ValueError;
use crate::decimal::{Decimal, too_large};

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

const EXAMPLE: &str = "\"64 MiB\"";

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 10))
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        let text = value.trim_start();
        let start = value.len() - text.len();
        let text = text.trim_end();
        if text.is_empty() {
            return Err(ValueError::new(
                0..value.len(),
                "empty size",
                format!("write it like {EXAMPLE}"),
            ));
        }
        let (number, rest) =
            Decimal::scan(text, "size", EXAMPLE).map_err(|error| error.shifted(start))?;
        let unit = rest.trim_start_matches([' ', '\t']);
        let factor = factor(unit).ok_or_else(|| {
            ValueError::new(
                start + text.len() - unit.len()..start + text.len(),
                format!("unknown unit {unit:?} in size"),
                "use B, KiB, MiB, GiB, TiB (or K, M, G, T)",
            )
        })?;
        let span = start..start + text.len();
        let bytes = number.times(factor).ok_or_else(|| too_large(span.clone(), "size"))?;
        if bytes == 0 && !number.is_zero() {
            return Err(ValueError::new(
                span,
                "this size is less than one byte",
                format!("write it like {EXAMPLE}"),
            ));
        }
        Ok(Self(bytes))
    }
}

fn factor(unit: &str) -> Option<u64> {
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    Some(factor)
}

/// Exact: parsing what is printed gives the same size back.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = u128::from(self.0) * 100;
        let (name, unit) = UNITS
            .into_iter()
            .find(|(_, unit)| self.0 >= *unit && hundredths % u128::from(*unit) == 0)
            .unwrap_or(("B", 1));
        let hundredths = hundredths / u128::from(unit);
        write!(f, "{}", hundredths / 100)?;
        match hundredths % 100 {
            0 => {}
            tenths if tenths % 10 == 0 => write!(f, ".{}", tenths / 10)?,
            part => write!(f, ".{part:02}")?,
        }
        write!(f, " {name}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepts_what_people_write() {
        for (written, bytes) in [
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("512mb", 512 << 20),
            ("1.5GiB", 3 << 29),
            (".5g", 1 << 29),
            ("1048576", 1 << 20),
            (" 10 b ", 10),
            ("1.3K", 1331),
            ("0", 0),
        ] {
            assert_eq!(written.parse(), Ok(Bytes(bytes)), "{written}");
        }
    }

    #[test]
    fn refuses_nonsense_and_points_at_it() {
        for (written, span, message) in [
            ("", 0..0, "empty size"),
            ("  ", 0..2, "empty size"),
            ("64Q", 2..3, "unknown unit \"Q\" in size"),
            (" 64 MiBs", 4..8, "unknown unit \"MiBs\" in size"),
            ("-5M", 0..1, "a size cannot be negative"),
            ("+5M", 0..1, "expected a number in size"),
            ("NaN", 0..1, "expected a number in size"),
            ("5.M", 1..2, "digits are missing after the point in size"),
            ("1,5G", 1..2, "unexpected comma in size"),
            ("99999999999T", 0..12, "this size is too large"),
            ("99999999999999999999", 0..20, "this size is too large"),
            ("0.1B", 0..4, "this size is less than one byte"),
            ("1e9", 1..3, "unknown unit \"e9\" in size"),
            ("٣M", 0..2, "expected a number in size"),
        ] {
            let error = written.parse::<Bytes>().unwrap_err();
            assert_eq!((error.span, error.message.as_str()), (span, message), "{written}");
        }
    }

    #[test]
    fn shows_the_human_form() {
        for (bytes, shown) in [
            (0, "0 B"),
            (256 << 20, "256 MiB"),
            (3 << 29, "1.5 GiB"),
            (1_000_000, "1000000 B"),
            (1331, "1331 B"),
            (2048, "2 KiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), shown);
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(bytes: u64) {
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }

        #[test]
        fn no_input_panics(value in ".*|[-+0-9. ]{0,30}[a-zA-Z]{0,4}") {
            if let Err(error) = value.parse::<Bytes>() {
                prop_assert!(value.get(error.span.clone()).is_some());
                error.render(&value);
            }
        }
    }
}
