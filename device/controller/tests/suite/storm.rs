//! Commands of every kind, halves of fused operations, random bytes, aborts, deletions of queues, resets and power cuts in
//! any order: nothing panics, every command ends once, and the drive's tables agree. `NANDSCAPE_TEST_SEED` sets the first
//! seed; failures print their seed.

use std::cell::Cell;

use crate::common::{BLOCKS, Drive, Pair, config, faulty_drive};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_ftl_core::Ftl;
use nandscape_device_media::StoreKind;
use nandscape_drive::{Controller, HostMem, QueueId};
use nandscape_sim::rng::Rng;
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::io::CopyRange;
use nandscape_wire_nvme::register::{CC, CC_EN};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, SubmissionEntry, feature, log, vendor};
use zerocopy::{FromBytes, IntoBytes};

/// Longer than any command takes.
const LONG: Span = Span::from_ms(500);
const STEPS: u64 = 400;
const SEEDS: u64 = 200;
/// Entries of a queue.
const ENTRIES: u32 = 64;

/// A queue pair, and how many of its commands have not completed.
struct Client {
    pair: Pair,
    outstanding: Cell<u32>,
}

impl Client {
    fn new(sim: &Sim, drive: &Drive, id: u16) -> Client {
        Client { pair: Pair::new(sim, drive, id, ENTRIES), outstanding: Cell::new(0) }
    }

    fn reap(&self) {
        let reaped = self.pair.reap_all().len() as u32;
        let left = self.outstanding.get().checked_sub(reaped);
        self.outstanding.set(left.expect("a command has completed twice"));
    }

    fn submit(&self, commands: Vec<(SubmissionEntry, HostMem)>) {
        self.reap();
        if self.outstanding.get() + commands.len() as u32 >= ENTRIES - 1 {
            return;
        }
        for (entry, mem) in commands {
            self.outstanding.set(self.outstanding.get() + 1);
            self.pair.put(entry, mem);
        }
        self.pair.ring();
    }
}

/// Blocks anywhere, mostly few, rarely beyond the end.
fn blocks(rng: &mut Rng) -> (u64, u32) {
    let most = if rng.chance(0.9) { 200 } else { BLOCKS + 10 };
    let count = if rng.chance(0.8) { 20 } else { 256 };
    (rng.below(most), 1 + rng.below(count) as u32)
}

/// One command, or the two halves of a fused operation.
fn io(rng: &mut Rng) -> Vec<(SubmissionEntry, HostMem)> {
    let (slba, count) = blocks(rng);
    let command = |opcode, flags| {
        let entry = SubmissionEntry { flags, ..SubmissionEntry::blocks(opcode, 1, slba, count) };
        (entry, HostMem::zeroed(count as usize * 512))
    };
    let opcodes = [
        IoOpcode::READ,
        IoOpcode::WRITE,
        IoOpcode::COMPARE,
        IoOpcode::VERIFY,
        IoOpcode::WRITE_ZEROES,
        IoOpcode::WRITE_UNCORRECTABLE,
    ];
    let any = opcodes[rng.below(opcodes.len() as u64) as usize];
    match rng.below(16) {
        0..=2 => vec![command(IoOpcode::COMPARE, 1), command(IoOpcode::WRITE, 2)],
        3 => vec![command(any, 1 + rng.below(2) as u8)],
        4 => vec![command(IoOpcode::COMPARE, 1), command(any, rng.below(4) as u8)],
        5 => {
            let range = CopyRange { slba: slba.into(), nlb_z: ((count - 1) as u16).into(), ..CopyRange::default() };
            vec![(SubmissionEntry::copy(1, rng.below(300), 1, 0), HostMem::from_bytes(range.as_bytes()))]
        }
        6 => vec![(SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none())],
        7 => vec![(
            SubmissionEntry::deallocate(1, 1),
            HostMem::from_bytes(&[0, 0, 0, 0, 16, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]),
        )],
        8 => {
            let mut bytes = [0; 64];
            bytes.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
            vec![(SubmissionEntry::read_from_bytes(&bytes).unwrap(), HostMem::zeroed(rng.below(8_192) as usize))]
        }
        _ => vec![command(any, 0)],
    }
}

fn admin(rng: &mut Rng) -> SubmissionEntry {
    let value = rng.bits() as u32;
    match rng.below(8) {
        0 => SubmissionEntry::set_features(feature::INTERRUPT_COALESCING, value & 0x0307),
        1 => SubmissionEntry::set_features(feature::ARBITRATION, value),
        2 => SubmissionEntry::set_features(feature::TEMPERATURE_THRESHOLD, 250 + value % 100),
        3 => SubmissionEntry::set_features(feature::ASYNC_EVENT_CONFIG, value),
        4 => SubmissionEntry::get_log_page(log::SMART, 0, 512),
        5 => SubmissionEntry::get_log_page(vendor::DRIVE_LOG, 0, 1_024),
        6 => SubmissionEntry::set_features(feature::KEEP_ALIVE_TIMER, 10_000),
        _ => SubmissionEntry { cdw10: (value & 0x3f_0003).into(), ..SubmissionEntry::admin(AdminOpcode::ABORT) },
    }
}

async fn clients(sim: &Sim, drive: &Drive) -> Vec<Client> {
    sim.sleep(LONG).await;
    (0..4).map(|id| Client::new(sim, drive, id)).collect()
}

async fn storm(sim: &Sim, drive: &Drive, rng: &mut Rng) {
    let mut all = clients(sim, drive).await;
    for _ in 0..STEPS {
        let at = rng.below(4) as usize;
        match rng.below(40) {
            0 if at > 0 => {
                drive.delete_queue_pair(QueueId(at as u16)).unwrap();
                sim.sleep(LONG).await;
                all[at] = Client::new(sim, drive, at as u16);
            }
            1 => {
                let cc = drive.register(CC);
                drive.set_register(CC, cc & !CC_EN);
                sim.sleep(Span::from_us(rng.below(300))).await;
                // Weighted or plain round robin from now on.
                drive.set_register(CC, cc & !(0b111 << 11) | (rng.below(2) as u32) << 11 | CC_EN);
                all = clients(sim, drive).await;
            }
            2..=4 => drop(drive.abort(QueueId(at as u16), rng.below(400) as u16)),
            5 => drive.ring_submission(QueueId(rng.below(9) as u16), 64 + rng.below(9) as u16),
            6..=12 => sim.sleep(Span::from_us(rng.below(800))).await,
            13..=16 => all[0].submit(vec![(admin(rng), HostMem::zeroed(4_096))]),
            _ => all[at.max(1)].submit(io(rng)),
        }
    }
    sim.sleep(LONG).await;
    for client in &all {
        client.reap();
        assert_eq!(client.outstanding.get(), 0, "commands of queue {:?} have not ended", client.pair.id);
    }
}

#[test]
fn every_command_ends_once() {
    let first = std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + SEEDS {
        let ended = std::panic::catch_unwind(|| run(seed));
        assert!(ended.is_ok(), "NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}

fn run(seed: u64) {
    let mut rng = Seed::new(seed).rng();
    let buffers = [BufferMode::Capacitor, BufferMode::Volatile, BufferMode::Register, BufferMode::Through];
    let buffer = buffers[rng.below(4) as usize];
    let config = ControllerConfig { buffer, command_slots: 1 + rng.below(40) as u32, ..config() };
    let faults: &[&str] = if rng.chance(0.5) { &["power_cut program off=3ms every=61 count=6"] } else { &[] };
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = faulty_drive(&sim, config, StoreKind::Ram, 32, faults);
    executor.block_on(storm(&sim, &drive, &mut rng)).unwrap();
    drive.subsystem().ftl().check().unwrap();
}
