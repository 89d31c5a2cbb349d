//! A model behind the block layer of a host, served as one drive at the wall clock: what a host with MittOS exports to others.
//!
//! Clients put the deadline of a read into CDW3; one that would be late ends with `BUSY` at once, and tells the wait in DW0. Reads
//! without a deadline have that of `block.deadline`.
//!
//! Left out: drives with several namespaces, or whose blocks are written in order; commands that are not forwarded, such as Copy.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_controller::Offers;
use nandscape_device_media::durable::StoreFile;
use nandscape_drive::{Drive, DriveInfo, Names, Subsystem};
use nandscape_host_block::{BlockLayer, Config, PredictorKind};
use nandscape_sim::{Seed, Sim};
use nandscape_transport_reactor::inside::{Inside, Layout};
use nandscape_transport_reactor::{Export, FaultCount, Order, Pairs};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::identify::{DLFEAT_WRITE_ZEROES, DLFEAT_ZEROS};
use nandscape_wire_nvme::vendor::HINT_TIME;

use crate::block;
use crate::forwarded::Forwarded;
use crate::live::{DriveSpec, SsdExport};
use crate::simulation::Progress;

/// A drive and its host's block layer, which are to be served.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockSpec {
    /// The drive.
    pub drive: DriveSpec,
    /// The settings of the layer.
    pub config: Config,
}

impl BlockSpec {
    /// Builds the drive, in a file if one is given, and the layer over it.
    ///
    /// # Errors
    /// That the drive cannot be built, or that the layer does not fit it.
    pub fn build_in(
        &self,
        sim: &Sim,
        seed: u64,
        file: Option<StoreFile>,
        progress: &dyn Progress,
    ) -> Result<BlockExport, String> {
        let model = self.drive.build_in(sim, seed, file, progress).map_err(|error| error.to_string())?;
        let failed = |problem: String| format!("drive {}: {problem}", self.drive.name);
        let layer = block::layer(sim, model.ssd(), model.profile().priority(), &self.config).map_err(failed)?;
        let below = model.connect().map_err(|status| failed(format!("it has no queue pair: {status}")))?;
        let over = layer.over(below);
        let offers = Offers {
            compare: over.info().keeps_data,
            deallocate: true,
            write_zeroes: true,
            verify: true,
            dlfeat: DLFEAT_ZEROS | DLFEAT_WRITE_ZEROES,
            attributes: 0,
            hints: HINT_TIME,
            deadlines: self.config.predictor != PredictorKind::None,
        };
        let front = Forwarded::new(sim, over, offers, self.names(seed)).map_err(failed)?;
        Ok(BlockExport { model, layer, front })
    }

    fn names(&self, seed: u64) -> Names {
        let own = Seed::new(seed).child("served block layer").child(&self.drive.name).value();
        Names {
            nqn: format!("nqn.2026-11.org.nandscape:block-{own:016x}"),
            serial: format!("NB{own:016x}"),
            model: "Nandscape block layer".to_owned(),
            firmware: env!("CARGO_PKG_VERSION").chars().take(8).collect(),
        }
    }
}

/// See the file.
pub struct BlockExport {
    model: SsdExport,
    layer: Rc<BlockLayer>,
    front: Forwarded,
}

impl BlockExport {
    /// The drive.
    pub fn model(&self) -> &SsdExport {
        &self.model
    }

    /// I/O queue pairs of each controller.
    pub fn max_queue_pairs(&self) -> u16 {
        self.front.max_queue_pairs()
    }

    /// The layer in words.
    pub fn describe(&self) -> String {
        let config = self.layer.config();
        let deadline = config.default_deadline();
        format!(
            "scheduler {}, predictor {}, {}",
            config.scheduler.name(),
            config.predictor.name(),
            deadline.map_or("deadlines as clients give them".to_owned(), |deadline| format!(
                "a deadline of {deadline} for reads that carry none"
            ))
        )
    }
}

impl Export for BlockExport {
    fn info(&self) -> DriveInfo {
        self.front.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.front.connect()
    }

    fn pairs(&self) -> Option<Pairs> {
        self.front.pairs()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.front.subsystem())
    }

    fn counters(&self) -> BTreeMap<&'static str, f64> {
        let mut counters = self.model.counters();
        counters.extend(crate::block::counters(&self.layer));
        counters
    }

    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        self.model.parts()
    }

    fn read_only(&self) -> Option<String> {
        self.model.read_only()
    }

    fn layout(&self) -> Option<Layout> {
        self.model.layout()
    }

    fn inside(&self, with_wear: bool) -> Option<Inside> {
        self.model.inside(with_wear)
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        match order {
            Order::Set(setting) if Config::is_key(setting) => {
                Err(format!("{setting}: settings of the block layer do not change at work"))
            }
            order => self.model.order(order),
        }
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.model.faults()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.model.settings()
    }
}
