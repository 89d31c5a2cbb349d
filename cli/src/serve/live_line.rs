//! The status line of a server on a terminal, once a second.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nandscape_sim::Time;
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::{Handle, Timing};

/// Shows the line until it is dropped.
pub(super) struct LiveLine {
    /// The thread ends when it is closed.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The sums that the line is computed from, since the start.
#[derive(Default)]
struct Sums {
    requests: u64,
    bytes: u64,
    latency_ns: u128,
    gc_bytes: f64,
    time_s: f64,
    timing: Timing,
}

impl Sums {
    fn of(figures: &[Arc<Figures>]) -> Sums {
        let mut sums =
            Sums { time_s: figures.first().map_or(0.0, |first| first.now.since(Time::ZERO).as_s()), ..Sums::default() };
        for export in figures.iter().flat_map(|one| &one.exports) {
            for tally in [&export.reads, &export.writes, &export.others] {
                sums.requests += tally.latency.count();
                sums.bytes += tally.bytes;
                sums.latency_ns += tally.latency.sum_ns();
            }
            sums.gc_bytes += export.counters.get("gc_moved_bytes_total").copied().unwrap_or(0.0);
        }
        figures.iter().for_each(|one| sums.timing.merge(&one.timing));
        sums
    }
}

impl LiveLine {
    /// Starts it, if there is a terminal.
    pub(super) fn start(handles: Vec<Handle>) -> LiveLine {
        if !std::io::stderr().is_terminal() {
            return LiveLine { stop: None, thread: None };
        }
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            bar.set_style(ProgressStyle::with_template("{msg}").expect("a valid template"));
            let mut before = Sums::default();
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let figures: Vec<Arc<Figures>> = handles.iter().filter_map(Handle::figures).collect();
                if figures.len() < handles.len() {
                    // A reactor has ended by itself, and the others are about to.
                    break;
                }
                let now = Sums::of(&figures);
                bar.set_message(line(&before, &now, &figures));
                before = now;
            }
            bar.finish_and_clear();
        });
        LiveLine { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of this thread must not keep the server from ending in order.
            let _ = thread.join();
        }
    }
}

fn line(before: &Sums, now: &Sums, figures: &[Arc<Figures>]) -> String {
    let seconds = (now.time_s - before.time_s).max(1e-9);
    let requests = now.requests - before.requests;
    let mean = (now.latency_ns - before.latency_ns) as f64 / requests.max(1) as f64 / 1e3;
    let lag = now.timing.release_lag.since(&before.timing.release_lag);
    let gap = now.timing.poll_gap.since(&before.timing.poll_gap);
    let clients: usize = figures.iter().map(|one| one.clients).sum();
    format!(
        "{:>8.0} IOPS {:>8.1} MB/s {mean:>8.1} us mean | GC {:>7.1} MB/s | released {:.1} us late, looked \
         every {:.1} us (p99) | {clients} clients",
        requests as f64 / seconds,
        (now.bytes - before.bytes) as f64 / seconds / 1e6,
        (now.gc_bytes - before.gc_bytes) / seconds / 1e6,
        lag.quantile(0.99).as_us(),
        gap.quantile(0.99).as_us(),
    )
}
