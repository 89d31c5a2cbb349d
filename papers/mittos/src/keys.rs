//! Reading the values of keys, and errors that name valid values.

use std::ops::RangeInclusive;
use std::str::FromStr;

use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio};

/// Why a setting is not valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct KeyError {
    key: String,
    problem: String,
}

/// A key and its value, as in `noise.on=1s`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) key: &'a str,
    value: &'a str,
}

/// The longest time that is taken.
const LONGEST: Span = Span::from_s(3_600);

impl<'a> Change<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Change<'a>, KeyError> {
        match text.split_once('=') {
            Some((key, value)) => Ok(Change { key: key.trim(), value: value.trim() }),
            None => {
                Err(KeyError { key: text.to_owned(), problem: "the value is missing; KEY=VALUE is valid".to_owned() })
            }
        }
    }

    pub(crate) fn wrong(&self, problem: impl Into<String>) -> KeyError {
        KeyError { key: self.key.to_owned(), problem: problem.into() }
    }

    fn value<T: FromStr>(&self, valid: &str, is_valid: impl Fn(&T) -> bool) -> Result<T, KeyError> {
        let value = self.value.parse().ok().filter(is_valid);
        value.ok_or_else(|| self.wrong(format!("{:?} is not valid; {valid}", self.value)))
    }

    /// A time above zero.
    pub(crate) fn time(&self) -> Result<Span, KeyError> {
        self.value("a time such as 30ms is", |span: &Span| !span.is_zero() && *span <= LONGEST)
    }

    /// A share of something, at most all of it.
    pub(crate) fn share(&self) -> Result<f64, KeyError> {
        let share: Ratio = self.value("a share such as 25% is", |share: &Ratio| (0.0..=1.0).contains(&share.0))?;
        Ok(share.0)
    }

    /// A size within bounds, in bytes.
    pub(crate) fn size(&self, bounds: RangeInclusive<u64>) -> Result<u64, KeyError> {
        let (least, most) = (Bytes(*bounds.start()), Bytes(*bounds.end()));
        let size: Bytes =
            self.value(&format!("a size of {least} to {most} is"), |size: &Bytes| bounds.contains(&size.0))?;
        Ok(size.0)
    }

    /// A number within bounds.
    pub(crate) fn number(&self, bounds: RangeInclusive<u64>) -> Result<u64, KeyError> {
        let valid = format!("a number of {} to {} is", bounds.start(), bounds.end());
        self.value(&valid, |number| bounds.contains(number))
    }

    /// Whether something is so.
    pub(crate) fn yes(&self) -> Result<bool, KeyError> {
        self.value("true and false are", |_| true)
    }

    /// One of several names.
    pub(crate) fn named<T: Copy>(&self, all: &[(&str, T)]) -> Result<T, KeyError> {
        let found = all.iter().find(|(name, _)| *name == self.value).map(|(_, value)| *value);
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        found.ok_or_else(|| self.wrong(format!("{:?} is not valid; {} are", self.value, names.join(", "))))
    }

    /// There is no such key.
    pub(crate) fn unknown(&self, keys: &[(&str, &str)]) -> KeyError {
        let all: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
        self.wrong(format!("there is no such key; valid are {}", all.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_key_and_what_is_valid() {
        let change = |text| Change::parse(text).unwrap();
        assert_eq!(change("a = 30ms").time(), Ok(Span::from_ms(30)));
        assert_eq!(change("a=25%").share(), Ok(0.25));
        assert_eq!(change("a=2MiB").size(1..=1 << 30), Ok(2 << 20));
        for (error, valid) in [
            (change("a=0ms").time().unwrap_err(), "a: \"0ms\" is not valid; a time such as"),
            (change("a=120%").share().unwrap_err(), "a share such as"),
            (change("a=2").number(3..=4).unwrap_err(), "3 to 4"),
            (change("a=x").named(&[("b", 1), ("c", 2)]).unwrap_err(), "b, c are"),
            (change("a=1").yes().unwrap_err(), "true and false"),
            (change("a=1").unknown(&[("b", ""), ("c", "")]), "valid are b, c"),
            (Change::parse("a").unwrap_err(), "KEY=VALUE"),
        ] {
            assert!(error.to_string().contains(valid), "{error}");
        }
    }
}
