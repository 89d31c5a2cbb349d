//! Reading the values of workload files.

use std::fmt::Display;
use std::str::FromStr;

/// The value of a key, or its default.
///
/// # Errors
/// The key, what was given, and what would be valid.
pub(crate) fn read<T>(key: &str, text: Option<&String>, default: T) -> Result<T, String>
where
    T: FromStr,
    T::Err: Display,
{
    text.map_or(Ok(default), |text| text.parse().map_err(|wrong: T::Err| format!("{key}: {wrong}")))
}

/// Checks that a number is in its range.
///
/// # Errors
/// The key, what was given, and what would be valid.
pub(crate) fn within<T: PartialOrd + Display>(key: &str, value: T, least: T, most: T) -> Result<T, String> {
    match (&least..=&most).contains(&&value) {
        true => Ok(value),
        false => Err(format!("{key} = {value} is out of range; from {least} to {most} is valid")),
    }
}
