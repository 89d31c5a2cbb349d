//! The progress of a sweep on a terminal, with the time left, and Ctrl-C, which ends it.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nandscape_lab_sweep::{Stopper, Watch};

use crate::output;

/// A bar for a user at a terminal; notes for all.
pub(super) struct Screen {
    bar: ProgressBar,
    left: f64,
}

impl Screen {
    pub(super) fn new() -> Screen {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(10),
            false => ProgressDrawTarget::hidden(),
        };
        Screen { bar: ProgressBar::with_draw_target(Some(1_000), target), left: 0.0 }
    }

    /// The time left, if the rest proceeds at the rate so far.
    fn time_left(&self, done: f64) -> String {
        let passed = self.bar.elapsed().as_secs_f64();
        if done <= 0.0 || passed < 1.0 {
            String::new()
        } else {
            format!("{} left", time(passed / done * (self.left - done)))
        }
    }
}

/// Seconds for people.
fn time(seconds: f64) -> String {
    match seconds.round() as u64 {
        short @ 0..=99 => format!("{short} s"),
        medium @ 100..=5_999 => format!("{} min", medium.div_ceil(60)),
        long => format!("{} h {} min", long / 3_600, long % 3_600 / 60),
    }
}

impl Watch for Screen {
    fn note(&mut self, text: &str) {
        self.bar.suspend(|| output::note(text));
    }

    fn begun(&mut self, left: usize, of: usize) {
        if left < of {
            output::note(&format!(
                "{} of {of} points are not measured: their results are kept, or they failed",
                of - left
            ));
        }
        let style =
            ProgressStyle::with_template(&format!("{{bar:40}} {{percent:>3}}% of {left} points {{elapsed}} {{msg}}"));
        self.bar.set_style(style.expect("a valid template"));
        self.bar.set_length(1_000 * left as u64);
        self.bar.reset_elapsed();
        self.left = left as f64;
    }

    fn share(&mut self, done: f64) {
        self.bar.set_position((done * 1_000.0) as u64);
        self.bar.set_message(self.time_left(done));
    }

    fn measured(&mut self, label: &str, problem: Option<&str>) {
        if let Some(problem) = problem {
            self.note(&format!("{label}: {problem}"));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Makes a panic, which ends the program in a release, name the point of the sweep.
pub(super) fn name_point_of_a_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        before(info);
        if let Some(point) = nandscape_lab_sweep::point_of_thread() {
            output::note(&format!(
                "the simulator stopped at an internal fault in {point}; please report it. Points that are done are kept: \
                 the same command without this one continues"
            ));
        }
    }));
}

/// Has Ctrl-C and SIGTERM end the run. A second one ends the process.
#[cfg(target_os = "linux")]
pub(super) fn on_interrupt(stopper: Stopper) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        let mut stopped = false;
        for signal in signals.forever() {
            if std::mem::replace(&mut stopped, true) {
                // It ends the process; there is nothing to do if it cannot.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            stopper.stop();
        }
    })?;
    Ok(())
}

/// On other systems Ctrl-C ends the process, and finished points are kept.
#[cfg(not(target_os = "linux"))]
pub(super) fn on_interrupt(_: Stopper) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_for_people() {
        assert_eq!([3.4, 99.0, 100.0, 3_599.0, 7_260.0].map(time), ["3 s", "99 s", "2 min", "60 min", "2 h 1 min"]);
    }
}
