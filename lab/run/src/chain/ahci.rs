//! An AHCI controller over several drives, which together are one drive in chunks (RAID-0). A [host](crate::cpu) sees the ports.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_ahci::{Ahci, Config, Counters, Port};
use nandscape_drive::layer::{Layer, LayerNode, LayerReport, Shown, full_key};
use nandscape_drive::{Drive, DriveInfo, Node, Offers, Opening, Refused, Role, Use};
use nandscape_layers_array::{ArrayLayer, Config as ArrayConfig, Shape};
use nandscape_sim::figures::{count, percent};
use nandscape_sim::units::Bytes;
use nandscape_sim::{Sim, Time};
use serde::Serialize;

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct AhciLayer {
    /// Ports, with a drive each.
    pub ports: usize,
    /// Settings.
    pub config: Config,
}

/// What a controller has counted in the measured phase.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct AhciReport {
    /// Ports.
    pub ports: u64,
    /// Command slots of each.
    pub slots: u64,
    /// Bytes of consecutive addresses on one drive.
    pub chunk_bytes: u64,
    /// The share of time in which the uplink moved data to the host; null if no time passed.
    pub uplink_to_host: Option<f64>,
    /// The same to the drives.
    pub uplink_to_drives: Option<f64>,
    /// Commands that waited for a slot, at the controller itself. With a strategy of a host they wait there.
    pub waited_for_slot: u64,
}

/// The ports of a controller, as a host takes them.
pub(crate) struct Ports {
    pub(crate) drives: Vec<Rc<Port>>,
    pub(crate) slots: u32,
    pub(crate) chunk_bytes: u64,
}

impl LayerReport for AhciReport {
    fn key(&self) -> &'static str {
        "ahci"
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    fn settings(&self) -> String {
        format!("{} ports, chunks of {}", self.ports, Bytes(self.chunk_bytes))
    }

    fn shown(&self) -> Vec<Shown> {
        let busy = |share: Option<f64>| percent(share.unwrap_or(0.0));
        vec![Shown::Line(format!(
            "uplink busy {} to the host, {} to the drives; {} commands waited for one of {} slots of their port",
            busy(self.uplink_to_host),
            busy(self.uplink_to_drives),
            count(self.waited_for_slot),
            self.slots
        ))]
    }
}

impl AhciLayer {
    /// Of its word, such as `ahci:6`, with changes of its settings.
    ///
    /// # Errors
    /// What is not valid, and what would be.
    pub fn read(word: &str, set: &[String]) -> Result<AhciLayer, String> {
        let ports = word.strip_prefix("ahci:").and_then(|ports| ports.parse().ok());
        let mut layer = AhciLayer::new(ports.ok_or_else(|| format!("{word:?} is not valid; ahci:N is"))?)?;
        let set_one = |change: &String| layer.config.set(&full_key("ahci", change)).map_err(|error| error.to_string());
        set.iter().try_for_each(set_one)?;
        Ok(layer)
    }

    /// A controller of so many ports, with the usual settings.
    ///
    /// # Errors
    /// That no controller has so many.
    pub fn new(ports: usize) -> Result<AhciLayer, String> {
        match (1..=Config::MOST_PORTS).contains(&ports) {
            true => Ok(AhciLayer { ports, config: Config::default() }),
            false => Err(format!("ahci:{ports} is not valid; valid are 1 to {} ports", Config::MOST_PORTS)),
        }
    }

    /// Several drives as one.
    fn array(&self) -> Option<ArrayLayer> {
        let shape: Option<Shape> = format!("raid0:{}", self.ports).parse().ok();
        Some(ArrayLayer { shape: shape?, config: ArrayConfig { chunk: self.config.chunk, ..ArrayConfig::default() } })
    }
}

impl Layer for AhciLayer {
    fn kind(&self) -> &'static str {
        "ahci"
    }

    fn bars_flash_commands(&self) -> Option<&'static str> {
        Some("ports take ATA commands")
    }

    fn takes(&self) -> usize {
        self.ports
    }

    fn layout(&self) -> Option<String> {
        Some(format!("ahci:{} with chunk={}", self.ports, Bytes(self.config.chunk)))
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.config.settings()
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        let (sim, name) = (how.sim, how.name);
        let entries = self.config.slots + 1;
        let connect = |node: &Rc<dyn Node>| node.connect(Use { role: Role::Any, entries });
        let drives = below.iter().map(connect).collect::<Result<Vec<_>, Refused>>();
        let drives = drives.map_err(|refused| refused.to_string())?;
        let config = Config { layer: name, ..self.config.clone() };
        let ahci = Ahci::new(sim, config, drives)?;
        let node = |(port, below): (&Rc<Port>, Rc<dyn Node>)| Rc::new(PortNode { port: port.clone(), below });
        let mut nodes: Vec<Rc<dyn Node>> =
            ahci.ports().iter().zip(below).map(|pair| node(pair) as Rc<dyn Node>).collect();
        let array = match self.array().filter(|_| nodes.len() > 1) {
            Some(array) => Some(array.open(how, std::mem::take(&mut nodes))?),
            None => None,
        };
        let begun = Cell::new((sim.now(), Counters::default()));
        let (settings, sim) = (self.config.clone(), sim.clone());
        Ok(Rc::new(AhciNode { settings, ahci, array, one: nodes.pop(), sim, begun }))
    }
}

/// A port with its drive.
struct PortNode {
    port: Rc<Port>,
    below: Rc<dyn Node>,
}

impl Node for PortNode {
    fn info(&self) -> DriveInfo {
        self.port.info()
    }

    /// All users share the slots of the port. Admin commands pass.
    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        match wanted.role {
            Role::Admin => self.below.connect(wanted),
            Role::Any | Role::Reads | Role::Writes => Ok(self.port.clone()),
        }
    }
}

struct AhciNode {
    settings: Config,
    ahci: Ahci,
    /// The drives as one; `None` of a single one.
    array: Option<Rc<dyn LayerNode>>,
    one: Option<Rc<dyn Node>>,
    sim: Sim,
    begun: Cell<(Time, Counters)>,
}

impl AhciNode {
    fn whole(&self) -> &dyn Node {
        match (&self.array, &self.one) {
            (Some(array), _) => &**array,
            (None, Some(one)) => &**one,
            (None, None) => unreachable!("a controller has a drive"),
        }
    }
}

impl Node for AhciNode {
    fn info(&self) -> DriveInfo {
        self.whole().info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        self.whole().connect(wanted)
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        let Config { slots, chunk: chunk_bytes, .. } = self.settings;
        let ports = || Rc::new(Ports { drives: self.ahci.ports().to_vec(), slots, chunk_bytes }) as Rc<dyn Any>;
        (of == TypeId::of::<Ports>()).then(ports)
    }
}

impl LayerNode for AhciNode {
    /// Several ports lie below an array. ATA has neither Copy nor deadlines.
    fn offers(&self, below: Offers) -> Offers {
        below.placed()
    }

    fn begin(&self) {
        self.begun.set((self.sim.now(), self.ahci.counters()));
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        let ((at, begun), now) = (self.begun.get(), self.ahci.counters());
        let elapsed = self.sim.now().since(at).ns() as f64;
        let share = |span: nandscape_sim::Span| (elapsed > 0.0).then(|| span.ns() as f64 / elapsed);
        Some(Arc::new(AhciReport {
            ports: self.ahci.ports().len() as u64,
            slots: self.settings.slots.into(),
            chunk_bytes: self.settings.chunk,
            uplink_to_host: share(now.to_host - begun.to_host),
            uplink_to_drives: share(now.to_drives - begun.to_drives),
            waited_for_slot: now.waited - begun.waited,
        }))
    }

    fn is_at_rest(&self) -> bool {
        self.array.as_ref().is_none_or(|array| array.is_at_rest())
    }

    fn take_held(&self) -> Result<Vec<u8>, String> {
        self.array.as_ref().map_or(Ok(Vec::new()), |array| array.take_held())
    }
}
