//! The drive's own figures, from which it recommends the length of windows: the static windows of TeaFA (Li 3.2.4), which
//! reveal nothing else of the drive to a host.

use nandscape_sim::Span;

use super::{Bounds, Collections};

/// See the file. Sizes are in bytes.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct WindowRules {
    /// The figures of its collections.
    pub collections: Collections,
    /// The space for new data: flash beyond the capacity (C_ovp).
    pub space: f64,
    /// The highest number of bytes written a second (B_u).
    pub user_rate: f64,
    /// Collections of a plane that are to end in a window (b).
    pub at_least: f64,
    /// The bytes that the buffer takes while others have their turns; `None` where writes end on flash.
    pub buffer: Option<f64>,
}

/// Nanoseconds of a time in seconds.
fn span(seconds: f64) -> Span {
    Span::from_ns((seconds * 1e9) as u64)
}

impl WindowRules {
    /// The bounds of a window where `width` drives take turns.
    pub fn bounds(&self, width: u16) -> Bounds {
        self.collections.bounds(width.into(), self.user_rate, self.space, self.at_least)
    }

    /// The shortest window, and the longest if there is a bound.
    pub fn spans(&self, width: u16) -> (Span, Option<Span>) {
        let Bounds { shortest, longest } = self.bounds(width);
        (span(shortest), longest.map(span))
    }

    /// The longest window that the space permits: where collections keep up with the writes, so long that the space
    /// lasts while others have their turns.
    pub fn bears(&self, width: u16) -> Span {
        let Bounds { shortest, longest } = self.bounds(width);
        let longest = longest.unwrap_or(self.space / self.written_by_turn(width));
        span(if longest > shortest { longest } else { shortest })
    }

    /// The length that the drive recommends: as long as possible, so that little is moved (Li 3.2.3), and at least the
    /// shortest. The buffer must not fill up before the drive's next turn, or it would be written outside the window (3.2.4
    /// names both).
    pub fn recommended(&self, width: u16) -> Span {
        let by_buffer = self.buffer.map(|bytes| span(bytes / self.written_by_turn(width)));
        let longest = by_buffer.map_or(self.bears(width), |by_buffer| by_buffer.min(self.bears(width)));
        longest.max(self.spans(width).0)
    }

    /// The bytes written in the turns of the others, by the second of a turn.
    fn written_by_turn(&self, width: u16) -> f64 {
        f64::from(width.max(2) - 1) * self.user_rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_recommends_the_longest_window_that_its_space_bears() {
        let collections = Collections {
            valid: 0.25,
            read: 100e-6,
            program: 1_500e-6,
            erase: 6e-3,
            transfer: 0.0,
            transfers: 0.0,
            pages: 512.0,
            block: 8.0 * 1_048_576.0,
            at_a_time: 16.0,
        };
        let rules = WindowRules { collections, space: 100e9, user_rate: 1e9, at_least: 1.0, buffer: None };
        assert_eq!(rules.recommended(16).ns() / 1_000_000, 6_442);
        // Very many drives: the window must still hold a collection.
        assert_eq!(rules.recommended(1_000), Span::from_ns(210_800_000));
        // Collections keep up: 100 GB are written in the turns of three others.
        let slow = WindowRules { user_rate: 100e6, ..rules };
        assert_eq!((slow.spans(4).1, slow.recommended(4).ns() / 1_000_000_000), (None, 333));
        // 150 MB of buffer last for the turns of three others of half a second; 15 MB for less than a collection takes.
        let buffered = WindowRules { buffer: Some(150e6), ..slow };
        assert_eq!((buffered.recommended(4), buffered.bears(4)), (Span::from_ms(500), slow.bears(4)));
        let small = WindowRules { buffer: Some(15e6), ..slow };
        assert_eq!(small.recommended(4), Span::from_ns(210_800_000));
    }
}
