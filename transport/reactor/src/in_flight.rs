//! The outstanding commands of one queue, found by their identifiers. Their slots are reused, so that a command does
//! not allocate.

use nandscape_wire_nvme::Status;

use crate::outbox::Outstanding;

/// See the file.
pub(crate) struct InFlight {
    slots: Vec<Slot>,
    /// The first slot of each chain: identifiers that are equal in their low bits.
    chains: Box<[u32]>,
    free: u32,
    count: u32,
}

struct Slot {
    cid: u16,
    /// The next slot of its chain, or the next free one.
    next: u32,
    command: Option<Outstanding>,
}

/// The end of a chain.
const NONE: u32 = u32::MAX;
/// Chains at most. Longer queues have longer chains.
const MOST_CHAINS: u32 = 1 << 10;

impl InFlight {
    /// Room for `depth` commands.
    pub(crate) fn new(depth: u16) -> InFlight {
        let depth = u32::from(depth);
        let next = |index: u32| if index + 1 < depth { index + 1 } else { NONE };
        let slots = (0..depth).map(|index| Slot { cid: 0, next: next(index), command: None }).collect();
        InFlight { slots, free: if depth > 0 { 0 } else { NONE }, ..InFlight::growing(depth) }
    }

    /// Room that grows with the commands of a queue of `entries` entries. A host that learns early which entries were
    /// fetched may have more commands under way than that.
    pub(crate) fn growing(entries: u32) -> InFlight {
        let chains = vec![NONE; entries.min(MOST_CHAINS).next_power_of_two() as usize].into();
        InFlight { slots: Vec::new(), chains, free: NONE, count: 0 }
    }

    /// Commands that have not completed.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    fn chain(&self, cid: u16) -> usize {
        usize::from(cid) & (self.chains.len() - 1)
    }

    /// The slot of a command.
    fn find(&self, cid: u16) -> Option<u32> {
        let mut at = self.chains[self.chain(cid)];
        while let Some(slot) = self.slots.get(at as usize) {
            if slot.cid == cid {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    /// Adds a command, unless its identifier is in use or there is no room.
    pub(crate) fn insert(&mut self, cid: u16, command: Outstanding) -> Result<(), (Outstanding, Status)> {
        if self.find(cid).is_some() {
            return Err((command, Status::COMMAND_ID_CONFLICT));
        }
        if self.free == NONE {
            return Err((command, Status::COMMAND_SEQUENCE_ERROR));
        }
        self.fill(cid, command);
        Ok(())
    }

    /// Adds a command, and replaces an earlier one with its identifier.
    pub(crate) fn replace(&mut self, cid: u16, command: Outstanding) {
        if let Some(at) = self.find(cid) {
            self.slots[at as usize].command = Some(command);
            return;
        }
        if self.free == NONE {
            // There are at most 65,536 identifiers.
            self.free = self.slots.len() as u32;
            self.slots.push(Slot { cid: 0, next: NONE, command: None });
        }
        self.fill(cid, command);
    }

    /// Puts a command into the first free slot, which must exist.
    fn fill(&mut self, cid: u16, command: Outstanding) {
        let (chain, index) = (self.chain(cid), self.free);
        let slot = &mut self.slots[index as usize];
        self.free = slot.next;
        *slot = Slot { cid, next: self.chains[chain], command: Some(command) };
        self.chains[chain] = index;
        self.count += 1;
    }

    /// Takes a command out.
    pub(crate) fn remove(&mut self, cid: u16) -> Option<Outstanding> {
        let chain = self.chain(cid);
        let (mut before, mut at) = (NONE, self.chains[chain]);
        while self.slots.get(at as usize)?.cid != cid {
            (before, at) = (at, self.slots[at as usize].next);
        }
        let slot = &mut self.slots[at as usize];
        let (after, command) = (std::mem::replace(&mut slot.next, self.free), slot.command.take());
        self.free = at;
        match self.slots.get_mut(before as usize) {
            Some(before) => before.next = after,
            None => self.chains[chain] = after,
        }
        self.count -= 1;
        command
    }

    /// Takes all commands out.
    pub(crate) fn take_all(&mut self) -> Vec<Outstanding> {
        let all = self.slots.iter_mut().filter_map(|slot| slot.command.take()).collect();
        *self = InFlight::new(self.slots.len() as u16);
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandscape_sim::{Rng, Seed, Time};

    use super::*;
    use crate::port::ConnectionId;

    fn command(tag: u64) -> Outstanding {
        let (connection, arrived) = (ConnectionId(0), Time::ZERO);
        let (queue, is_admin, is_forced_write) = (None, false, false);
        Outstanding {
            connection,
            export: 0,
            tag,
            queue,
            opcode: 2,
            is_admin,
            is_forced_write,
            bytes: 0,
            offset: 0,
            arrived,
        }
    }

    /// One of many identifiers that share their low bits.
    fn any_cid(rng: &mut Rng) -> u16 {
        (rng.below(4) << 12 | rng.below(40)) as u16
    }

    fn tags(commands: &mut InFlight) -> Vec<u64> {
        let mut tags: Vec<u64> = commands.take_all().iter().map(|command| command.tag).collect();
        tags.sort_unstable();
        tags
    }

    fn sorted(model: BTreeMap<u16, u64>) -> Vec<u64> {
        let mut tags: Vec<u64> = model.into_values().collect();
        tags.sort_unstable();
        tags
    }

    #[test]
    fn commands_are_found_by_identifiers_of_any_kind() {
        let mut rng = Seed::new(7).rng();
        for depth in [1, 2, 3, 31, 128] {
            let (mut commands, mut model) = (InFlight::new(depth), BTreeMap::new());
            for tag in 0..5_000u64 {
                let cid = any_cid(&mut rng);
                if rng.below(2) == 0 {
                    let right = match model.contains_key(&cid) {
                        true => Some(Status::COMMAND_ID_CONFLICT),
                        false if model.len() == usize::from(depth) => Some(Status::COMMAND_SEQUENCE_ERROR),
                        false => None,
                    };
                    let refused = commands.insert(cid, command(tag)).err().map(|(_, status)| status);
                    assert_eq!(refused, right, "depth {depth}, command {tag}");
                    if right.is_none() {
                        model.insert(cid, tag);
                    }
                } else {
                    assert_eq!(commands.remove(cid).map(|command| command.tag), model.remove(&cid));
                }
                assert_eq!(commands.len(), model.len());
            }
            assert_eq!((tags(&mut commands), commands.len()), (sorted(model), 0));
        }
    }

    #[test]
    fn room_grows_and_the_latter_of_two_commands_of_one_identifier_counts() {
        let mut rng = Seed::new(8).rng();
        for entries in [2, 3, 64] {
            let (mut commands, mut model) = (InFlight::growing(entries), BTreeMap::new());
            for tag in 0..5_000u64 {
                let cid = any_cid(&mut rng);
                if rng.below(2) == 0 {
                    commands.replace(cid, command(tag));
                    model.insert(cid, tag);
                } else {
                    assert_eq!(commands.remove(cid).map(|command| command.tag), model.remove(&cid));
                }
                assert_eq!(commands.len(), model.len());
            }
            assert!(commands.slots.len() <= 160, "there are no more identifiers");
            assert_eq!(tags(&mut commands), sorted(model));
        }
    }
}
