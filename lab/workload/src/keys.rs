//! Reading the values of workload files.

use std::fmt::{Display, LowerExp};
use std::str::FromStr;

/// The value of a key, or its default.
///
/// # Errors
/// The key, its value, and what would be valid.
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
/// The key, its value, and what would be valid.
pub(crate) fn within<T: PartialOrd + Display + LowerExp>(key: &str, value: T, least: T, most: T) -> Result<T, String> {
    match (&least..=&most).contains(&&value) {
        true => Ok(value),
        false => Err(format!("{key} = {} is out of range; from {least} to {most} is valid", shown(&value))),
    }
}

/// The longest number that is printed with all its digits.
const MAX_DIGITS: usize = 20;

/// A number for a message: a long one by its first digits and its power of ten.
pub fn shown<T: Display + LowerExp>(number: &T) -> String {
    let digits = number.to_string();
    if digits.len() <= MAX_DIGITS { digits } else { format!("{number:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_many_digits_are_shown_by_their_power_of_ten() {
        assert_eq!(
            [-1.0, 0.5, 1e9, 1e300, 1e-300].map(|number| shown(&number)),
            ["-1", "0.5", "1000000000", "1e300", "1e-300"]
        );
        assert_eq!(shown(&u64::MAX), "18446744073709551615");
    }
}
