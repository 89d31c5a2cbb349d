//! The account of a drive that serves one command at a time, in the order of sending: its next free time (Li 3.1.6).

use nandscape_sim::{Span, Time};

/// See the file.
pub(super) struct Line {
    /// When it is done with all that was sent, in nanoseconds (T_free).
    free: u64,
    /// Commands under way.
    count: u32,
    /// When the last command ended.
    ended: Time,
    /// Whether an error is corrected when a command ends.
    corrects: bool,
}

/// A command in the line.
#[derive(Copy, Clone, Debug)]
pub(super) struct Turn {
    takes: Span,
    came: Time,
}

impl Line {
    pub(super) fn new(corrects: bool) -> Line {
        Line { free: 0, count: 0, ended: Time::from_ns(0), corrects }
    }

    /// The wait of a command that arrives now.
    pub(super) fn wait(&self, now: Time) -> Span {
        // No command is under way, so the account is exact again.
        if self.count == 0 { Span::ZERO } else { Span::from_ns(self.free.saturating_sub(now.ns())) }
    }

    /// A command joins.
    pub(super) fn join(&mut self, takes: Span, now: Time) -> Turn {
        let begins = now + self.wait(now);
        self.free = (begins + takes).ns();
        self.count += 1;
        Turn { takes, came: now }
    }

    /// A command has ended. The difference between actual and predicted time applies to all later ones (T_diff).
    pub(super) fn end(&mut self, turn: Turn, now: Time) {
        let took = now - turn.came.max(self.ended);
        self.ended = now;
        if self.corrects {
            self.free = (self.free + took.ns()).saturating_sub(turn.takes.ns());
        }
        self.count -= 1;
    }

    /// The command is not sent.
    pub(super) fn leave(&mut self, turn: Turn) {
        self.free = self.free.saturating_sub(turn.takes.ns());
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Span = Span::from_us;
    const AT: fn(u64) -> Time = |us| Time::from_ns(us * 1_000);

    #[test]
    fn an_error_is_corrected_once_and_an_idle_drive_starts_anew() {
        let mut line = Line::new(true);
        let turns: Vec<Turn> = (0..3).map(|_| line.join(US(100), AT(0))).collect();
        assert_eq!(line.wait(AT(0)), US(300));
        line.end(turns[0], AT(150));
        assert_eq!(line.wait(AT(150)), US(200), "it took 50 us longer");
        line.leave(turns[2]);
        assert_eq!(line.wait(AT(150)), US(100));
        line.end(turns[1], AT(210));
        assert_eq!(line.wait(AT(210)), US(0));
        line.join(US(100), AT(1_000));
        assert_eq!(line.wait(AT(1_040)), US(60));
    }

    #[test]
    fn without_correction_errors_add_up_until_the_drive_is_idle() {
        let mut line = Line::new(false);
        let mut before = line.join(US(100), AT(0));
        for number in 1..=10 {
            let next = line.join(US(100), AT((number - 1) * 110 + 5));
            line.end(before, AT(number * 110));
            before = next;
        }
        // The last one ends at 1,210.
        assert_eq!(line.wait(AT(1_100)), US(0), "and it would wait for 110 us");
        line.end(before, AT(1_210));
        line.join(US(100), AT(1_300));
        assert_eq!(line.wait(AT(1_300)), US(100));
    }
}
