//! Random commands over every format, type and place of protection information, against the model.

use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_sim::{Rng, Seed};
use nandscape_wire_nvme::io::{CopyRange, DEAC, DsmRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::common::{config, with};
use crate::draw_shape;
use crate::host::Guest;
use crate::model::{Block, Fields, Model, Shape};

const SEEDS: u64 = 32;
const STEPS: u32 = 250;
/// Sectors that most commands lie in.
const SECTORS: u64 = 256;

/// A run of commands on one drive.
struct Run {
    guest: Guest,
    model: Model,
    rng: Rng,
    /// How often each status was seen.
    seen: Vec<(&'static str, Status)>,
}

impl Run {
    fn range(&mut self, most: u64) -> (u64, u64) {
        let blocks = SECTORS * 512 / self.model.shape.data as u64;
        let slba = self.rng.below(blocks);
        (slba, 1 + self.rng.below(most.min(blocks - slba)))
    }

    /// Fields that fit blocks from `slba` on if all writes had the same tags, and often wrong ones.
    fn fields(&mut self, slba: u64) -> Fields {
        let rng = &mut self.rng;
        let is_odd = rng.chance(0.15);
        let prinfo = if rng.chance(0.3) { 0 } else { rng.below(16) as u8 };
        // With type 3, none is checked.
        let prinfo = if self.model.shape.kind == 3 && !is_odd { prinfo & !1 } else { prinfo };
        Fields {
            prinfo,
            reference: (slba as u32).wrapping_add(u32::from(is_odd && rng.chance(0.5))),
            application: if rng.chance(0.1) { rng.bits() as u16 } else { 0x1234 },
            mask: if rng.chance(0.5) { 0xff00 } else { 0xffff },
        }
    }

    /// Blocks of a host: mostly with the right protection information.
    fn blocks(&mut self, count: u64, fields: Fields) -> Vec<Block> {
        let Shape { data, metadata, kind, .. } = self.model.shape;
        let block = |index: usize| {
            let rng = &mut self.rng;
            let mut block = Block { data: vec![rng.bits() as u8; data], metadata: vec![rng.bits() as u8; metadata] };
            block.data[..8].copy_from_slice(&rng.bits().to_le_bytes());
            if kind > 0 && !rng.chance(0.03) {
                self.model.shape.protect(fields, index, &mut block);
            }
            if rng.chance(0.03) {
                // An escape value, or half of one.
                let at = if self.model.shape.is_first { 0 } else { metadata - 8 };
                block.metadata[at + 2..at + if rng.chance(0.5) { 4 } else { 8 }].fill(0xff);
            }
            block
        };
        (0..count as usize).map(block).collect()
    }

    fn expect(&mut self, what: &'static str, ended: Result<(), Status>, expected: Result<(), Status>) {
        assert_eq!(ended, expected, "{what}");
        self.seen.push((what, ended.err().unwrap_or(Status::SUCCESS)));
    }

    async fn step(&mut self) {
        match self.rng.below(16) {
            0..5 => self.write().await,
            5..9 => self.read().await,
            9 | 10 => self.compare().await,
            11 => self.verify().await,
            12 => self.write_zeroes().await,
            13 => self.deallocate().await,
            _ => self.copy().await,
        }
    }

    async fn write(&mut self) {
        let (slba, count) = self.range(12);
        let fields = self.fields(slba);
        let blocks = self.blocks(count, fields);
        let ended = self.guest.send(IoOpcode::WRITE, slba, fields, &blocks).await;
        let expected = self.model.write(slba, fields, blocks);
        self.expect("write", ended, expected);
    }

    async fn read(&mut self) {
        let (slba, count) = self.range(12);
        let fields = self.fields(slba);
        let expected = self.model.read(slba, count, fields);
        let blocks = self.model.read(slba, count, Fields::default()).unwrap();
        let ended = self.guest.read(slba, fields, &blocks).await;
        self.expect("read", ended, expected.map(drop));
    }

    async fn compare(&mut self) {
        let (slba, count) = self.range(12);
        let fields = self.fields(slba);
        let mut blocks = self.model.read(slba, count, Fields::default()).unwrap();
        if self.rng.chance(0.3) {
            let at = self.rng.below(count) as usize;
            let byte = match self.rng.chance(0.5) {
                true => &mut blocks[at].data[3],
                false => &mut blocks[at].metadata[0],
            };
            *byte ^= 4;
        }
        let ended = self.guest.send(IoOpcode::COMPARE, slba, fields, &blocks).await;
        let expected = self.model.compare(slba, fields, &blocks);
        self.expect("compare", ended, expected);
    }

    async fn verify(&mut self) {
        let (slba, count) = self.range(SECTORS);
        let fields = self.fields(slba);
        let ended = self.guest.command(Guest::entry(IoOpcode::VERIFY, slba, count as u32, fields)).await;
        let expected = self.model.read(slba, count, fields).map(drop);
        self.expect("verify", ended, expected);
    }

    async fn write_zeroes(&mut self) {
        let (slba, count) = self.range(32);
        let mut fields = self.fields(slba);
        fields.prinfo &= if self.rng.chance(0.8) { 8 } else { 15 };
        let mut entry = Guest::entry(IoOpcode::WRITE_ZEROES, slba, count as u32, fields);
        if self.rng.chance(0.5) {
            entry.cdw12 = (entry.cdw12.get() | DEAC).into();
        }
        let ended = self.guest.command(entry).await;
        let expected = self.model.write_zeroes(slba, count, fields);
        self.expect("write zeroes", ended, expected);
    }

    /// Whole mapping units.
    async fn deallocate(&mut self) {
        let per_unit = 4_096 / self.model.shape.data as u64;
        let slba = self.rng.below(SECTORS / 8) * per_unit;
        let range = DsmRange { slba: slba.into(), blocks: (per_unit as u32).into(), ..DsmRange::default() };
        self.guest.with_list(SubmissionEntry::deallocate(1, 1), range.as_bytes()).await.unwrap();
        self.model.deallocate(slba, per_unit);
    }

    async fn copy(&mut self) {
        let (ranges, mut total) = (1 + self.rng.below(3), 0);
        let sources: Vec<(u64, u64, Fields)> = (0..ranges)
            .map(|_| {
                let (slba, count) = self.range(6);
                total += count;
                (slba, count, self.fields(slba))
            })
            .collect();
        let prinfo = sources[0].2.prinfo;
        let sources: Vec<_> =
            sources.into_iter().map(|(slba, count, fields)| (slba, count, Fields { prinfo, ..fields })).collect();
        let to = self.rng.below(64);
        let mut write = self.fields(to);
        if self.rng.chance(0.9) {
            write.prinfo = write.prinfo & 7 | prinfo & 8;
        }
        let list: Vec<CopyRange> = sources
            .iter()
            .map(|(slba, count, fields)| CopyRange {
                slba: (*slba).into(),
                nlb_z: (*count as u16 - 1).into(),
                reference_tag: fields.reference.into(),
                application_tag: fields.application.into(),
                application_mask: fields.mask.into(),
                ..CopyRange::default()
            })
            .collect();
        let mut entry = SubmissionEntry::copy(1, to, list.len() as u32, 0);
        let prinfos = u32::from(prinfo) << 12 | u32::from(write.prinfo) << 26;
        entry.cdw12 = (entry.cdw12.get() | prinfos).into();
        entry.cdw14 = write.reference.into();
        entry.cdw15 = (u32::from(write.application) | u32::from(write.mask) << 16).into();
        let ended = self.guest.with_list(entry, list.as_bytes()).await;
        let expected = self.model.copy(to, write, &sources);
        self.expect("copy", ended, expected);
    }
}

#[test]
fn every_command_does_what_the_model_says() {
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("it is a number"));
    let mut seen = std::collections::BTreeMap::<(&str, String), u32>::new();
    for seed in first..first + SEEDS {
        let mut rng = Seed::new(seed).rng();
        let shape = draw_shape(&mut rng);
        println!("NANDSCAPE_TEST_SEED={seed}: {shape:?}");
        let buffer = if seed % 2 == 0 { BufferMode::Capacitor } else { BufferMode::Through };
        with(ControllerConfig { buffer, ..config() }, async |sim, drive| {
            let mut guest = Guest::new(sim, drive, shape).await;
            guest.describes_metadata = rng.chance(0.5);
            let mut run = Run { guest, model: Model::new(shape), rng, seen: Vec::new() };
            for _ in 0..STEPS {
                run.step().await;
            }
            run.seen.iter().for_each(|(what, status)| *seen.entry((what, status.to_string())).or_default() += 1);
        });
    }
    println!("{seen:#?}");
    for what in ["write", "read", "compare", "verify", "copy"] {
        let errors = [Status::GUARD_CHECK, Status::APPLICATION_TAG_CHECK, Status::REFERENCE_TAG_CHECK];
        for status in errors.into_iter().chain([Status::SUCCESS, Status::INVALID_PROTECTION]) {
            assert!(seen.contains_key(&(what, status.to_string())), "{what} has ended with {status}: {seen:?}");
        }
    }
}
