//! The slowest requests of each direction, one in a hundred: the parts of their time, when they came, at which dies, and the
//! work of those dies meanwhile. At most `MOST` requests of a direction are kept.
//!
//! Left out: the dies of writes, which end in the write buffer, and of drives with several FTLs or namespaces.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

use nandscape_device_ssd::Ssd;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_host_path::{LAYER as HOST, stage};
use nandscape_lab_workload::{Direction, Served, Tally};
use nandscape_sim::trace::Event;
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::blocked::Blocked;
use super::slowest::Part;
use super::work::{KINDS, kind};
use crate::report::breakdown;

/// One request of so many is among the slowest.
const ONE_OF: u64 = 100;
/// The most requests of a direction that are kept.
const MOST: usize = 16_384;
/// Windows of the measured phase.
const WINDOWS: usize = 50;
/// The most recent operations of each plane that are kept.
const OPERATIONS: usize = 32;

/// The slowest requests of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Tail {
    /// How many they are: one in a hundred, and at most 16,384.
    pub requests: u64,
    /// Requests of the direction.
    pub of: u64,
    /// The latency of the fastest of them.
    pub from_us: f64,
    /// Their mean latency.
    pub mean_us: f64,
    /// Their mean time by stage; the stages sum to the mean.
    pub breakdown_us: BTreeMap<String, serde_json::Value>,
    /// Requests by the part that took most of their time, the most frequent first.
    pub longest: Vec<Longest>,
    /// Reads whose die is known.
    pub located: u64,
    /// Those by die, in the order of `timeline.dies`; empty where no die is known.
    pub dies: Vec<u64>,
    /// Mean time within those reads that their arrays spent on each kind of work.
    pub die_busy_us: BTreeMap<&'static str, f64>,
    /// Mean time that these reads waited behind reads of the same plane that waited for a collection meanwhile, at least; left out
    /// if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_blocked_reads_us: Option<f64>,
    /// The length of a window of the measured phase.
    pub interval_s: f64,
    /// Requests by the window in which they were submitted.
    pub windows: Vec<u64>,
}

/// A part of the latency, and the requests in which it is the longest.
#[derive(Clone, Debug, Serialize)]
pub struct Longest {
    /// The stage.
    pub stage: &'static str,
    /// The cause, if the stage is a wait.
    pub behind: Option<&'static str>,
    /// Requests.
    pub requests: u64,
}

/// A request that is kept.
struct Kept {
    latency: Span,
    submitted: Time,
    offset: u64,
    breakdown: Breakdown,
    /// The die of a read, and the work of its arrays meanwhile.
    die: Option<(u32, [u64; KINDS.len()])>,
    /// How long it waited behind reads that waited for a collection.
    behind_blocked: Span,
}

/// Where the first byte of a read is: the die, and the planes that share its array.
struct Place {
    die: u32,
    planes: Range<u32>,
}

impl Kept {
    fn rank(&self) -> (Span, Time, u64) {
        (self.latency, self.submitted, self.offset)
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Keeps the slowest requests.
pub(super) struct Recorder {
    begun: Time,
    /// By direction: requests, and the slowest of them.
    slowest: [(u64, BinaryHeap<Reverse<Kept>>); Direction::ALL.len()],
    /// By plane as the timeline counts them: kind of work, start and end of its last operations.
    operations: Vec<VecDeque<(usize, Time, Time)>>,
    blocked: Blocked,
    /// Dies that the timeline distinguishes, or 0 where it does not record dies.
    dies: u32,
}

impl Recorder {
    /// `dies` of the timeline.
    pub(super) fn new(begun: Time, ssd: &Ssd, dies: usize, namespaces: usize) -> Recorder {
        let dies = if ssd.parts().len() == 1 && namespaces == 1 { dies as u32 } else { 0 };
        Recorder { begun, slowest: Default::default(), operations: Vec::new(), blocked: Blocked::default(), dies }
    }

    /// An operation of a plane has ended.
    pub(super) fn ended(&mut self, plane: u32, event: &Event) {
        let plane = plane as usize;
        if plane >= self.operations.len() {
            self.operations.resize_with(plane + 1, VecDeque::new);
        }
        let last = &mut self.operations[plane];
        if last.len() == OPERATIONS {
            last.pop_front();
        }
        last.push_back((kind(event.name), event.start, event.end));
    }

    /// A measured request has completed.
    pub(super) fn served(&mut self, request: &Served<'_>, ssd: &Ssd) {
        if !request.completion.status.is_success() {
            return;
        }
        request.direction.counted_as().for_each(|direction| self.keep(request, direction, ssd));
        if request.direction == Direction::Read && Blocked::is_blocked(&request.completion.breakdown) {
            let place = self.place(request.offset, ssd).filter(|_| is_one_unit(request, ssd));
            place.into_iter().for_each(|place| {
                self.blocked.note(place.planes.start, &request.completion.breakdown, request.completed);
            });
        }
    }

    /// Keeps a request among those of a direction, if it is one of the slowest.
    fn keep(&mut self, request: &Served<'_>, direction: Direction, ssd: &Ssd) {
        let Served { offset, submitted, completed, completion, .. } = *request;
        let rank = (completed - submitted, submitted, offset);
        let (count, slowest) = &mut self.slowest[direction as usize];
        *count += 1;
        if slowest.len() == MOST {
            if slowest.peek().is_some_and(|Reverse(fastest)| fastest.rank() >= rank) {
                return;
            }
            slowest.pop();
        }
        let place = if direction == Direction::Read { self.place(offset, ssd) } else { None };
        let breakdown = completion.breakdown.clone();
        let behind = place.as_ref().filter(|_| is_one_unit(request, ssd));
        let behind_blocked =
            behind.map_or(Span::ZERO, |place| self.blocked.behind(place.planes.start, &breakdown, completed));
        let die = place.map(|place| (place.die, self.work(place.planes, submitted, completed)));
        let kept = Kept { latency: completed - submitted, submitted, offset, breakdown, die, behind_blocked };
        self.slowest[direction as usize].1.push(Reverse(kept));
    }

    /// Where the first byte of a read is, if it is known.
    fn place(&self, offset: u64, ssd: &Ssd) -> Option<Place> {
        let part = ssd.parts().first().filter(|_| self.dies > 0)?;
        let geometry = part.media().geometry();
        let located = part.locate(u32::try_from(offset / u64::from(geometry.unit_size())).ok()?);
        let unit = located.flash.filter(|_| !located.is_buffered)?;
        let (channel, die, within) = geometry.place(geometry.plane_of(geometry.block_of(geometry.page_of(unit))));
        let counts = geometry.counts();
        let die = channel * counts.dies_per_channel + die;
        if die >= self.dies {
            return None;
        }
        let first = die * counts.planes_per_die;
        let planes = match part.media().arrays_per_die() {
            1 => first..first + counts.planes_per_die,
            _ => first + within..first + within + 1,
        };
        Some(Place { die, planes })
    }

    /// The work of planes in a time.
    fn work(&self, planes: Range<u32>, from: Time, to: Time) -> [u64; KINDS.len()] {
        let mut work = [0; KINDS.len()];
        for (kind, start, end) in planes.filter_map(|plane| self.operations.get(plane as usize)).flatten() {
            work[*kind] += (*end).min(to).ns().saturating_sub((*start).max(from).ns());
        }
        // Planes that are at one operation together count once.
        work.iter_mut().for_each(|ns| *ns = (*ns).min((to - from).ns()));
        work
    }

    /// The die of one of the slowest reads, by its latency, submission and offset, if it is known.
    pub(super) fn die_of(&self, read: (Span, Time, u64)) -> Option<u32> {
        let (_, slowest) = &self.slowest[Direction::Read as usize];
        let Reverse(kept) = slowest.iter().find(|Reverse(kept)| kept.rank() == read)?;
        kept.die.map(|(die, _)| die)
    }

    pub(super) fn finish(self, ended: Time) -> BTreeMap<&'static str, Tail> {
        let Recorder { begun, slowest, dies, .. } = self;
        let of_all = Direction::ALL.into_iter().zip(slowest).filter(|(_, (count, _))| *count > 0);
        let tail = |(direction, (count, heap)): (Direction, (u64, BinaryHeap<Reverse<Kept>>))| {
            let mut kept: Vec<Kept> = heap.into_iter().map(|Reverse(kept)| kept).collect();
            kept.sort_by(|one, other| other.cmp(one));
            kept.truncate(count.div_ceil(ONE_OF) as usize);
            (direction.name(), of(&kept, count, begun, ended, dies as usize))
        };
        of_all.map(tail).collect()
    }
}

/// Whether a request is within one mapping unit, so that its breakdown is that of the place of its first byte.
fn is_one_unit(request: &Served<'_>, ssd: &Ssd) -> bool {
    let unit = u64::from(ssd.media().geometry().unit_size());
    request.offset % unit + request.bytes <= unit
}

fn of(kept: &[Kept], count: u64, begun: Time, ended: Time, dies: usize) -> Tail {
    let mut tally = Tally::default();
    let (mut longest, mut by_die) = (BTreeMap::<(&str, Option<&str>), u64>::new(), vec![0; dies]);
    let (mut work, mut windows) = ([0u64; KINDS.len()], vec![0; WINDOWS]);
    let width = ((ended - begun).ns() / WINDOWS as u64 + 1).max(1);
    for request in kept {
        tally.latency.record(request.latency);
        tally.breakdown += &request.breakdown;
        if let Some(part) = parts(&request.breakdown).first() {
            *longest.entry((part.stage, part.behind)).or_default() += 1;
        }
        if let Some((die, own)) = &request.die {
            by_die[*die as usize] += 1;
            work.iter_mut().zip(own).for_each(|(sum, ns)| *sum += ns);
        }
        let window = request.submitted.max(begun).since(begun).ns() / width;
        windows[(window as usize).min(WINDOWS - 1)] += 1;
    }
    let located: u64 = by_die.iter().sum();
    let behind_blocked: u64 = kept.iter().map(|request| request.behind_blocked.ns()).sum();
    let mut longest: Vec<Longest> =
        longest.into_iter().map(|((stage, behind), requests)| Longest { stage, behind, requests }).collect();
    longest.sort_by_key(|one| Reverse(one.requests));
    Tail {
        requests: kept.len() as u64,
        of: count,
        from_us: kept.last().map_or(0.0, |kept| kept.latency.as_us()),
        mean_us: tally.latency.mean_ns() / 1e3,
        breakdown_us: breakdown(&tally),
        longest,
        located,
        dies: if located > 0 { by_die } else { Vec::new() },
        die_busy_us: match located {
            0 => BTreeMap::new(),
            located => KINDS.into_iter().zip(work).map(|(kind, ns)| (kind, ns as f64 / located as f64 / 1e3)).collect(),
        },
        behind_blocked_reads_us: (behind_blocked > 0).then(|| behind_blocked as f64 / kept.len() as f64 / 1e3),
        interval_s: Span::from_ns(width).as_s(),
        windows,
    }
}

/// The parts of a request's time, the longest first.
pub(super) fn parts(breakdown: &Breakdown) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut push = |stage: &'static str, behind, span: Span| {
        if !span.is_zero() {
            parts.push(Part { stage, behind, us: span.as_us() });
        }
    };
    for (_, cause, span) in breakdown.causes().filter(|(layer, ..)| *layer == HOST) {
        let (stage, behind) = stage::split(cause);
        push(stage, behind, span);
    }
    for stage in Stage::ALL {
        if Stage::WAITS.contains(&stage) {
            let waited = cause::ALL.iter().map(|(cause, name)| (breakdown.waited(stage, *cause), *name));
            waited.for_each(|(span, name)| push(stage.name(), Some(name), span));
        } else {
            push(stage.name(), None, breakdown.stage(stage));
        }
    }
    parts.sort_by(|one, other| other.us.total_cmp(&one.us));
    parts
}
