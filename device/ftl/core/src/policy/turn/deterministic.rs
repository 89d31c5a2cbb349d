//! The deterministic window of Predictable Latency Mode (Base 8.1.18): the drive does no internal work until the window
//! ends.

use nandscape_sim::{Span, Time};

use super::TurnPolicy;

/// See the file.
pub struct Deterministic;

impl TurnPolicy for Deterministic {
    fn left(&self, _range: u16, _now: Time) -> Option<Span> {
        Some(Span::ZERO)
    }

    fn next_turn(&self, _now: Time) -> Option<Time> {
        None
    }
}
