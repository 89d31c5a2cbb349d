//! The cost of commands without data transfer: a command of a few bytes may change or read gigabytes. A turn of the
//! loop begins a bounded amount of such work, as it moves a bounded amount of data.
//!
//! A client may begin commands while it has spent less than its share of a turn. A command that costs more leaves a debt,
//! which the following turns pay off; clients in debt share what a turn pays. Commands of any size, of any number of
//! clients, therefore take the same part of each turn, and clients without such commands are served in each turn. Debts
//! end when the loop sleeps: then no client waits.

use std::cell::Cell;

use nandscape_drive::HostMem;
use nandscape_wire_nvme::io::{Cdw12, CopyCdw12, CopyRange, DsmRange, LongCopyRange};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::FromBytes;

/// The work begun in a turn, in bytes that are changed or read: about the work of one command of 4 KiB, so that most
/// of a turn remains for the commands of others.
pub(crate) const A_TURN: u64 = 16 << 10;
/// Bytes that are deallocated with the effort of one that is changed: firmware marks them, in steps that take their time.
const DEALLOCATED: u64 = 64;

/// The turns of a loop, and the clients in debt.
#[derive(Default)]
pub(crate) struct Efforts {
    turns: Cell<u64>,
    sleeps: Cell<u64>,
    debtors: Cell<u64>,
}

/// The spending of a client.
#[derive(Default)]
pub(crate) struct Effort {
    debt: Cell<u64>,
    turns: Cell<u64>,
    sleeps: Cell<u64>,
}

impl Efforts {
    /// A turn begins, perhaps after a sleep.
    pub(crate) fn turn(&self, slept: bool) {
        self.turns.set(self.turns.get() + 1);
        self.sleeps.set(self.sleeps.get() + u64::from(slept));
    }
}

impl Effort {
    /// Takes the payments of the turns since the last call.
    fn settle(&self, all: &Efforts) {
        let turns = all.turns.get() - self.turns.replace(all.turns.get());
        let slept = self.sleeps.replace(all.sleeps.get()) != all.sleeps.get();
        if self.debt.get() == 0 {
            return;
        }
        let paid = turns.saturating_mul((A_TURN / all.debtors.get().max(1)).max(1));
        self.debt.set(if slept { 0 } else { self.debt.get().saturating_sub(paid) });
        if self.debt.get() == 0 {
            all.debtors.set(all.debtors.get() - 1);
        }
    }

    /// Whether a command may begin now.
    pub(crate) fn may_begin(&self, all: &Efforts) -> bool {
        self.settle(all);
        self.debt.get() < A_TURN
    }

    /// A command begins that costs this.
    pub(crate) fn begin(&self, cost: u64, all: &Efforts) {
        self.settle(all);
        if self.debt.get() == 0 && cost > 0 {
            all.debtors.set(all.debtors.get() + 1);
        }
        self.debt.set(self.debt.get().saturating_add(cost));
    }

    /// The client has disconnected.
    pub(crate) fn end(&self, all: &Efforts) {
        if self.debt.replace(0) > 0 {
            all.debtors.set(all.debtors.get() - 1);
        }
    }
}

/// The cost of a command of `block_bytes` bytes a logical block in addition to its data `mem`; 0 for a command that
/// changes and reads as much as it transfers. For such a command neither argument is evaluated.
#[inline]
pub(crate) fn cost_of(
    entry: &SubmissionEntry,
    mem: impl FnOnce() -> HostMem,
    block_bytes: impl FnOnce() -> u32,
) -> u64 {
    let bytes = |blocks: u64| blocks.saturating_mul(block_bytes().into());
    match IoOpcode(entry.opcode) {
        IoOpcode::WRITE_ZEROES if Cdw12::of(entry).deac() => bytes(entry.blocks_in_a_row().into()) / DEALLOCATED,
        IoOpcode::WRITE_ZEROES | IoOpcode::WRITE_UNCORRECTABLE | IoOpcode::VERIFY => {
            bytes(entry.blocks_in_a_row().into())
        }
        IoOpcode::DATASET_MANAGEMENT => {
            let blocks = |range: &[u8]| DsmRange::read_from_bytes(range).map_or(0, |range| range.blocks.get().into());
            bytes(sum_of(&mem(), size_of::<DsmRange>(), blocks)) / DEALLOCATED
        }
        IoOpcode::COPY if CopyCdw12(entry.cdw12.get()).format() == 0 => {
            let blocks =
                |range: &[u8]| CopyRange::read_from_bytes(range).map_or(0, |range| 1 + u64::from(range.nlb_z.get()));
            bytes(sum_of(&mem(), size_of::<CopyRange>(), blocks))
        }
        IoOpcode::COPY => {
            let blocks = |range: &[u8]| {
                LongCopyRange::read_from_bytes(range).map_or(0, |range| 1 + u64::from(range.nlb_z.get()))
            };
            bytes(sum_of(&mem(), size_of::<LongCopyRange>(), blocks))
        }
        _ => 0,
    }
}

/// The ranges that a list of at most 256 holds, all together.
fn sum_of(mem: &HostMem, range_bytes: usize, blocks: impl Fn(&[u8]) -> u64) -> u64 {
    let mut list = vec![0; mem.len().min(256 * range_bytes)];
    mem.read(0, &mut list);
    list.chunks_exact(range_bytes).map(blocks).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    /// Commands of this cost that clients begin in turns, each whenever it may.
    fn begun(clients: &[Effort], all: &Efforts, cost: u64, turns: u64) -> Vec<u64> {
        let mut begun = vec![0; clients.len()];
        for _ in 0..turns {
            all.turn(false);
            for (effort, count) in clients.iter().zip(&mut begun) {
                while effort.may_begin(all) {
                    effort.begin(cost, all);
                    *count += 1;
                }
            }
        }
        begun
    }

    #[test]
    fn commands_of_any_size_take_the_same_part_of_each_turn() {
        for cost in [512, 4_096, A_TURN, 1 << 20, 32 << 20] {
            let all = Efforts::default();
            let turns = 3 * (cost / A_TURN).max(1);
            let [count] = begun(&[Effort::default()], &all, cost, turns)[..] else { panic!() };
            assert!((count - 1) * cost <= turns * A_TURN && (count + 1) * cost >= turns * A_TURN, "{count} of {cost}");
        }
    }

    #[test]
    fn clients_in_debt_share_what_a_turn_pays_and_others_do_not_wait() {
        let all = Efforts::default();
        let clients: Vec<Effort> = (0..16).map(|_| Effort::default()).collect();
        let counts = begun(&clients, &all, 1 << 20, 64 * 64);
        assert!(counts.iter().all(|count| (4..=6).contains(count)), "{counts:?}");
        let small = Effort::default();
        assert!(small.may_begin(&all), "one that has spent nothing");
        small.begin(4_096, &all);
        assert!(small.may_begin(&all));
        clients.iter().for_each(|effort| effort.end(&all));
        small.end(&all);
        assert_eq!(all.debtors.get(), 0);
    }

    #[test]
    fn a_sleep_ends_debts() {
        let (all, effort) = (Efforts::default(), Effort::default());
        effort.begin(u64::MAX, &all);
        all.turn(false);
        assert!(!effort.may_begin(&all));
        all.turn(true);
        assert!(effort.may_begin(&all));
        assert_eq!(all.debtors.get(), 0);
    }

    #[test]
    fn a_command_costs_what_it_changes_or_reads_without_moving_it() {
        let cost = |entry: &SubmissionEntry, mem: &HostMem| cost_of(entry, || mem.clone(), || 512);
        let blocks = |opcode| SubmissionEntry::blocks(opcode, 1, 0, 1 << 16);
        for opcode in [IoOpcode::WRITE_ZEROES, IoOpcode::WRITE_UNCORRECTABLE, IoOpcode::VERIFY] {
            assert_eq!(cost(&blocks(opcode), &HostMem::none()), 32 << 20, "{opcode:?}");
        }
        for opcode in [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::COMPARE, IoOpcode::FLUSH] {
            assert_eq!(cost(&blocks(opcode), &HostMem::none()), 0, "{opcode:?}");
        }
        let range = DsmRange { blocks: (1 << 20).into(), ..DsmRange::default() };
        let ranges = HostMem::from_bytes([range, range].as_bytes());
        assert_eq!(cost(&SubmissionEntry::deallocate(1, 2), &ranges), (1 << 30) / DEALLOCATED);
        let source = CopyRange { nlb_z: 127.into(), ..CopyRange::default() };
        let sources = HostMem::from_bytes([source, source, source].as_bytes());
        assert_eq!(cost(&SubmissionEntry::copy(1, 0, 3, 0), &sources), 3 << 16);
        assert_eq!(cost(&SubmissionEntry::copy(1, 0, 3, 0), &HostMem::none()), 0, "it will be refused");
        let mut zeroes = blocks(IoOpcode::WRITE_ZEROES);
        zeroes.cdw12 = (zeroes.cdw12.get() | nandscape_wire_nvme::io::DEAC).into();
        assert_eq!(cost(&zeroes, &HostMem::none()), (32 << 20) / DEALLOCATED);
    }
}
