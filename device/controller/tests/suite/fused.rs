//! Fused Compare and Write: both completions, lone halves, and no command in between.

use crate::common::{Drive, Pair, config, host, read, with};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::command::{FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND};
use nandscape_wire_nvme::identify::Namespace;
use nandscape_wire_nvme::manage::{self, ControllerList};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, feature};
use zerocopy::IntoBytes;

/// Longer than any command here takes.
const LONG: Span = Span::from_ms(20);

/// One half: an opcode, its blocks, and the byte of which its data is.
fn half(opcode: IoOpcode, flags: u8, (slba, blocks): (u64, u32), value: u8) -> (SubmissionEntry, HostMem) {
    let entry = SubmissionEntry { flags, ..SubmissionEntry::blocks(opcode, 1, slba, blocks) };
    (entry, HostMem::from_bytes(&vec![value; blocks as usize * 512]))
}

fn compare(blocks: (u64, u32), value: u8) -> (SubmissionEntry, HostMem) {
    half(IoOpcode::COMPARE, FLAGS_FUSED_FIRST, blocks, value)
}

fn then_write(blocks: (u64, u32), value: u8) -> (SubmissionEntry, HostMem) {
    half(IoOpcode::WRITE, FLAGS_FUSED_SECOND, blocks, value)
}

/// Submits commands with one doorbell: their statuses, in the order of the commands.
async fn submit(sim: &Sim, pair: &Pair, commands: Vec<(SubmissionEntry, HostMem)>) -> Vec<Status> {
    let cids: Vec<u16> = commands.into_iter().map(|(entry, mem)| pair.put(entry, mem)).collect();
    pair.ring();
    sim.sleep(LONG).await;
    let posted: Vec<_> = std::iter::from_fn(|| pair.reap()).map(|posted| posted.entry).collect();
    pair.release();
    assert_eq!(posted.len(), cids.len(), "each command has one completion");
    let status = |cid| posted.iter().find(|entry| entry.cid.get() == cid).expect("it has completed").status();
    cids.into_iter().map(status).collect()
}

/// The byte of which some blocks are.
async fn value(sim: &Sim, drive: &Drive, slba: u64, blocks: u32) -> u8 {
    let (io, mem) = (host(sim, drive, QueueId(3)), HostMem::zeroed(blocks as usize * 512));
    assert!(io.execute(read(slba, blocks), mem.clone()).await.unwrap().status.is_success());
    let bytes = mem.to_vec();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "the blocks are torn");
    bytes[0]
}

#[test]
fn the_write_happens_if_the_comparison_succeeds() {
    for buffer in [BufferMode::Capacitor, BufferMode::Through] {
        with(ControllerConfig { buffer, ..config() }, async |sim, drive| {
            let pair = Pair::new(sim, drive, 1, 32);
            let blocks = (3, 16);
            let swap = async |from, to| submit(sim, &pair, vec![compare(blocks, from), then_write(blocks, to)]).await;
            assert_eq!(swap(0, 1).await, [Status::SUCCESS; 2]);
            assert_eq!(swap(1, 2).await, [Status::SUCCESS; 2]);
            assert_eq!(swap(1, 3).await, [Status::COMPARE_FAILURE.with_more(), Status::FUSED_FAILED]);
            assert_eq!(value(sim, drive, 3, 16).await, 2);
        });
    }
}

#[test]
fn a_half_alone_is_aborted_and_its_neighbours_are_served() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 32);
        let plain = || (read(0, 1), HostMem::zeroed(512));
        let (first, second) = (|| compare((0, 1), 0), || then_write((0, 1), 5));
        let (missing, done) = (Status::FUSED_MISSING, Status::SUCCESS);
        assert_eq!(submit(sim, &pair, vec![first()]).await, [missing]);
        assert_eq!(submit(sim, &pair, vec![second()]).await, [missing]);
        assert_eq!(submit(sim, &pair, vec![first(), plain(), second()]).await, [missing, done, missing]);
        assert_eq!(submit(sim, &pair, vec![first(), first(), second()]).await, [missing, done, done]);
        assert_eq!(submit(sim, &pair, vec![second(), plain()]).await, [missing, done]);
        let reserved = half(IoOpcode::WRITE, 0b11, (0, 1), 5);
        assert_eq!(submit(sim, &pair, vec![reserved]).await, [Status::INVALID_FIELD.final_().with_more()]);
        assert_eq!(value(sim, drive, 0, 1).await, 5);
    });
}

/// As many halves as a queue holds, at once: each gets a completion, and the pair at the end is served.
#[test]
fn a_queue_full_of_halves() {
    with(ControllerConfig { command_slots: 1, ..config() }, async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 256);
        let mut commands: Vec<_> = (0..250).map(|_| compare((0, 1), 0)).collect();
        commands.push(then_write((0, 1), 5));
        let ended = submit(sim, &pair, commands).await;
        assert_eq!(ended[..249], [Status::FUSED_MISSING; 249]);
        assert_eq!(ended[249..], [Status::SUCCESS; 2]);
    });
}

/// Lone halves take command slots like other commands.
#[test]
fn halves_wait_for_command_slots() {
    with(ControllerConfig { command_slots: 3, ..config() }, async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 256);
        for _ in 0..100 {
            pair.put(compare((0, 1), 0).0, HostMem::zeroed(512));
        }
        pair.ring();
        sim.sleep(crate::common::FIRMWARE + crate::common::LINK_LATENCY + Span::from_us(1)).await;
        assert_eq!(pair.reap_all().len(), 3);
        sim.sleep(LONG).await;
        assert_eq!(pair.reap_all().len(), 97);
    });
}

/// Creates a namespace of a format and attaches it to this process's controller.
async fn create(sim: &Sim, drive: &Drive, flbas: u8) {
    let admin = host(sim, drive, QueueId::ADMIN);
    let run = async |opcode, nsid: u32, mem| {
        let entry = SubmissionEntry { nsid: nsid.into(), ..SubmissionEntry::admin(opcode) };
        let ended = admin.execute(entry, mem).await.unwrap();
        assert!(ended.status.is_success(), "{:?}", ended.status);
        ended.dw0
    };
    let wish = Namespace { nsze: 64.into(), ncap: 64.into(), flbas, ..Namespace::zeroed() };
    let nsid = run(AdminOpcode::NAMESPACE_MANAGEMENT, 0, HostMem::from_bytes(wish.as_bytes())).await;
    let list = HostMem::from_bytes(ControllerList::of([1]).as_bytes());
    run(AdminOpcode::NAMESPACE_ATTACHMENT, nsid, list).await;
}

/// Pairs whose halves name namespaces of different formats are rejected, and write nothing.
#[test]
fn a_pair_is_of_one_namespace() {
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let delete = SubmissionEntry {
            nsid: 1.into(),
            cdw10: u32::from(manage::NAMESPACE_DELETE).into(),
            ..SubmissionEntry::admin(AdminOpcode::NAMESPACE_MANAGEMENT)
        };
        assert!(admin.execute(delete, HostMem::none()).await.unwrap().status.is_success());
        drop(admin);
        // 512 bytes, 4,096, and 512 with metadata behind each block and apart.
        for flbas in [0, 1, 0x12, 2] {
            create(sim, drive, flbas).await;
        }
        let pair = Pair::new(sim, drive, 1, 32);
        let of =
            |nsid: u32, (entry, mem): (SubmissionEntry, HostMem)| (SubmissionEntry { nsid: nsid.into(), ..entry }, mem);
        for (one, other) in (1..=4).flat_map(|one| (1..=4).map(move |other| (one, other))) {
            let ended = submit(sim, &pair, vec![of(one, compare((0, 8), 0)), of(other, then_write((0, 8), 0))]).await;
            if one != other {
                assert_eq!(ended, [Status::INVALID_FIELD.final_().with_more(); 2], "{one} and {other}");
            }
        }
        assert_eq!(
            submit(sim, &pair, vec![of(1, compare((0, 1), 0)), of(1, then_write((0, 1), 5))]).await,
            [Status::SUCCESS; 2]
        );
    });
}

#[test]
fn malformed_pairs() {
    with(config(), async |sim, drive| {
        let pair = Pair::new(sim, drive, 1, 32);
        let bad = Status::INVALID_FIELD.final_().with_more();
        let beyond = Status::LBA_OUT_OF_RANGE.final_().with_more();
        let other = vec![compare((0, 2), 0), then_write((1, 2), 5)];
        assert_eq!(submit(sim, &pair, other).await, [bad; 2], "other blocks");
        let zeroes = half(IoOpcode::WRITE_ZEROES, FLAGS_FUSED_SECOND, (0, 1), 0);
        assert_eq!(submit(sim, &pair, vec![compare((0, 1), 0), zeroes]).await, [bad; 2], "no such operation");
        let end = (crate::common::BLOCKS, 1);
        let failed = Status::FUSED_FAILED;
        assert_eq!(submit(sim, &pair, vec![compare(end, 0), then_write((0, 1), 5)]).await, [beyond, failed]);
        assert_eq!(submit(sim, &pair, vec![compare((0, 1), 0), then_write(end, 5)]).await, [failed, beyond]);
        assert_eq!(value(sim, drive, 0, 1).await, 0);
    });
}

/// Two hosts count by compare and write on blocks of several units, while others overwrite them: every success compared
/// exactly the data that it replaced.
#[test]
fn no_command_comes_between_comparison_and_write() {
    for buffer in [BufferMode::Capacitor, BufferMode::Volatile] {
        with(ControllerConfig { buffer, ..config() }, async |sim, drive| {
            let (pairs, blocks) = ([Pair::new(sim, drive, 1, 64), Pair::new(sim, drive, 2, 64)], (4, 20));
            let mut current = 0;
            for round in 0..30u8 {
                // Both try to go from the same value, at the same time.
                let (from, to) = (current, [2 * round + 1, 2 * round + 2]);
                for (pair, to) in pairs.iter().zip(to) {
                    [compare(blocks, from), then_write(blocks, to)].into_iter().for_each(|(entry, mem)| {
                        pair.put(entry, mem);
                    });
                    pair.ring();
                }
                sim.sleep(LONG).await;
                let statuses = pairs.each_ref().map(|pair| {
                    let posted: Vec<_> = std::iter::from_fn(|| pair.reap()).map(|posted| posted.entry).collect();
                    pair.release();
                    assert_eq!(posted.len(), 2);
                    posted[1].status()
                });
                let winners: Vec<usize> = (0..2).filter(|pair| statuses[*pair].is_success()).collect();
                assert_eq!(winners.len(), 1, "round {round}: exactly one has won: {statuses:?}");
                current = to[winners[0]];
                assert_eq!(value(sim, drive, 4, 20).await, current, "round {round}");
            }
        });
    }
}

/// Each half is admitted separately: a write-protected namespace rejects only the write.
#[test]
fn the_half_that_is_refused_is_blamed() {
    with(config(), async |sim, drive| {
        let (admin, pair) = (host(sim, drive, QueueId::ADMIN), Pair::new(sim, drive, 1, 32));
        let set = SubmissionEntry::set_features(feature::WRITE_PROTECTION, 1);
        let set = SubmissionEntry { nsid: 1.into(), ..set };
        assert!(admin.execute(set, HostMem::none()).await.unwrap().status.is_success());
        let refused = [Status::FUSED_FAILED, Status::NAMESPACE_WRITE_PROTECTED];
        let ended = submit(sim, &pair, vec![compare((0, 1), 0), then_write((0, 1), 5)]).await;
        assert_eq!([ended[0].meaning(), ended[1].meaning()], refused);
        let alone = half(IoOpcode::COMPARE, 0, (0, 1), 0);
        assert_eq!(submit(sim, &pair, vec![alone]).await, [Status::SUCCESS]);
    });
}
