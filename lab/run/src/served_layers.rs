//! Layers of a host over a served drive: over a model, a remote drive or an array, served as one drive in wall time. A block
//! layer over a model is a host with MittOS that exports its drive.
//!
//! Clients put the deadline of a read into CDW3. A block layer completes a read that would be late with `BUSY` at once, and
//! returns the wait in DW0. Reads without a deadline have that of `block.deadline`.
//!
//! Left out: drives with several namespaces, or whose blocks are written in order; commands that are not forwarded, such as those of a
//! vendor; arrays as layers, which [`served_array`](crate::ArraySpec) opens with their records, and which may lie below.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_controller::Offers;
use nandscape_drive::{Drive, DriveInfo, Names, Node, Refused, Role, Use, node};
use nandscape_host_block::BlockLayer;
use nandscape_layers_array::Array;
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_transport_reactor::inside::{Inside, Layout};
use nandscape_transport_reactor::{Connect, Export, FaultCount, Fronted, Order, Source};
use nandscape_wire_nvme::Status;

use crate::chain::{self, Chain, Instance, ManagedView, Opening, Part, Section, open_in};
use crate::forwarded::Forwarded;
use crate::host_ftl::{HostedExport, HostedSpec};
use crate::live::{DriveSpec, SsdExport, offers_of_model};
use crate::saved::{self, HeldLayers, StateFile};
use crate::served_array;

/// A served drive as the node below layers.
struct ServedNode {
    export: Rc<dyn Export>,
    model: Option<Rc<SsdExport>>,
}

impl Node for ServedNode {
    fn info(&self) -> DriveInfo {
        self.export.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let refused = |what: &str, status| Refused { what: what.to_owned(), status, hint: "" };
        match wanted.role {
            Role::Admin => Err(refused("its admin queue is that of its server", Status::INVALID_QUEUE_ID)),
            Role::Any | Role::Reads | Role::Writes => {
                self.export.connect().map_err(|status| refused("it has no queue pair", status))
            }
        }
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        let model = self.model.as_ref().filter(|_| of == TypeId::of::<ManagedView>())?;
        Some(Rc::new(ManagedView::of(model.ssd(), model.profile().priority())))
    }
}

/// See the file.
pub struct LayersExport {
    below: Rc<dyn Export>,
    layers: Vec<Instance>,
    chain: Chain,
    front: Forwarded,
}

impl LayersExport {
    /// Layers over a served drive called `name`, which takes the commands of `offers`. `model` is the drive if it is a model.
    ///
    /// # Errors
    /// The layer that cannot lie over it, why, and what would be valid.
    pub fn over(
        (sim, seed): (&Sim, u64),
        name: &str,
        (below, offers): (Rc<dyn Export>, Offers),
        model: Option<Rc<SsdExport>>,
        (chain, held): (&Chain, &[Vec<u8>]),
    ) -> Result<LayersExport, String> {
        let failed = |problem: String| format!("drive {name}: {problem}");
        let layers = chain.resolve().map_err(failed)?;
        let node: Rc<dyn Node> = Rc::new(ServedNode { export: below.clone(), model });
        let opened = open_in(&Opening::new(sim, ""), &layers, vec![(name.to_owned(), node)], held).map_err(failed)?;
        let [top] = &opened.tops[..] else {
            return Err(failed("layers over one drive take one drive each".to_owned()));
        };
        let wanted = Use { role: Role::Any, entries: u32::MAX };
        let drive = top.connect(wanted).map_err(|refused| failed(refused.to_string()))?;
        let front =
            Forwarded::new(sim, drive, chain::offers(&opened.layers, offers), names(seed, name)).map_err(failed)?;
        Ok(LayersExport { below, layers: opened.layers, chain: chain.clone(), front })
    }

    /// Layers over a model. They begin in the state of its file if the file has their contents.
    ///
    /// # Errors
    /// As [`LayersExport::over`], or when the file cannot be used.
    pub fn over_model(
        in_run: (&Sim, u64),
        (spec, model): (&DriveSpec, &Rc<SsdExport>),
        chain: &Chain,
    ) -> Result<LayersExport, String> {
        let lowest = (model.clone() as Rc<dyn Export>, offers_of_model(&model.info()));
        let held = spec.from_state.as_ref().map_or(Ok(Vec::new()), |path| held_in(path, chain))?;
        let export = LayersExport::over(in_run, &spec.name, lowest, Some(model.clone()), (chain, &held))?;
        export.subsystem().iter().filter(|_| spec.is_shared).for_each(|subsystem| subsystem.report_several());
        Ok(export)
    }

    /// Layers over the FTL of a host. They begin in the state of its drive's file if the file has their contents.
    ///
    /// # Errors
    /// As [`LayersExport::over_model`].
    pub fn over_hosted(
        in_run: (&Sim, u64),
        (spec, hosted): (&HostedSpec, &Rc<HostedExport>),
        chain: &Chain,
    ) -> Result<LayersExport, String> {
        let lowest = (hosted.clone() as Rc<dyn Export>, offers_of_model(&hosted.info()));
        let held: Vec<Vec<u8>> = spec.held(chain)?.into_iter().skip(1).collect();
        let export = LayersExport::over(in_run, &spec.name, lowest, None, (chain, &held))?;
        let is_shared = spec.model().is_some_and(|model| model.is_shared);
        export.subsystem().iter().filter(|_| is_shared).for_each(|subsystem| subsystem.report_several());
        Ok(export)
    }

    /// The part of each layer in a report.
    pub(crate) fn sections(&self) -> Vec<Section> {
        self.layers.iter().map(Section::of).collect()
    }

    /// The contents of the layers at rest, for a saved state. The layers are not used afterwards.
    ///
    /// # Errors
    /// The layer that does not come to rest, or whose contents a new layer could not continue from.
    pub fn take_held(&self, executor: &mut Executor) -> Result<HeldLayers<'_>, String> {
        let sim = executor.sim();
        executor.block_on(saved::at_rest(&sim, &self.layers)).map_err(|stalled| stalled.to_string())??;
        Ok((&self.chain, saved::held(&self.layers)?))
    }

    /// The commands that it takes.
    pub fn offers(&self) -> Offers {
        self.front.offers()
    }

    /// The layers in words, from the bottom up.
    pub fn describe(&self) -> String {
        self.chain.in_words()
    }
}

/// The contents of layers of the same kinds, in the state of a file.
///
/// # Errors
/// When the file cannot be used.
pub(crate) fn held_in(path: &Path, chain: &Chain) -> Result<Vec<Vec<u8>>, String> {
    let resolved = chain.resolve()?;
    let held = StateFile::open(path).and_then(|file| file.load_held(&resolved));
    held.map_err(|error| format!("--from-state {error}"))
}

fn names(seed: u64, name: &str) -> Names {
    let own = Seed::new(seed).child("served block layer").child(name).value();
    Names {
        nqn: format!("nqn.2026-11.org.nandscape:block-{own:016x}"),
        serial: format!("NB{own:016x}"),
        model: "Nandscape layers".to_owned(),
        firmware: env!("CARGO_PKG_VERSION").chars().take(8).collect(),
    }
}

/// What a layer has counted, by the names of metrics.
pub(crate) fn counters(layer: &Instance) -> BTreeMap<&'static str, f64> {
    if let Some(block) = node::view::<BlockLayer>(&*layer.node) {
        return crate::block::counters(&block).into();
    }
    if let Some(array) = node::view::<Array>(&*layer.node) {
        return served_array::export::counters(&array);
    }
    match layer.node.part() {
        Part::Cache(cache) => BTreeMap::from([
            ("cache_hits_total", cache.hits as f64),
            ("cache_misses_total", cache.misses as f64),
            ("cache_loaded_pages_total", cache.loaded_pages as f64),
            ("cache_evicted_pages_total", cache.evicted_pages as f64),
            ("cache_reads_rejected_total", cache.rejected as f64),
        ]),
        Part::Ahci(_) | Part::Array(_) | Part::Block(_) | Part::Ftl(_) | Part::Other => BTreeMap::new(),
    }
}

impl Fronted for LayersExport {
    fn front(&self) -> &dyn Connect {
        &self.front
    }
}

impl Export for LayersExport {
    /// Those of the drive and of the layers; of two layers of a kind the upper one's, as those of each are parts.
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        let mut all = self.below.counters();
        self.layers.iter().for_each(|layer| all.extend(counters(layer)));
        all
    }

    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        let mut parts = self.below.parts();
        if self.layers.len() > 1 {
            parts.extend(self.layers.iter().map(|layer| (layer.name.clone(), counters(layer))));
        }
        parts
    }

    fn read_only(&self) -> Option<String> {
        self.below.read_only()
    }

    fn layout(&self) -> Option<Layout> {
        self.below.layout()
    }

    fn inside(&self, with_wear: bool) -> Option<Inside> {
        self.below.inside(with_wear)
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        match order {
            Order::Set(setting) if self.layers.iter().any(|layer| is_of(layer, setting)) => {
                Err(format!("{setting}: settings of layers do not change at work"))
            }
            order => self.below.order(order),
        }
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        self.below.sources()
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.below.faults()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.below.settings()
    }
}

/// Whether a setting is one of a layer: `NAME.KEY=VALUE`.
fn is_of(layer: &Instance, setting: &str) -> bool {
    setting.strip_prefix(layer.name.as_str()).is_some_and(|rest| rest.starts_with('.'))
}
