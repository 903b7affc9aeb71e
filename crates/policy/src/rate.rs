//! Bytes per second: `10M/s`, `1.5 GiB/s`. The unit is required, because a rate without
//! one looks like a total.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::{Bytes, ValueError};

/// What may pass in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Rate(pub Bytes);

impl FromStr for Rate {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        match value.trim_end().strip_suffix("/s") {
            Some(size) => size.parse().map(Self),
            None => Err(ValueError::new(
                0..value.len(),
                "expected a size for each second",
                "write it like \"10 MiB/s\"",
            )),
        }
    }
}

/// Exact: parsing what is printed gives the same rate back.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows() {
        for (written, bytes, shown) in [
            ("10M/s", 10 << 20, "10 MiB/s"),
            (" 1.5 GiB/s ", 3 << 29, "1.5 GiB/s"),
            ("512/s", 512, "512 B/s"),
        ] {
            let rate: Rate = written.parse().unwrap();
            assert_eq!(rate, Rate(Bytes(bytes)));
            assert_eq!(rate.to_string(), shown);
            assert_eq!(shown.parse(), Ok(rate));
        }
    }

    #[test]
    fn refuses_what_is_no_rate() {
        for written in ["10M", "", "/s", "10M/m", "10Q/s", "-1M/s"] {
            let error = written.parse::<Rate>().unwrap_err();
            assert!(error.span.end <= written.len(), "{written}");
        }
    }
}
