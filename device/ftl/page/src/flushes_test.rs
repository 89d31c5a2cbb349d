//! A flush behaves as if it watched every slot in use, in random sequences of the events of a write buffer.

use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Location, Lpn, SlotId, UnitSize};
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_drive::breakdown::cause;
use nandscape_sim::credits::Credits;
use nandscape_sim::{Executor, Rng, Seed, Sim};

use super::buffer::{SlotState, WriteBuffer};

const SLOTS: u32 = 12;

/// A buffer that is flushed, and one of which every slot in use is watched instead.
struct Pair {
    sim: Sim,
    totals: Credits,
    buffers: [WriteBuffer; 2],
    /// Of each buffer, what waits, in the order in which it began.
    settlings: [Vec<Rc<Settling>>; 2],
    queued: Vec<SlotId>,
    programming: Vec<SlotId>,
}

impl Pair {
    fn new(sim: &Sim, unit: UnitSize) -> Pair {
        let buffer = || WriteBuffer::new(SLOTS, 1, unit, false);
        let (buffers, settlings) = ([buffer(), buffer()], [Vec::new(), Vec::new()]);
        let totals = Credits::new(sim, 1, cause::HOST_WRITE);
        Pair { sim: sim.clone(), totals, buffers, settlings, queued: Vec::new(), programming: Vec::new() }
    }

    fn settlings(&mut self, count: u32, at: Milestone) -> [Rc<Settling>; 2] {
        let both = [(); 2].map(|()| Settling::new(&self.sim, count, at, self.totals.totals()));
        self.settlings.iter_mut().zip(&both).for_each(|(all, one)| all.push(one.clone()));
        both
    }

    /// A slot is used for a unit with no copy on flash, and is whole.
    fn insert(&mut self, unit: UnitSize) {
        let lpn = Lpn(self.settlings[0].len() as u32);
        let extent = Extent { start: 0, sectors: unit.sectors() };
        let piece = extent.pieces(unit).next().expect("a unit");
        let ids = self.buffers.each_mut().map(|buffer| {
            let id = buffer.insert(lpn, Location::Unmapped, None);
            buffer.write(id, &piece, |_| {});
            id
        });
        assert_eq!(ids[0], ids[1]);
        self.queued.push(ids[0]);
    }

    fn watch(&mut self, id: SlotId) {
        let both = self.settlings(1, Milestone::Flash);
        self.buffers.iter_mut().zip(&both).for_each(|(buffer, settling)| buffer.watch(id, settling));
    }

    fn flush(&mut self) {
        let in_use = self.buffers[0].in_use();
        let [flushed, watched] = self.settlings(in_use, Milestone::Flash);
        let [flushes, watches] = &mut self.buffers;
        flushes.flush(&flushed);
        let slots: Vec<SlotId> = watches.occupied().collect();
        slots.into_iter().for_each(|id| watches.watch(id, &watched));
    }

    /// The slot is on flash, or deallocated: the same waiters are notified, in the same order.
    fn remove(&mut self, id: SlotId) {
        let told = [0, 1].map(|index| {
            let told = self.buffers[index].remove(id);
            let number = |one| self.settlings[index].iter().position(|each| Rc::ptr_eq(each, one)).expect("it is one");
            told.iter().map(number).collect::<Vec<_>>()
        });
        assert_eq!(told[0], told[1], "{id:?}");
    }

    fn give_up(&mut self) {
        let told = [0, 1].map(|index| {
            let told = self.buffers[index].give_up_watchers();
            let slots =
                |each| told.iter().filter(|(one, _)| Rc::ptr_eq(one, each)).map(|(_, slots)| slots).sum::<u32>();
            self.settlings[index].iter().map(slots).collect::<Vec<_>>()
        });
        assert_eq!(told[0], told[1]);
    }

    fn step(&mut self, rng: &mut Rng, unit: UnitSize) {
        let mut any = |from: &mut Vec<SlotId>| (!from.is_empty()).then(|| rng.below(from.len() as u64) as usize);
        let (queued, programming) = (any(&mut self.queued), any(&mut self.programming));
        match (rng.below(12), queued, programming) {
            (0..4, _, _) if self.buffers[0].in_use() < SLOTS => self.insert(unit),
            (4, _, _) if self.buffers[0].in_use() > 0 => self.flush(),
            (5, Some(at), _) => self.watch(self.queued[at]),
            (6, Some(at), _) => {
                let id = self.queued.swap_remove(at);
                self.remove(id);
            }
            (7 | 8, Some(at), _) => {
                let id = self.queued.swap_remove(at);
                self.buffers.iter_mut().for_each(|buffer| buffer.start(id, SlotState::Programming));
                self.programming.push(id);
            }
            (9, _, Some(at)) => {
                let id = self.programming.swap_remove(at);
                self.buffers.iter_mut().for_each(|buffer| buffer.take_back(id));
                self.queued.push(id);
            }
            (10, _, Some(at)) => {
                let id = self.programming.swap_remove(at);
                self.remove(id);
            }
            (11, _, _) if rng.below(20) == 0 => self.give_up(),
            _ => {}
        }
        assert_eq!(self.buffers[0].is_urgent(), self.buffers[1].is_urgent());
        self.buffers.iter().for_each(|buffer| buffer.check().unwrap());
    }
}

#[test]
fn a_flush_is_as_good_as_a_watch_on_every_slot() {
    let executor = Executor::new();
    let unit = UnitSize::of_bytes(4_096);
    let mut told = BTreeSet::new();
    for seed in 0..200 {
        let (mut rng, mut pair) = (Seed::new(seed).rng(), Pair::new(&executor.sim(), unit));
        for _ in 0..300 {
            pair.step(&mut rng, unit);
        }
        told.insert(pair.settlings[0].len());
    }
    assert!(told.len() > 10, "the sequences differ");
}
