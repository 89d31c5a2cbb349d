//! Progress on a terminal; nothing in a pipe.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nandscape_lab_run::{Phase, Progress};

/// A bar on standard error.
struct Bar {
    bar: ProgressBar,
    phase: Cell<Option<Phase>>,
}

/// A bar for reading a trace, which takes shares from 0 to 1; nothing in a pipe.
pub(crate) fn reading() -> impl Fn(f64) {
    let shown = std::io::stderr().is_terminal().then(|| Reading(styled("reading")));
    move |share| {
        if let Some(Reading(bar)) = &shown {
            bar.set_position((share * 1_000.0) as u64);
        }
    }
}

/// A bar for `total` runs, each with a name; nothing in a pipe.
pub(crate) struct Runs(Option<ProgressBar>);

impl Runs {
    pub(crate) fn of(total: u64) -> Runs {
        let bar = || ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
        let shown = std::io::stderr().is_terminal().then(bar);
        if let Some(bar) = &shown {
            bar.set_style(
                ProgressStyle::with_template("{msg:16} {bar:40} {pos} of {len} runs, {elapsed}")
                    .expect("a valid template"),
            );
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
        }
        Runs(shown)
    }

    /// The next run begins. Those before it have ended.
    pub(crate) fn next(&self, name: &str, ended: usize) {
        if let Some(bar) = &self.0 {
            bar.set_message(name.to_owned());
            bar.set_position(ended as u64);
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Clears the bar when the reading ends.
struct Reading(ProgressBar);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn styled(message: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(style());
    bar.set_message(message);
    bar
}

/// The time left is estimated from the pace so far.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg:16} {bar:40} {percent:>3}% {elapsed}, {eta} left").expect("a valid template")
}

/// Progress for a user at a terminal, none for others.
pub(crate) fn bar() -> Rc<dyn Progress> {
    if !std::io::stderr().is_terminal() {
        return Rc::new(());
    }
    Rc::new(Bar { bar: styled(""), phase: Cell::new(None) })
}

/// As [`bar`], for a run that Ctrl-C and SIGTERM end with the figures so far. Before the workload runs they end the process;
/// a second signal does at any time.
pub(crate) fn interruptible() -> Rc<dyn Progress> {
    Rc::new(Interruptible { bar: bar(), wanted: Arc::default(), is_watched: Cell::new(false) })
}

struct Interruptible {
    bar: Rc<dyn Progress>,
    /// Whether the user wants the run to end.
    wanted: Arc<AtomicBool>,
    is_watched: Cell<bool>,
}

impl Progress for Interruptible {
    fn at(&self, phase: Phase, share: f64) {
        if phase == Phase::Running && !self.is_watched.replace(true) {
            watch(&self.wanted);
        }
        self.bar.at(phase, share);
    }

    fn at_waf(&self, waf: f64) {
        self.bar.at_waf(waf);
    }

    fn is_stopped(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}

/// Has a first signal set `wanted`.
#[cfg(target_os = "linux")]
fn watch(wanted: &Arc<AtomicBool>) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;

    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset. Without the handlers each ends the process, as before.
        let second = flag::register_conditional_default(signal, wanted.clone());
        let _ = second.and_then(|_| flag::register(signal, wanted.clone()));
    }
}

/// Elsewhere they end the process.
#[cfg(not(target_os = "linux"))]
fn watch(_: &Arc<AtomicBool>) {}

impl Progress for Bar {
    fn at(&self, phase: Phase, share: f64) {
        if self.phase.replace(Some(phase)) != Some(phase) {
            self.bar.set_message(match phase {
                Phase::Preconditioning => "preconditioning",
                Phase::Running => "running",
            });
            // Each phase has its own pace.
            self.bar.reset_eta();
        }
        self.bar.set_position((share * 1_000.0) as u64);
    }

    fn at_waf(&self, waf: f64) {
        self.bar.set_message(format!("until still, {waf:.2}"));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One bar for several runs.
pub(crate) struct Shared {
    bar: ProgressBar,
}

/// The part of one of several runs.
pub(crate) struct SharedPart {
    bar: ProgressBar,
    /// Progress shown so far, in thousandths.
    told: Cell<u64>,
}

/// A bar for several runs, for a user at a terminal.
pub(crate) fn shared(runs: usize) -> Shared {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr_with_hz(10),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(1_000 * runs as u64), target);
    bar.set_style(style());
    bar.set_message("simulating");
    Shared { bar }
}

impl Shared {
    /// For one run.
    pub(crate) fn part(&self) -> SharedPart {
        SharedPart { bar: self.bar.clone(), told: Cell::new(0) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for SharedPart {
    /// Preconditioning is the first half.
    fn at(&self, phase: Phase, share: f64) {
        let thousandths = match phase {
            Phase::Preconditioning => share * 500.0,
            Phase::Running => 500.0 + share * 500.0,
        } as u64;
        let before = self.told.replace(thousandths.max(self.told.get()));
        self.bar.inc(thousandths.saturating_sub(before));
    }
}
