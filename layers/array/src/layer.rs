//! Arrays, and Flash on Rails, as layers of a chain. An open array shows its [`Array`] as a view.
//!
//! Left out: arrays that keep records on their members, which a server opens.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_drive::layer::{Layer, LayerNode, LayerReport, full_key};
use nandscape_drive::{Drive, DriveInfo, Node, Offers, Opening, Refused, Role, Use};
use nandscape_sim::units::Bytes;
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::Status;

use crate::array::Array;
use crate::config::Config;
use crate::history::History;
use crate::level::Shape;
use crate::member::{ENTRIES, Member};
use crate::rails::Rails;
use crate::report::{ArrayReport, RailsReport, counters};
use crate::stats::Stats;
use crate::tail::Technique;

/// An array over drives or layers that hold zeros, of which nothing was read or written.
#[derive(Clone, Debug)]
pub struct ArrayLayer {
    /// Level and members.
    pub shape: Shape,
    /// Settings.
    pub config: Config,
}

impl ArrayLayer {
    /// Of its level and members, such as `raid5:4`, with changes of its settings.
    ///
    /// # Errors
    /// What is not valid, and what would be.
    pub fn read(shape: &str, set: &[String]) -> Result<ArrayLayer, String> {
        let shape: Shape = shape.parse().map_err(|error| format!("{error}"))?;
        let mut config = Config::default();
        for change in set.iter().map(|change| full_key("array", change)) {
            let key = change.split('=').next().unwrap_or_default().trim();
            if ["array.journal", "array.force"].contains(&key) {
                return Err(format!(
                    "{key}: an array of a simulation is new in each run, and has no journal; leave it out"
                ));
            }
            config.set(&change).map_err(|error| error.to_string())?;
        }
        config.check(shape).map_err(|error| error.to_string())?;
        Ok(ArrayLayer { shape, config })
    }
}

impl Layer for ArrayLayer {
    fn kind(&self) -> &'static str {
        "array"
    }

    fn bars_flash_commands(&self) -> Option<&'static str> {
        Some("it places blocks on several drives")
    }

    fn takes(&self) -> usize {
        self.shape.members + self.config.spares
    }

    fn layout(&self) -> Option<String> {
        let spares = if self.config.spares > 0 { format!(", spares={}", self.config.spares) } else { String::new() };
        Some(format!("{} with chunk={}{spares}", self.shape, Bytes(self.config.chunk)))
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.config.settings()
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        let (sim, name) = (how.sim, how.name);
        let config = Config { layer: name, ..self.config.clone() };
        config.check(self.shape).map_err(|error| error.to_string())?;
        if config.technique == Technique::Rails {
            return Ok(RailsNode::open(sim, config, &below)?);
        }
        let members = below.iter().map(|node| Member::on(&**node, true)).collect::<Result<Vec<_>, String>>()?;
        let array = Array::new(sim, self.shape, config, members).map_err(|error| error.to_string())?;
        let history = Rc::<History>::default();
        let (clock, told) = (sim.clone(), history.clone());
        array.listen(move |news| told.tell(clock.now(), news));
        let begun = RefCell::new((sim.now(), array.stats()));
        Ok(Rc::new(ArrayNode { array, below, sim: sim.clone(), history, begun }))
    }
}

/// Connections to each node.
fn paths(below: &[Rc<dyn Node>], wanted: Use) -> Result<Vec<Rc<dyn Drive>>, Refused> {
    if wanted.role == Role::Admin {
        let what = "an array has no admin queue".to_owned();
        return Err(Refused { what, status: Status::INVALID_QUEUE_ID, hint: "" });
    }
    below.iter().map(|node| node.connect(wanted)).collect()
}

struct ArrayNode {
    array: Rc<Array>,
    below: Vec<Rc<dyn Node>>,
    sim: Sim,
    history: Rc<History>,
    begun: RefCell<(Time, Stats)>,
}

impl Node for ArrayNode {
    fn info(&self) -> DriveInfo {
        self.array.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        Ok(self.array.over(paths(&self.below, wanted)?))
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        (of == TypeId::of::<Array>()).then(|| self.array.clone() as Rc<dyn Any>)
    }
}

impl LayerNode for ArrayNode {
    fn offers(&self, below: Offers) -> Offers {
        below.placed()
    }

    fn begin(&self) {
        self.begun.replace((self.sim.now(), self.array.stats()));
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        let (at, stats) = &*self.begun.borrow();
        let (member_failures, rebuilds) = (self.history.failures(*at), self.history.rebuilds(*at));
        Some(Arc::new(ArrayReport { member_failures, rebuilds, ..ArrayReport::of(&self.array, stats) }))
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        counters(&self.array)
    }

    fn is_at_rest(&self) -> bool {
        self.array.is_at_rest()
    }

    fn take_held(&self) -> Result<Vec<u8>, String> {
        let is_moved = |(member, drive): (usize, usize)| member != drive;
        if !self.array.missing().is_empty() || self.array.drives().into_iter().enumerate().any(is_moved) {
            return Err("a member has failed, and an array begins with all of its members in their places".to_owned());
        }
        match self.array.stats().condemned {
            0 => Ok(Vec::new()),
            chunks => Err(format!("it knows {chunks} chunks that can no longer be read, which a new array would not")),
        }
    }
}

struct RailsNode {
    rails: Rc<Rails>,
    below: Vec<Rc<dyn Node>>,
    config: Config,
}

impl RailsNode {
    fn open(sim: &Sim, config: Config, below: &[Rc<dyn Node>]) -> Result<Rc<RailsNode>, String> {
        let own = paths(below, Use { role: Role::Any, entries: ENTRIES }).map_err(|refused| refused.to_string())?;
        let rails = Rails::new(sim, config.layer, config.swap, two(own)).map_err(|error| error.to_string())?;
        Ok(Rc::new(RailsNode { rails, below: below.to_vec(), config }))
    }
}

fn two(paths: Vec<Rc<dyn Drive>>) -> [Rc<dyn Drive>; 2] {
    paths.try_into().unwrap_or_else(|_| unreachable!("it was checked: two drives"))
}

impl Node for RailsNode {
    fn info(&self) -> DriveInfo {
        self.rails.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        Ok(self.rails.over(two(paths(&self.below, wanted)?)))
    }
}

impl LayerNode for RailsNode {
    fn offers(&self, below: Offers) -> Offers {
        below.placed()
    }

    /// Both drives have all writes.
    fn is_at_rest(&self) -> bool {
        self.rails.is_at_rest()
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        let (swaps, most_missed_bytes) = (self.rails.swaps(), self.rails.most_missed());
        Some(Arc::new(ArrayReport {
            array: "raid1:2".to_owned(),
            technique: Technique::Rails.name(),
            tolerates: 0,
            chunk_bytes: self.config.chunk,
            bytes: self.rails.info().bytes(),
            rails: Some(RailsReport { swaps, most_missed_bytes }),
            ..ArrayReport::default()
        }))
    }
}
