//! Who keeps ready threads from their processors.
//!
//! Each processor sums its time by holder. A thread that begins to wait notes these sums, and their growth is its wait.

use nandscape_sim::slots::Key;

use super::{Class, Entity, Place, State};
use crate::times::{Holder, Kind, Role, Waits};

impl Entity {
    /// Who has a processor on which this context spends time of a kind.
    pub(super) fn holder(&self, kind: Kind) -> Holder {
        match (self.class, self.role) {
            (Class::Hard, _) => Holder::Interrupt,
            (Class::Soft, _) => Holder::Softirq,
            _ if self.is_deferred => Holder::Softirq,
            (_, Role::Application) if kind == Kind::Spin => Holder::Polling,
            (_, Role::Application) => Holder::Application,
            (_, Role::Load) => Holder::Load,
            (_, Role::Kernel) => Holder::Kernel,
        }
    }

    /// The processor for which a thread waits at a place, and whether it has that but for interrupts.
    fn waits_for(&self, place: Place) -> Option<(usize, bool)> {
        match place {
            Place::Queued(index) => Some((index, false)),
            Place::Ticket(_) => Some((self.cpu, false)),
            Place::On(index) => Some((index, true)),
            Place::Away | Place::Raised(_) => None,
        }
    }
}

impl State {
    /// The time of a processor by holder, up to now.
    fn held(&self, index: usize) -> Waits {
        let cpu = &self.cpus[index];
        let (mut held, mut elapsed) = (cpu.held, self.sim.now().since(cpu.since));
        if elapsed.is_zero() {
            return held;
        }
        let mut stolen = cpu.stolen;
        held.add(Holder::Interrupt, stolen.spend(cpu.rate, &mut elapsed));
        if let Some(key) = self.top(index) {
            let entity = self.entity(key);
            for (kind, mut left) in entity.kinds().into_iter().zip([entity.entry, entity.cold, entity.work]) {
                held.add(entity.holder(kind), left.spend(cpu.rate, &mut elapsed));
            }
        }
        held
    }

    /// How long a thread has waited up to now, by who had its processor.
    pub(crate) fn waits(&self, key: Key) -> Waits {
        let entity = self.entity(key);
        let mut waits = entity.waits;
        if let Some((index, has_processor)) = entity.waits_for(entity.place) {
            waits.merge(&self.held(index).since(&entity.held_before), has_processor);
        }
        waits
    }

    /// A thread gets another place.
    pub(super) fn put(&mut self, key: Key, place: Place) {
        let waits = self.waits(key);
        let held_before = self.entity(key).waits_for(place).map(|(index, _)| self.held(index));
        let entity = self.entity_mut(key);
        (entity.waits, entity.place) = (waits, place);
        entity.held_before = held_before.unwrap_or_default();
    }
}
