//! The frame that a page gets four times a second. Figures cover the time since the previous frame unless noted
//! otherwise. Rates are in wall time, as clients see them; latencies and shares of dies are in drive time.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandscape_drive::Stage;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Span, Time};
use nandscape_transport_reactor::handle::{ExportFigures, Figures, Tally};
use nandscape_transport_reactor::watch::{DriveLook, Look, Wants, Went};
use nandscape_transport_reactor::{Absence, Handle, Timing};
use serde::Serialize;

use super::hub::{EVERY, MAX_PAGES};
use super::inside::{self, LayoutTold, Shares};
use crate::statistics::{FaultStatistics, Latency, latency, timing};

/// The version of the stream.
const SCHEMA: u32 = 1;
/// Frames between two samples of the wear of blocks.
const WEAR_EVERY: u64 = 8;
/// Frames between two captures of operations.
const OPERATIONS_EVERY: u64 = 4;

/// The first event of a stream.
#[derive(Serialize)]
pub(super) struct Hello {
    schema: u32,
    interval_ms: u64,
    takes_orders: bool,
    max_pages: usize,
    drives: Vec<DriveTold>,
}

#[derive(Serialize)]
struct DriveTold {
    name: String,
    /// `None` if its flash is not in the server.
    layout: Option<LayoutTold>,
}

/// See the module.
#[derive(Serialize)]
pub(super) struct Frame {
    /// The wall clock since the drives began.
    wall_s: f64,
    /// Drive time.
    time_s: f64,
    interval_s: f64,
    /// Clients connected now.
    clients: usize,
    /// Commands in the drives now.
    outstanding: usize,
    release_lag_us: Latency,
    poll_gap_us: Latency,
    /// The most that a model was behind the wall clock since it began.
    behind_max_us: f64,
    drives: Vec<DriveFrame>,
}

#[derive(Serialize)]
struct DriveFrame {
    reads: Flow,
    writes: Flow,
    others: Flow,
    /// Reads, writes and others of the last second, once a second. Flushes and writes with FUA, which are also among
    /// them, follow if the drive has had any.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_second: Option<Vec<FlowTold>>,
    /// In their present state.
    counters: BTreeMap<&'static str, f64>,
    /// Rates a second of figures that only grow.
    rates: BTreeMap<&'static str, f64>,
    /// Bytes programmed over bytes that the host wrote; null without writes.
    waf: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<FaultStatistics>,
    /// `unreachable`, `lost` or `rebuilding`; left out of a drive in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// The time of reads and writes by stage and cause.
    went: [WentTold; 2],
    dies: Option<Shares>,
    channels: Option<Shares>,
}

/// Commands of one kind.
#[derive(Serialize)]
struct Flow {
    iops: f64,
    bytes_s: f64,
    /// How many failed.
    errors: u64,
    count: u64,
    latency_us: Latency,
}

/// Commands of one kind, with its name.
#[derive(Serialize)]
struct FlowTold {
    kind: &'static str,
    #[serde(flatten)]
    flow: Flow,
}

/// The time of commands by stage and cause.
#[derive(Serialize)]
struct WentTold {
    requests: u64,
    /// Stage, cause of a wait, microseconds of all requests together. Zeros are left out.
    parts: Vec<(&'static str, Option<&'static str>, f64)>,
    /// Layer above the drives, microseconds of all requests together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<(&'static str, f64)>,
}

/// The values at a sample.
pub(super) struct Seen {
    /// If a drive has come whose parts the page does not know.
    pub(super) hello: Option<Hello>,
    pub(super) frame: Frame,
    pub(super) wear: Option<Vec<Option<inside::WearTold>>>,
    pub(super) operations: Option<inside::OperationsTold>,
}

/// Samples the drives, and remembers the previous sample.
pub(super) struct Sampler {
    wall: Time,
    figures: Vec<Arc<Figures>>,
    /// By reactor.
    looks: Vec<Look>,
    /// The wall clock and the figures of the last frame with a whole second.
    second: (Time, Vec<Arc<Figures>>),
    looked: u64,
    takes_orders: bool,
}

impl Sampler {
    /// The first look; `None` when a reactor has ended.
    pub(super) fn start(handles: &[Handle], takes_orders: bool) -> Option<(Sampler, Hello)> {
        let wall = handles.first()?.clock().now();
        let wants = Wants { layout: true, wear: false, operations: true };
        let (figures, looks) = look(handles, wants)?;
        let hello = hello(&figures, &looks, takes_orders);
        let second = (wall, figures.clone());
        Some((Sampler { wall, figures, looks, second, looked: 0, takes_orders }, hello))
    }

    /// The next look; `None` when a reactor has ended.
    pub(super) fn look(&mut self, handles: &[Handle]) -> Option<Seen> {
        let wall = handles.first()?.clock().now();
        let wear = self.looked.is_multiple_of(WEAR_EVERY);
        let operations = self.looked % OPERATIONS_EVERY == OPERATIONS_EVERY - 1;
        self.looked += 1;
        let (mut figures, mut looks) = look(handles, Wants { layout: false, wear, operations })?;
        let has_come = keep_layouts(&mut looks, &mut self.looks);
        if has_come {
            (figures, looks) = look(handles, Wants { layout: true, wear, operations })?;
        }
        let mut frame = self.frame(wall, &figures, &looks);
        if operations {
            self.tell_of_second(&mut frame, wall, &figures);
        }
        let seen = Seen {
            hello: has_come.then(|| hello(&figures, &looks, self.takes_orders)),
            frame,
            wear: wear.then(|| inside::wear(&looks)),
            operations: operations.then(|| inside::operations(&looks)),
        };
        (self.wall, self.figures, self.looks) = (wall, figures, looks);
        Some(seen)
    }

    fn frame(&self, wall: Time, figures: &[Arc<Figures>], looks: &[Look]) -> Frame {
        let interval_s = wall.since(self.wall).as_s().max(1e-9);
        let now = figures.iter().map(|one| one.now).max().unwrap_or(Time::ZERO);
        let (timing, before) = (timing(figures), timing(&self.figures));
        Frame {
            wall_s: wall.since(Time::ZERO).as_s(),
            time_s: now.since(Time::ZERO).as_s(),
            interval_s,
            clients: figures.iter().map(|one| one.clients).sum(),
            outstanding: figures.iter().map(|one| one.outstanding).sum(),
            release_lag_us: since(&timing, &before, |timing| &timing.release_lag),
            poll_gap_us: since(&timing, &before, |timing| &timing.poll_gap),
            behind_max_us: timing.behind_max.as_us(),
            drives: self.drives(figures, looks, interval_s),
        }
    }

    fn tell_of_second(&mut self, frame: &mut Frame, wall: Time, figures: &[Arc<Figures>]) {
        let (begun, before) = std::mem::replace(&mut self.second, (wall, figures.to_vec()));
        let passed_s = wall.since(begun).as_s().max(1e-9);
        let exports = figures.iter().flat_map(|one| &one.exports);
        let before = before.iter().flat_map(|one| &one.exports);
        for ((drive, now), before) in frame.drives.iter_mut().zip(exports).zip(before) {
            let each = now.kinds().into_iter().zip(before.kinds()).zip(0..);
            // The first three are always shown.
            let shown = each.filter(|(((_, now), _), at)| *at < 3 || !now.is_empty());
            let told =
                shown.map(|(((kind, now), (_, before)), _)| FlowTold { kind, flow: Flow::of(now, before, passed_s) });
            drive.last_second = Some(told.collect());
        }
    }

    fn drives(&self, figures: &[Arc<Figures>], looks: &[Look], interval_s: f64) -> Vec<DriveFrame> {
        let reactors = figures.iter().zip(&self.figures).zip(looks.iter().zip(&self.looks));
        let of_reactor = |(figures, before): (&Arc<Figures>, &Arc<Figures>), (look, last): (&Look, &Look)| {
            let exports = figures.exports.iter().zip(&before.exports);
            let drives = exports.zip(look.drives.iter().zip(&last.drives));
            let frames = drives.map(|((export, before), (drive, last))| {
                let shares = Shares::of(drive, last);
                let (dies, channels) = shares.map_or((None, None), |(dies, channels)| (Some(dies), Some(channels)));
                let went = [&drive.reads, &drive.writes].map(WentTold::of);
                DriveFrame { went, dies, channels, ..DriveFrame::of(export, before, interval_s) }
            });
            frames.collect::<Vec<_>>()
        };
        reactors.flat_map(|(figures, looks)| of_reactor(figures, looks)).collect()
    }
}

/// Drives keep the layouts of the look before. Whether another drive has taken the place of one since, or of a missing one.
fn keep_layouts(looks: &mut [Look], before: &mut [Look]) -> bool {
    let drives = looks.iter_mut().zip(before).flat_map(|(look, before)| look.drives.iter_mut().zip(&mut before.drives));
    let keep = |(drive, before): (&mut DriveLook, &mut DriveLook)| {
        drive.layout = before.layout.take();
        drive.inside.is_some() && (drive.layout.is_none() || inside::is_another(drive, before))
    };
    // All of them, also behind one that is another.
    drives.map(keep).filter(|is_another| *is_another).count() > 0
}

/// What a page is told first of the drives.
fn hello(figures: &[Arc<Figures>], looks: &[Look], takes_orders: bool) -> Hello {
    let names = figures.iter().flat_map(|one| &one.exports).map(|export| export.name.clone());
    let layouts = looks.iter().flat_map(|look| &look.drives).map(|drive| drive.layout.as_ref());
    let drives = names.zip(layouts.map(|layout| layout.map(LayoutTold::of)));
    Hello {
        schema: SCHEMA,
        interval_ms: EVERY.as_millis() as u64,
        takes_orders,
        max_pages: MAX_PAGES,
        drives: drives.map(|(name, layout)| DriveTold { name, layout }).collect(),
    }
}

/// Samples all reactors.
fn look(handles: &[Handle], wants: Wants) -> Option<(Vec<Arc<Figures>>, Vec<Look>)> {
    let looks: Option<Vec<Look>> = handles.iter().map(|handle| handle.look(wants)).collect();
    let figures: Option<Vec<Arc<Figures>>> = handles.iter().map(Handle::figures).collect();
    Some((figures?, looks?))
}

fn since(now: &Timing, before: &Timing, of: fn(&Timing) -> &nandscape_sim::Histogram) -> Latency {
    latency(&of(now).since(of(before)))
}

impl DriveFrame {
    /// Everything except the drive's inside.
    fn of(now: &ExportFigures, before: &ExportFigures, interval_s: f64) -> DriveFrame {
        let grown = |name: &'static str| {
            let of = |figures: &ExportFigures| figures.counters.get(name).copied().unwrap_or(0.0);
            let (now, before) = (of(now), of(before));
            // Another drive that has taken the place counts from zero.
            if now < before { now } else { now - before }
        };
        let only_grow = now.counters.keys().filter(|name| name.ends_with("_total"));
        let written = grown("host_written_bytes_total");
        DriveFrame {
            reads: Flow::of(&now.reads, &before.reads, interval_s),
            writes: Flow::of(&now.writes, &before.writes, interval_s),
            others: Flow::of(&now.others, &before.others, interval_s),
            last_second: None,
            counters: now.counters.clone(),
            rates: only_grow.map(|name| (*name, grown(name) / interval_s)).collect(),
            waf: (written > 0.0).then(|| grown("flash_programmed_bytes_total") / written),
            faults: FaultStatistics::all_of(now),
            state: now.absence.map(Absence::name),
            went: [&Went::default(), &Went::default()].map(WentTold::of),
            dies: None,
            channels: None,
        }
    }
}

impl Flow {
    fn of(now: &Tally, before: &Tally, interval_s: f64) -> Flow {
        let new = now.latency.since(&before.latency);
        Flow {
            iops: new.count() as f64 / interval_s,
            bytes_s: (now.bytes - before.bytes) as f64 / interval_s,
            errors: now.errors - before.errors,
            count: new.count(),
            latency_us: latency(&new),
        }
    }
}

impl WentTold {
    fn of(went: &Went) -> WentTold {
        let mut parts = Vec::new();
        let mut push = |stage: Stage, behind, span: Span| {
            if !span.is_zero() {
                parts.push((stage.name(), behind, span.as_us()));
            }
        };
        for stage in Stage::ALL {
            match Stage::WAITS.contains(&stage) {
                true => cause::ALL
                    .iter()
                    .for_each(|(cause, name)| push(stage, Some(*name), went.times.waited(stage, *cause))),
                false => push(stage, None, went.times.stage(stage)),
            }
        }
        let layers = went.times.layers().map(|(layer, span)| (layer, span.as_us())).collect();
        WentTold { requests: went.requests, parts, layers }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_transport_reactor::inside::{Inside, Layout};

    use super::*;

    /// Drives whose only dies have been busy for so long; `None` is a missing drive. The parts of all that `known` are known.
    fn looked(busy: &[Option<u64>], known: bool) -> Vec<Look> {
        let of = |busy: &Option<u64>| DriveLook {
            inside: busy.map(|ns| Inside {
                dies: vec![std::array::from_fn(|cause| if cause == 1 { ns } else { 0 })],
                ..Inside::default()
            }),
            layout: busy.filter(|_| known).map(|_| Layout { planes_per_die: 2, ..Layout::default() }),
            ..DriveLook::default()
        };
        vec![Look { drives: busy.iter().map(of).collect(), ..Look::default() }]
    }

    #[test]
    fn a_drive_that_comes_is_noticed_and_the_others_keep_their_parts() {
        for (before, now, has_come) in [
            ([Some(5), Some(5)], [Some(5), Some(9)], false),
            ([Some(5), None], [Some(6), None], false),
            // In the place of a missing one, and of one that has worked more, also before others.
            ([Some(5), None], [Some(6), Some(0)], true),
            ([Some(5), Some(5)], [Some(6), Some(4)], true),
            ([Some(5), Some(5)], [Some(4), Some(6)], true),
            // It is lost, and has not come.
            ([Some(5), Some(5)], [Some(6), None], false),
        ] {
            let (mut looks, mut last) = (looked(&now, false), looked(&before, true));
            assert_eq!(keep_layouts(&mut looks, &mut last), has_come, "{before:?} {now:?}");
            let kept = looks[0].drives.iter().map(|drive| drive.layout.is_some());
            assert!(kept.eq(before.iter().map(Option::is_some)), "{before:?} {now:?}");
        }
    }
}
