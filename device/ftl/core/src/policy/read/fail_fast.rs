//! Fail-fast reads fail instead of waiting (TeaFA, Li 3.2.1); others wait.

use nandscape_sim::Span;

use super::{PendingRead, ReadPolicy, Verdict};

/// See the file.
pub struct FailFast {
    /// The wait up to which a read does not fail.
    pub above: Span,
}

impl ReadPolicy for FailFast {
    fn fails_reads(&self) -> bool {
        true
    }

    fn verdict(&self, read: &PendingRead) -> Verdict {
        if read.may_fail && read.remaining > self.above { Verdict::FailFast } else { Verdict::Serve }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_fails_if_it_may_and_would_wait_for_longer() {
        let policy = FailFast { above: Span::from_us(50) };
        let verdict = |us, may_fail| {
            policy.verdict(&PendingRead {
                remaining: Span::from_us(us),
                alone: Span::from_us(40),
                may_fail,
                busy_channels: None,
            })
        };
        assert_eq!((verdict(50, true), verdict(51, true)), (Verdict::Serve, Verdict::FailFast));
        assert_eq!(verdict(5_000, false), Verdict::Serve);
    }
}
