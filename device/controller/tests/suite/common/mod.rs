//! A small drive for the controller's tests, and two ways to use it: as a drive, and entry by entry.
#![allow(dead_code, reason = "each test uses a part of it")]

mod drive;

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_controller::arbiter::ArbiterKind;
use nandscape_device_controller::{BufferMode, ControllerConfig, Duplex, FrontConfig, LinkConfig, Nvm, front_of};
use nandscape_device_ftl_core::policy::{All, GcScheme, Greedy, OwnerSource, StripeOrder, Striped};
use nandscape_device_ftl_core::{FirmwareTimes, Ftl, PlacementConfig};
use nandscape_device_ftl_page::{GcConfig, PageFtl, PageFtlConfig, Policies, WearConfig};
use nandscape_device_media::{Priority, Registers, StoreKind};
use nandscape_device_rig::TestFlash;
use nandscape_drive::conformance::Host;
use nandscape_drive::ring::{Posted, Ring, Submission};
use nandscape_drive::{Completion, Controller, HostMem, Names, QueueDrive, QueueId};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

pub(crate) use drive::TestDrive;

/// Capacity in bytes.
pub(crate) const CAPACITY: u64 = 16 << 20;
/// Logical blocks.
pub(crate) const BLOCKS: u64 = CAPACITY / 512;
pub(crate) const READ: Span = Span::from_us(50);
pub(crate) const PROGRAM: Span = Span::from_us(500);
pub(crate) const LINK_LATENCY: Span = Span::from_us(1);
pub(crate) const FIRMWARE: Span = Span::from_us(4);
/// The time to deallocate a mapping unit.
pub(crate) const DEALLOCATE_UNIT: Span = Span::from_us(1);
/// Data rates of a channel and of the link, in bytes per microsecond, which make times of whole KiB easy to compute.
pub(crate) const BUS: &str = "1024MB/s";
pub(crate) const LINK: &str = "4096MB/s";
/// Queue pairs and entries of a queue.
pub(crate) const PAIRS: u16 = 4;
pub(crate) const ENTRIES: u32 = 256;

pub(crate) type Drive = Rc<TestDrive>;

pub(crate) fn config() -> ControllerConfig {
    ControllerConfig {
        firmware_time: FIRMWARE,
        processors: None,
        command_slots: 64,
        max_queue_pairs: PAIRS,
        max_queue_entries: ENTRIES,
        max_transfer: 128 << 10,
        lba_bytes: 512,
        buffer: BufferMode::Capacitor,
        link: LinkConfig {
            bandwidth: LINK.parse().unwrap(),
            duplex: Duplex::Full,
            packet: None,
            latency: LINK_LATENCY,
        },
        arbiter: ArbiterKind::RoundRobin,
        weights: [1; 3],
        assign: Default::default(),
        priority: Priority::Fifo,
        rated_erases: 3_000,
        windows: None,
        predictable_latency: false,
        notices: None,
        multipath: true,
    }
}

pub(crate) fn names() -> Names {
    Names {
        nqn: "nqn.2026-11.org.nandscape:test".to_owned(),
        serial: "SERIAL-1".to_owned(),
        model: "A model".to_owned(),
        firmware: "1.0".to_owned(),
    }
}

/// 2 channels x 2 dies of 512 pages of 16 KiB, twice the capacity.
pub(crate) fn drive(sim: &Sim, config: ControllerConfig) -> Drive {
    drive_with(sim, config, StoreKind::Ram)
}

pub(crate) fn drive_with(sim: &Sim, config: ControllerConfig, store: StoreKind) -> Drive {
    faulty_drive(sim, config, store, 32, &[])
}

/// The same with `blocks_per_plane` blocks, 16 of which hold its capacity, and with faults.
pub(crate) fn faulty_drive(
    sim: &Sim,
    config: ControllerConfig,
    store: StoreKind,
    blocks_per_plane: u32,
    faults: &[&str],
) -> Drive {
    any_drive(sim, config, store, (blocks_per_plane, 64, faults), PlacementConfig::default())
}

/// The same with a write buffer of `buffer_units` units.
pub(crate) fn buffering_drive(sim: &Sim, config: ControllerConfig, buffer_units: u32) -> Drive {
    any_drive(sim, config, StoreKind::Ram, (32, buffer_units, &[]), PlacementConfig::default())
}

/// A drive whose hosts place data.
pub(crate) fn placing_drive(sim: &Sim, placement: PlacementConfig, faults: &[&str]) -> Drive {
    any_drive(sim, config(), StoreKind::Ram, (26, 64, faults), placement)
}

fn any_drive(
    sim: &Sim,
    config: ControllerConfig,
    store: StoreKind,
    (blocks_per_plane, buffer_units, faults): (u32, u32, &[&str]),
    placement: PlacementConfig,
) -> Drive {
    let flash = TestFlash {
        channels: 2,
        dies: 2,
        blocks: blocks_per_plane,
        pages: 16,
        units_per_page: 4,
        read: vec![READ],
        program: vec![PROGRAM],
        erase: Span::from_ms(5),
        bus: BUS.parse().unwrap(),
        registers: Registers::Double,
        store,
        faults: faults.iter().map(ToString::to_string).collect(),
        ..TestFlash::default()
    };
    let media = flash.media(sim);
    let gc = GcConfig {
        scheme: GcScheme::Plane,
        owner: OwnerSource::Table,
        copyback: false,
        copyback_ecc: false,
        batch: Some(1),
        free_blocks: 2,
        preempt_above: None,
        free_in_window: 4,
        free_in_long_window: 4,
    };
    let ftl = PageFtlConfig {
        logical_units: (CAPACITY / 4_096) as u32,
        buffer_units,
        priority: config.priority,
        gc,
        wear: WearConfig { dynamic: true, static_threshold: 0 },
        firmware: FirmwareTimes { deallocate_unit: DEALLOCATE_UNIT, ..FirmwareTimes::default() },
        placement,
        writes_end_in_buffer: true,
        rain: None,
    };
    let allocation = Box::new(Striped::new(media.geometry(), StripeOrder::ChannelDiePlane));
    let policies = Policies {
        allocation,
        victim: Box::new(Greedy),
        admission: Box::new(All),
        buffer: None,
        read: None,
        patrol: None,
        stripes: Default::default(),
    };
    let ftl = PageFtl::new(sim, media.clone(), ftl, policies).unwrap();
    let set = Nvm::new(sim, media, ftl.clone(), &config);
    let config = FrontConfig { controller: config, names: names(), notes: None };
    Rc::new(TestDrive::new(&*front_of(sim, set.into(), config).unwrap(), ftl))
}

/// Runs a test on a new drive, and checks the drive's tables afterwards.
pub(crate) fn with<T>(config: ControllerConfig, test: impl AsyncFnOnce(&Sim, &Drive) -> T) -> T {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive(&sim, config);
    let result = executor.block_on(test(&sim, &drive)).unwrap();
    drive.subsystem().ftl().check().unwrap();
    result
}

/// A user of one queue pair.
pub(crate) fn host(sim: &Sim, drive: &Drive, id: QueueId) -> Host {
    Host::new(sim, QueueDrive::new(sim, drive.clone(), id, 32).unwrap())
}

/// Executes a command. Returns its end and its duration.
pub(crate) async fn timed(sim: &Sim, host: &Host, entry: SubmissionEntry, mem: HostMem) -> (Completion, Span) {
    let begun = sim.now();
    let completion = host.execute(entry, mem).await.unwrap();
    (completion, sim.now() - begun)
}

pub(crate) fn read(slba: u64, blocks: u32) -> SubmissionEntry {
    SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks)
}

pub(crate) fn write(slba: u64, blocks: u32) -> (SubmissionEntry, HostMem) {
    let mem = HostMem::from_bytes(&vec![7; blocks as usize * 512]);
    (SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks), mem)
}

/// A host that puts entries and rings doorbells by hand, and polls.
pub(crate) struct Pair {
    pub(crate) id: QueueId,
    pub(crate) ring: Rc<Ring>,
    sim: Sim,
    controller: Rc<dyn Controller>,
    tail: Cell<u16>,
    head: Cell<u16>,
    phase: Cell<bool>,
    next_cid: Cell<u16>,
}

impl Pair {
    pub(crate) fn new(sim: &Sim, drive: &Drive, id: u16, entries: u32) -> Pair {
        Pair::over(sim, drive.clone(), id, entries)
    }

    /// A queue pair of any controller.
    pub(crate) fn over(sim: &Sim, controller: Rc<dyn Controller>, id: u16, entries: u32) -> Pair {
        let (id, ring) = (QueueId(id), Rc::new(Ring::new(entries, None)));
        controller.create_queue_pair(id, ring.clone(), ring.clone()).unwrap();
        Pair {
            id,
            ring,
            sim: sim.clone(),
            controller,
            tail: Cell::new(0),
            head: Cell::new(0),
            phase: Cell::new(true),
            next_cid: Cell::new(0),
        }
    }

    /// Puts an entry without ringing the doorbell. Returns its command identifier.
    pub(crate) fn put(&self, mut entry: SubmissionEntry, mem: HostMem) -> u16 {
        let cid = self.next_cid.replace(self.next_cid.get() + 1);
        entry.cid = cid.into();
        self.ring.put(self.tail.get(), Submission { entry, mem, submitted: self.sim.now() });
        self.tail.set(self.ring.next(self.tail.get()));
        cid
    }

    /// The command identifier of the next entry.
    pub(crate) fn name_next(&self, cid: u16) {
        self.next_cid.set(cid);
    }

    /// Rings the submission doorbell.
    pub(crate) fn ring(&self) {
        self.controller.ring_submission(self.id, self.tail.get());
    }

    /// The next new completion, without ringing the doorbell.
    pub(crate) fn reap(&self) -> Option<Posted> {
        let posted = self.ring.reap(self.head.get(), self.phase.get())?;
        self.head.set(self.ring.next(self.head.get()));
        if self.head.get() == 0 {
            self.phase.set(!self.phase.get());
        }
        Some(posted)
    }

    /// Rings the completion doorbell.
    pub(crate) fn release(&self) {
        self.controller.ring_completion(self.id, self.head.get());
    }

    /// The command identifiers of all new completions, which are released.
    pub(crate) fn reap_all(&self) -> Vec<u16> {
        let cids = std::iter::from_fn(|| self.reap()).map(|posted| posted.entry.cid.get()).collect();
        self.release();
        cids
    }
}
