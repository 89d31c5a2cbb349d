//! Writes and Write Uncorrectable that are under way at the same time on the same units, cut at random operations. Each
//! sector holds what the last ended command on it left, or what a later one left.
//!
//! Left out: deallocations, whose instant within the command is not known.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::{Extent, Ftl, RandomWrites, Unreadable};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

use super::kinds::Setup;
use super::rig::{Cut, Rig, UNIT_SECTORS, units};
use super::seeds::{Watch, each};
use crate::ox_block::mistakes::{Mistake, make};

/// Units that commands access.
const UNITS: u32 = 4;
const SECTORS: u64 = (UNITS * UNIT_SECTORS) as u64;
const SECTOR: usize = 512;
/// Commands at a time.
const TASKS: u64 = 4;
const ROUNDS: u64 = 6;

/// Of each sector, its contents in the order in which the drive has taken them, each with whether its command has ended; `None`
/// cannot be read.
struct Book(Vec<Vec<(Option<u32>, bool)>>);

impl Book {
    fn taken(&mut self, extent: Extent, content: Option<u32>) -> Vec<usize> {
        let sectors = &mut self.0[extent.start as usize..extent.end() as usize];
        sectors.iter_mut().for_each(|sector| sector.push((content, false)));
        sectors.iter().map(|sector| sector.len() - 1).collect()
    }

    fn ended(&mut self, extent: Extent, numbers: &[usize]) {
        let sectors = self.0[extent.start as usize..extent.end() as usize].iter_mut();
        sectors.zip(numbers).for_each(|(sector, number)| sector[*number].1 = true);
    }

    /// A sector holds this after a power cut.
    fn found(&mut self, sector: usize, content: Option<u32>) -> Result<(), String> {
        let contents = &mut self.0[sector];
        let first = contents.iter().rposition(|(_, has_ended)| *has_ended).expect("the first one has");
        if !contents[first..].iter().any(|(may, _)| *may == content) {
            return Err(format!("sector {sector} holds {content:?}, and may hold {:?}", &contents[first..]));
        }
        *contents = vec![(content, true)];
        Ok(())
    }
}

struct Run {
    sim: Sim,
    rig: Rig,
    book: RefCell<Book>,
    version: Cell<u32>,
    left: Cell<u64>,
    ended: Signal,
}

impl Run {
    async fn step(&self, rng: &mut Rng) -> Result<(), Cut> {
        let sectors = 1 + rng.below(2 * u64::from(UNIT_SECTORS));
        let extent = Extent { start: rng.below(SECTORS - sectors), sectors: sectors as u32 };
        let taken = |content| self.book.borrow_mut().taken(extent, content);
        let mut numbers = Vec::new();
        if rng.below(3) == 0 {
            // It takes effect when it is first polled, since the drive is in service.
            numbers = taken(None);
            self.rig.until_cut(self.rig.ftl.spoil(extent, &mut Breakdown::new())).await?;
        } else {
            self.version.set(self.version.get() + 1);
            let version = self.version.get();
            let bytes = version.to_le_bytes().repeat(extent.bytes() as usize / 4);
            self.rig.write(extent, &bytes, true, || numbers = taken(Some(version))).await?;
        }
        self.book.borrow_mut().ended(extent, &numbers);
        self.sim.sleep(Span::from_us(rng.below(300))).await;
        Ok(())
    }

    /// Commands, up to a power cut.
    async fn load(self: &Rc<Run>, seed: Seed) {
        self.left.set(TASKS);
        for task in 0..TASKS {
            let (run, mut rng) = (self.clone(), seed.nth(task).rng());
            self.sim.spawn(async move {
                while run.step(&mut rng).await.is_ok() {}
                run.left.set(run.left.get() - 1);
                run.ended.notify();
            });
        }
        while self.left.get() > 0 {
            self.ended.changed().await;
        }
    }

    async fn check(&self) -> Result<(), String> {
        self.rig.ftl.check()?;
        for sector in 0..SECTORS {
            let read = self.rig.read(Extent { start: sector, sectors: 1 }).await.map_err(|Cut| "a cut".to_owned())?;
            let content = match read {
                Ok(bytes) if bytes.chunks_exact(4).all(|chunk| chunk == &bytes[..4]) && bytes.len() == SECTOR => {
                    Some(u32::from_le_bytes(*bytes.first_chunk().expect("512 bytes")))
                }
                Err(error) if error.why == Unreadable::Lost => None,
                other => return Err(format!("sector {sector}: {other:?}")),
            };
            self.book.borrow_mut().found(sector as usize, content)?;
        }
        Ok(())
    }
}

fn run(setup: &Setup, seed: u64, watch: &Watch) -> Result<u32, String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, setup, seed, watch.begin(&sim, setup));
    let book = RefCell::new(Book(vec![vec![(Some(0), true)]; SECTORS as usize]));
    let (version, left, ended) = (Cell::new(0), Cell::new(0), Signal::new(&sim));
    let run = Rc::new(Run { sim, rig, book, version, left, ended });
    let work = async {
        run.rig.ftl.in_service().await;
        for round in 0..ROUNDS {
            let mut rng = Seed::new(seed).child("cuts").nth(round).rng();
            let fault = format!("power_cut nth={} torn=any", 5 + rng.below(60));
            run.rig.media.faults().add(fault.parse().expect("a rule"));
            run.load(Seed::new(seed).nth(round)).await;
            while !run.rig.try_to_recover().await {}
            run.check().await.map_err(|wrong| format!("round {round}: {wrong}"))?;
        }
        Ok(run.rig.media.power_cuts())
    };
    executor.block_on_within(work, 20_000_000).map_err(|unended| unended.to_string())?
}

fn kinds() -> [(&'static str, Setup); 3] {
    let paged = Setup::paged().through();
    [("through", Setup::small().through()), ("paged", paged), ("capacitors", Setup::small().capacitors())]
}

#[test]
fn commands_on_one_unit_at_a_time_lose_nothing() {
    let cuts = each("commands_on_one_unit", 1..=10, &kinds(), run);
    assert!(cuts.iter().all(|cuts| *cuts >= ROUNDS), "{cuts:?}");
}

#[test]
fn a_write_uncorrectable_that_does_not_wait_for_the_data_beside_it_is_noticed() {
    make(Some(Mistake::SpoilNotAwaited));
    let setup = Setup::small().through();
    let noticing = (1..40).find(|seed| run(&setup, *seed, &Watch::default()).is_err());
    make(None);
    let seed = noticing.expect("a run notices it");
    run(&setup, seed, &Watch::default())
        .unwrap_or_else(|other| panic!("seed {seed}, without the mistake too: {other}"));
}

/// The shortest case: a sector is written, another of its unit is made unreadable, and power is cut when that has ended.
#[test]
fn sectors_made_unreadable_beside_a_write_under_way_stay_so_after_a_cut() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &Setup::small().through(), 1, None);
    let ended = executor.block_on_within(
        async {
            rig.write(units(3, 1), &[7; 4_096], true, || ()).await.expect("no cut");
            let one = Extent { start: 24, sectors: 1 };
            let room = rig.ftl.reserve(one, &mut nandscape_sim::Wait::default()).await;
            let data = HostMem::from_bytes(&[8; SECTOR]);
            let write = rig.ftl.accept(one, Some(&data), room, Some(nandscape_device_ftl_core::ftl::Milestone::Flash));
            let marked = Extent { start: 28, sectors: 2 };
            rig.ftl.spoil(marked, &mut Breakdown::new()).await;
            rig.media.cut_power(Span::from_us(1));
            drop(write);
            while !rig.try_to_recover().await {}
            let read = rig.read(marked).await.expect("no cut");
            assert_eq!(read.map_err(|error| error.why), Err(Unreadable::Lost));
        },
        1_000_000,
    );
    ended.expect("it ends");
}
