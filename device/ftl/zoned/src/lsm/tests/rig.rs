//! An FTL of runs on its flash, and commands to it, each up to its end or the next power cut.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_ftl_core::ftl::Inside;
use nandscape_device_ftl_core::{Extent, Ftl, ReadError, Reader, Unreadable};
use nandscape_device_media::{Media, MediaError, Priority, StoreKind};
use nandscape_device_rig::TestFlash;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Seed, Sim, Span, Wait};

use crate::lsm::{LsmConfig, LsmFtl, LsmReader, RunError};
use crate::zone::mapping::{Dies, Superblock};
use crate::zone::{ZoneConfig, Zrwa};

/// Sectors and bytes of a unit.
const UNIT_SECTORS: u32 = 8;
const UNIT: usize = 4_096;
/// The most units of a run, and the distance from one place to the next.
pub(super) const MOST: u32 = 60;
const SPAN: u32 = 64;
/// Places of runs.
pub(super) const RUNS: u32 = 48;

/// A kind of drive, and its faults.
#[derive(Copy, Clone, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Whether zones are a block of a die; else they are over all dies.
    pub(super) dies: bool,
    pub(super) share: bool,
    pub(super) max_active: u32,
    pub(super) faults: &'static [&'static str],
    /// Whether pages may be lost, and whether room may be short because of blocks that are.
    pub(super) may_lose: bool,
    pub(super) may_be_full: bool,
}

/// Power was cut before a command ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Cut;

/// See the file.
pub(super) struct Rig {
    pub(super) sim: Sim,
    pub(super) media: Rc<Media>,
    pub(super) ftl: Rc<LsmFtl>,
    reader: LsmReader<Inside>,
    cut: Rc<(Cell<u32>, Signal)>,
    /// The power cut after which the drive has started last, and a signal of that.
    up: (Cell<u32>, Signal),
}

impl Rig {
    pub(super) fn new(sim: &Sim, kind: &Kind, seed: Seed) -> Rc<Rig> {
        let flash = TestFlash {
            channels: 2,
            blocks: 24,
            units_per_page: 2,
            store: StoreKind::Ram,
            faults: kind.faults.iter().map(|rule| (*rule).to_owned()).collect(),
            seed: seed.child("media"),
            ..TestFlash::default()
        };
        let media = flash.media(sim);
        let cut = Rc::new((Cell::new(0), Signal::new(sim)));
        let counted = cut.clone();
        media.on_power_cut(move || {
            counted.0.set(counted.0.get() + 1);
            counted.1.notify();
        });
        let zones = ZoneConfig {
            zones: if kind.dies { 44 } else { 22 },
            size: 32,
            depth: 1,
            max_active: kind.max_active,
            max_open: kind.max_active,
            zrwa: Zrwa::default(),
            extension: 0,
            buffer_units: 40,
            priority: Priority::Fifo,
            write: Span::ZERO,
            append: Span::ZERO,
            reset: (Span::ZERO, Span::ZERO),
            finish_pads: false,
            check_block: Span::from_ns(100),
        };
        let config = LsmConfig { zones, runs: RUNS, most: MOST, span: SPAN, share: kind.share, reserve: 4 };
        let ftl = match kind.dies {
            true => LsmFtl::new(sim, media.clone(), config, &Dies { width: 1 }),
            false => LsmFtl::new(sim, media.clone(), config, &Superblock),
        };
        let (reader, up) = (ftl.reader(), (Cell::new(0), Signal::new(sim)));
        Rc::new(Rig { sim: sim.clone(), media, ftl, reader, cut, up })
    }

    /// A command, up to its end or the next power cut.
    async fn until_cut<T>(&self, command: impl Future<Output = T>) -> Result<T, Cut> {
        if !self.is_up() {
            return Err(Cut);
        }
        let before = self.cut.0.get();
        let (mut command, mut cut) = (pin!(command), pin!(self.cut.1.changed()));
        std::future::poll_fn(|context| {
            if self.cut.0.get() != before {
                return Poll::Ready(Err(Cut));
            }
            if let Poll::Ready(done) = command.as_mut().poll(context) {
                return Poll::Ready(if self.cut.0.get() == before { Ok(done) } else { Err(Cut) });
            }
            cut.as_mut().poll(context).map(|()| Err(Cut))
        })
        .await
    }

    /// Whether the drive takes commands.
    pub(super) fn is_up(&self) -> bool {
        self.media.is_powered() && self.up.0.get() == self.media.power_cuts()
    }

    /// Waits until the drive takes commands.
    pub(super) async fn until_up(&self) {
        while !self.is_up() {
            self.up.1.changed().await;
        }
    }

    /// Cuts the power, and restarts the drive.
    pub(super) async fn cut_power(&self) {
        self.media.cut_power(Span::from_us(50));
        let cuts = self.media.power_cuts();
        self.media.power_returns().await;
        self.ftl.restart(true).await;
        self.up.0.set(cuts);
        self.up.1.notify();
    }

    /// Appends units to a run.
    pub(super) async fn append(&self, run: u32, at: u32, bytes: &[u8]) -> Result<Result<(), RunError>, Cut> {
        let units = (bytes.len() / UNIT) as u32;
        let work = async {
            let append = self.ftl.begin_append(run, at, units).await?;
            let (mem, mut waited) = (HostMem::from_bytes(bytes), Wait::default());
            loop {
                let room = self.ftl.append_room(&append, &mut waited).await;
                // The data comes over the link meanwhile.
                self.sim.sleep(Span::from_us(3)).await;
                match self.ftl.append(&append, Some(&mem), room) {
                    Err(RunError::Busy) => self.ftl.append_turn(&append).await?,
                    ended => return ended,
                }
            }
        };
        match self.until_cut(work).await? {
            Err(RunError::PowerLost) => Err(Cut),
            ended => Ok(ended),
        }
    }

    /// Reads units of a run.
    pub(super) async fn read(&self, run: u32, first: u32, units: u32) -> Result<Result<Vec<u8>, ReadError>, Cut> {
        let start = u64::from(run * SPAN + first) * u64::from(UNIT_SECTORS);
        let extent = Extent { start, sectors: units * UNIT_SECTORS };
        let (mem, mut breakdown) = (HostMem::zeroed(units as usize * UNIT), Breakdown::new());
        let to = Inside(mem.clone());
        match self.until_cut(self.reader.read::<()>(extent, &to, &mut breakdown)).await? {
            Err(ReadError { why: Unreadable::Media(MediaError::PowerLost), .. }) => Err(Cut),
            ended => Ok(ended.map(|()| mem.to_vec())),
        }
    }
}

/// Units that carry stamps.
pub(super) fn bytes(stamps: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; stamps.len() * UNIT];
    for (unit, stamp) in bytes.chunks_exact_mut(UNIT).zip(stamps) {
        unit[..8].copy_from_slice(&stamp.to_le_bytes());
        unit[UNIT - 8..].copy_from_slice(&stamp.to_le_bytes());
    }
    bytes
}

/// The stamps of units: 0 of zeros.
pub(super) fn stamps(bytes: &[u8]) -> Vec<u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(*bytes.first_chunk().expect("a unit"));
    let stamp = |unit: &[u8]| {
        assert_eq!(number(unit), number(&unit[UNIT - 8..]), "a torn unit");
        number(unit)
    };
    bytes.chunks_exact(UNIT).map(stamp).collect()
}
