//! Reads against a model map: a version number for each sector.
//!
//! Several actors read, write, trim and flush a tiny drive at once, under constant collection. A write counts from
//! the moment it is accepted, a trim from the call. A read sees the state at its lookup, however long its page then
//! takes. Every second drive is written and read with metadata. Drives, collectors and loads are drawn from a seed,
//! which every message names.

use nandscape_device_ftl_core::RandomWrites;
use nandscape_device_ftl_core::policy::{GcScheme, OwnerSource};
use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ftl_core::ftl::Milestone;
use nandscape_device_ftl_core::{Destination, Extent, Ftl, ReadError, Reader, Unreadable};
use nandscape_device_ftl_page::{PageFtl, PageReader, WearConfig};
use nandscape_device_media::{
    Cell, Ecc, Features, Interleaving, Media, PlaneMode, Priority, ProgramUnit, ReadRetry, Registers, StoreKind,
    Suspend,
};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::{Rng, Seed, Sim, Span, Wait};

use super::rig::{Rig, Setup, UNIT_SECTORS, seed, unit_extent};

const SECTOR: usize = 512;
const METADATA: usize = 8;
const CASES: u64 = 48;
const ACTORS: u64 = 6;
const STEPS: u32 = 250;

/// The expected content of the drive.
struct Model {
    /// The version last written to each sector; 0 reads as zeros.
    versions: Vec<u32>,
    /// Whether each unit was written since it was trimmed.
    written: Vec<bool>,
    next: u32,
}

impl Model {
    fn new(units: u32) -> Model {
        Model { versions: vec![0; (units * UNIT_SECTORS) as usize], written: vec![false; units as usize], next: 0 }
    }

    fn sectors(extent: Extent) -> std::ops::Range<usize> {
        extent.start as usize..extent.start as usize + extent.sectors as usize
    }

    /// The units that an extent touches, and whether it covers each.
    fn units(extent: Extent) -> impl Iterator<Item = (usize, bool)> {
        let per_unit = UNIT_SECTORS as usize;
        let std::ops::Range { start, end } = Model::sectors(extent);
        (start / per_unit..end.div_ceil(per_unit))
            .map(move |unit| (unit, start <= unit * per_unit && (unit + 1) * per_unit <= end))
    }

    /// Writes a new version, and returns its bytes.
    fn write(&mut self, extent: Extent) -> Vec<u8> {
        self.next += 1;
        self.versions[Model::sectors(extent)].fill(self.next);
        Model::units(extent).for_each(|(unit, _)| self.written[unit] = true);
        self.bytes(extent)
    }

    /// Trims the units covered.
    fn trim(&mut self, extent: Extent) {
        for (unit, _) in Model::units(extent).filter(|(_, covered)| *covered) {
            self.written[unit] = false;
            let first = unit * UNIT_SECTORS as usize;
            self.versions[first..first + UNIT_SECTORS as usize].fill(0);
        }
    }

    /// The first sector of an extent in a unit that is not mapped.
    fn first_hole(&self, extent: Extent) -> Option<u64> {
        let (unit, _) = Model::units(extent).find(|(unit, _)| !self.written[*unit])?;
        Some((unit as u64 * u64::from(UNIT_SECTORS)).max(extent.start))
    }

    /// The result of a read: each sector filled with its number and version.
    fn bytes(&self, extent: Extent) -> Vec<u8> {
        let sector = |sector: usize| match self.versions[sector] {
            0 => vec![0; SECTOR],
            version => [(sector as u32).to_le_bytes(), version.to_le_bytes()].concat().repeat(SECTOR / 8),
        };
        Model::sectors(extent).flat_map(sector).collect()
    }

    /// The metadata that a read gives.
    fn metadata(&self, extent: Extent) -> Vec<u8> {
        let sector = |sector: usize| match self.versions[sector] {
            0 => [0; METADATA],
            version => (u64::from(version) << 32 | sector as u64 ^ 0x5a5a).to_le_bytes(),
        };
        Model::sectors(extent).flat_map(sector).collect()
    }
}

/// Memory only, without a link.
#[derive(Clone)]
struct To {
    mem: HostMem,
    metadata: Option<HostMem>,
    rejects_unmapped: bool,
}

impl To {
    fn new(mem: &HostMem, metadata: Option<&HostMem>) -> To {
        To { mem: mem.clone(), metadata: metadata.cloned(), rejects_unmapped: false }
    }
}

impl Destination for To {
    fn mem(&self) -> &HostMem {
        &self.mem
    }

    fn metadata(&self) -> Option<&HostMem> {
        self.metadata.as_ref()
    }

    fn rejects_unmapped(&self) -> bool {
        self.rejects_unmapped
    }

    async fn deliver(&self, _: u64, _: &mut Breakdown) {}
}

/// One of several concurrent actors.
struct Actor {
    sim: Sim,
    ftl: Rc<PageFtl>,
    reader: Rc<PageReader<To>>,
    media: Rc<Media>,
    model: Rc<RefCell<Model>>,
    rng: Rng,
    with_metadata: bool,
    /// Names the case in messages.
    case: Rc<str>,
}

impl Actor {
    async fn work(mut self) {
        for _ in 0..STEPS {
            let extent = self.extent();
            match self.rng.below(16) {
                0..7 => self.write(extent).await,
                7..13 => self.read(extent).await,
                13 => self.trim(extent).await,
                14 => self.sim.sleep(Span::from_ns(self.rng.below(2_000_000))).await,
                _ => self.flush_sometimes().await,
            }
        }
    }

    /// Half of the time within a few units, so that writes meet in the buffer and on their way; of any alignment.
    fn extent(&mut self) -> Extent {
        let sectors = self.ftl.sectors();
        let most = self.ftl.max_reserve().min(3 * UNIT_SECTORS).into();
        let within = if self.rng.chance(0.5) { sectors } else { sectors.min(40) };
        let start = self.rng.below(within);
        let length = (1 + self.rng.below(most)).min(sectors - start);
        match self.rng.chance(0.5) {
            true => Extent { start, sectors: length as u32 },
            false => unit_extent((start / u64::from(UNIT_SECTORS)) as u32),
        }
    }

    async fn write(&mut self, extent: Extent) {
        let reservation = self.ftl.reserve(extent, &mut Wait::default()).await;
        let bytes = self.model.borrow_mut().write(extent);
        let milestone = if self.rng.chance(0.2) { Milestone::Register } else { Milestone::Flash };
        let watch = self.rng.chance(0.1).then_some(milestone);
        let (data, metadata) = (HostMem::from_bytes(&bytes), self.metadata(extent));
        let settling = match self.with_metadata {
            true => self.ftl.offers().metadata.expect("data is kept").accept(
                extent,
                Some(&data),
                &metadata,
                reservation,
                watch,
            ),
            false => self.ftl.accept(extent, Some(&data), reservation, watch),
        };
        if let Some(settling) = settling {
            settling.settled().await.unwrap();
        }
    }

    fn metadata(&self, extent: Extent) -> HostMem {
        HostMem::from_bytes(&self.model.borrow().metadata(extent))
    }

    async fn read(&self, extent: Extent) {
        let metadata = HostMem::from_bytes(&vec![0xaa; extent.sectors as usize * METADATA]);
        let (to, beside) = (self.with_metadata.then_some(&metadata), self.metadata(extent));
        let mem = HostMem::from_bytes(&vec![0xaa; extent.bytes() as usize]);
        let expected = self.model.borrow().bytes(extent);
        self.rejects_holes(extent).await;
        self.reader.read::<()>(extent, &To::new(&mem, to), &mut Breakdown::new()).await.unwrap();
        assert!(mem.to_vec() == expected, "{extent:?} reads something else than what was written: {}", self.case);
        let is_right = !self.with_metadata || metadata.to_vec() == beside.to_vec();
        assert!(is_right, "{extent:?} reads other metadata than was written: {}", self.case);
    }

    /// A read that rejects unmapped units fails, at the first of them, before any time has passed; if there is none it is
    /// not tried.
    async fn rejects_holes(&self, extent: Extent) {
        let hole = self.model.borrow().first_hole(extent);
        if let Some(sector) = hole {
            let to = To { rejects_unmapped: true, ..To::new(&HostMem::none(), None) };
            let failed = self.reader.read::<()>(extent, &to, &mut Breakdown::new()).await;
            let expected = Err(ReadError { sector, why: Unreadable::Unmapped });
            assert_eq!(failed, expected, "{extent:?}: {}", self.case);
        }
    }

    async fn trim(&self, extent: Extent) {
        self.model.borrow_mut().trim(extent);
        self.ftl.deallocate(extent, &mut Breakdown::new()).await.unwrap();
    }

    async fn flush_sometimes(&mut self) {
        if self.rng.chance(0.25)
            && let Some(settling) = self.ftl.flush()
        {
            settling.settled().await.unwrap();
        }
    }
}

/// A tiny drive of any kind, as full as permitted.
fn draw_setup(rng: &mut Rng, case: u64) -> Setup {
    let mut pick = |from: u64, to: u64| (from + rng.below(to - from + 1)) as u32;
    let mut setup = Setup::new((pick(1, 2), pick(1, 2), pick(1, 2)), pick(9, 14), pick(4, 8));
    setup.units_per_page = 1 << pick(0, 2);
    setup.buffer_units = setup.units_per_page * pick(2, 6);
    setup.scheme = GcScheme::ALL[pick(0, 3) as usize].1;
    setup.copyback = pick(0, 1) == 1;
    setup.batch = Some(pick(0, 3)).filter(|batch| *batch > 0);
    setup.gc_free_blocks = pick(2, 3);
    setup.cost_benefit = pick(0, 1) == 1;
    setup.wear = WearConfig { dynamic: pick(0, 1) == 1, static_threshold: pick(0, 1) };
    setup.registers = [Registers::Single, Registers::Double][pick(0, 1) as usize];
    setup.priority = Priority::ALL[pick(0, Priority::ALL.len() as u64 - 1) as usize].1;
    setup.factory_bad = pick(0, 1);
    setup.store = StoreKind::Ram;
    setup.spurious_polls = pick(0, 1) == 1;
    setup.seed = case;
    fill_up(&mut setup, 1, pick(60, 100));
    setup
}

/// The same, with all options of the flash beyond the plain operations.
fn draw_featured_setup(rng: &mut Rng, case: u64) -> Setup {
    let mut setup = draw_setup(rng, case);
    let mut pick = |from: u64, to: u64| (from + rng.below(to - from + 1)) as u32;
    let us = |us: u32| Span::from_us(us.into());
    setup.features = Features {
        command: us(pick(0, 1)),
        planes: PlaneMode::ALL[pick(0, 2) as usize].1,
        program_unit: ProgramUnit::ALL[pick(0, 1) as usize].1,
        interleaving: Interleaving::ALL[pick(0, 1) as usize].1,
        cache_read: pick(0, 1) == 1,
        cache_program: pick(0, 1) == 1,
        ecc: Ecc { time: us(pick(0, 3)), codeword: 2_048, engines: pick(0, 2), pipelined: pick(0, 1) == 1 },
        read_retry: ReadRetry { probability: vec![0.1; pick(0, 2) as usize], time: us(2) },
        suspend: Suspend {
            program: (pick(0, 1) == 1).then_some(us(5)),
            erase: (pick(0, 1) == 1).then_some(us(5)),
            resume: us(pick(0, 3)),
            min_run: us(pick(0, 30)),
            limit: (pick(0, 1) == 1).then_some(2),
        },
    };
    setup.copyback_ecc = pick(0, 1) == 1;
    setup.owner = OwnerSource::ALL[pick(0, 1) as usize].1;
    setup.preempt_above = (pick(0, 1) == 1 && setup.scheme <= GcScheme::Plane).then_some(pick(0, 2));
    let mut pages = if setup.features.planes == PlaneMode::MultiPlane { setup.planes.2 } else { 1 };
    let mut word_line = 1;
    if setup.features.program_unit == ProgramUnit::WordLine {
        (setup.cell, setup.copyback, word_line) = (Cell::Tlc, false, 3);
        setup.pages_per_block = setup.pages_per_block.next_multiple_of(3) + 3;
        pages *= 3;
    }
    setup.buffer_units *= pages;
    fill_up(&mut setup, word_line, pick(60, 90));
    setup
}

/// A plane's garbage is at least a word line of every block, apart from open blocks and the blocks that the collector
/// turns with.
fn fill_up(setup: &mut Setup, word_line: u32, percent: u32) {
    let good = setup.blocks_per_plane - setup.factory_bad;
    let data_pages =
        (good - setup.wear.open_blocks(&Default::default()) - setup.gc_free_blocks) * setup.pages_per_block;
    let garbage_units = good * (word_line * setup.units_per_page - 1);
    let most = setup.plane_count() * (data_pages * setup.units_per_page - garbage_units);
    setup.logical_units = most * percent / 100;
}

#[test]
fn reads_give_what_was_written_under_collection() {
    reads_give_what_was_written(draw_setup);
}

#[test]
fn so_they_do_with_everything_that_flash_can_do() {
    reads_give_what_was_written(draw_featured_setup);
}

fn reads_give_what_was_written(draw: fn(&mut Rng, u64) -> Setup) {
    let (mut moved, mut completed, mut merged, mut wear) = (0, 0, 0, 0);
    for case in 0..CASES {
        let seed_of_case = Seed::new(seed()).child("data").nth(case);
        let setup = draw(&mut seed_of_case.child("setup").rng(), case);
        let text: Rc<str> = format!("NANDSCAPE_TEST_SEED={}, case {case}, {setup:?}", seed()).into();
        let mut rig = Rig::new(&setup);
        let model = Rc::new(RefCell::new(Model::new(setup.logical_units)));
        let reader = Rc::new(rig.ftl.reader());
        let actor = |nth| Actor {
            sim: rig.sim.clone(),
            ftl: rig.ftl.clone(),
            reader: reader.clone(),
            media: rig.media.clone(),
            model: model.clone(),
            rng: seed_of_case.child("actor").nth(nth).rng(),
            with_metadata: case % 2 == 1,
            case: text.clone(),
        };
        let (filler, checker) = (actor(ACTORS), actor(ACTORS + 1));
        let done = Rc::new(std::cell::Cell::new(0));
        let actors: Vec<Actor> = (0..ACTORS).map(actor).collect();
        rig.run(fill(filler));
        for actor in actors {
            let done = done.clone();
            rig.sim.spawn(async move {
                actor.work().await;
                done.set(done.get() + 1);
            });
        }
        // A stalled actor shows by the time left over.
        let sim = rig.sim.clone();
        rig.run(async { sim.sleep(Span::from_ns(600_000_000_000)).await });
        assert_eq!(done.get(), ACTORS, "actors are stuck: {text}");
        rig.check();
        rig.settle();
        rig.check();
        rig.run(read_all(checker));
        let stats = rig.ftl.stats();
        moved += stats.gc_units;
        completed += stats.read_modify_writes;
        merged += stats.buffer_merges;
        wear += stats.wear_units;
    }
    println!("{moved} units moved, {completed} completed from flash, {merged} merged, {wear} moved for wear");
    assert!(moved > 10_000 && completed > 1_000 && merged > 1_000 && wear > 500, "the cases reach every path");
}

async fn fill(mut actor: Actor) {
    let units = actor.model.borrow().written.len() as u32;
    for lpn in 0..units {
        actor.write(unit_extent(lpn)).await;
    }
}

/// Reads every unit, and expects no flash to be read for those that were trimmed.
async fn read_all(actor: Actor) {
    let units = actor.model.borrow().written.len() as u32;
    for extent in (0..units).map(unit_extent) {
        let before = actor.media.counts().reads;
        actor.read(extent).await;
        let reads = actor.media.counts().reads - before;
        let expected = u64::from(actor.model.borrow().first_hole(extent).is_none());
        assert_eq!(reads, expected, "pages read for {extent:?}: {}", actor.case);
    }
}
