//! An FTL of this process over the flash of an open-channel drive behind NVMe/TCP, served as a drive of its own.
//!
//! Its tables are in memory only: what it holds ends with the server, and the next one begins with chunks that are reset.
//!
//! A drive has one FTL at a time: it marks the drive as its own, and one that finds the mark of another that is connected does not
//! begin. Drives without reservations keep no mark.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::{Drive, DriveInfo, Subsystem};
use nandscape_host_driver::nvme_tcp::Target;
use nandscape_host_open_channel::{ChunkInfo, Error, Geometry, Means, OpenChannel};
use nandscape_sim::{Seed, Sim};
use nandscape_transport_reactor::{Export, Order, Pairs, Source};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::open_channel::CHUNK_OFFLINE;

use super::{HostFlash, Moving, over, profile, used_chunks};
use crate::live::SsdExport;
use crate::remote::{Far, FarAdmin};
use crate::wall::{Connection, Endpoint, on_target};

/// The mark of such an FTL on the drive.
const MARK: u64 = u64::from_be_bytes(*b"host FTL");
/// The host that it is to the drive: another one than those of other programs here, which may look at the drive meanwhile.
const HOST_NQN: &str = "nqn.2026-11.org.nandscape:host-ftl";
const HOST_ID: [u8; 16] = *b"nandscape ftl\0\0\x01";

/// An FTL that is to be served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostedSpec {
    /// The name that clients use.
    pub name: String,
    /// Its number among all drives of the run: part of its seed.
    pub number: u64,
    /// The profile whose FTL and buffer it has, by name or file.
    pub profile: String,
    /// Changes of the profile.
    pub changes: Vec<String>,
    /// Whether controller and firmware take no time.
    pub no_delay: bool,
    /// The open-channel drive.
    pub target: Target,
    /// How garbage collection moves data.
    pub moving: Moving,
    /// Whether all chunks are reset first.
    pub resets: bool,
}

impl HostedSpec {
    /// Connects to the drive, and makes an FTL over it. Blocks until the drive has told of its chunks and has reset them.
    ///
    /// # Errors
    /// That it cannot be reached, is no open-channel drive, has another FTL or chunks with data, or does not fit the profile; with the
    /// option at fault.
    pub fn connect(&self, sim: &Sim, seed: u64) -> Result<HostedExport, String> {
        let store = |problem: String| format!("--store {}={}: {problem}", self.name, self.target);
        let drive = |problem: String| format!("--drive {}={}: {problem}", self.name, self.profile);
        let (geometry, report) = self.prepare()?;
        let used = used_chunks(&report);
        if used > 0 {
            return Err(store(format!(
                "{used} chunks of the drive hold data; --store-reset resets them, and loses what they hold"
            )));
        }
        let far = Rc::new(Far::connect(&self.host()).map_err(|problem| format!("--store {}={problem}", self.name))?);
        // Another one may have begun since it was asked: now both are connected.
        self.ask(|host| async move { check_alone(&host, 2).await })?;
        let queues = (Rc::new(FarAdmin::of(&far)) as Rc<dyn Drive>, far.clone() as Rc<dyn Drive>);
        let host = OpenChannel::with_geometry(sim, queues, geometry, Means::Rows);
        let changes: Vec<&str> = self.changes.iter().map(String::as_str).collect();
        let resolved = profile(&self.profile, &geometry, &changes).map_err(|error| drive(error.to_string()))?;
        let resolved = if self.no_delay { resolved.without_delay() } else { resolved };
        let seed = Seed::new(seed).child("live").nth(self.number);
        let made = over(sim, (host, &report), &resolved, self.moving, seed);
        let (ssd, flash) = made.map_err(|error| store(error.to_string()))?;
        let model = SsdExport::new(sim, ssd, resolved, None);
        Ok(HostedExport { model, far, flash })
    }

    /// The drive, reached as the host that an FTL is.
    fn host(&self) -> Target {
        Target { host_nqn: HOST_NQN.to_owned(), host_id: HOST_ID, ..self.target.clone() }
    }

    /// What the drive tells of itself, once its chunks are reset if that is wanted.
    fn prepare(&self) -> Result<(Geometry, Vec<ChunkInfo>), String> {
        let resets = self.resets;
        self.ask(move |host| async move {
            match host.mark(MARK).await {
                Err(error) if error.status != Status::INVALID_OPCODE => {
                    return Err(format!("it takes no mark: {error}"));
                }
                _ => check_alone(&host, 1).await?,
            }
            if resets {
                let chunks = host.report().await.map_err(failed("it does not report its chunks"))?;
                for chunk in chunks.iter().filter(|chunk| chunk.state != CHUNK_OFFLINE) {
                    host.empty(chunk).await.map_err(failed("a chunk cannot be reset"))?;
                }
            }
            let report = host.report().await.map_err(failed("it does not report its chunks"))?;
            Ok((*host.geometry(), report))
        })
    }

    /// Has a host of the drive ask it something.
    fn ask<T: 'static, F: Future<Output = Result<T, String>>>(
        &self,
        question: impl FnOnce(OpenChannel) -> F + 'static,
    ) -> Result<T, String> {
        let asked = on_target(
            &Endpoint::NvmeTcp(self.host()),
            true,
            |_| (),
            move |connection| async move {
                let Connection { sim, admin, drive, .. } = connection;
                let host = OpenChannel::open(&sim, admin, drive, Means::Rows).await;
                question(host.map_err(failed("it is no open-channel drive"))?).await
            },
        );
        let told = asked.map_err(|error| format!("--store {}={error}", self.name))?;
        told.map_err(|problem| format!("--store {}={}: {problem}", self.name, self.target))
    }
}

/// What went wrong with a command.
fn failed(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

/// Whether a drive has no other FTL of a host; `own` controllers are of this one.
async fn check_alone(host: &OpenChannel, own: usize) -> Result<(), String> {
    match host.marked(MARK).await {
        Ok(controllers) if controllers > own => {
            Err("another server has an FTL over the drive, and chunks have one owner; end \
                                                     that server first, or name another drive"
                .to_owned())
        }
        Err(error) if error.status != Status::INVALID_OPCODE => Err(format!("it does not tell its hosts: {error}")),
        _ => Ok(()),
    }
}

/// An FTL that is served. See the file.
pub struct HostedExport {
    model: SsdExport,
    far: Rc<Far>,
    flash: Rc<HostFlash>,
}

impl HostedExport {
    /// The drive that hosts see.
    pub fn ssd(&self) -> &Rc<Ssd> {
        self.model.ssd()
    }

    /// The FTL.
    pub(crate) fn model(&self) -> &SsdExport {
        &self.model
    }

    /// The drive whose flash it has.
    pub(crate) fn far(&self) -> &Rc<Far> {
        &self.far
    }

    /// I/O queue pairs of each controller.
    pub fn max_queue_pairs(&self) -> u16 {
        self.model.profile().max_queue_pairs()
    }
}

impl Export for HostedExport {
    fn info(&self) -> DriveInfo {
        self.model.info()
    }

    fn namespaces(&self) -> Vec<DriveInfo> {
        self.model.namespaces()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.model.connect()
    }

    fn pairs(&self) -> Option<Pairs> {
        self.model.pairs()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        self.model.subsystem()
    }

    fn counters(&self) -> BTreeMap<&'static str, f64> {
        let (mut counters, traffic) = (self.model.counters(), self.flash.traffic());
        counters.extend(self.far.counters());
        counters.extend([
            ("flash_link_read_bytes_total", traffic.read as f64),
            ("flash_link_written_bytes_total", traffic.written as f64),
            ("flash_copied_bytes_total", traffic.copied as f64),
            ("flash_chunk_resets_total", traffic.resets as f64),
        ]);
        counters
    }

    fn read_only(&self) -> Option<String> {
        self.model.read_only()
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        match order {
            Order::Set(_) => self.model.order(order),
            Order::AddFault(_) | Order::ClearFaults => {
                Err(format!("the flash is {}: faults are ordered where it is", self.far.url()))
            }
        }
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        vec![self.far.clone()]
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.model.settings()
    }
}
