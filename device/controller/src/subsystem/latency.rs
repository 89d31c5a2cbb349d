//! Predictable Latency Mode (Base 8.1.18) of the one NVM Set: its windows, the rest of a deterministic window, and its
//! events.
//!
//! In the deterministic window, the FTL does no background work. The window ends at the host's command, after its maximum
//! length, or when garbage collection became unavoidable for lack of space. The last two raise an event with the reason. Once
//! per millisecond, the rest of a deterministic window is evaluated.
//!
//! Left out: an end of the window by reads, so Reads Estimate is informative only; several NVM Sets.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::offers::LatencyWindow;
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::predictable_latency::{
    self, Config, EVENT_EXCEEDED, EVENT_EXCURSION, EVENT_READS, EVENT_TIME, EVENT_WRITES, Log,
};

use super::NvmSubsystem;
use crate::admin::Event;

/// How often the rest of a deterministic window is evaluated.
const LOOK: Span = Span::from_ms(1);
/// Bytes of a read as Reads Typical counts them.
const READ: u64 = 4_096;

/// The mode of a subsystem.
#[derive(Default)]
pub(crate) struct Latency {
    /// The window, where the mode is enabled.
    window: Cell<Option<LatencyWindow>>,
    /// The events that the host has enabled; zeros until it sets them.
    config: RefCell<Option<Config>>,
    begun: Cell<Used>,
    /// Events since the host read the log.
    events: Cell<u16>,
    /// Counts windows, so that the watch of an earlier one ends.
    generation: Cell<u64>,
}

/// Usage up to a time.
#[derive(Copy, Clone, Default)]
struct Used {
    at: Time,
    reads: u64,
    units: u64,
    forced: u64,
}

/// The figures of a command set for the mode. Sizes are in mapping units.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct LatencyFigures {
    /// Units that may be written before the drive must do background work.
    pub free: u64,
    /// The same after all the work that it does in advance.
    pub most_free: u64,
    /// Steps of background work that had to begin in a deterministic window.
    pub forced: u64,
    /// 4 KiB reads a second.
    pub reads_per_s: u64,
}

impl Latency {
    /// The window, where the mode is enabled.
    pub(crate) fn window(&self) -> Option<LatencyWindow> {
        self.window.get()
    }

    /// The events that the host has enabled.
    pub(crate) fn config(&self) -> Config {
        self.config.borrow().clone().unwrap_or(Config::zeroed())
    }

    /// Whether enabled events are unread.
    pub(crate) fn is_to_tell(&self) -> bool {
        self.events.get() & self.config().events.get() != 0
    }

    /// The host has read the log.
    pub(crate) fn was_read(&self) {
        self.events.set(0);
    }
}

impl NvmSubsystem {
    /// Whether the drive has the mode.
    pub(crate) fn has_latency_mode(&self) -> bool {
        self.config.predictable_latency && self.config.windows.is_some()
    }

    /// Enables the mode, in the non-deterministic window, or disables it.
    pub(crate) fn configure_latency(&self, enable: bool, config: Config) {
        self.latency.config.replace(Some(config));
        match (enable, self.latency.window.get()) {
            (true, None) => self.select_window(Some(LatencyWindow::NonDeterministic)),
            (false, Some(_)) => self.select_window(None),
            _ => {}
        }
    }

    /// A window begins, or the mode ends.
    pub(crate) fn select_window(&self, window: Option<LatencyWindow>) {
        let latency = &self.latency;
        latency.window.set(window);
        latency.generation.set(latency.generation.get() + 1);
        latency.begun.set(self.used());
        if let Some(drive) = self.set.windows() {
            drive.ftl.set_latency_window(window);
        }
        if window == Some(LatencyWindow::Deterministic) {
            self.watch_window(latency.generation.get());
        }
    }

    fn latency_figures(&self) -> LatencyFigures {
        self.set.windows().map(|drive| drive.figures).unwrap_or_default()
    }

    fn used(&self) -> Used {
        let reads = self.set.storage().totals().get(1).map_or(0, |bytes| bytes / READ);
        let units = self.set.storage().bytes_written() / u64::from(self.set.info().unit_bytes);
        Used { at: self.sim.now(), reads, units, forced: self.latency_figures().forced }
    }

    fn watch_window(&self, generation: u64) {
        let (weak, sim) = (Rc::downgrade(&self.handle()), self.sim.clone());
        self.sim.spawn(async move {
            loop {
                sim.sleep(LOOK).await;
                let Some(subsystem) = weak.upgrade() else { return };
                if subsystem.latency.generation.get() != generation {
                    return;
                }
                subsystem.look_at_window();
            }
        });
    }

    /// Raises events for a window that nears its end, and ends one that is over.
    fn look_at_window(&self) {
        let (log, config) = (self.latency_log(), self.latency.config());
        let is_low = |left: u64, threshold: u64| left <= threshold;
        let mut events = 0;
        for (bit, low) in [
            (EVENT_READS, is_low(log.reads_left.get(), config.reads.get())),
            (EVENT_WRITES, is_low(log.writes_left.get(), config.writes.get())),
            (EVENT_TIME, is_low(log.left_ms.get(), config.time_ms.get())),
        ] {
            events |= if low { bit & config.events.get() } else { 0 };
        }
        let forced = self.latency_figures().forced > self.latency.begun.get().forced;
        let ends = match (forced, log.left_ms.get()) {
            (true, _) => EVENT_EXCURSION,
            (false, 0) => EVENT_EXCEEDED,
            _ => 0,
        };
        let told = self.latency.events.replace(self.latency.events.get() | events | ends);
        if ends != 0 {
            self.select_window(Some(LatencyWindow::NonDeterministic));
        }
        if (events | ends) & !told & config.events.get() != 0 {
            self.controllers.all().iter().for_each(|controller| controller.raise(Event::PREDICTABLE_LATENCY));
        }
    }

    /// Predictable Latency Per NVM Set.
    pub(crate) fn latency_log(&self) -> Log {
        let mut log = Log::zeroed();
        let (figures, unit) = (self.latency_figures(), f64::from(self.set.info().unit_bytes));
        let Some(rules) = self.config.windows else { return log };
        log.events = self.latency.events.get().into();
        let lasts_ms = (figures.most_free as f64 * unit / rules.user_rate * 1e3) as u64;
        let (longest_ms, collection_ms) = (lasts_ms.max(1), rules.collections.time() * 1e3);
        let reads = figures.reads_per_s.saturating_mul(longest_ms) / 1_000;
        (log.reads_typical, log.writes_typical) = (reads.into(), figures.most_free.into());
        log.longest_ms = longest_ms.into();
        // All written units must be collected, plus a block of each plane.
        let gained = figures.most_free as f64 * unit / rules.collections.rate();
        (log.other_ms_high, log.other_ms_low) = (((gained * 1e3) as u64 + 1).into(), (collection_ms as u64 + 1).into());
        log.status = match self.latency.window.get() {
            None => predictable_latency::NOT_ENABLED,
            Some(LatencyWindow::Deterministic) => predictable_latency::WINDOW_DETERMINISTIC as u8,
            Some(LatencyWindow::NonDeterministic) => predictable_latency::WINDOW_NON_DETERMINISTIC as u8,
        };
        if self.latency.window.get() == Some(LatencyWindow::Deterministic) {
            let (begun, used) = (self.latency.begun.get(), self.used());
            let written = used.units - begun.units;
            log.reads_left = reads.saturating_sub(used.reads - begun.reads).into();
            log.writes_left = figures.most_free.saturating_sub(written).min(figures.free).into();
            log.left_ms = longest_ms.saturating_sub((used.at - begun.at).ns() / 1_000_000).into();
        }
        log
    }
}
