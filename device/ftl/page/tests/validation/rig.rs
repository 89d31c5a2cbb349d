//! An FTL on its media, driven directly: no controller, no link, no commands.

use std::rc::Rc;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::policy::{
    All, AllocationPolicy, CostBenefit, GcScheme, Greedy, OwnerSource, StripeOrder, Striped, VictimPolicy,
};
use nandscape_device_ftl_core::{Extent, FirmwareTimes, Ftl, RandomWrites, Stats};
use nandscape_device_ftl_page::{GcConfig, PageFtl, PageFtlConfig, Policies, WearConfig};
use nandscape_device_media::{Aging, BlockId, Cell, Features, Media, OpCounts, Priority, Registers, StoreKind, UnitId};
use nandscape_device_rig::TestFlash;
use nandscape_drive::Breakdown;
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Wait};

use super::theory::erased_blocks;

/// Bytes of a mapping unit in all tests here.
pub(crate) const UNIT: u32 = 4_096;
/// Sectors of a mapping unit.
pub(crate) const UNIT_SECTORS: u32 = UNIT / 512;

/// The seed of tests that draw at random, to be changed by the environment.
pub(crate) fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// The parameters of a rig.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Channels, dies of each, planes of each.
    pub(crate) planes: (u32, u32, u32),
    pub(crate) blocks_per_plane: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) units_per_page: u32,
    pub(crate) logical_units: u32,
    pub(crate) buffer_units: u32,
    pub(crate) scheme: GcScheme,
    pub(crate) owner: OwnerSource,
    pub(crate) copyback: bool,
    pub(crate) copyback_ecc: bool,
    pub(crate) preempt_above: Option<u32>,
    pub(crate) cell: Cell,
    pub(crate) features: Features,
    pub(crate) batch: Option<u32>,
    pub(crate) gc_free_blocks: u32,
    pub(crate) cost_benefit: bool,
    pub(crate) wear: WearConfig,
    pub(crate) allocation: StripeOrder,
    pub(crate) registers: Registers,
    pub(crate) factory_bad: u32,
    pub(crate) aging: Option<Aging>,
    pub(crate) store: StoreKind,
    pub(crate) priority: Priority,
    pub(crate) seed: u64,
    pub(crate) spurious_polls: bool,
}

impl Setup {
    pub(crate) fn new(planes: (u32, u32, u32), blocks_per_plane: u32, pages_per_block: u32) -> Setup {
        Setup {
            planes,
            blocks_per_plane,
            pages_per_block,
            units_per_page: 1,
            logical_units: 0,
            buffer_units: 4 * planes.0 * planes.1 * planes.2,
            scheme: GcScheme::Nothing,
            owner: OwnerSource::Table,
            copyback: false,
            copyback_ecc: false,
            preempt_above: None,
            cell: Cell::Slc,
            features: Features::default(),
            batch: None,
            gc_free_blocks: 2,
            cost_benefit: false,
            wear: WearConfig { dynamic: true, static_threshold: 0 },
            allocation: StripeOrder::ChannelDiePlane,
            registers: Registers::Single,
            factory_bad: 0,
            aging: None,
            store: StoreKind::None,
            priority: Priority::Fifo,
            seed: seed(),
            spurious_polls: false,
        }
    }

    pub(crate) fn plane_count(&self) -> u32 {
        self.planes.0 * self.planes.1 * self.planes.2
    }

    pub(crate) fn units_per_block(&self) -> u32 {
        self.pages_per_block * self.units_per_page
    }

    /// Units of a block programmed to fill a page, on average: each victim's last page is as likely filled by any number
    /// of units.
    pub(crate) fn padding(&self) -> f64 {
        f64::from(self.units_per_page - 1) / 2.0
    }

    /// The same with a logical space that fills the given share of the blocks that hold data or garbage, under greedy
    /// cleaning by collectors that keep up with the host.
    pub(crate) fn filled(mut self, fill: f64) -> Setup {
        let blocks = f64::from(self.blocks_per_plane - self.factory_bad) - erased_blocks(fill, self.gc_free_blocks);
        let units = f64::from(self.plane_count() * self.units_per_block()) * blocks;
        self.logical_units = (units * fill).round() as u32;
        self
    }
}

/// An FTL on its media.
pub(crate) struct Rig {
    pub(crate) executor: Executor,
    pub(crate) sim: Sim,
    pub(crate) media: Rc<Media>,
    pub(crate) ftl: Rc<PageFtl>,
    pub(crate) setup: Setup,
}

impl Rig {
    pub(crate) fn new(setup: &Setup) -> Rig {
        let (channels, dies, planes) = setup.planes;
        let flash = TestFlash { channels, dies, planes, ..TestFlash::default() };
        Rig::with_allocation(setup, Box::new(Striped::new(&flash.geometry(), setup.allocation)))
    }

    /// A rig that writes where `allocation` chooses.
    pub(crate) fn with_allocation(setup: &Setup, allocation: Box<dyn AllocationPolicy>) -> Rig {
        let executor = if setup.spurious_polls { Executor::with_spurious_polls() } else { Executor::new() };
        let sim = executor.sim();
        let flash = TestFlash {
            channels: setup.planes.0,
            dies: setup.planes.1,
            planes: setup.planes.2,
            blocks: setup.blocks_per_plane,
            pages: setup.pages_per_block,
            units_per_page: setup.units_per_page,
            cell: setup.cell,
            read: vec![Span::from_us(40)],
            program: vec![Span::from_us(200)],
            registers: setup.registers,
            features: setup.features.clone(),
            store: setup.store,
            factory_bad: setup.factory_bad,
            aging: setup.aging.clone(),
            seed: Seed::new(setup.seed).child("media"),
            ..TestFlash::default()
        };
        let media = flash.media(&sim);
        let ftl = PageFtl::new(&sim, media.clone(), setup.ftl(), setup.policies(allocation))
            .expect("memory for a small drive");
        Rig { executor, sim, media, ftl, setup: setup.clone() }
    }

    /// Runs `work` to its end, and reports whether the model stalls.
    pub(crate) fn run<T>(&mut self, work: impl Future<Output = T>) -> T {
        let setup = &self.setup;
        self.executor.block_on(work).unwrap_or_else(|stalled| panic!("{stalled}: {setup:?}"))
    }

    /// Writes units one after the other, as fast as the write buffer takes them.
    pub(crate) fn write_units(&mut self, lpns: impl Iterator<Item = u32>) {
        let ftl = self.ftl.clone();
        self.run(async move {
            for lpn in lpns {
                let extent = unit_extent(lpn);
                let reservation = ftl.reserve(extent, &mut Wait::default()).await;
                ftl.accept(extent, None, reservation, None);
            }
        });
    }

    /// Deallocates units one after the other.
    pub(crate) fn deallocate(&mut self, lpns: std::ops::Range<u32>) {
        let ftl = self.ftl.clone();
        self.run(async move {
            for lpn in lpns {
                ftl.deallocate(unit_extent(lpn), &mut Breakdown::new()).await.unwrap();
            }
        });
    }

    /// Writes every unit once, in order.
    pub(crate) fn fill(&mut self) {
        self.write_units(0..self.setup.logical_units);
    }

    /// Overwrites units drawn uniformly; returns the counts meanwhile.
    pub(crate) fn overwrite(&mut self, count: u64, rng: &mut Rng) -> (Stats, OpCounts) {
        let logical = u64::from(self.setup.logical_units);
        let before = (self.ftl.stats(), self.media.counts());
        self.write_units((0..count).map(|_| rng.below(logical) as u32));
        (self.ftl.stats().since(&before.0), self.media.counts().since(&before.1))
    }

    /// Waits until everything accepted is on flash, and the collectors rest.
    pub(crate) fn settle(&mut self) {
        let (ftl, sim) = (self.ftl.clone(), self.sim.clone());
        self.run(async move {
            if let Some(settling) = ftl.flush() {
                settling.settled().await.unwrap();
            }
            sim.sleep(Span::from_ns(10_000_000_000)).await;
        });
    }

    /// Where the data of each unit is, as reads find it; `None` where a read touches no flash.
    pub(crate) fn places(&self) -> Vec<Option<UnitId>> {
        let place = |lpn| {
            let unit = self.ftl.flash_unit(Lpn(lpn))?;
            assert_eq!(self.media.tag(unit), lpn, "the unit that is read holds the data");
            Some(unit)
        };
        (0..self.setup.logical_units).map(place).collect()
    }

    /// How many current units each block holds, by where reads find them.
    pub(crate) fn valid_counts(&self) -> Vec<u32> {
        let geometry = self.media.geometry();
        let mut counts = vec![0; geometry.blocks() as usize];
        for unit in self.places().into_iter().flatten() {
            let BlockId(block) = geometry.block_of(geometry.page_of(unit));
            counts[block as usize] += 1;
        }
        counts
    }

    /// Asserts the FTL's invariants.
    pub(crate) fn check(&self) {
        self.ftl.check().unwrap_or_else(|wrong| panic!("{wrong}: {:?}", self.setup));
    }
}

impl Setup {
    fn ftl(&self) -> PageFtlConfig {
        PageFtlConfig {
            logical_units: self.logical_units,
            buffer_units: self.buffer_units,
            priority: self.priority,
            gc: GcConfig {
                scheme: self.scheme,
                owner: self.owner,
                copyback: self.copyback,
                copyback_ecc: self.copyback_ecc,
                batch: self.batch,
                free_blocks: self.gc_free_blocks,
                preempt_above: self.preempt_above,
                free_in_window: 4,
                free_in_long_window: 4,
            },
            wear: self.wear,
            firmware: FirmwareTimes::default(),
            placement: Default::default(),
            writes_end_in_buffer: false,
            rain: None,
        }
    }

    fn policies(&self, allocation: Box<dyn AllocationPolicy>) -> Policies {
        let victim: Box<dyn VictimPolicy> = if self.cost_benefit { Box::new(CostBenefit) } else { Box::new(Greedy) };
        Policies {
            allocation,
            victim,
            admission: Box::new(All),
            buffer: None,
            read: None,
            patrol: None,
            stripes: Default::default(),
        }
    }
}

/// The sectors of one unit.
pub(crate) fn unit_extent(lpn: u32) -> Extent {
    Extent { start: u64::from(lpn) * u64::from(UNIT_SECTORS), sectors: UNIT_SECTORS }
}

/// Units programmed for each unit the host wrote, as the contract defines write amplification.
pub(crate) fn waf(stats: &Stats) -> f64 {
    stats.programmed_units() as f64 / (stats.host_bytes as f64 / f64::from(UNIT))
}
