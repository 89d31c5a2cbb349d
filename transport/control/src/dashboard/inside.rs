//! A page's data of dies, channels and blocks.

use nandscape_drive::breakdown::cause;
use nandscape_sim::Span;
use nandscape_sim::trace::Event;
use nandscape_transport_reactor::inside::{Busy, DieWear, Lane, Layout};
use nandscape_transport_reactor::watch::{Capture, DriveLook, Look};
use serde::Serialize;

/// The most dies and channels that a page gets; more could not be distinguished on it.
const MOST: usize = 128;

/// The parts of a drive.
#[derive(Serialize)]
pub(super) struct LayoutTold {
    dies: Vec<String>,
    /// The number of further dies.
    dies_left_out: usize,
    planes_per_die: u32,
    channels: Vec<String>,
}

impl LayoutTold {
    pub(super) fn of(layout: &Layout) -> LayoutTold {
        LayoutTold {
            dies: layout.dies.iter().take(MOST).cloned().collect(),
            dies_left_out: layout.dies.len().saturating_sub(MOST),
            planes_per_die: layout.planes_per_die,
            channels: layout.channels.iter().take(MOST).cloned().collect(),
        }
    }
}

/// Percent of the time that dies or channels were busy, by kind of work, each a list by die or channel.
#[derive(Default, Serialize)]
pub(super) struct Shares {
    read: Vec<u8>,
    write: Vec<u8>,
    /// Garbage collection and wear levelling.
    gc: Vec<u8>,
    /// Mapping tables, logs, checkpoints.
    tables: Vec<u8>,
}

impl Shares {
    /// Shares of a drive's dies and channels between two samples; `None` if its flash is not in the
    /// server.
    pub(super) fn of(now: &DriveLook, before: &DriveLook) -> Option<(Shares, Shares)> {
        let passed = now.now.since(before.now);
        let (inside, last, layout) = (now.inside.as_ref()?, before.inside.as_ref()?, now.layout.as_ref()?);
        let dies = inside.dies.iter().zip(&last.dies).zip(layout.arrays.iter().copied());
        let channels = inside.channels.iter().zip(&last.channels).zip(std::iter::repeat(1));
        Some((Shares::of_each(dies, passed), Shares::of_each(channels, passed)))
    }

    fn of_each<'a>(parts: impl Iterator<Item = ((&'a Busy, &'a Busy), u32)>, passed: Span) -> Shares {
        let mut shares = Shares::default();
        for ((now, before), arrays) in parts.take(MOST) {
            let whole = passed.ns() * u64::from(arrays);
            let share = |causes: &[nandscape_sim::Cause]| {
                // Another drive may have taken the place.
                let grown = |cause: &nandscape_sim::Cause| now[cause.index()].saturating_sub(before[cause.index()]);
                let busy: u64 = causes.iter().map(grown).sum();
                percent(busy, whole)
            };
            shares.read.push(share(&[cause::HOST_READ, cause::RETRY, cause::FAULT]));
            shares.write.push(share(&[cause::HOST_WRITE, cause::READ_MODIFY_WRITE]));
            shares.gc.push(share(&[cause::GC, cause::WEAR]));
            shares.tables.push(share(&[cause::METADATA]));
        }
        shares
    }
}

/// Whether another drive has taken the place of one since the look before: a die has been busy for less time in all.
pub(super) fn is_another(now: &DriveLook, before: &DriveLook) -> bool {
    let (Some(now), Some(before)) = (&now.inside, &before.inside) else { return false };
    let sum = |busy: &Busy| busy.iter().sum::<u64>();
    now.dies.iter().zip(&before.dies).any(|(now, before)| sum(now) < sum(before))
}

/// Rounded; at least 1 if there was any work.
fn percent(busy: u64, whole: u64) -> u8 {
    let percent = (u128::from(busy) * 100 + u128::from(whole) / 2) / u128::from(whole.max(1));
    percent.clamp(u128::from(busy > 0), 100) as u8
}

/// The wear of a drive's blocks.
#[derive(Serialize)]
pub(super) struct WearTold {
    blocks_per_group: u32,
    dies: Vec<DieWearTold>,
}

#[derive(Serialize)]
struct DieWearTold {
    /// Erases of the most worn block of each group; null where all are bad.
    groups: Vec<Option<u32>>,
    least: u32,
    mean: f64,
    most: u32,
    bad: u32,
}

/// By drive; `None` if its flash is not in the server.
pub(super) fn wear(looks: &[Look]) -> Vec<Option<WearTold>> {
    let of_die = |die: &DieWear| DieWearTold {
        groups: die.groups.clone(),
        least: die.least,
        mean: die.sum as f64 / f64::from(die.good.max(1)),
        most: die.most,
        bad: die.bad,
    };
    let of_drive = |drive: &DriveLook| {
        let wear = drive.inside.as_ref()?.wear.as_ref()?;
        let dies = wear.dies.iter().take(MOST).map(of_die).collect();
        Some(WearTold { blocks_per_group: wear.blocks_per_group, dies })
    };
    looks.iter().flat_map(|look| &look.drives).map(of_drive).collect()
}

/// Single operations of all drives, captured over a few milliseconds.
#[derive(Serialize)]
pub(super) struct OperationsTold {
    drives: Vec<DriveOperations>,
}

/// The operations of one drive, in the order of their ends; the nth entry of each list belongs to the nth
/// operation.
#[derive(Default, Serialize)]
struct DriveOperations {
    /// The capture began at this drive time.
    from_s: f64,
    /// How long it lasted.
    length_us: f64,
    /// The plane, counted over all dies; channels follow behind the planes of all dies.
    lane: Vec<u32>,
    /// 0 read, 1 program, 2 read or program of a collection, 3 erase, 4 transfer on a channel.
    kind: Vec<u8>,
    /// When it started, after the capture began; those under way then start at 0.
    start_ns: Vec<u64>,
    duration_ns: Vec<u64>,
}

pub(super) fn operations(looks: &[Look]) -> OperationsTold {
    let of_reactor = |look: &Look| -> Vec<DriveOperations> {
        look.drives.iter().enumerate().map(|(number, drive)| DriveOperations::of(look.capture(number), drive)).collect()
    };
    OperationsTold { drives: looks.iter().flat_map(of_reactor).collect() }
}

impl DriveOperations {
    fn of(capture: Option<&Capture>, drive: &DriveLook) -> DriveOperations {
        let (Some(capture), Some(layout)) = (capture, &drive.layout) else { return DriveOperations::default() };
        let mut told = DriveOperations {
            from_s: capture.from.since(nandscape_sim::Time::ZERO).as_s(),
            length_us: capture.to.since(capture.from).as_us(),
            ..DriveOperations::default()
        };
        let shown_planes = layout.dies.len().min(MOST) as u32 * layout.planes_per_die;
        for event in &capture.operations {
            let (lane, kind) = match layout.lanes.get(&event.track.index()) {
                Some(Lane::Plane(plane)) if *plane < shown_planes => (*plane, kind(event)),
                Some(Lane::Channel(channel)) if (*channel as usize) < MOST => (shown_planes + channel, 4),
                _ => continue,
            };
            let start = event.start.max(capture.from);
            told.lane.push(lane);
            told.kind.push(kind);
            told.start_ns.push(start.since(capture.from).ns());
            told.duration_ns.push(event.end.since(start).ns());
        }
        told
    }
}

fn kind(event: &Event) -> u8 {
    match event.name {
        "read" => 0,
        "program" => 1,
        "erase" => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_work_shows_and_much_is_no_more_than_all() {
        assert_eq!([percent(0, 100), percent(1, 1_000_000), percent(50, 100), percent(200, 100)], [0, 1, 50, 100]);
        assert_eq!(percent(0, 0), 0);
    }
}
