//! Arrays, and Flash on Rails, as layers.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_controller::Offers;
use nandscape_drive::{Drive, DriveInfo, Node, Refused, Role, Use};
use nandscape_layers_array::{Array, Config, Member, Rails, Schedule, Shape, Stats, Technique};
use nandscape_sim::units::Bytes;
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::Status;

use super::{Layer, LayerNode, Opening, Part, placed};
use crate::array::{ArrayReport, ENTRIES, RailsReport};
use crate::array_history::History;
use crate::record::Turns;

/// An array over drives or layers that hold zeros, of which nothing was read or written.
#[derive(Clone, Debug)]
pub struct ArrayLayer {
    /// Level and members.
    pub shape: Shape,
    /// Settings.
    pub config: Config,
}

impl Layer for ArrayLayer {
    fn kind(&self) -> &'static str {
        "array"
    }

    fn keeps_from_chunks(&self) -> Option<&'static str> {
        Some("it places blocks on several drives")
    }

    fn takes(&self) -> usize {
        self.shape.members + self.config.spares
    }

    fn array(&self) -> Option<&ArrayLayer> {
        Some(self)
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
        let members = below.iter().map(|node| member(&**node, true)).collect::<Result<Vec<_>, String>>()?;
        let array = Array::new(sim, self.shape, config, members).map_err(|error| error.to_string())?;
        let history = Rc::<History>::default();
        let (clock, told) = (sim.clone(), history.clone());
        array.listen(move |news| told.tell(clock.now(), news));
        let begun = RefCell::new((sim.now(), array.stats()));
        Ok(Rc::new(ArrayNode { array, below, sim: sim.clone(), history, begun }))
    }
}

/// The connections of an array to one of its members. Without an admin queue, it is not notified of windows.
pub(crate) fn member(node: &dyn Node, with_admin: bool) -> Result<Member, String> {
    let connect = |role| node.connect(Use { role, entries: ENTRIES }).map_err(|refused| refused.to_string());
    let admin = with_admin.then(|| node.connect(Use { role: Role::Admin, entries: ENTRIES }).ok()).flatten();
    Ok(Member { io: connect(Role::Writes)?, reads: Some(connect(Role::Reads)?), admin })
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
        placed(below)
    }

    fn begin(&self) {
        self.begun.replace((self.sim.now(), self.array.stats()));
    }

    fn part(&self) -> Part {
        let (at, stats) = &*self.begun.borrow();
        let (member_failures, rebuilds) = (self.history.failures(*at), self.history.rebuilds(*at));
        Part::Array(Box::new(ArrayReport { member_failures, rebuilds, ..ArrayReport::of(&self.array, stats) }))
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

    fn turns(&self) -> Option<Turns> {
        let ranges = usize::from(self.array.config().ranges).max(1);
        self.array.turns().map(|places| Turns { places, ranges })
    }

    fn schedule(&self) -> Option<Schedule> {
        self.array.schedule()
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
        placed(below)
    }

    /// Both drives have all writes.
    fn is_at_rest(&self) -> bool {
        self.rails.is_at_rest()
    }

    fn part(&self) -> Part {
        let (swaps, most_missed_bytes) = (self.rails.swaps(), self.rails.most_missed());
        Part::Array(Box::new(ArrayReport {
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
