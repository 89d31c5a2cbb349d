//! The progress of a sweep on a terminal, with the time left, and Ctrl-C, which ends it.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nandscape_lab_sweep::{Begun, Stopper, Watch};

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

    fn begun(&mut self, begun: Begun) {
        notes(begun).iter().for_each(|text| output::note(text));
        let left = begun.left;
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

/// Why fewer points are measured than the sweep has, and what the user can do about it.
fn notes(begun: Begun) -> Vec<String> {
    let Begun { of, kept, kept_failed, impossible, .. } = begun;
    let failed = match kept_failed {
        0 => String::new(),
        failed => format!(", of which {failed} had failed requests"),
    };
    let kinds = [
        (kept, format!("have a result of an earlier run in the folder --out{failed}; --fresh measures them again")),
        (impossible, "have an impossible drive and are not measured: change the values that the notes name".to_owned()),
        (begun.alike(), "share a measurement with another point: their values lead to the same run".to_owned()),
    ];
    kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, text)| format!("{count} of {of} points {text}"))
        .collect()
}

/// Makes a panic, which ends the program in a release, name the point of the sweep.
pub(super) fn name_point_of_a_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        before(info);
        if let Some(point) = nandscape_lab_sweep::point_of_thread() {
            output::note(&format!(
                "the simulator stopped at an internal fault at the point {point}; please report it. Results of the points that \
                 have ended are kept: remove the value of this point from the sweep, and run the command again for the rest"
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
    fn points_that_are_not_measured_are_explained() {
        assert!(notes(Begun { of: 4, left: 4, ..Begun::default() }).is_empty());
        let told = notes(Begun { of: 9, left: 2, kept: 3, kept_failed: 1, impossible: 2 });
        assert_eq!(told.len(), 3);
        assert!(
            told[0].starts_with(
                "3 of 9 points have a result of an earlier run in the folder --out, of which 1 had failed"
            )
        );
        assert!(told[1].starts_with("2 of 9 points have an impossible drive"));
        assert!(told[2].starts_with("2 of 9 points share a measurement with another point"));
    }

    #[test]
    fn times_are_for_people() {
        assert_eq!([3.4, 99.0, 100.0, 3_599.0, 7_260.0].map(time), ["3 s", "99 s", "2 min", "60 min", "2 h 1 min"]);
    }
}
