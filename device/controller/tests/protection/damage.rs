//! Data, metadata and protection information over power cuts, failing programs and erases, and pages that cannot be read.
//! Each block has one content, or several that it may have after a failure; each read that succeeds is checked by the drive
//! and must return one of these, data and metadata of the same write.
//!
//! `NANDSCAPE_TEST_SEED` sets the first seed, `NANDSCAPE_TEST_DRIVES` the number of drives; failures print their seed.

use std::collections::BTreeSet;

use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_ftl_core::Ftl;
use nandscape_device_media::StoreKind;
use nandscape_sim::{Executor, Rng, Seed, Span};
use nandscape_wire_nvme::io::DsmRange;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::common::{Drive, config, faulty_drive};
use crate::draw_shape;
use crate::host::Guest;
use crate::model::{Block, Fields, Shape};

const DRIVES: u64 = 24;
const STEPS: u32 = 600;
/// Sectors in use: three quarters of the drive, written often enough that it collects garbage.
const SECTORS: u64 = 24_576;
/// Bytes of the longest command.
const MOST: u64 = 128 << 10;

const FAULTS: [&str; 10] = [
    "fail program every=70 count=5",
    "fail erase probability=3% count=5",
    "slow by=3ms probability=1%",
    "stuck program timeout=2ms every=150 count=3",
    "power_cut every=211 count=10",
    "power_cut erase off=5ms every=5 count=6",
    "power_cut program probability=1% count=10",
    "uncorrectable probability=1%",
    "uncorrectable page=1-2 probability=10% count=40",
    "stuck read timeout=2ms probability=1%",
];

/// The permitted contents of a block.
#[derive(Clone)]
struct Contents {
    /// Writes by number; 0 is no write. It has one entry until a failure.
    now: BTreeSet<u64>,
    /// Writes that a power cut may restore, because later ones were not known to be on flash.
    before: BTreeSet<u64>,
}

/// A host, and its record of the drive.
struct Damaged {
    guest: Guest,
    drive: Drive,
    rng: Rng,
    blocks: Vec<Contents>,
    next: u64,
    is_volatile: bool,
    failed: u32,
}

impl Damaged {
    fn shape(&self) -> Shape {
        self.guest.shape
    }

    /// Fields with which every write is checked or given protection information, and every read is checked.
    fn fields(&self, slba: u64, acts: bool) -> Fields {
        // With type 3, no reference tag is checked, and all blocks of a command have the same.
        let (checks, reference) = if self.shape().kind == 3 { (0b110, 0xabcd) } else { (0b111, slba as u32) };
        let prinfo = if acts { 8 | checks } else { checks };
        Fields { prinfo, reference, application: 0x1234, mask: 0xffff }
    }

    /// The block `lba` as write `number` left it.
    fn content(&self, number: u64, lba: u64) -> Block {
        let shape = self.shape();
        if number == 0 {
            return shape.blank();
        }
        let mut block = Block { data: vec![number as u8; shape.data], metadata: vec![!number as u8; shape.metadata] };
        block.data[..8].copy_from_slice(&number.to_le_bytes());
        if shape.kind > 0 {
            shape.protect(self.fields(lba, false), 0, &mut block);
        }
        block
    }

    fn range(&mut self, unit: u64) -> (u64, u64) {
        let most = MOST / (self.shape().data + self.shape().metadata) as u64;
        let longest = if self.rng.chance(0.4) { 8 } else { most };
        let count = 1 + self.rng.below(longest);
        let count = count.next_multiple_of(unit).min(most / unit * unit);
        (self.rng.below((self.blocks.len() as u64 - count) / unit) * unit, count)
    }

    fn cuts(&self) -> u32 {
        self.drive.subsystem().ftl().media().power_cuts()
    }

    async fn step(&mut self) {
        let cuts = self.cuts();
        match self.rng.below(20) {
            0..11 => self.write().await,
            11..17 => {
                let (slba, count) = self.range(1);
                self.read(slba, count).await;
            }
            17 => self.deallocate().await,
            18 => self.flush().await,
            _ => {
                let time = Span::from_us(self.rng.below(3_000));
                self.guest.pause(time).await;
            }
        }
        if self.cuts() != cuts && self.is_volatile {
            self.blocks.iter_mut().for_each(|block| block.now.extend(&block.before));
        }
    }

    async fn write(&mut self) {
        let (slba, count) = self.range(1);
        self.next += 1;
        let acts = self.rng.chance(0.5);
        let blocks: Vec<Block> = (slba..slba + count).map(|lba| self.content(self.next, lba)).collect();
        let ended = self.guest.send(IoOpcode::WRITE, slba, self.fields(slba, acts), &blocks).await;
        self.changed(slba, count, self.next, ended);
    }

    async fn deallocate(&mut self) {
        let (slba, count) = self.range(8);
        let range = DsmRange { slba: slba.into(), blocks: (count as u32).into(), ..DsmRange::default() };
        let ended = self.guest.with_list(SubmissionEntry::deallocate(1, 1), range.as_bytes()).await;
        self.changed(slba, count, 0, ended);
    }

    /// A command has changed blocks, or may have.
    fn changed(&mut self, slba: u64, count: u64, number: u64, ended: Result<(), Status>) {
        let may_be = [Status::READ_ONLY_RANGE, Status::WRITE_FAULT, Status::ABORTED_POWER_LOSS];
        assert!(ended.is_ok_and(|()| true) || ended.is_err_and(|status| may_be.contains(&status)), "{ended:?}");
        // A drive that can no longer write may lose accepted data.
        self.is_volatile |= ended == Err(Status::WRITE_FAULT);
        self.failed += u32::from(ended.is_err());
        for block in &mut self.blocks[slba as usize..(slba + count) as usize] {
            block.before.extend(&block.now);
            if ended.is_ok() {
                block.now.clear();
            }
            block.now.insert(number);
        }
    }

    async fn read(&mut self, slba: u64, count: u64) {
        let acts = self.rng.chance(0.3);
        match self.guest.fetch(slba, count, self.fields(slba, acts)).await {
            Ok(found) => {
                for (lba, found) in (slba..).zip(found) {
                    self.check(lba, &found);
                }
            }
            Err(Status::UNRECOVERED_READ_ERROR | Status::ABORTED_POWER_LOSS) => self.failed += 1,
            Err(status) => panic!("a read of block {slba} ended with {status}"),
        }
    }

    /// Checks a read block: if the host gets no metadata, only the data counts.
    fn check(&mut self, lba: u64, found: &Block) {
        let contents = &self.blocks[lba as usize].now;
        let is = |number: &u64| {
            let block = self.content(*number, lba);
            block.data == found.data && (found.metadata.is_empty() || block.metadata == found.metadata)
        };
        let number = contents.iter().copied().find(|number| is(number));
        let number = number.unwrap_or_else(|| panic!("block {lba} holds none of the writes {contents:?}"));
        self.blocks[lba as usize].now = BTreeSet::from([number]);
    }

    async fn flush(&mut self) {
        let flush = SubmissionEntry::io(IoOpcode::FLUSH, 1);
        if self.guest.command(flush).await.is_ok() {
            self.blocks.iter_mut().for_each(|block| block.before.clear());
        }
    }

    async fn read_all(&mut self) {
        let step = MOST / 2 / self.shape().data as u64;
        for slba in (0..self.blocks.len() as u64).step_by(step as usize) {
            let cuts = self.cuts();
            self.read(slba, step.min(self.blocks.len() as u64 - slba)).await;
            if self.cuts() != cuts && self.is_volatile {
                self.blocks.iter_mut().for_each(|block| block.now.extend(&block.before));
            }
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("it is a number"))
}

#[test]
fn data_and_metadata_stay_together_over_damage() {
    let first = number("NANDSCAPE_TEST_SEED").unwrap_or(1);
    let (mut failed, mut cuts) = (0, 0);
    for seed in first..first + number("NANDSCAPE_TEST_DRIVES").unwrap_or(DRIVES) {
        let ended = std::panic::catch_unwind(|| damage(seed));
        let (more_failed, more_cuts) = ended.unwrap_or_else(|_| panic!("NANDSCAPE_TEST_SEED={seed} shows it at once"));
        (failed, cuts) = (failed + more_failed, cuts + more_cuts);
    }
    assert!(failed > 0 && cuts > 0, "{failed} commands have failed, and power was cut {cuts} times");
}

fn damage(seed: u64) -> (u32, u32) {
    let mut rng = Seed::new(seed).child("damage").rng();
    let shape = draw_shape(&mut rng);
    let (name, buffer) = BufferMode::ALL[rng.below(4) as usize];
    let faults: Vec<&str> = (0..=rng.below(3)).map(|_| FAULTS[rng.below(10) as usize]).collect();
    println!("NANDSCAPE_TEST_SEED={seed}: {shape:?}, buffer {name}, {faults:?}");
    let mut executor = Executor::new();
    let sim = executor.sim();
    let config = ControllerConfig { buffer, ..config() };
    let drive = faulty_drive(&sim, config, StoreKind::Ram, 20 + rng.below(12) as u32, &faults);
    let ended = executor.block_on(async {
        let guest = Guest::new(&sim, &drive, shape).await;
        let none = Contents { now: BTreeSet::from([0]), before: BTreeSet::new() };
        let blocks = vec![none; (SECTORS * 512 / shape.data as u64) as usize];
        let is_volatile = matches!(buffer, BufferMode::Volatile | BufferMode::Register);
        let mut damaged = Damaged { guest, drive: drive.clone(), rng, blocks, next: 0, is_volatile, failed: 0 };
        for _ in 0..STEPS {
            damaged.step().await;
        }
        damaged.read_all().await;
        (damaged.failed, damaged.cuts())
    });
    drive.subsystem().ftl().check().unwrap();
    ended.unwrap()
}
