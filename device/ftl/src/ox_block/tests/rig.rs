//! An FTL on its flash, and commands to it.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use crate::ftl::{Milestone, Refusal};
use crate::ox_block::{CheckpointConfig, Layout, OxGcConfig, OxReader};
use crate::registry::Components;
use crate::{Destination, Extent, FirmwareTimes, Ftl, OxBlock, OxBlockConfig, ReadError, Reader, Unreadable};
use nandscape_device_media::{Media, MediaError, Priority, StoreKind};
use nandscape_device_rig::TestFlash;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Executor, Seed, Span, Wait};

/// Sectors of a unit.
pub(super) const UNIT_SECTORS: u32 = 8;

/// What a drive is made of.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) flash: TestFlash,
    pub(super) config: OxBlockConfig,
    /// Whether the write cache and the log survive a power cut in memory.
    pub(super) keeps: bool,
}

impl Setup {
    /// A drive of two channels with two planes each, small enough to be collected after a few hundred writes.
    pub(super) fn small() -> Setup {
        let flash = TestFlash {
            channels: 2,
            planes: 2,
            blocks: 20,
            pages: 8,
            units_per_page: 2,
            erase: Span::from_ms(1),
            store: StoreKind::Ram,
            ..TestFlash::default()
        };
        let config = OxBlockConfig {
            logical_units: 380,
            buffer_units: 24,
            priority: Priority::Fifo,
            firmware: FirmwareTimes::default(),
            transactions: false,
            keeps_log: false,
            waits_for_log: false,
            map_memory: 0,
            checkpoint: CheckpointConfig { interval: Span::from_ms(40), log_pages: 12 },
            gc: OxGcConfig { slots: 1, threshold: 600, target: 900, batch: 2 },
            layout: Layout::Log,
            components: Components::default(),
        };
        Setup { flash, config, keeps: false }
    }

    /// The same, with transactions.
    pub(super) fn transactions(mut self) -> Setup {
        self.config.transactions = true;
        self
    }

    /// A drive whose map is larger than its memory for it.
    pub(super) fn paged() -> Setup {
        let mut setup = Setup::small();
        setup.flash = TestFlash { channels: 1, planes: 4, blocks: 70, units_per_page: 1, ..setup.flash };
        setup.config.logical_units = 1_250;
        setup
    }

    /// The same, on a drive that says it has no volatile cache.
    pub(super) fn through(mut self) -> Setup {
        self.config.waits_for_log = true;
        self
    }

    /// The same, with another layout.
    pub(super) fn layout(mut self, layout: Layout) -> Setup {
        self.config.layout = layout;
        self
    }

    /// The same, with capacitors.
    pub(super) fn capacitors(mut self) -> Setup {
        (self.config.keeps_log, self.keeps) = (true, true);
        self
    }
}

/// An FTL on its flash.
pub(super) struct Rig {
    pub(super) media: Rc<Media>,
    pub(super) ftl: Rc<OxBlock>,
    reader: OxReader<ToMemory>,
    keeps: bool,
    /// Power cuts so far, and a signal of each.
    cuts: Rc<(Cell<u32>, Signal)>,
}

/// Power was cut before a command ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Cut;

#[derive(Clone)]
struct ToMemory(HostMem);

impl Destination for ToMemory {
    fn mem(&self) -> &HostMem {
        &self.0
    }

    fn rejects_unmapped(&self) -> bool {
        false
    }

    async fn deliver(&self, _: u64, _: &mut Breakdown) {}
}

impl Rig {
    pub(super) fn new(executor: &Executor, setup: &Setup, seed: u64) -> Rig {
        let sim = executor.sim();
        let flash = TestFlash { seed: Seed::new(seed).child("media"), ..setup.flash.clone() };
        let media = flash.media(&sim);
        let cuts = Rc::new((Cell::new(0), Signal::new(&sim)));
        let counted = cuts.clone();
        media.on_power_cut(move || {
            counted.0.set(counted.0.get() + 1);
            counted.1.notify();
        });
        let ftl = OxBlock::new(&sim, media.clone(), setup.config);
        Rig { reader: ftl.reader(), media, ftl, keeps: setup.keeps, cuts }
    }

    /// A command, up to its end or the next power cut.
    async fn until_cut<T>(&self, command: impl Future<Output = T>) -> Result<T, Cut> {
        if !self.media.is_powered() {
            return Err(Cut);
        }
        let before = self.cuts.0.get();
        let mut command = pin!(command);
        let mut cut = pin!(self.cuts.1.changed());
        std::future::poll_fn(|context| {
            if self.cuts.0.get() != before {
                return Poll::Ready(Err(Cut));
            }
            if let Poll::Ready(done) = command.as_mut().poll(context) {
                return Poll::Ready(if self.cuts.0.get() == before { Ok(done) } else { Err(Cut) });
            }
            cut.as_mut().poll(context).map(|()| Err(Cut))
        })
        .await
    }

    /// Writes an extent; with `forced`, to flash. Calls `accepted` when the drive has taken it.
    pub(super) async fn write(
        &self,
        extent: Extent,
        bytes: &[u8],
        forced: bool,
        accepted: impl FnOnce(),
    ) -> Result<(), Cut> {
        let work = async {
            let reservation = self.ftl.reserve(extent, &mut Wait::default()).await;
            let mem = HostMem::from_bytes(bytes);
            accepted();
            let watch = forced.then_some(Milestone::Flash);
            match self.ftl.accept(extent, Some(&mem), reservation, watch) {
                Some(settling) => settling.settled().await.map(|_| ()),
                None => Ok(()),
            }
        };
        settle(self.until_cut(work).await)
    }

    /// Writes extents as one transaction; with `forced`, to flash.
    pub(super) async fn write_all(&self, extents: &[Extent], bytes: &[u8], forced: bool) -> Result<(), Cut> {
        let work = async {
            let reservation = self.ftl.reserve_all(extents, &mut Wait::default()).await;
            let watch = forced.then_some(Milestone::Flash);
            match self.ftl.accept_all(extents, Some(&HostMem::from_bytes(bytes)), reservation, watch) {
                Some(settling) => settling.settled().await.map(|_| ()),
                None => Ok(()),
            }
        };
        settle(self.until_cut(work).await)
    }

    /// Deallocates an extent.
    pub(super) async fn deallocate(&self, extent: Extent) -> Result<(), Cut> {
        match self.until_cut(self.ftl.deallocate(extent, &mut Breakdown::new())).await? {
            Ok(()) => Ok(()),
            Err(MediaError::PowerLost) => Err(Cut),
            Err(error) => panic!("{extent:?} cannot be deallocated: {error}"),
        }
    }

    /// Waits until all is on flash.
    pub(super) async fn flush(&self) -> Result<(), Cut> {
        match self.ftl.flush() {
            Some(settling) => settle(self.until_cut(async { settling.settled().await.map(|_| ()) }).await),
            None => Ok(()),
        }
    }

    /// Reads an extent.
    pub(super) async fn read(&self, extent: Extent) -> Result<Result<Vec<u8>, ReadError>, Cut> {
        let mem = HostMem::zeroed(extent.bytes() as usize);
        let mut breakdown = Breakdown::new();
        let to = ToMemory(mem.clone());
        let read = self.reader.read::<()>(extent, &to, &mut breakdown);
        match self.until_cut(read).await? {
            Err(ReadError { why: Unreadable::Media(MediaError::PowerLost), .. }) => Err(Cut),
            ended => Ok(ended.map(|()| mem.to_vec())),
        }
    }

    /// Loses one copy of every fixed place: the first, or the second.
    pub(super) fn lose_copies(&self, second: bool) {
        let blocks: Vec<_> = self.ftl.core().state.borrow().places.all().collect();
        blocks.iter().skip(usize::from(second)).step_by(2).for_each(|block| self.media.plant_erase(*block));
    }

    /// Waits until power is back, and the drive has recovered, however often power is cut meanwhile.
    pub(super) async fn recover(&self) {
        loop {
            let cuts = self.media.power_cuts();
            self.media.power_returns().await;
            self.ftl.restart(self.keeps).await;
            if self.media.power_cuts() == cuts {
                return;
            }
        }
    }
}

fn settle(ended: Result<Result<(), Refusal>, Cut>) -> Result<(), Cut> {
    match ended? {
        Ok(()) => Ok(()),
        Err(Refusal::PowerLost) => Err(Cut),
        Err(Refusal::ReadOnly) => panic!("the drive has become read-only"),
    }
}

/// The sectors of some units.
pub(super) fn units(first: u32, count: u32) -> Extent {
    Extent { start: u64::from(first) * u64::from(UNIT_SECTORS), sectors: count * UNIT_SECTORS }
}
