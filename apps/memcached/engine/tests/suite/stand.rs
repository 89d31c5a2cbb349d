//! The drives under an engine that is tested for crashes: disks in memory, of which a cut tears the writes under way into blocks, or drives
//! of the model, which lose what is in their buffer.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_apps_store::{Disk as Writer, Host};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_sim::{Rng, Seed, Sim, Span};

/// What drives are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Disks of some bytes.
    Disks(usize),
    /// Disks with zones: how many, bytes from one to the next, and bytes that each takes.
    Zoned(usize, (usize, usize)),
    /// Small drives of the model with a mode of the write buffer.
    Model(&'static str),
}

/// Keys of small drives on which garbage is collected soon.
const MODEL: [&str; 7] = [
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=1",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=20",
];

/// Bytes of a write that fills a drive.
const FILLED: usize = 64 << 10;

/// Zones of 512 KiB.
const ZONES: [&str; 8] = [
    "capacity=16MiB",
    "geometry.pages_per_block=32",
    "ftl.kind=zone",
    "lba_size=4KiB",
    "ftl.zone.mapping=dies",
    "ftl.zone.max_active=5",
    // A program that a power cut ends takes another block.
    "ftl.over_provisioning=100%",
    "controller.max_transfer=64KiB",
];

/// A small drive of the model that has what a policy needs, with other keys.
pub(crate) fn model(sim: &Sim, policy: &str, changes: &[&str], seed: Seed) -> Rc<Ssd> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    let needs: &[&str] = match policy {
        "predictable_latency" => &["controller.predictable_latency=true"],
        "fdp" => &["ftl.fdp.handles=2"],
        "zoned" => &ZONES,
        _ => &[],
    };
    MODEL.iter().chain(changes).chain(needs).for_each(|change| profile.set(change).expect("a valid key"));
    let drive = profile.resolve().expect("valid keys");
    Rc::new(Ssd::new(sim, &drive, StoreKind::Ram, seed).expect("memory"))
}

/// The place of a drive, for one host after the other.
pub(crate) enum Place {
    Disk {
        disk: Rc<Disk>,
        now: RefCell<Option<Rc<QueueingDrive>>>,
    },
    /// All hosts in turn use one admin queue.
    Model {
        ssd: Rc<Ssd>,
        admin: Rc<QueueDrive>,
    },
}

impl Place {
    /// A new drive.
    pub(crate) fn new(sim: &Sim, kind: Kind, policy: &str, seed: Seed) -> Rc<Place> {
        Rc::new(match kind {
            Kind::Disks(bytes) => Place::of(Disk::new(bytes)),
            Kind::Zoned(count, (size, capacity)) => Place::of(Disk::with_zones(count * size, (size, capacity))),
            Kind::Model(mode) => {
                let ssd = model(sim, policy, &[&format!("buffer.mode={mode}")], seed);
                let admin = QueueDrive::new(sim, ssd.controller(), QueueId::ADMIN, 32).expect("an admin queue");
                Place::Model { ssd, admin }
            }
        })
    }

    fn of(disk: Rc<Disk>) -> Place {
        Place::Disk { disk, now: RefCell::default() }
    }

    /// The queues of the next host: for reads and writes, and that of a model for orders.
    pub(crate) async fn connect(&self, sim: &Sim, queue: u16) -> (Rc<dyn Drive>, Option<Rc<dyn Drive>>) {
        if let Place::Model { ssd, admin } = self {
            ssd.in_service().await;
            return (self.queue(sim, queue), Some(admin.clone()));
        }
        (self.queue(sim, queue), None)
    }

    /// The queue of the next host for reads and writes.
    pub(crate) fn queue(&self, sim: &Sim, queue: u16) -> Rc<dyn Drive> {
        match self {
            Place::Disk { disk, now } => {
                let drive = QueueingDrive::new(sim, disk, Times::FLASH);
                now.replace(Some(drive.clone()));
                drive
            }
            Place::Model { ssd, .. } => {
                QueueDrive::new(sim, ssd.controller(), QueueId(queue), 64).expect("a queue pair")
            }
        }
    }

    /// Writes zeros to all of a drive of the model, so that it collects from the first chunk on. A store takes it as empty.
    pub(crate) async fn fill(&self, sim: &Sim) {
        if let Place::Model { ssd, .. } = self {
            ssd.in_service().await;
            let disk = Writer::new(&Host::free(sim), self.queue(sim, 19));
            let blocks = FILLED as u64 / u64::from(disk.info.lba_bytes);
            for slba in (0..disk.info.blocks).step_by(blocks as usize) {
                disk.write(slba, &[0; FILLED]).await.expect("a drive that serves");
            }
        }
    }

    /// Power is cut. It returns, to a disk with its next host.
    pub(crate) fn cut(&self, rng: &mut Rng) {
        match self {
            Place::Disk { now, .. } => now.take().into_iter().for_each(|drive| drive.tear(rng)),
            Place::Model { ssd, .. } => ssd.media().cut_power(Span::from_us(50)),
        }
    }

    /// It as it is now, if it is a disk.
    pub(crate) fn copy(&self) -> Option<Rc<Place>> {
        match self {
            Place::Disk { disk, .. } => Some(Rc::new(Place::of(disk.copy()))),
            Place::Model { .. } => None,
        }
    }

    /// Blocks that it has collected, if it is sound.
    pub(crate) fn collected(&self) -> Result<u64, String> {
        match self {
            Place::Disk { .. } => Ok(0),
            Place::Model { ssd, .. } => ssd.check().map(|()| ssd.ftl_stats().gc_blocks),
        }
    }
}
