//! When a run counts as hung. The watchdog waits for slow runs, and for runs that share their cores: it limits only the time
//! since the last sign of progress, never the sum.

use std::time::Duration;

use crate::clock::Moment;

/// How long a run may continue without progress.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Patience {
    /// Time on the clock without a line of output and without CPU time worth mentioning: it waits for what never comes.
    pub(crate) idle: Duration,
    /// CPU time without a line of output: it loops.
    pub(crate) looping: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { idle: Duration::from_secs(15 * 60), looping: Duration::from_secs(60 * 60) }
    }
}

/// CPU time that counts as progress. A loop that polls every 10 ms uses less.
const WORK: Duration = Duration::from_secs(10);

/// What a run does, judged from its output and CPU time.
pub(super) struct Judge {
    patience: Patience,
    /// The last line of output, or the last time that it had worked.
    moved: Moment,
    /// CPU time at that moment.
    moved_cpu: Duration,
    /// CPU time at the last line of output.
    line_cpu: Duration,
}

impl Judge {
    pub(super) fn new(patience: Patience) -> Judge {
        Judge { patience, moved: Moment::now(), moved_cpu: Duration::ZERO, line_cpu: Duration::ZERO }
    }

    /// A line of output, at this CPU time.
    pub(super) fn line(&mut self, cpu: Duration) {
        (self.moved, self.moved_cpu, self.line_cpu) = (Moment::now(), cpu, cpu);
    }

    /// Why the run counts as hung, with its CPU time now.
    pub(super) fn hangs(&mut self, cpu: Duration) -> Option<String> {
        if cpu.saturating_sub(self.moved_cpu) > WORK {
            (self.moved, self.moved_cpu) = (Moment::now(), cpu);
        }
        let looped = cpu.saturating_sub(self.line_cpu);
        if looped > self.patience.looping {
            return Some(format!("{:.0} s of CPU time without a line of output", looped.as_secs_f64()));
        }
        let idle = self.moved.passed();
        (idle > self.patience.idle)
            .then(|| format!("{:.0} s without a line of output and almost without CPU time", idle.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_run_that_works_is_waited_for_and_one_that_waits_is_not() {
        let mut judge = Judge::new(Patience { idle: Duration::ZERO, looping: HOUR });
        assert!(judge.hangs(Duration::ZERO).unwrap().contains("almost without CPU time"));
        // Ten seconds of work are progress, and the next look finds none since.
        let mut judge = Judge::new(Patience { idle: HOUR, looping: HOUR });
        judge.hangs(WORK * 2);
        assert_eq!(judge.moved_cpu, WORK * 2);
    }

    #[test]
    fn a_run_that_loops_is_ended_by_its_own_cpu_time_only() {
        let mut judge = Judge::new(Patience { idle: HOUR, looping: HOUR });
        assert!(judge.hangs(HOUR).is_none());
        judge.line(HOUR);
        assert!(judge.hangs(HOUR * 2).is_none());
        assert!(judge.hangs(HOUR * 2 + WORK).unwrap().starts_with("3610 s of CPU time"));
    }
}
