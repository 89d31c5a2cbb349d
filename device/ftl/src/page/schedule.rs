//! Which planes collect: one [`Phase`] a plane.
//!
//! ```text
//!         low on space, or a         admission           ahead of the host
//!         block to retire            policy             ------------------>
//!   Idle ------------------> Due ------------> Running                      Ahead
//!    ^ ^                      ^                  | |    <------------------
//!    | |      a block to retire                  | |    low on space again
//!    | |                      |                  | |
//!    | +---------------- Fruitless <-------------+ |
//!    |  something to gain         nothing to gain  |
//!    +---------------------------------------------+
//!                     enough space
//!
//!   a plane goes out of use:  Idle, Fruitless, Due ------------> OutOfUse
//!                             Running, Ahead -----> Leaving ---> OutOfUse   (when it has left its block)
//! ```
//!
//! Left out: when a plane is low on space and when a collector is ahead, which `pace` decides.

use nandscape_device_media::{BlockId, PlaneId};

use super::collect::Cursor;
use crate::policy::AdmissionPolicy;

/// What a plane's collector does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The plane has enough space.
    Idle,
    /// The plane is low on space, but no block of it would gain anything, until one of its units goes out of date or one
    /// of its blocks fills up.
    Fruitless,
    /// To begin when the admission policy lets it.
    Due,
    /// At work.
    Running,
    /// Waits until the host has used up what was gained.
    Ahead,
    /// The plane is out of use; the collector is to leave its block as it is.
    Leaving,
    /// The plane is out of use.
    OutOfUse,
}

/// The collector of a plane.
pub(super) struct Collector {
    phase: Phase,
    /// Units that the victim held when it was chosen, and those moved since; `None` without a victim.
    victim: Option<(u32, u32)>,
    /// How far planting has emptied a block, for the collector to go on with.
    pub(super) left_off: Option<Cursor>,
    /// Blocks to be emptied because they have gone bad.
    pub(super) retiring: Vec<BlockId>,
}

impl Collector {
    /// A victim was chosen that holds `cost` units.
    pub(super) fn chosen(&mut self, cost: u32) {
        self.victim = Some((cost, 0));
    }

    /// Units of the victim were moved.
    pub(super) fn moved(&mut self, units: u32) {
        if let Some((_, moved)) = &mut self.victim {
            *moved += units;
        }
    }

    /// The victim was erased, or is given up.
    pub(super) fn without_victim(&mut self) {
        self.victim = None;
    }

    /// Units earned of a victim of `units`: in proportion to what of it was moved.
    pub(super) fn earned(&self, units: u32) -> u64 {
        let Some((cost, moved)) = self.victim else { return 0 };
        u64::from(units) * u64::from(moved) / u64::from(cost.max(1))
    }
}

/// The collectors of a drive.
pub(super) struct Collectors {
    planes: Vec<Collector>,
    admission: Box<dyn AdmissionPolicy>,
    /// Planes that became due, in that order. Some may have left that phase since.
    due: Vec<PlaneId>,
    /// Planes whose collector waited and is to go on.
    woken: Vec<PlaneId>,
    /// Planes in each of these phases.
    running: u32,
    fruitless: u32,
}

impl Collectors {
    pub(super) fn new(planes: u32, admission: Box<dyn AdmissionPolicy>) -> Collectors {
        let collector = |_| Collector { phase: Phase::Idle, victim: None, left_off: None, retiring: Vec::new() };
        Collectors {
            planes: (0..planes).map(collector).collect(),
            admission,
            due: Vec::new(),
            woken: Vec::new(),
            running: 0,
            fruitless: 0,
        }
    }

    pub(super) fn of(&self, plane: PlaneId) -> &Collector {
        &self.planes[plane.0 as usize]
    }

    pub(super) fn of_mut(&mut self, plane: PlaneId) -> &mut Collector {
        &mut self.planes[plane.0 as usize]
    }

    pub(super) fn phase(&self, plane: PlaneId) -> Phase {
        self.of(plane).phase
    }

    /// Whether a plane's collector is at work, or about to be.
    pub(super) fn is_collecting(&self, plane: PlaneId) -> bool {
        matches!(self.phase(plane), Phase::Due | Phase::Running | Phase::Ahead | Phase::Leaving)
    }

    pub(super) fn is_out_of_use(&self, plane: PlaneId) -> bool {
        matches!(self.phase(plane), Phase::Leaving | Phase::OutOfUse)
    }

    /// Planes that are out of use.
    pub(super) fn out_of_use(&self) -> u64 {
        let out = |collector: &&Collector| matches!(collector.phase, Phase::Leaving | Phase::OutOfUse);
        self.planes.iter().filter(out).count() as u64
    }

    /// Whether any plane is fruitless.
    #[inline]
    pub(super) fn any_fruitless(&self) -> bool {
        self.fruitless > 0
    }

    // ------------------------------------------------------------ transitions

    /// A plane has something to collect.
    pub(super) fn set_due(&mut self, plane: PlaneId) {
        if matches!(self.phase(plane), Phase::Idle | Phase::Fruitless) {
            self.change(plane, Phase::Due);
            self.due.push(plane);
        }
    }

    /// The next plane that begins to collect now. `is_urgent` tells whether the host can get no page of a plane before it
    /// was cleaned.
    pub(super) fn admit(&mut self, is_urgent: impl Fn(PlaneId) -> bool) -> Option<PlaneId> {
        let Collectors { planes, due, admission, running, .. } = self;
        due.retain(|plane| planes[plane.0 as usize].phase == Phase::Due);
        let next = due.iter().position(|plane| admission.admits(*running, is_urgent(*plane)))?;
        let plane = due.remove(next);
        self.change(plane, Phase::Running);
        Some(plane)
    }

    /// The plane that became due last begins to collect, whatever the policy.
    pub(super) fn take_due(&mut self) -> Option<PlaneId> {
        while let Some(plane) = self.due.pop() {
            if self.phase(plane) == Phase::Due {
                self.change(plane, Phase::Running);
                return Some(plane);
            }
        }
        None
    }

    /// A collector waits until it is woken.
    pub(super) fn set_ahead(&mut self, plane: PlaneId) {
        assert_eq!(self.phase(plane), Phase::Running, "{plane:?} has a collector at work");
        self.change(plane, Phase::Ahead);
    }

    /// A collector goes on, if it waits.
    pub(super) fn wake(&mut self, plane: PlaneId) {
        if self.phase(plane) == Phase::Ahead {
            self.change(plane, Phase::Running);
            self.woken.push(plane);
        }
    }

    /// The planes whose collectors go on.
    pub(super) fn woken(&mut self) -> impl Iterator<Item = PlaneId> {
        self.woken.drain(..)
    }

    /// A collector ends, because nothing is to be gained or because there is enough space.
    pub(super) fn end(&mut self, plane: PlaneId, is_fruitless: bool) {
        let next = match self.phase(plane) {
            Phase::Leaving => Phase::OutOfUse,
            // Planting collects in no time, without an admission.
            Phase::Running | Phase::Due if is_fruitless => Phase::Fruitless,
            Phase::Running | Phase::Due => Phase::Idle,
            phase => unreachable!("the collector of {plane:?} ends while it is {phase:?}"),
        };
        self.change(plane, next);
    }

    /// Something of a plane may be gained again. Whether nothing was until now.
    pub(super) fn set_fruitful(&mut self, plane: PlaneId) -> bool {
        let was_fruitless = self.phase(plane) == Phase::Fruitless;
        if was_fruitless {
            self.change(plane, Phase::Idle);
        }
        was_fruitless
    }

    /// A plane goes out of use. Whether it was in use.
    pub(super) fn take_out(&mut self, plane: PlaneId) -> bool {
        self.wake(plane);
        let next = match self.phase(plane) {
            Phase::Leaving | Phase::OutOfUse => return false,
            Phase::Running => Phase::Leaving,
            _ => Phase::OutOfUse,
        };
        self.change(plane, next);
        true
    }

    /// The planes that planting has left off in the midst of a block are to go on.
    pub(super) fn resume(&mut self) {
        self.due.clear();
        for plane in (0..self.planes.len() as u32).map(PlaneId) {
            if self.of(plane).left_off.is_some() {
                self.change(plane, Phase::Due);
                self.due.push(plane);
            }
        }
    }

    fn change(&mut self, plane: PlaneId, to: Phase) {
        let from = std::mem::replace(&mut self.of_mut(plane).phase, to);
        let count = |phase, which| u32::from(phase == which);
        self.running = self.running + count(to, Phase::Running) - count(from, Phase::Running);
        self.fruitless = self.fruitless + count(to, Phase::Fruitless) - count(from, Phase::Fruitless);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::All;

    fn collectors() -> Collectors {
        Collectors::new(2, Box::new(All))
    }

    #[test]
    fn a_plane_goes_from_idle_to_running_and_back() {
        let (mut collectors, plane) = (collectors(), PlaneId(1));
        collectors.set_due(plane);
        collectors.set_due(plane);
        assert_eq!((collectors.admit(|_| false), collectors.admit(|_| false)), (Some(plane), None));
        collectors.set_ahead(plane);
        assert!(collectors.is_collecting(plane));
        collectors.wake(plane);
        collectors.wake(plane);
        assert_eq!(collectors.woken().collect::<Vec<_>>(), [plane]);
        collectors.end(plane, true);
        assert!(collectors.any_fruitless() && collectors.set_fruitful(plane) && !collectors.set_fruitful(plane));
        assert_eq!(collectors.phase(plane), Phase::Idle);
    }

    #[test]
    fn a_plane_that_goes_out_of_use_wakes_its_collector_and_is_never_due_again() {
        let (mut collectors, [waiting, due]) = (collectors(), [PlaneId(0), PlaneId(1)]);
        collectors.set_due(waiting);
        assert_eq!(collectors.admit(|_| false), Some(waiting));
        collectors.set_ahead(waiting);
        collectors.set_due(due);
        assert!(collectors.take_out(waiting) && collectors.take_out(due) && !collectors.take_out(due));
        assert_eq!(collectors.woken().collect::<Vec<_>>(), [waiting]);
        assert_eq!((collectors.phase(waiting), collectors.phase(due)), (Phase::Leaving, Phase::OutOfUse));
        assert_eq!(collectors.admit(|_| true), None);
        collectors.end(waiting, false);
        collectors.set_due(waiting);
        collectors.set_due(due);
        assert_eq!((collectors.out_of_use(), collectors.admit(|_| true)), (2, None));
    }
}
