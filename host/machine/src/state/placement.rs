//! The processor on which a woken thread runs: one without a thread if possible, near where its data is warm.

use nandscape_sim::slots::Key;

use super::{Class, State, Units};

impl State {
    fn is_free(&self, index: usize) -> bool {
        self.cpus[index].thread.is_none()
    }

    /// Whether the whole core of a processor has no thread.
    fn has_free_core(&self, index: usize) -> bool {
        self.is_free(index) && self.cpus[index].sibling.is_none_or(|sibling| self.is_free(sibling))
    }

    /// Processors that a thread may use, from a given one on.
    fn allowed(&self, key: Key, from: usize) -> impl Iterator<Item = usize> {
        let (count, affinity) = (self.cpus.len(), self.entity(key).affinity);
        (from..count).chain(0..from).filter(move |index| affinity.has(*index))
    }

    /// The NUMA node of a core.
    fn node(&self, core: usize) -> usize {
        core / self.cores_of_node
    }

    /// Loading the caches of a core for data that is warm on another one.
    pub(super) fn cold_between(&self, one: usize, other: usize) -> Units {
        if self.node(one) == self.node(other) { self.costs.cold_core } else { self.costs.cold_node }
    }

    /// A free processor: the last one, the waker's, one of a free core, any; the node of the first of them before others.
    fn free(&self, key: Key, by: Option<usize>) -> Option<usize> {
        if self.free == 0 {
            return None;
        }
        let entity = self.entity(key);
        let last = entity.left_core_at.map(|_| entity.cpu);
        let near = [last, by].into_iter().flatten().find(|index| entity.affinity.has(*index) && self.is_free(*index));
        let from = last.or(by).unwrap_or(0);
        let node = self.node(self.cpus[from].core);
        let is_near = |index: &usize| self.node(self.cpus[*index].core) == node;
        near.or_else(|| self.allowed(key, from).filter(is_near).find(|index| self.has_free_core(*index)))
            .or_else(|| self.allowed(key, from).filter(is_near).find(|index| self.is_free(*index)))
            .or_else(|| self.allowed(key, from).find(|index| self.has_free_core(*index)))
            .or_else(|| self.allowed(key, from).find(|index| self.is_free(*index)))
    }

    fn load_of(&self, index: usize) -> usize {
        self.cpus[index].queue.waiting() + usize::from(!self.is_free(index))
    }

    /// The processor of a thread that shares. Without a free one, a new thread goes where the fewest threads are; another one
    /// stays, unless the waker's processor has fewer.
    pub(super) fn place(&self, key: Key, by: Option<usize>) -> usize {
        let entity = self.entity(key);
        let last = entity.left_core_at.map(|_| entity.cpu).filter(|last| entity.affinity.has(*last));
        let least = |among: &mut dyn Iterator<Item = usize>| among.min_by_key(|index| self.load_of(*index));
        self.free(key, by)
            .or_else(|| {
                let last = last?;
                let by = by.filter(|by| entity.affinity.has(*by));
                least(&mut [Some(last), by].into_iter().flatten())
            })
            .or_else(|| least(&mut self.allowed(key, 0)))
            .expect("a thread may run on a processor that exists")
    }

    /// The processor that a real-time thread gets at once: a free one, else that of the least urgent thread, if that is less urgent.
    pub(super) fn place_realtime(&self, key: Key, priority: u8, by: Option<usize>) -> Option<usize> {
        let urgency = |index: usize| match self.cpus[index].thread.map(|thread| self.entity(thread).class) {
            Some(Class::Realtime(priority)) => Some(priority),
            _ => None,
        };
        self.free(key, by).or_else(|| {
            let index = self.allowed(key, self.entity(key).cpu).min_by_key(|index| urgency(*index))?;
            (urgency(index) < Some(priority)).then_some(index)
        })
    }

    /// Moves a waiting thread of the longest run queue to a processor that has none; whether there was one.
    pub(super) fn pull(&mut self, index: usize) -> bool {
        let entities = &self.entities;
        let may_run = |key: Key| entities.get(key).is_some_and(|entity| entity.affinity.has(index));
        let mut longest: Option<(usize, Key)> = None;
        for (other, cpu) in self.cpus.iter().enumerate().filter(|(other, _)| *other != index) {
            let waiting = cpu.queue.waiting();
            if longest.is_none_or(|(from, _)| waiting > self.cpus[from].queue.waiting())
                && let Some(key) = cpu.queue.last(&may_run)
            {
                longest = Some((other, key));
            }
        }
        let Some((from, key)) = longest else { return false };
        self.settle(from);
        let entity = self.entities.get_mut(key).expect("a thread that waits");
        self.cpus[from].queue.leave(&mut entity.share);
        self.changed(from, None);
        self.join(key, index);
        true
    }
}
