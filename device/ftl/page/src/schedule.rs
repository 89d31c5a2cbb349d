//! Which planes collect: one [`Phase`] a plane.
//!
//! ```text
//!        low on space, or a         admission           ahead of the host
//!        block to retire            policy             ------------------>
//!   Idle ------------------> Due ------------> Running                      Ahead
//!    ^ ^                      ^                 | | ^                         |
//!    | |      a block to      |                 | | | admission               | low on space again
//!    | |      retire          |                 | | | policy                  v
//!    | +---------------- Fruitless <------------+ | +-------------------- DueAgain
//!    |  something to gain        nothing to gain  |
//!    +--------------------------------------------+
//!                      enough space
//!
//!   a plane goes out of use:  Idle, Fruitless, Due ------------> OutOfUse
//!                             Running, Ahead, DueAgain --> Leaving --> OutOfUse   (when it has left its block)
//!   planting has ended:       Running --> Due                                     (in the midst of a block)
//! ```
//!
//! Left out: the criteria for low space and for a collector that is ahead, which are in `pace`.

use nandscape_device_ftl_core::policy::{AdmissionPolicy, PlaneSet};
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_device_media::{BlockId, PlaneId};

use super::moves::Cursor;

/// The activity of a plane's collector.
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
    /// Waits until the host has used up the gained space.
    Ahead,
    /// Waits, with its block, until the admission policy lets it continue.
    DueAgain,
    /// The plane is out of use; the collector must leave its block unchanged.
    Leaving,
    /// The plane is out of use.
    OutOfUse,
}

impl Phase {
    /// Whether a plane may change from this phase to another, by the drawing.
    fn leads_to(self, to: Phase) -> bool {
        use Phase::{Ahead, Due, DueAgain, Fruitless, Idle, Leaving, OutOfUse, Running};
        match self {
            Idle => matches!(to, Due | OutOfUse),
            Fruitless => matches!(to, Idle | Due | OutOfUse),
            Due => matches!(to, Running | OutOfUse),
            Running => matches!(to, Idle | Fruitless | Ahead | Due | Leaving),
            Ahead => matches!(to, DueAgain | Leaving),
            DueAgain => matches!(to, Running | Leaving),
            Leaving => to == OutOfUse,
            OutOfUse => false,
        }
    }
}

/// The collector of a plane.
pub(super) struct Collector {
    phase: Phase,
    /// Units that the victim held when it was chosen, and those moved since; `None` without a victim.
    victim: Option<(u32, u32)>,
    /// The progress of planting in a block, where the collector continues.
    pub(super) left_off: Option<Cursor>,
    /// Blocks to be emptied because they have gone bad.
    pub(super) retiring: Vec<BlockId>,
    /// Blocks to be rewritten because of retention or disturb.
    pub(super) aged: Vec<BlockId>,
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

    /// The victim was erased, or is abandoned.
    pub(super) fn without_victim(&mut self) {
        self.victim = None;
    }

    /// Units earned of a victim of `units`: in proportion to its share that was moved.
    pub(super) fn earned(&self, units: u32) -> u64 {
        let Some((cost, moved)) = self.victim else { return 0 };
        u64::from(units) * u64::from(moved) / u64::from(cost.max(1))
    }
}

/// The collectors of a drive.
pub(super) struct Collectors {
    planes: Vec<Collector>,
    admission: Box<dyn AdmissionPolicy>,
    /// Planes that became due or due again, in order. Some may have left these phases since.
    due: Vec<PlaneId>,
    /// Planes whose collector waited and is to continue.
    woken: Vec<PlaneId>,
    running: PlaneSet,
    /// Planes in this phase.
    fruitless: u32,
    /// Planes that were admitted because they had no page for the host.
    pub(super) overloads: u64,
}

impl Collectors {
    pub(super) fn new(planes: u32, admission: Box<dyn AdmissionPolicy>) -> Collectors {
        let collector =
            |_| Collector { phase: Phase::Idle, victim: None, left_off: None, retiring: Vec::new(), aged: Vec::new() };
        Collectors {
            planes: (0..planes).map(collector).collect(),
            admission,
            due: Vec::new(),
            woken: Vec::new(),
            running: PlaneSet::none(planes),
            fruitless: 0,
            overloads: 0,
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
        !matches!(self.phase(plane), Phase::Idle | Phase::Fruitless | Phase::OutOfUse)
    }

    /// Whether a plane's collector is at work now.
    #[inline]
    pub(super) fn is_running(&self, plane: PlaneId) -> bool {
        self.running.contains(plane)
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

    /// Whether some planes wait for the admission policy.
    pub(super) fn any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Admits planes that are due until one is to begin, which is returned. The planes before it are to continue, and
    /// are among [`Collectors::woken`].
    ///
    /// `is_short` returns for a plane whether it has no page for the host.
    pub(super) fn admit(&mut self, is_short: impl Fn(PlaneId) -> bool) -> Option<PlaneId> {
        loop {
            if self.due.is_empty() {
                return None;
            }
            let Collectors { planes, due, admission, running, .. } = self;
            due.retain(|plane| matches!(planes[plane.0 as usize].phase, Phase::Due | Phase::DueAgain));
            let admitted = due.iter().position(|plane| admission.admits(*plane, running));
            let in_need = |plane: &PlaneId| is_short(*plane) && admission.admits_short(*plane, running);
            self.overloads += u64::from(admitted.is_none() && due.iter().any(in_need));
            let next = admitted.or_else(|| due.iter().position(in_need))?;
            let plane = due.remove(next);
            let begins = self.phase(plane) == Phase::Due;
            self.change(plane, Phase::Running);
            if begins {
                return Some(plane);
            }
            self.woken.push(plane);
        }
    }

    /// Planting, which takes no time, lets a plane collect whatever the policy.
    pub(super) fn begin_at_once(&mut self, plane: PlaneId) {
        if self.phase(plane) == Phase::Due {
            self.change(plane, Phase::Running);
        }
    }

    /// The plane that became due last, for planting.
    pub(super) fn take_due(&mut self) -> Option<PlaneId> {
        loop {
            let plane = self.due.pop()?;
            if self.phase(plane) == Phase::Due {
                return Some(plane);
            }
        }
    }

    /// A collector waits until it is woken.
    pub(super) fn set_ahead(&mut self, plane: PlaneId) {
        assert_eq!(self.phase(plane), Phase::Running, "{plane:?} has a collector at work");
        self.change(plane, Phase::Ahead);
    }

    /// A collector that is ahead is to continue.
    pub(super) fn wake(&mut self, plane: PlaneId) {
        if self.phase(plane) == Phase::Ahead {
            self.change(plane, Phase::DueAgain);
            self.due.push(plane);
        }
    }

    /// The planes whose collectors continue.
    pub(super) fn woken(&mut self) -> impl Iterator<Item = PlaneId> {
        self.woken.drain(..)
    }

    /// A collector ends, because nothing is to be gained or because there is enough space.
    pub(super) fn end(&mut self, plane: PlaneId, is_fruitless: bool) {
        let next = match self.phase(plane) {
            Phase::Leaving => Phase::OutOfUse,
            Phase::Running if is_fruitless => Phase::Fruitless,
            Phase::Running => Phase::Idle,
            phase => unreachable!("the collector of {plane:?} ends while it is {phase:?}"),
        };
        self.change(plane, next);
    }

    /// Something of a plane may be gained again. Returns whether nothing was until now.
    pub(super) fn set_fruitful(&mut self, plane: PlaneId) -> bool {
        let was_fruitless = self.phase(plane) == Phase::Fruitless;
        if was_fruitless {
            self.change(plane, Phase::Idle);
        }
        was_fruitless
    }

    /// A plane goes out of use. Returns whether it was in use.
    pub(super) fn take_out(&mut self, plane: PlaneId) -> bool {
        let next = match self.phase(plane) {
            Phase::Leaving | Phase::OutOfUse => return false,
            Phase::Running => Phase::Leaving,
            // It need not be admitted to leave its block.
            Phase::Ahead | Phase::DueAgain => {
                self.woken.push(plane);
                Phase::Leaving
            }
            Phase::Idle | Phase::Fruitless | Phase::Due => Phase::OutOfUse,
        };
        self.change(plane, next);
        true
    }

    /// Planting has ended: planes that it has left in the middle of a block continue, and planes that are due begin.
    pub(super) fn resume(&mut self) {
        self.due.clear();
        for plane in (0..self.planes.len() as u32).map(PlaneId) {
            if self.phase(plane) == Phase::Running {
                assert!(self.of(plane).left_off.is_some(), "{plane:?} collects, and planting has no block of it");
                self.change(plane, Phase::Due);
            }
            if self.phase(plane) == Phase::Due {
                self.due.push(plane);
            }
        }
    }

    /// The collector of a plane as bytes. None is at work: each is at rest, or due.
    pub(super) fn save(&self, plane: PlaneId, to: &mut Writer) {
        let Collector { phase, victim, left_off, retiring, aged: _ } = self.of(plane);
        to.byte(match phase {
            Phase::Idle => 0,
            Phase::Fruitless => 1,
            Phase::Due => 2,
            Phase::OutOfUse => 3,
            phase => panic!("the collector of {plane:?} is to be saved while it is {phase:?}"),
        });
        to.byte(u8::from(victim.is_some()));
        if let Some((cost, moved)) = victim {
            to.word(*cost);
            to.word(*moved);
        }
        to.byte(u8::from(left_off.is_some()));
        left_off.iter().for_each(|cursor| cursor.save(to));
        to.words(&retiring.iter().map(|block| block.0).collect::<Vec<u32>>());
    }

    /// Takes over the collector of a plane, which is new. [`Collectors::resume`] must follow.
    pub(super) fn restore(&mut self, plane: PlaneId, from: &mut Reader<'_>) -> Result<(), Malformed> {
        let phase = match from.byte()? {
            0 => Phase::Idle,
            1 => Phase::Fruitless,
            2 => Phase::Due,
            3 => Phase::OutOfUse,
            other => return Err(from.malformed(format!("a collector cannot be in phase {other}"))),
        };
        let victim = if from.byte()? != 0 { Some((from.word()?, from.word()?)) } else { None };
        let left_off = if from.byte()? != 0 { Some(Cursor::restore(from)?) } else { None };
        let retiring = (0..from.count(4)?).map(|_| Ok(BlockId(from.word()?))).collect::<Result<_, Malformed>>()?;
        *self.of_mut(plane) = Collector { phase, victim, left_off, retiring, aged: Vec::new() };
        self.fruitless += u32::from(phase == Phase::Fruitless);
        Ok(())
    }

    fn change(&mut self, plane: PlaneId, to: Phase) {
        let from = std::mem::replace(&mut self.of_mut(plane).phase, to);
        assert!(from.leads_to(to), "{plane:?} goes from {from:?} to {to:?}");
        self.running.set(plane, to == Phase::Running);
        let count = |phase| u32::from(phase == Phase::Fruitless);
        self.fruitless = self.fruitless + count(to) - count(from);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use nandscape_device_ftl_core::policy::{All, OnePerGroup};
    use nandscape_device_rig::TestFlash;
    use nandscape_sim::Executor;

    use super::*;
    use crate::streams::COLLECTED;

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
        assert_eq!((collectors.phase(plane), collectors.admit(|_| false)), (Phase::DueAgain, None));
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
        assert_eq!(collectors.admit(|_| false), None);
        collectors.end(waiting, false);
        collectors.set_due(waiting);
        collectors.set_due(due);
        assert_eq!((collectors.out_of_use(), collectors.admit(|_| false)), (2, None));
    }

    /// The policy is consulted for collectors that are to begin and for collectors that are to continue alike, in the
    /// order of their requests.
    #[test]
    fn a_collector_that_is_not_admitted_waits_for_its_turn() {
        let mut collectors = Collectors::new(4, Box::new(OnePerGroup::new(NonZeroU32::new(2).unwrap())));
        let [one, other, elsewhere] = [PlaneId(0), PlaneId(1), PlaneId(2)];
        [one, other, elsewhere].into_iter().for_each(|plane| collectors.set_due(plane));
        assert_eq!([(); 3].map(|()| collectors.admit(|_| false)), [Some(one), Some(elsewhere), None]);
        collectors.set_ahead(one);
        collectors.wake(one);
        assert_eq!([(); 2].map(|()| collectors.admit(|_| false)), [Some(other), None]);
        assert_eq!((collectors.woken().count(), collectors.phase(one)), (0, Phase::DueAgain));
        assert!(collectors.any_due() && collectors.is_collecting(one));
        collectors.end(other, false);
        assert_eq!(collectors.admit(|_| false), None);
        assert_eq!((collectors.woken().collect::<Vec<_>>(), collectors.phase(one)), (vec![one], Phase::Running));
        assert!(!collectors.any_due());
    }

    #[test]
    fn a_plane_leaves_its_block_without_an_admission() {
        let mut collectors = Collectors::new(2, Box::new(OnePerGroup::new(NonZeroU32::new(2).unwrap())));
        let [one, other] = [PlaneId(0), PlaneId(1)];
        [one, other].into_iter().for_each(|plane| collectors.set_due(plane));
        assert_eq!(collectors.admit(|_| false), Some(one));
        collectors.set_ahead(one);
        assert_eq!(collectors.admit(|_| false), Some(other));
        collectors.wake(one);
        assert!(collectors.take_out(one));
        assert_eq!((collectors.woken().collect::<Vec<_>>(), collectors.admit(|_| false)), (vec![one], None));
        collectors.end(one, false);
        assert_eq!(collectors.phase(one), Phase::OutOfUse);
    }

    /// Planting leaves one plane in the midst of a block, and has made another one due.
    #[test]
    fn the_planes_that_planting_has_made_due_begin() {
        let (mut collectors, [left_off, due]) = (collectors(), [PlaneId(0), PlaneId(1)]);
        collectors.set_due(left_off);
        assert_eq!(collectors.take_due(), Some(left_off));
        collectors.begin_at_once(left_off);
        let media = TestFlash::default().media(&Executor::new().sim());
        collectors.of_mut(left_off).left_off = Some(Cursor::new(media.geometry(), BlockId(0), COLLECTED, false));
        collectors.set_due(due);
        collectors.resume();
        assert_eq!([(); 3].map(|()| collectors.admit(|_| false)), [Some(left_off), Some(due), None]);
    }

    #[test]
    #[should_panic(expected = "PlaneId(0) goes from Idle to Leaving")]
    fn a_phase_that_is_not_drawn_is_not_entered() {
        collectors().change(PlaneId(0), Phase::Leaving);
    }
}
