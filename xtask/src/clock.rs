//! The machine's clocks. Only this file of the crate reads them; the lints forbid it elsewhere to protect the model.

use std::time::{Duration, Instant, SystemTime};

use nix::time::{ClockId, clock_gettime};

/// A moment.
#[derive(Copy, Clone)]
pub(crate) struct Moment(Instant);

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "measures the machine, not the model")]
    pub(crate) fn now() -> Moment {
        Moment(Instant::now())
    }

    /// The time since then.
    pub(crate) fn passed(self) -> Duration {
        Moment::now().0 - self.0
    }
}

/// CPU time that this thread has taken, in seconds.
pub(crate) fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Unix has the clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}

/// Date and time in UTC, as RFC 3339 has it.
#[expect(clippy::disallowed_methods, reason = "dates a record of measurements")]
pub(crate) fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_sorts_as_text() {
        let date = date();
        assert!(date.len() == 20 && date.ends_with('Z') && date.as_str() > "2026-01-01", "{date}");
    }
}
