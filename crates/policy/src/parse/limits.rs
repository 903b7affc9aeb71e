//! `[limits]`: numbers with units, or the word `"none"`.

use std::borrow::Cow;

use toml::de::DeValue;

use super::{Entries, Schema, Value};
use crate::ValueError;
use crate::error::Error;
use crate::layer::LayerLimits;
use crate::limit_rules::{Limit, LimitValue};
use crate::policy::Sourced;

impl<'a> Schema<'a> {
    pub(super) fn limits(
        &self,
        entries: &Entries<'_, 'a>,
        limits: &mut LayerLimits,
    ) -> Result<(), Error> {
        for (key, value) in entries {
            match *key {
                "memory" => limits.memory = self.limit(Limit::Memory, value)?,
                "cpu" => limits.cpu = self.limit(Limit::Cpu, value)?,
                "cpu_time" => limits.cpu_time = self.limit(Limit::CpuTime, value)?,
                "io" => limits.io = self.limit(Limit::Io, value)?,
                "processes" => limits.processes = self.limit(Limit::Processes, value)?,
                "open_files" => limits.open_files = self.limit(Limit::OpenFiles, value)?,
                "file_size" => limits.file_size = self.limit(Limit::FileSize, value)?,
                "tmp_size" => limits.tmp_size = self.always(Limit::TmpSize, value)?,
                "address_space" => limits.address_space = self.limit(Limit::AddressSpace, value)?,
                "timeout" => limits.timeout = self.limit(Limit::Timeout, value)?,
                _ => limits.grace = self.always(Limit::Grace, value)?,
            }
        }
        Ok(())
    }

    /// A limit that the word `"none"` takes away.
    fn limit<T: LimitText>(
        &self,
        limit: Limit,
        value: &Value<'a>,
    ) -> Result<Option<Sourced<Option<T>>>, Error> {
        let read = match value.get_ref().as_str() {
            Some("none") => None,
            _ => Some(self.limit_value(limit, value)?),
        };
        Ok(Some(self.said(read, value.span().start)))
    }

    /// A limit that is always there.
    fn always<T: LimitText>(
        &self,
        limit: Limit,
        value: &Value<'a>,
    ) -> Result<Option<Sourced<T>>, Error> {
        if value.get_ref().as_str() == Some("none") {
            let message = format!("{} cannot be \"none\"", limit.key());
            return Err(self.source.at(value.span(), message, format!("write {}", T::EXAMPLE)));
        }
        Ok(Some(self.said(self.limit_value(limit, value)?, value.span().start)))
    }

    fn limit_value<T: LimitText>(&self, limit: Limit, value: &Value<'a>) -> Result<T, Error> {
        let text: Cow<'_, str> = match value.get_ref() {
            DeValue::String(text) => text.as_ref().into(),
            DeValue::Float(number) => number.as_str().into(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().into(),
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| number.as_str().into(), |number| number.to_string().into()),
            _ => {
                let hint = format!("write {} = {}", limit.key(), T::EXAMPLE);
                return Err(self.wrong_type(value, T::NOUN, hint));
            }
        };
        let read = T::read(&text).and_then(|read| read.check(limit).map(|()| read));
        self.checked(value, &text, read)
    }
}

/// A limit's value as text, and how to speak of it.
trait LimitText: LimitValue + Sized {
    const NOUN: &'static str;
    const EXAMPLE: &'static str;
    fn read(text: &str) -> Result<Self, ValueError>;
}

impl LimitText for crate::Bytes {
    const NOUN: &'static str = "a size";
    const EXAMPLE: &'static str = "\"256 MiB\"";
    fn read(text: &str) -> Result<Self, ValueError> {
        text.parse()
    }
}

impl LimitText for crate::Rate {
    const NOUN: &'static str = "a rate";
    const EXAMPLE: &'static str = "\"10 MiB/s\"";
    fn read(text: &str) -> Result<Self, ValueError> {
        text.parse()
    }
}

impl LimitText for crate::Duration {
    const NOUN: &'static str = "a duration";
    const EXAMPLE: &'static str = "\"5m\"";
    fn read(text: &str) -> Result<Self, ValueError> {
        text.parse()
    }
}

impl LimitText for crate::Cores {
    const NOUN: &'static str = "a number of cores";
    const EXAMPLE: &'static str = "0.5";
    fn read(text: &str) -> Result<Self, ValueError> {
        text.parse()
    }
}

impl LimitText for u32 {
    const NOUN: &'static str = "a whole number";
    const EXAMPLE: &'static str = "64";
    fn read(text: &str) -> Result<Self, ValueError> {
        let refuse = |message: &str| {
            Err(ValueError::new(0..text.len(), message, "write a number such as 64, or \"none\""))
        };
        if text.starts_with('-') {
            return refuse("this cannot be negative");
        }
        match text.parse() {
            Ok(count) => Ok(count),
            Err(_) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                refuse("this number is too large")
            }
            Err(_) => refuse("expected a whole number"),
        }
    }
}
