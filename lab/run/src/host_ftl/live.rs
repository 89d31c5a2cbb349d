//! The layer `ftl` of a server: an FTL of this process over an open-channel drive, a model or a remote drive, served as a drive.
//!
//! Its tables are in memory: its data ends with the server, and the next server begins with reset chunks. Over a model the state
//! of both can be saved, and the next server begins in it.
//!
//! A drive has one FTL at a time: an FTL marks the drive, and does not start if it finds the mark of another FTL that is
//! connected. Drives without reservations keep no mark, which the note of the start reports.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::{Drive, DriveInfo, Node, Refused, Subsystem, Use};
use nandscape_host_driver::nvme_tcp::Target;
use nandscape_host_open_channel::{ChunkInfo, Error, Geometry, Means, OpenChannel};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_transport_reactor::{Connect, Export, FaultCount, Order, Pairs, Source};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::open_channel::CHUNK_OFFLINE;

use super::{Chunks, used_chunks};
use crate::build::Precondition;
use crate::chain::{Chain, FtlLayer, FtlNode, Instance, Layer as _, LayerNode as _, ModelNode, Opening, Section};
use crate::live::{BuildError, DriveSpec, SsdExport};
use crate::remote::{Far, FarAdmin};
use crate::saved::{self, HeldLayers, StateError, StateFile};
use crate::served_layers::held_in;
use crate::simulation::Progress;
use crate::tap::Tap;
use crate::wall::{Connection, Endpoint, on_target};

/// The mark of such an FTL on the drive.
const MARK: u64 = u64::from_be_bytes(*b"host FTL");
/// Its host NQN to the drive. It differs from those of other programs here, which may inspect the drive meanwhile.
const HOST_NQN: &str = "nqn.2026-11.org.nandscape:host-ftl";
const HOST_ID: [u8; 16] = *b"nandscape ftl\0\0\x01";

/// An FTL that is to be served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostedSpec {
    /// The name that clients use.
    pub name: String,
    /// Its number among all drives of the run: part of its seed.
    pub number: u64,
    /// The layer.
    pub layer: FtlLayer,
    /// The open-channel drive.
    pub flash: Flash,
}

/// The open-channel drive below an FTL of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flash {
    /// A drive of another server.
    Remote(Target),
    /// A model of this process. The FTL begins in its precondition.
    Model(Box<DriveSpec>),
}

impl fmt::Display for Flash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flash::Remote(target) => write!(f, "{target}"),
            Flash::Model(spec) => f.write_str(&spec.profile_name),
        }
    }
}

impl HostedSpec {
    /// An FTL over a model, with its name and number.
    pub(crate) fn of_model(layer: &FtlLayer, spec: &DriveSpec) -> HostedSpec {
        let flash = Flash::Model(Box::new(spec.clone()));
        HostedSpec { name: spec.name.clone(), number: spec.number, layer: layer.clone(), flash }
    }

    /// The model of its flash, if that is one.
    pub fn model(&self) -> Option<&DriveSpec> {
        if let Flash::Model(spec) = &self.flash { Some(spec) } else { None }
    }

    /// Its layer and those of `above`, as text.
    pub fn chain(&self, above: &Chain) -> Chain {
        Chain { layers: std::iter::once(self.layer.words()).chain(above.layers.iter().cloned()).collect() }
    }

    /// What the layers of the state that it begins in hold: the FTL first, then those of `above`.
    pub(crate) fn held(&self, above: &Chain) -> Result<Vec<Vec<u8>>, String> {
        match self.model().and_then(|spec| spec.from_state.as_deref()) {
            Some(path) => held_in(path, &self.chain(above)),
            None => Ok(Vec::new()),
        }
    }

    /// Builds the drive or connects to it, and makes an FTL over it. Blocks until the drive has reported its chunks and has reset them.
    ///
    /// # Errors
    /// That it cannot be reached, is no open-channel drive, has another FTL or chunks with data, or does not fit the profile; with the
    /// option at fault.
    pub fn build(&self, executor: &mut Executor, seed: u64, progress: &dyn Progress) -> Result<HostedExport, String> {
        let sim = executor.sim();
        let (node, lowest): (Rc<dyn Node>, Lowest) = match &self.flash {
            Flash::Remote(target) => {
                let (node, far, is_marked) = self.connect(&sim, target)?;
                (Rc::new(node), Lowest::Remote { far, is_marked })
            }
            Flash::Model(spec) => {
                // Hosts reach the FTL, which brings its drive into the state.
                let below = DriveSpec { precondition: Precondition::None, is_shared: false, ..(**spec).clone() };
                let model = match &spec.from_state {
                    None => below.build(&sim, seed, progress),
                    Some(path) => StateFile::open(path)
                        .map_err(BuildError::State)
                        .and_then(|state| below.restored(&sim, seed, &state, &[self.layer.clone().into()])),
                };
                let model = Rc::new(model.map_err(|error| error.to_string())?);
                let node = ModelNode::new(&sim, model.ssd(), model.profile());
                executor.block_on(node.open_chunks()).map_err(|stalled| stalled.to_string())??;
                (Rc::new(node), Lowest::Model(model))
            }
        };
        let precondition = match &self.flash {
            Flash::Remote(_) => Precondition::None,
            Flash::Model(spec) => spec.precondition,
        };
        let seed = Seed::new(seed).child("live").nth(self.number);
        let held = self.held(&Chain::default())?;
        let held = held.first().map_or(&[][..], Vec::as_slice);
        let how = Opening { seed, precondition, progress, held, ..Opening::new(&sim, self.layer.kind()) };
        let made = self.layer.open_over(&how, &*node);
        let ftl = made.map_err(|problem| format!("drive {} over {}: {problem}", self.name, self.flash))?;
        let model = SsdExport::new(&sim, ftl.ssd().clone(), ftl.profile().clone(), None);
        let (name, over) = (self.layer.kind().to_owned(), vec![self.name.clone()]);
        let instance = Instance { name, over, node: ftl.clone() };
        let is_shared = self.model().is_some_and(|spec| spec.is_shared);
        model.subsystem().iter().filter(|_| is_shared).for_each(|subsystem| subsystem.report_several());
        Ok(HostedExport { sim, model, ftl, instance, lowest })
    }

    /// A remote drive as its FTL sees it, and whether it keeps the mark of the FTL.
    fn connect(&self, sim: &Sim, target: &Target) -> Result<(FarChunks, Rc<Far>, bool), String> {
        let (geometry, report) = self.prepare(target)?;
        let used = used_chunks(&report);
        if used > 0 {
            return Err(self.failed(
                target,
                format!(
                    "{used} chunks of the drive hold data; --store-reset resets them, as reset=true of ftl does, and loses what they hold"
                ),
            ));
        }
        let far = Rc::new(Far::connect(&as_ftl(target)).map_err(|problem| format!("--store {}={problem}", self.name))?);
        // Another one may have begun since it was asked: now both are connected.
        let is_marked = self.ask(target, |host| async move { check_alone(&host, 2).await })?;
        let queues = (Rc::new(FarAdmin::of(&far)) as Rc<dyn Drive>, far.clone() as Rc<dyn Drive>);
        let host = OpenChannel::with_geometry(sim, queues, geometry, Means::Rows);
        Ok((FarChunks { info: far.info(), chunks: Chunks::new(host, report) }, far, is_marked))
    }

    fn failed(&self, target: &Target, problem: String) -> String {
        format!("--store {}={target}: {problem}", self.name)
    }

    /// The geometry and the chunks that the drive reports, after a reset of its chunks if requested.
    fn prepare(&self, target: &Target) -> Result<(Geometry, Vec<ChunkInfo>), String> {
        let resets = self.layer.resets();
        self.ask(target, move |host| async move {
            match host.mark(MARK).await {
                Err(error) if error.status != Status::INVALID_OPCODE => {
                    return Err(format!("it rejects a registration: {error}"));
                }
                _ => check_alone(&host, 1).await?,
            };
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
        target: &Target,
        question: impl FnOnce(OpenChannel) -> F + 'static,
    ) -> Result<T, String> {
        let asked = on_target(
            &Endpoint::NvmeTcp(as_ftl(target)),
            true,
            |_| (),
            move |connection| async move {
                let Connection { sim, admin, drive, .. } = connection;
                let host = OpenChannel::open(&sim, admin, drive, Means::Rows).await;
                question(host.map_err(failed("it is no open-channel drive"))?).await
            },
        );
        let told = asked.map_err(|error| format!("--store {}={error}", self.name))?;
        told.map_err(|problem| self.failed(target, problem))
    }
}

/// A drive as the host that an FTL is reaches it.
fn as_ftl(target: &Target) -> Target {
    Target { host_nqn: HOST_NQN.to_owned(), host_id: HOST_ID, ..target.clone() }
}

/// A remote open-channel drive, whose only user is its FTL.
struct FarChunks {
    info: DriveInfo,
    chunks: Rc<Chunks>,
}

impl Node for FarChunks {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn connect(&self, _: Use) -> Result<Rc<dyn Drive>, Refused> {
        let what = "a remote open-channel drive has its FTL as only user".to_owned();
        Err(Refused { what, status: Status::INVALID_QUEUE_ID, hint: "" })
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        (of == TypeId::of::<Chunks>()).then(|| self.chunks.clone() as Rc<dyn Any>)
    }
}

/// Formats a failed command as an error.
fn failed(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

/// Checks that a drive has no other FTL of a host; `own` controllers are of this one. Returns whether the drive keeps marks.
async fn check_alone(host: &OpenChannel, own: usize) -> Result<bool, String> {
    match host.marked(MARK).await {
        Ok(controllers) if controllers > own => {
            Err("another server has an FTL over the drive, and chunks have one owner; end \
                                                     that server first, or name another drive"
                .to_owned())
        }
        Ok(_) => Ok(true),
        Err(error) if error.status == Status::INVALID_OPCODE => Ok(false),
        Err(error) => Err(format!("it does not report its hosts: {error}")),
    }
}

/// The open-channel drive of an FTL that is served.
enum Lowest {
    Remote { far: Rc<Far>, is_marked: bool },
    Model(Rc<SsdExport>),
}

/// An FTL that is served. See the file.
pub struct HostedExport {
    sim: Sim,
    model: SsdExport,
    ftl: Rc<FtlNode>,
    /// The FTL as a layer.
    instance: Instance,
    lowest: Lowest,
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

    /// The remote drive whose flash it has.
    pub(crate) fn far(&self) -> Option<&Rc<Far>> {
        if let Lowest::Remote { far, .. } = &self.lowest { Some(far) } else { None }
    }

    /// Whether its drive is a remote one that keeps no mark, so another FTL on it is not detected.
    pub fn is_unmarked(&self) -> bool {
        matches!(self.lowest, Lowest::Remote { is_marked: false, .. })
    }

    /// The model of its flash, if that is one.
    pub fn lowest(&self) -> Option<&Rc<SsdExport>> {
        if let Lowest::Model(model) = &self.lowest { Some(model) } else { None }
    }

    /// Its name in the times of commands.
    pub(crate) fn layer_name(&self) -> &'static str {
        self.ftl.name()
    }

    /// Its part of a report.
    pub(crate) fn section(&self) -> Section {
        Section::of(&self.instance)
    }

    /// Saves the state of the FTL and of the model that it was made over, with layers above and their contents. A run with this
    /// seed has built them, and no host is connected any more. If that succeeds, they must not be used afterwards.
    ///
    /// # Errors
    /// That the drive is remote or cannot come to rest, or that the file cannot be written.
    pub fn save(
        &self,
        spec: &HostedSpec,
        layers: Option<HeldLayers<'_>>,
        seed: u64,
        executor: &mut Executor,
        path: &Path,
    ) -> Result<(), StateError> {
        let (Some(model), Some(lowest)) = (spec.model(), self.lowest()) else {
            return Err(StateError::Drive(format!(
                "the drive is an FTL over {}, whose state is where it is",
                spec.flash
            )));
        };
        self.model.check_namespaces()?;
        let history = model.history_after(lowest, &self.model, seed);
        let rested = executor.block_on(self.ftl.come_to_rest()).map_err(|stalled| stalled.to_string());
        rested.and_then(|rested| rested).map_err(StateError::Drive)?;
        let (above, held_above) = match layers {
            Some((chain, held)) => (chain.clone(), held),
            None => (Chain::default(), Vec::new()),
        };
        let own = self.ftl.take_held().map_err(StateError::Drive)?;
        let (chain, held) = (spec.chain(&above), std::iter::once(own).chain(held_above).collect());
        let rest = |ssd: &Ssd| executor.block_on(ssd.come_to_rest());
        saved::save(lowest.ssd(), lowest.profile(), &history, (path, Some((&chain, held))), rest)
    }

    /// Checks the tables of the FTL, and those of a drive of this process.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        self.ftl.ssd().check()?;
        self.lowest().map_or(Ok(()), |model| model.ssd().check())
    }
}

impl Connect for HostedExport {
    fn info(&self) -> DriveInfo {
        self.model.info()
    }

    fn namespaces(&self) -> Vec<DriveInfo> {
        self.model.namespaces()
    }

    /// As in a simulation, the time of a command is that of the layer but for what it takes in the drive below.
    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.model.connect().map(|drive| Tap::over_ftl(&self.sim, drive, self.ftl.name()) as Rc<dyn Drive>)
    }

    fn pairs(&self) -> Option<Pairs> {
        self.model.pairs()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        self.model.subsystem()
    }
}

impl Export for HostedExport {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        let (mut counters, traffic) = (self.model.counters(), self.ftl.traffic());
        counters.extend(self.far().into_iter().flat_map(|far| far.counters()));
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
        match (order, &self.lowest) {
            (Order::Set(_), _) => self.model.order(order),
            (Order::AddFault(_) | Order::ClearFaults, Lowest::Model(model)) => model.order(order),
            (Order::AddFault(_) | Order::ClearFaults, Lowest::Remote { far, .. }) => {
                Err(format!("the flash is {}: faults are ordered where it is", far.url()))
            }
        }
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        self.far().map(|far| far.clone() as Rc<dyn Source>).into_iter().collect()
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.lowest().map_or_else(Vec::new, |model| model.faults())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.model.settings()
    }
}
