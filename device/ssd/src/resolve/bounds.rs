//! Checks that a value is given and within bounds.

use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Rate};

use super::Result;
use crate::profile::ProfileError;
use crate::values::Text;

/// Maximum time of any single step, so that sums over a long run stay far below the limit of the clock.
const LONGEST: Span = Span::from_s(10);
/// The slowest rate, in bytes a second, for the same reason.
const SLOWEST: f64 = 1e3;

pub(super) fn wrong<T>(key: &str, problem: impl Into<String>) -> Result<T> {
    Err(ProfileError::new(key, problem))
}

/// The value of a key that has no default.
pub(super) fn need<T: Clone>(key: &str, value: &Option<T>) -> Result<T> {
    match value {
        Some(value) => Ok(value.clone()),
        None => wrong(key, "is missing; a profile gives it, or starts from one that does (base = \"default\")"),
    }
}

/// The value of a key that has one.
pub(super) fn or<T: Copy>(value: &Option<Text<T>>, default: T) -> T {
    value.map_or(default, |text| text.0)
}

pub(super) fn within(key: &str, value: u64, least: u64, most: u64) -> Result<u64> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => wrong(key, format!("{value} is out of range; from {least} to {most} is valid")),
    }
}

/// A size that is a power of two within bounds.
pub(super) fn power_of_two(key: &str, size: Bytes, least: u64, most: u64) -> Result<u32> {
    let valid = size.0.is_power_of_two() && (least..=most).contains(&size.0);
    match valid {
        true => Ok(size.0 as u32),
        false => wrong(key, format!("{size} is not a power of two from {} to {}", Bytes(least), Bytes(most))),
    }
}

pub(super) fn not_too_long(key: &str, time: Span) -> Result<Span> {
    match time <= LONGEST {
        true => Ok(time),
        false => wrong(key, format!("{time} is out of range; from 0ns to {LONGEST} is valid")),
    }
}

pub(super) fn not_too_slow(key: &str, rate: Rate) -> Result<Rate> {
    match rate.is_unlimited() || rate.bytes_per_s() >= SLOWEST {
        true => Ok(rate),
        false => wrong(key, format!("{rate} is out of range; 1KB/s or more, or \"unlimited\", is valid")),
    }
}
