//! Layers of a host over the drives of a run: arrays, block layers, page caches, in any order.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the kinds' trait, and how layers are opened over drives |
//! | `words` | a chain as text: `raid5:4,technique=tea2` |
//! | `model` | the node at the bottom: a drive of this process |
//! | `array` | arrays |
//! | `ahci` | an AHCI controller over several drives |
//! | `block` | a block layer with deadlines |
//! | `cache` | a page cache |
//! | `section` | a layer's part of the report |
//!
//! A layer that takes one node lies over each node below it; one that takes several takes them in groups, in order. The jobs of
//! a workload use what is at the top in turn.
//!
//! Left out: arrays in wall time, which open with their records ([`ArraySpec`](crate::ArraySpec)).

mod ahci;
mod array;
mod block;
mod cache;
mod model;
mod section;
mod words;

use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_drive::Node;
use nandscape_drive::breakdown::layer_name;
use nandscape_host_array::Schedule;
use nandscape_sim::Sim;

use crate::record::Turns;

pub(crate) use ahci::Ports;
pub use ahci::{AhciLayer, AhciReport};
pub use array::ArrayLayer;
pub(crate) use array::member;
pub use block::{BlockOver, ManagedView};
pub use cache::{CacheLayer, CacheReport};
pub use model::ModelNode;
pub use section::{Part, Section};
pub use words::{Chain, LayerWords};

/// A layer that is to be opened: its kind with its settings.
pub trait Layer: Debug + Send + Sync {
    /// What it is called among the layers of a chain, unless the user gives it a name.
    fn kind(&self) -> &'static str;

    /// Nodes that one of it takes. One that takes a single node lies over each.
    fn takes(&self) -> usize {
        1
    }

    /// The array, if it is one.
    fn array(&self) -> Option<&ArrayLayer> {
        None
    }

    /// Where it places data on what lies below, in words; `None` of one that passes addresses on. States fit where these agree.
    fn layout(&self) -> Option<String> {
        None
    }

    /// Whether it has reads that would miss their deadlines end at once.
    fn answers_deadlines(&self) -> bool {
        false
    }

    /// Its settings with their values, by key.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Opens one over `below`, as many nodes as it takes. In breakdowns it is called `name`.
    ///
    /// # Errors
    /// Why it cannot lie over these nodes, and what would be valid.
    fn open(&self, sim: &Sim, name: &'static str, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String>;
}

/// A layer that is open.
pub trait LayerNode: Node {
    /// The measured phase begins: what is counted is counted from here on.
    fn begin(&self) {}

    /// Its part of the report.
    fn part(&self) -> Part {
        Part::Other
    }

    /// Whether nothing is under way in it that would change what it holds, or what lies below.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// What it holds at rest, taken out of it for a saved state; nothing of a layer that begins anew. It is not used any more.
    ///
    /// # Errors
    /// Why a new layer could not continue from here.
    fn take_held(&self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    /// Continues from the contents of a layer of its kind.
    ///
    /// # Errors
    /// When these are no contents of its kind.
    fn hold(&self, held: &[u8]) -> Result<(), String> {
        match held.len() {
            0 => Ok(()),
            bytes => Err(format!("{bytes} bytes are held by a layer that holds nothing")),
        }
    }

    /// The turns of the drives below, if they take turns.
    fn turns(&self) -> Option<Turns> {
        None
    }

    /// The windows of the drives below that are in force now.
    fn schedule(&self) -> Option<Schedule> {
        None
    }
}

/// A layer of a chain, with the name that the user gave it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name; `None` is that of its kind.
    pub name: Option<String>,
    /// The layer.
    pub layer: Arc<dyn Layer>,
}

impl<L: Layer + 'static> From<L> for Named {
    fn from(layer: L) -> Named {
        Named { name: None, layer: Arc::new(layer) }
    }
}

/// The settings of a layer, with their values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayerSettings {
    /// The layer's name.
    pub layer: String,
    /// Values by key.
    pub settings: Vec<(&'static str, String)>,
}

impl LayerSettings {
    /// Those of each layer.
    pub fn of(layers: &[Named]) -> Vec<LayerSettings> {
        let of = |(layer, named): (String, &Named)| LayerSettings { layer, settings: named.layer.settings() };
        names(layers).into_iter().zip(layers).map(of).collect()
    }

    /// A line for each: `array.chunk = 4KiB`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.settings.iter().map(|(key, value)| format!("{}.{key} = {value}", self.layer))
    }
}

/// Layers at work.
pub struct Opened {
    /// All of them by name, the lowest first.
    pub layers: Vec<Instance>,
    /// What the jobs use, in turn.
    pub tops: Vec<Rc<dyn Node>>,
}

/// Layers go on from what others held, in the same order; all begin anew where nothing is given.
///
/// # Errors
/// The layer that cannot hold it.
pub(crate) fn hold(layers: &[Instance], held: &[Vec<u8>]) -> Result<(), String> {
    let hold = |(layer, held): (&Instance, &Vec<u8>)| {
        layer.node.hold(held).map_err(|problem| format!("layer {}: {problem}", layer.name))
    };
    layers.iter().zip(held).try_for_each(hold)
}

/// One layer at work.
pub struct Instance {
    /// Its name, with a number if it is one of several over the nodes of a chain.
    pub name: String,
    /// The names of the nodes that it lies over.
    pub over: Vec<String>,
    /// The layer.
    pub node: Rc<dyn LayerNode>,
}

/// The names of layers, the lowest first: those of one kind that have none are numbered.
pub fn names(layers: &[Named]) -> Vec<String> {
    let unnamed = |kind: &str| layers.iter().filter(|one| one.name.is_none() && one.layer.kind() == kind).count();
    let mut seen: Vec<&'static str> = Vec::new();
    let mut name = |one: &Named| {
        let kind = one.layer.kind();
        match &one.name {
            Some(name) => name.clone(),
            None if unnamed(kind) == 1 => kind.to_owned(),
            None => {
                seen.push(kind);
                format!("{kind}-{}", seen.iter().filter(|other| **other == kind).count())
            }
        }
    };
    layers.iter().map(&mut name).collect()
}

/// Where arrays among layers place data, in words, the lowest first.
pub fn layout(layers: &[Named]) -> Vec<String> {
    layers.iter().filter_map(|one| one.layer.layout()).collect()
}

/// Drives that layers need below them: one at the top, where they take several.
pub fn drives_below(layers: &[Named]) -> usize {
    layers.iter().map(|one| one.layer.takes()).product()
}

/// Opens layers over drives, which have names.
///
/// # Errors
/// The layer that cannot lie over what is below it, why, and what would be valid.
pub fn open(sim: &Sim, layers: &[Named], drives: Vec<(String, Rc<dyn Node>)>) -> Result<Opened, String> {
    let (mut opened, mut nodes) = (Vec::new(), drives);
    for (name, Named { layer, .. }) in names(layers).into_iter().zip(layers) {
        let (takes, count) = (layer.takes(), nodes.len());
        if takes == 0 || count == 0 || !count.is_multiple_of(takes) {
            return Err(format!("{name}: {count} drives or layers lie below it, and it takes {takes} at a time"));
        }
        let several = count > takes;
        let mut above: Vec<(String, Rc<dyn Node>)> = Vec::new();
        for (number, group) in nodes.chunks(takes).enumerate() {
            let one = if several { format!("{name}/{number}") } else { name.clone() };
            let (over, below) = group.iter().cloned().unzip();
            let node = layer.open(sim, layer_name(&name), below).map_err(|problem| format!("{one}: {problem}"))?;
            above.push((one.clone(), node.clone() as Rc<dyn Node>));
            opened.push(Instance { name: one, over, node });
        }
        nodes = above;
    }
    Ok(Opened { layers: opened, tops: nodes.into_iter().map(|(_, node)| node).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> Vec<Named> {
        let chain = Chain { layers: words.iter().map(|word| word.parse().unwrap()).collect() };
        chain.resolve().unwrap()
    }

    #[test]
    fn layers_of_a_kind_are_numbered_unless_they_are_named() {
        let all = named(&["block", "raid1:2", "fast=cache,memory=1MiB", "raid0:2", "cache"]);
        assert_eq!(names(&all), ["block", "array-1", "fast", "array-2", "cache"]);
        assert_eq!(drives_below(&all), 4);
        assert_eq!(drives_below(&[]), 1);
    }
}
