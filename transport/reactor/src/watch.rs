//! Data gathered while a client watches the drives, in addition to the permanent figures: the time of commands by
//! stage and cause, and short captures of single operations. It exists from the first look to [`Handle::look_away`],
//! and costs nothing at other times.
//!
//! [`Handle::look_away`]: crate::Handle::look_away

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::Breakdown;
use nandscape_sim::trace::{Event, Listener};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_nvme::blocks::BlockWork;

use crate::inside::{Inside, Layout};
use crate::outbox::Released;

/// The drive time that a capture covers.
pub const CAPTURE: Span = Span::from_ms(10);
/// The most operations of a capture.
pub const MOST_OPERATIONS: usize = 2_000;

/// Optional results of a look, in addition to causes and busy times.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Wants {
    /// The layout of the drives.
    pub layout: bool,
    /// The wear of their blocks.
    pub wear: bool,
    /// The capture that was begun by the last look that wanted one; the next one begins.
    pub operations: bool,
}

/// The data gathered since the previous look.
#[derive(Clone, Default, Debug)]
pub struct Look {
    /// By drive, in the order of the setup.
    pub drives: Vec<DriveLook>,
    /// Single operations of all drives, or of each if they have separate timelines. Empty unless requested, and unless there was an
    /// earlier look.
    pub captures: Vec<Capture>,
}

impl Look {
    /// The capture with the operations of a drive.
    pub fn capture(&self, drive: usize) -> Option<&Capture> {
        self.captures.get(drive).or(self.captures.last())
    }
}

/// The same of one drive.
#[derive(Clone, Default, Debug)]
pub struct DriveLook {
    /// Its time: a drive that is behind has an earlier one than the others.
    pub now: Time,
    /// Reads, compares, verifies that succeeded.
    pub reads: Went,
    /// Writes of any kind that succeeded.
    pub writes: Went,
    /// Busy times since the drive began, and its wear; `None` if its flash is not in this process.
    pub inside: Option<Inside>,
    /// Its parts, if requested.
    pub layout: Option<Layout>,
}

/// The time of commands by stage and cause.
#[derive(Clone, Default, Debug)]
pub struct Went {
    /// How many.
    pub requests: u64,
    /// Their times, added up.
    pub times: Breakdown,
}

/// Every operation of the flash that ended within a short time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Capture {
    /// When it began.
    pub from: Time,
    /// When it ended: earlier than planned if there were more operations than it holds.
    pub to: Time,
    /// In the order of their ends.
    pub operations: Vec<Event>,
}

/// See the module.
pub(crate) struct Watch {
    /// By drive: reads, writes.
    went: Vec<[Went; 2]>,
    /// By timeline.
    scopes: Vec<Rc<Scope>>,
}

impl Watch {
    /// Of so many drives on so many timelines.
    pub(crate) fn new(drives: usize, timelines: usize) -> Watch {
        Watch { went: vec![Default::default(); drives], scopes: (0..timelines).map(|_| Rc::default()).collect() }
    }

    /// Adds the times of completed commands.
    #[cold]
    pub(crate) fn add(&mut self, released: &[Released]) {
        for one in released.iter().filter(|one| !one.is_admin && one.completion.status.is_success()) {
            let [reads, writes] = &mut self.went[usize::from(one.export)];
            let went = match IoOpcode(one.opcode).block_work() {
                Some(BlockWork::Read) => reads,
                Some(BlockWork::Write) => writes,
                Some(BlockWork::Deallocate) | None => continue,
            };
            went.requests += 1;
            went.times += &one.completion.breakdown;
        }
    }

    /// Takes the sums, by drive.
    pub(crate) fn take_went(&mut self) -> Vec<[Went; 2]> {
        self.went.iter_mut().map(std::mem::take).collect()
    }

    /// Takes the last capture of each timeline, if there is one, and begins the next.
    pub(crate) fn capture(&self, timelines: &[Sim]) -> Vec<Capture> {
        let restart = |(scope, sim): (&Rc<Scope>, &Sim)| {
            let last = scope.restart(sim.now());
            sim.trace().listen(scope.clone());
            last
        };
        self.scopes.iter().zip(timelines).filter_map(restart).collect()
    }
}

/// Listens to the event trace for a short time.
#[derive(Default)]
struct Scope {
    capture: RefCell<Option<Capture>>,
    has_enough: Cell<bool>,
}

impl Scope {
    fn restart(&self, now: Time) -> Option<Capture> {
        self.has_enough.set(false);
        let mut last = self.capture.replace(Some(Capture { from: now, to: now + CAPTURE, operations: Vec::new() }));
        if let Some(last) = &mut last {
            last.to = last.to.min(now);
        }
        last
    }
}

impl Listener for Scope {
    fn ended(&self, event: &Event) {
        if self.has_enough.get() {
            return;
        }
        let mut capture = self.capture.borrow_mut();
        let Some(capture) = &mut *capture else { return };
        if event.end > capture.to {
            self.has_enough.set(true);
            return;
        }
        capture.operations.push(*event);
        if capture.operations.len() == MOST_OPERATIONS {
            capture.to = event.end;
            self.has_enough.set(true);
        }
    }

    fn wants_more(&self) -> bool {
        !self.has_enough.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(end: Time) -> Event {
        let executor = nandscape_sim::Executor::new();
        let track = executor.sim().trace().track("die".to_owned());
        Event { track, name: "read", start: Time::ZERO, end, detail: 0 }
    }

    #[test]
    fn each_timeline_has_its_capture_in_its_own_time() {
        let mut executors = nandscape_sim::Executor::apart(2);
        let sims: Vec<Sim> = executors.iter().map(nandscape_sim::Executor::sim).collect();
        let tracks: Vec<_> = sims.iter().map(|sim| sim.trace().track("die".to_owned())).collect();
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        // The first drive is behind.
        let times = [at(10), at(90_000)];
        executors.iter_mut().zip(times).for_each(|(executor, at)| executor.arrive(at));
        let watch = Watch::new(2, 2);
        assert!(watch.capture(&sims).is_empty());
        for ((executor, track), from) in executors.iter_mut().zip(&tracks).zip(times) {
            let (sim, track, start) = (executor.sim(), *track, from);
            executor.arrive(from + Span::from_us(5));
            sim.trace_event(|end| Event { track, name: "read", start, end, detail: 0 });
        }
        let look = Look { drives: Vec::new(), captures: watch.capture(&sims) };
        for (number, from) in times.into_iter().enumerate() {
            let capture = look.capture(number).unwrap();
            assert_eq!((capture.from, capture.to), (from, from + Span::from_us(5)));
            let [event] = capture.operations[..] else { panic!("{capture:?}") };
            assert_eq!((event.track, event.start, event.end), (tracks[number], from, capture.to));
        }
    }

    #[test]
    fn a_capture_ends_with_its_time_or_when_it_is_full() {
        let scope = Scope::default();
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        scope.ended(&event(at(1)));
        assert_eq!(scope.restart(at(5)), None);
        scope.ended(&event(at(6)));
        scope.ended(&event(at(5) + CAPTURE));
        assert!(scope.wants_more());
        scope.ended(&event(at(6) + CAPTURE));
        assert!(!scope.wants_more());
        let first = scope.restart(at(90_000)).unwrap();
        assert_eq!((first.from, first.to, first.operations.len()), (at(5), at(5) + CAPTURE, 2));
        (0..=MOST_OPERATIONS as u64).for_each(|n| scope.ended(&event(at(90_000 + n))));
        assert!(!scope.wants_more());
        let full = scope.restart(at(200_000)).unwrap();
        assert_eq!((full.operations.len(), full.to), (MOST_OPERATIONS, at(90_000 + MOST_OPERATIONS as u64 - 1)));
        // Taken before its time was over.
        assert_eq!(scope.restart(at(200_001)).unwrap().to, at(200_001));
    }
}
