//! Processor time per second of wall time. Policy files count cores (`cpu = 0.5`), the
//! command line counts millicores (`--max-cpu 500`): two readers, one type.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::ValueError;
use crate::decimal::{Decimal, too_large};

const EXAMPLE: &str = "0.5";

/// A share of the machine's processors in thousandths of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cores {
    millicores: u32,
}

impl Cores {
    /// A share in thousandths of a processor.
    pub const fn from_millicores(millicores: u32) -> Self {
        Self { millicores }
    }

    /// The share in thousandths of a processor.
    pub const fn millicores(self) -> u32 {
        self.millicores
    }

    /// Reads what `--max-cpu` takes: a whole number of millicores.
    pub fn parse_millicores(value: &str) -> Result<Self, ValueError> {
        let hint = "write millicores: 500 is half a core";
        match value.trim().parse::<u32>() {
            Ok(0) => Err(ValueError::new(0..value.len(), "cpu cannot be zero", hint)),
            Ok(millicores) => Ok(Self { millicores }),
            Err(_) => {
                Err(ValueError::new(0..value.len(), "expected a whole number of millicores", hint))
            }
        }
    }
}

/// Reads cores: `0.5`, `2`, `1.5 cores`.
impl FromStr for Cores {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        let text = value.trim_start();
        let start = value.len() - text.len();
        let text = text.trim_end();
        let hint = "write cores: 0.5 is half a core";
        if text.is_empty() {
            return Err(ValueError::new(0..value.len(), "empty number of cores", hint));
        }
        let (number, rest) = Decimal::scan(text, "number of cores", EXAMPLE)
            .map_err(|error| error.shifted(start))?;
        let unit = rest.trim_start_matches([' ', '\t']);
        let span = start..start + text.len();
        if !matches!(unit.to_ascii_lowercase().as_str(), "" | "core" | "cores") {
            let at = span.end - unit.len();
            let message = format!("unknown unit {unit:?} in number of cores");
            return Err(ValueError::new(at..span.end, message, hint));
        }
        let millicores = number
            .times(1000)
            .and_then(|millicores| u32::try_from(millicores).ok())
            .ok_or_else(|| too_large(span.clone(), "number of cores"))?;
        if millicores == 0 {
            let message = if number.is_zero() {
                "cpu cannot be zero"
            } else {
                "this is less than a thousandth of a core"
            };
            return Err(ValueError::new(span, message, hint));
        }
        Ok(Self { millicores })
    }
}

impl Cores {
    /// The bare number of cores, as a policy file has it.
    #[must_use]
    pub fn number(self) -> String {
        let (whole, part) = (self.millicores / 1000, self.millicores % 1000);
        if part == 0 {
            return whole.to_string();
        }
        format!("{whole}.{part:03}").trim_end_matches('0').to_owned()
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.millicores == 1000 { "core" } else { "cores" };
        write!(f, "{} {noun}", self.number())
    }
}

impl Serialize for Cores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.millicores) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_count_cores_and_flags_count_millicores() {
        assert_eq!("0.5".parse(), Ok(Cores::from_millicores(500)));
        assert_eq!("2 cores".parse(), Ok(Cores::from_millicores(2000)));
        assert_eq!(Cores::parse_millicores("100"), Ok(Cores::from_millicores(100)));
    }

    #[test]
    fn shows_and_serializes_cores() {
        assert_eq!(Cores::from_millicores(500).to_string(), "0.5 cores");
        assert_eq!(Cores::from_millicores(1000).to_string(), "1 core");
        assert_eq!(serde_json::to_string(&Cores::from_millicores(250)).unwrap(), "0.25");
    }

    #[test]
    fn refuses_nonsense() {
        for written in ["", "0", "-1", "NaN", "0.0001", "5e9", "99999999999", "1 cpu"] {
            assert!(written.parse::<Cores>().is_err(), "{written}");
        }
        for written in ["", "0", "-1", "0.5", "half", "99999999999"] {
            assert!(Cores::parse_millicores(written).is_err(), "{written}");
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(millicores in 1u32..) {
            let cores = Cores::from_millicores(millicores);
            prop_assert_eq!(cores.to_string().parse(), Ok(cores));
        }

        #[test]
        fn no_input_panics(value in ".*") {
            if let Err(error) = value.parse::<Cores>() {
                prop_assert!(value.get(error.span.clone()).is_some());
            }
            let _ = Cores::parse_millicores(&value);
        }
    }
}
