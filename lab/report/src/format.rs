//! Figures for people, and the directions of requests in words.

use nandscape_lab_workload::Direction;

pub use nandscape_sim::figures::{bytes, count, counted, percent, rounded, seconds, size, us, us_or_dash};

/// The name of a direction in tables, by its name in JSON.
pub fn row_name(way: &str) -> &str {
    match Direction::of(way) {
        Some(direction) => direction.label(),
        None => way,
    }
}

/// Requests of a direction in words, by its name in JSON.
pub fn plural(way: &str) -> &str {
    match Direction::of(way) {
        Some(direction) => direction.plural(),
        None => way,
    }
}
