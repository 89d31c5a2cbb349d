//! Whole numbers on the command line, with an error that names the valid range.

use std::fmt::Display;
use std::str::FromStr;

/// A number of 64 bits.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    read(text, u64::MAX)
}

/// A number of 32 bits.
pub(crate) fn whole_32(text: &str) -> Result<u32, String> {
    read(text, u32::MAX)
}

fn read<T: FromStr + Display>(text: &str, most: T) -> Result<T, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {most} is valid"))
}
