//! The number in front of a unit, exact: `1.5` of 1024 is 1536, with no float in between.

use crate::ValueError;

/// Fraction digits kept; more cannot change a byte or a millisecond.
const MAX_FRACTION_DIGITS: usize = 18;

/// A non-negative decimal number as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    whole: u64,
    fraction: u64,
    /// Ten to the power of the fraction's digits.
    scale: u64,
}

impl Decimal {
    /// Reads a number at the start of `text` and gives back the rest.
    ///
    /// `what` names the kind of value in messages, `example` a good one.
    pub fn scan<'a>(
        text: &'a str,
        what: &str,
        example: &str,
    ) -> Result<(Self, &'a str), ValueError> {
        if let Some(after) = text.strip_prefix(['-', '−']) {
            return Err(ValueError::new(
                0..text.len() - after.len(),
                format!("a {what} cannot be negative"),
                format!("write a positive one such as {example}"),
            ));
        }
        let digits = |text: &'a str| {
            text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
        };
        let (whole, rest) = digits(text);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", rest),
        };
        let written = text.len() - rest.len();
        if whole.is_empty() && fraction.is_empty() {
            return Err(ValueError::new(
                0..text.chars().next().map_or(0, char::len_utf8).max(written),
                format!("expected a number in {what}"),
                format!("write it like {example}"),
            ));
        }
        if text[..written].ends_with('.') {
            return Err(ValueError::new(
                written - 1..written,
                format!("digits are missing after the point in {what}"),
                format!("write it like {example}"),
            ));
        }
        if rest.starts_with(',') {
            return Err(ValueError::new(
                written..written + 1,
                format!("unexpected comma in {what}"),
                "fractions have a point, and there are no thousands separators",
            ));
        }
        let whole = match whole {
            "" => 0,
            digits => digits.parse().map_err(|_| too_large(0..written, what))?,
        };
        let fraction = &fraction[..fraction.len().min(MAX_FRACTION_DIGITS)];
        let mut number = Self { whole, fraction: 0, scale: 1 };
        for digit in fraction.bytes() {
            // At most 18 digits: both stay below 10^18.
            number.fraction = number.fraction * 10 + u64::from(digit - b'0');
            number.scale *= 10;
        }
        Ok((number, rest))
    }

    /// This many of `unit`, rounded to the nearest; `None` when it does not fit.
    pub fn times(self, unit: u64) -> Option<u64> {
        let whole = u128::from(self.whole) * u128::from(unit);
        let scale = u128::from(self.scale);
        let part = (u128::from(self.fraction) * u128::from(unit) + scale / 2) / scale;
        u64::try_from(whole.checked_add(part)?).ok()
    }

    pub fn is_zero(self) -> bool {
        self.whole == 0 && self.fraction == 0
    }
}

pub(crate) fn too_large(span: std::ops::Range<usize>, what: &str) -> ValueError {
    ValueError::new(span, format!("this {what} is too large"), "write \"none\" for no limit")
}
