//! GC-tolerant read (Li 3.3.3): a page is regenerated if it would wait for longer than its extra reads take on the channels that are
//! busy. Over idle channels they are free.

use super::{PendingRead, ReadPolicy, Verdict};

/// See the file.
pub struct Reconstruct;

impl ReadPolicy for Reconstruct {
    fn verdict(&self, read: &PendingRead) -> Verdict {
        match read.busy_channels {
            Some(busy) if read.remaining > read.alone * u64::from(busy) => Verdict::Reconstruct,
            _ => Verdict::Serve,
        }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Span;

    use super::*;

    #[test]
    fn extra_reads_are_worth_it_by_the_number_of_busy_channels() {
        let verdict = |us, busy_channels| {
            let (remaining, alone) = (Span::from_us(us), Span::from_us(140));
            Reconstruct.verdict(&PendingRead { remaining, alone, may_fail: true, busy_channels })
        };
        assert_eq!((verdict(1, Some(0)), verdict(0, Some(0))), (Verdict::Reconstruct, Verdict::Serve));
        assert_eq!((verdict(980, Some(7)), verdict(981, Some(7))), (Verdict::Serve, Verdict::Reconstruct));
        assert_eq!(verdict(54_000, None), Verdict::Serve);
    }
}
