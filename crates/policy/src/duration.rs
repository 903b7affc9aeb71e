//! Spans of time: `500ms`, `90s`, `2m`, `1.5h`, `1m30s`, and plain numbers for seconds.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::ValueError;
use crate::decimal::{Decimal, too_large};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

const EXAMPLE: &str = "\"90s\" or \"1.5h\"";

/// A span of time in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    millis: u64,
}

impl Duration {
    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self { millis }
    }

    /// `seconds` seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self { millis: seconds.saturating_mul(SECOND) }
    }

    /// Part milliseconds are rounded up, so that a short time never becomes none at all.
    pub fn from_std(duration: std::time::Duration) -> Self {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        Self { millis: u64::try_from(millis).unwrap_or(u64::MAX) }
    }

    /// The same as a [`std::time::Duration`].
    pub const fn as_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.millis)
    }

    /// The number of milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.millis
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.millis == 0
    }
}

impl FromStr for Duration {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        let text = value.trim_end();
        let mut at = text.len() - text.trim_start().len();
        if text.trim().is_empty() {
            return Err(ValueError::new(
                0..value.len(),
                "empty duration",
                format!("write it like {EXAMPLE}"),
            ));
        }
        let whole = at..text.len();
        let mut total = 0u64;
        let mut larger: Option<u64> = None;
        let mut all_zero = true;
        while at < text.len() {
            let (number, rest) = Decimal::scan(&text[at..], "duration", EXAMPLE)
                .map_err(|error| error.shifted(at))?;
            let unit_text = rest.trim_start_matches([' ', '\t']);
            let unit_end = unit_text.find(|c: char| !c.is_alphabetic()).unwrap_or(unit_text.len());
            let unit_at = text.len() - unit_text.len();
            let unit_span = unit_at..unit_at + unit_end;
            let unit = unit(&unit_text[..unit_end], unit_span.clone(), larger.is_some())?;
            if larger.is_some_and(|larger| larger <= unit) {
                return Err(ValueError::new(
                    unit_span,
                    "units are out of order in duration",
                    "write the larger unit first, each once, like \"1m30s\"",
                ));
            }
            total = number
                .times(unit)
                .and_then(|millis| total.checked_add(millis))
                .ok_or_else(|| too_large(whole.clone(), "duration"))?;
            all_zero &= number.is_zero();
            larger = Some(unit);
            let rest = &text[unit_at + unit_end..];
            at = text.len() - rest.trim_start_matches([' ', '\t']).len();
            if unit_end == 0 && at < text.len() {
                return Err(ValueError::new(
                    at..text.len(),
                    format!("unknown unit {:?} in duration", &text[at..]),
                    HINT,
                ));
            }
        }
        if total == 0 && !all_zero {
            return Err(ValueError::new(
                whole,
                "this duration is less than one millisecond",
                format!("write it like {EXAMPLE}"),
            ));
        }
        Ok(Self { millis: total })
    }
}

const HINT: &str = "use ms, s, m, h or d";

fn unit(name: &str, span: std::ops::Range<usize>, is_later_part: bool) -> Result<u64, ValueError> {
    // A capital M is a month to some and a mega to others, so it is not taken for a minute.
    let folded = if name == "M" { name.to_owned() } else { name.to_ascii_lowercase() };
    let unit = match folded.as_str() {
        "" if is_later_part => {
            return Err(ValueError::new(span, "missing unit in duration", HINT));
        }
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 1,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        _ => {
            return Err(ValueError::new(span, format!("unknown unit {name:?} in duration"), HINT));
        }
    };
    Ok(unit)
}

/// Exact: parsing what is printed gives the same duration back.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0s");
        }
        let mut left = self.millis;
        for (name, unit) in [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)] {
            if left >= unit {
                write!(f, "{}{name}", left / unit)?;
                left %= unit;
            }
        }
        Ok(())
    }
}

/// Seconds, with a fraction where there is one.
impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_std().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepts_what_people_write() {
        for (written, millis) in [
            ("1.5h", 90 * MINUTE),
            ("90s", 90_000),
            ("2m", 120_000),
            ("500ms", 500),
            ("5 m", 300_000),
            ("30", 30_000),
            ("0.5", 500),
            ("1m30s", 90_000),
            ("1h 30 min", 90 * MINUTE),
            ("2 Days", 2 * DAY),
            ("0", 0),
        ] {
            assert_eq!(written.parse(), Ok(Duration::from_millis(millis)), "{written}");
        }
    }

    #[test]
    fn refuses_nonsense_and_points_at_it() {
        for (written, span, message) in [
            ("", 0..0, "empty duration"),
            ("5M", 1..2, "unknown unit \"M\" in duration"),
            ("5 fortnights", 2..12, "unknown unit \"fortnights\" in duration"),
            ("-5s", 0..1, "a duration cannot be negative"),
            ("1m30", 4..4, "missing unit in duration"),
            ("30s1m", 4..5, "units are out of order in duration"),
            ("1s1s", 3..4, "units are out of order in duration"),
            ("0.0001s", 0..7, "this duration is less than one millisecond"),
            ("999999999999999999d", 0..19, "this duration is too large"),
            ("inf", 0..1, "expected a number in duration"),
            ("1:30", 1..4, "unknown unit \":30\" in duration"),
        ] {
            let error = written.parse::<Duration>().unwrap_err();
            assert_eq!((error.span, error.message.as_str()), (span, message), "{written}");
        }
    }

    #[test]
    fn shows_the_human_form() {
        for (millis, shown) in
            [(0, "0s"), (90_000, "1m30s"), (500, "500ms"), (1500, "1s500ms"), (HOUR, "1h")]
        {
            assert_eq!(Duration::from_millis(millis).to_string(), shown);
        }
    }

    #[test]
    fn serializes_as_seconds() {
        let json = serde_json::to_string(&Duration::from_millis(1500)).unwrap();
        assert_eq!(json, "1.5");
    }

    #[test]
    fn a_microsecond_is_not_nothing() {
        assert_eq!(Duration::from_std(std::time::Duration::from_micros(1)).as_millis(), 1);
    }

    proptest! {
        #[test]
        fn display_parses_back(millis: u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn no_input_panics(value in ".*|([-+0-9. ]{0,9}[a-zA-Z]{0,3}){0,3}") {
            if let Err(error) = value.parse::<Duration>() {
                prop_assert!(value.get(error.span.clone()).is_some());
                error.render(&value);
            }
        }
    }
}
