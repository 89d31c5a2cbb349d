//! Layers of a host over the drives of a run: FTLs of open-channel drives, arrays, block layers, page caches, in any order.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the kinds' trait, and how layers are opened over drives |
//! | `words` | a chain as text: `raid5:4,technique=tea2` |
//! | `file` | a chain in a TOML file |
//! | `tree` | which nodes a layer lies over |
//! | `model` | the node at the bottom: a drive of this process |
//! | `array` | arrays |
//! | `ahci` | an AHCI controller over several drives |
//! | `block` | a block layer with deadlines |
//! | `cache` | a page cache |
//! | `ftl` | the FTL of a host over an open-channel drive |
//! | `section` | a layer's part of the report |
//!
//! A layer that takes one node lies over each node below it; one that takes several takes them in groups, in order. A layer with `over` takes the
//! drives and layers that it names. The jobs of a workload use what is at the top in turn.
//!
//! Left out: arrays in wall time, which open with their records ([`ArraySpec`](crate::ArraySpec)).

mod ahci;
mod array;
mod block;
mod cache;
mod file;
mod ftl;
mod model;
mod section;
mod tree;
mod words;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_controller::Offers;
use nandscape_device_ssd::Resolved;
use nandscape_drive::Node;
use nandscape_drive::breakdown::layer_name;
use nandscape_layers_array::Schedule;
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::identify::DLFEAT_WRITE_ZEROES;
use nandscape_wire_nvme::vendor::HINT_TIME;

use crate::array_members::written_in_order;
pub use crate::block::ManagedView;
use crate::build::Precondition;
use crate::record::Turns;
use crate::simulation::Progress;

pub(crate) use ahci::Ports;
pub use ahci::{AhciLayer, AhciReport};
pub use array::ArrayLayer;
pub(crate) use array::member;
pub use block::BlockOver;
pub use cache::{CacheLayer, CacheReport};
pub use ftl::{FtlLayer, FtlNode, FtlReport};
pub use model::ModelNode;
pub(crate) use section::names_of_members;
pub use section::{Part, Section, drives_of_members, stacked};
use tree::Top;
pub(crate) use tree::{drives_of, instance, structure};
pub use words::{Chain, LayerWords};

/// How a layer is opened.
pub struct Opening<'a> {
    /// The simulation that it is part of.
    pub sim: &'a Sim,
    /// The name in breakdowns, which all of its instances share.
    pub name: &'static str,
    /// The name of the instance.
    pub instance: &'a str,
    /// Seed of everything random in the instance.
    pub seed: Seed,
    /// The state that a layer with flash begins in; drives below have their own.
    pub precondition: Precondition,
    /// Receives the progress of reaching that state.
    pub progress: &'a dyn Progress,
    /// The contents of a layer of its kind, from which it continues; empty if it begins anew.
    pub held: &'a [u8],
}

impl<'a> Opening<'a> {
    /// Of a new layer, called `name`.
    pub fn new(sim: &'a Sim, name: &'a str) -> Opening<'a> {
        Opening {
            sim,
            name: layer_name(name),
            instance: name,
            seed: Seed::new(1),
            precondition: Precondition::None,
            progress: &(),
            held: &[],
        }
    }
}

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

    /// The FTL of a host, if it is one.
    fn ftl(&self) -> Option<&FtlLayer> {
        None
    }

    /// Where it places data on what lies below, in words; `None` of one that passes addresses on. States fit where these agree.
    fn layout(&self) -> Option<String> {
        None
    }

    /// Whether it continues from contents that another one held.
    fn holds(&self) -> bool {
        false
    }

    /// Why no command on the chunks of an open-channel drive passes it; `None` of one that passes all of them.
    fn keeps_from_chunks(&self) -> Option<&'static str> {
        Some("it takes commands on blocks")
    }

    /// Its settings with their values, by key.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Opens one over `below`, as many nodes as it takes.
    ///
    /// # Errors
    /// Why it cannot lie over these nodes, and what would be valid.
    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String>;
}

/// A layer on its way to rest.
pub type Rest<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// A layer that is open.
pub trait LayerNode: Node {
    /// Commands and fields that it passes, of those that the node below takes. The front of a chain completes all others with Invalid
    /// Command Opcode. Below the lowest layer these are those of a model, also where a host's FTL lies over chunks.
    fn offers(&self, below: Offers) -> Offers;

    /// The measured phase begins: what is counted is counted from here on.
    fn begin(&self) {}

    /// Its part of the report.
    fn part(&self) -> Part {
        Part::Other
    }

    /// Checks its tables against each other.
    ///
    /// # Errors
    /// The problem, in one sentence.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether nothing is under way in it that would change what it holds, or what lies below.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// Brings flash that it manages to rest, once the layers above it are. No command follows.
    ///
    /// # Errors
    /// Why it cannot come to rest.
    fn come_to_rest(&self) -> Rest<'_> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The FTL of a host, if it is one.
    fn ftl(&self) -> Option<&FtlNode> {
        None
    }

    /// What it holds at rest, taken out of it for a saved state; nothing of a layer that begins anew. It is not used any more.
    ///
    /// # Errors
    /// Why a new layer could not continue from here.
    fn take_held(&self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
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
    /// The names of the drives and layers that it lies over; empty: all that is at the top.
    pub over: Vec<String>,
    /// The layer.
    pub layer: Arc<dyn Layer>,
}

impl<L: Layer + 'static> From<L> for Named {
    fn from(layer: L) -> Named {
        Named { name: None, over: Vec::new(), layer: Arc::new(layer) }
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
    /// Those of each layer, and what it lies over, where that is given.
    pub fn of(layers: &[Named]) -> Vec<LayerSettings> {
        let of = |(layer, named): (String, &Named)| {
            let over = (!named.over.is_empty()).then(|| ("over", named.over.join("+")));
            LayerSettings { layer, settings: named.layer.settings().into_iter().chain(over).collect() }
        };
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

/// The commands and fields that the highest of some layers takes, over drives that take `of_drive`.
pub fn offers(layers: &[Instance], of_drive: Offers) -> Offers {
    let (mut all, mut top) = (BTreeMap::<&str, Offers>::new(), of_drive);
    for layer in layers {
        let of = |name: &String| *all.get(&**name).unwrap_or(&of_drive);
        let below = layer.over.iter().map(of).reduce(Offers::of_both).unwrap_or(of_drive);
        top = layer.node.offers(below);
        all.insert(&layer.name, top);
    }
    // Attributes of reads are for what serves them next.
    Offers { attributes: 0, ..top }
}

/// The turns that drives of these names take: those of the lowest layer that has some, if its members are these drives in order.
pub(crate) fn turns(layers: &[Instance], drives: &[&str]) -> Option<Turns> {
    let (layer, turns) = layers.iter().find_map(|layer| Some((layer, layer.node.turns()?)))?;
    let below = |name: &str| layers.iter().find(|one| one.name == name).map(|one| &one.over[..]);
    let members = drives_of(&layer.over, drives, &below);
    members.iter().enumerate().all(|(number, drive)| *drive == Some(number)).then_some(turns)
}

/// Of a layer that places data elsewhere. It would have to split a Copy or a Write Uncorrectable, and sends commands of its own, which
/// have no deadline.
pub(crate) fn placed(below: Offers) -> Offers {
    let dlfeat = below.dlfeat & !DLFEAT_WRITE_ZEROES;
    Offers { copy: false, write_uncorrectable: false, dlfeat, attributes: 0, hints: 0, deadlines: false, ..below }
}

/// Of a layer that also completes reads with `BUSY` that would be late.
fn answering(below: Offers) -> Offers {
    Offers { hints: below.hints | HINT_TIME, deadlines: true, ..below }
}

/// Drives that layers, as [`Chain::resolve`] gives them, need below them, so that one is at the top.
pub fn drives_below(layers: &[Named]) -> usize {
    tree::drives_below(layers).expect("layers that were resolved")
}

/// Whether the lowest layer is the FTL of a host: the flash below it has the state of a run through that layer only.
pub fn is_over_chunks(layers: &[Named]) -> bool {
    layers.first().is_some_and(|lowest| lowest.layer.ftl().is_some())
}

/// Checks that the lowest of some layers can lie over a drive.
///
/// # Errors
/// Why it cannot, and what would be valid.
pub fn check_over(layers: &[Named], drive: &Resolved) -> Result<(), String> {
    let name = &drive.name;
    let namespaces = drive.namespaces().len();
    match (is_over_chunks(layers), written_in_order(drive)) {
        _ if namespaces > 1 => Err(format!(
            "drive {name} has {namespaces} namespaces, and layers lie over one; a profile with one FTL is valid, such as default"
        )),
        (true, _) if drive.open_channel().is_none() => Err(format!(
            "drive {name} has its own FTL, and ftl is that of an open-channel drive; a profile with ftl.kind=open_channel is valid, such as \
             dfc-mlc with buffer.mode=through"
        )),
        (true, _) | (false, None) => Ok(()),
        (false, Some("chunks")) => {
            Err(format!("drive {name} has chunks, and layers write anywhere; the layer ftl is valid as the lowest one"))
        }
        (false, Some(has)) => Err(format!(
            "drives of {name} have {has}, and layers write anywhere; a profile with a block interface is valid, such as default"
        )),
    }
}

/// Checks that a user of the chunks of an open-channel drive can reach them through layers.
///
/// # Errors
/// The layer that keeps it from them, why, and what would be valid.
pub fn check_chunks(layers: &[Named]) -> Result<(), String> {
    let each = names(layers).into_iter().zip(layers);
    match each.filter_map(|(name, one)| Some((name, one.layer.keeps_from_chunks()?))).next() {
        Some((name, why)) => Err(format!("layer {name} passes no commands on chunks: {why}; block is valid")),
        None => Ok(()),
    }
}

/// Opens layers over drives, which have names. All begin new.
///
/// # Errors
/// The layer that cannot lie over what is below it, why, and what would be valid.
pub fn open(sim: &Sim, layers: &[Named], drives: Vec<(String, Rc<dyn Node>)>) -> Result<Opened, String> {
    open_in(&Opening::new(sim, ""), layers, drives, &[])
}

/// The same, with the seed, the state and the progress of `how`. Layers continue from what others `held`, in the same order; all
/// begin anew where nothing is given.
///
/// # Errors
/// As [`open`], and the layer that cannot hold it.
pub fn open_in(
    how: &Opening<'_>,
    layers: &[Named],
    drives: Vec<(String, Rc<dyn Node>)>,
    held: &[Vec<u8>],
) -> Result<Opened, String> {
    let (names_of_drives, mut nodes): (Vec<String>, Vec<Rc<dyn Node>>) = drives.into_iter().unzip();
    let (mut opened, mut tops): (Vec<Instance>, _) = (Vec::new(), Top::of_drives(names_of_drives.into_iter()));
    for (name, named) in names(layers).into_iter().zip(layers) {
        let layer = &named.layer;
        let groups = tree::groups(named, &tops).map_err(|problem| format!("{name}: {problem}"))?;
        let (mut names_above, mut above): (Vec<Top>, Vec<Rc<dyn Node>>) = Default::default();
        for (number, group) in groups.iter().enumerate() {
            let one = tree::instance(&name, number, groups.len());
            let (over, below) = group.iter().map(|number| (tops[*number].name.clone(), nodes[*number].clone())).unzip();
            let held = held.get(opened.len()).map_or(&[][..], Vec::as_slice);
            if !held.is_empty() && !layer.holds() {
                return Err(format!("{one}: {} bytes are held by a layer that holds nothing", held.len()));
            }
            let how = Opening { name: layer_name(&name), instance: &one, seed: how.seed.child(&one), held, ..*how };
            let node = layer.open(&how, below).map_err(|problem| format!("{one}: {problem}"))?;
            names_above.push(Top::of_layer(one.clone()));
            above.push(node.clone());
            opened.push(Instance { name: one, over, node });
        }
        tops = tree::replace(tops, &groups, names_above);
        nodes = tree::replace(nodes, &groups, above);
    }
    Ok(Opened { layers: opened, tops: nodes })
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

    #[test]
    fn settings_have_what_a_layer_lies_over() {
        let over = |words: &[&str]| {
            let all = LayerSettings::of(&named(words));
            let lines = all.iter().flat_map(LayerSettings::lines).filter(|line| line.contains(".over = "));
            lines.collect::<Vec<_>>()
        };
        let mirror = "raid1:2,over=drive-0+fast";
        assert_eq!(over(&["fast=cache,over=drive-1", mirror]), ["fast.over = drive-1", "array.over = drive-0+fast"]);
        assert!(over(&["raid1:2", "cache"]).is_empty());
    }

    #[test]
    fn chunks_are_reached_through_block_layers_only() {
        assert_eq!(check_chunks(&named(&["block", "top=block,scheduler=cfq"])), Ok(()));
        for (words, name) in [
            (["block", "raid1:2"], "array"),
            (["ahci:2", "block"], "ahci"),
            (["block", "fast=cache,memory=1MiB"], "fast"),
            (["ftl", "block"], "host_ftl"),
        ] {
            let refused = check_chunks(&named(&words)).unwrap_err();
            let (begin, end) = (format!("layer {name} passes no commands on chunks: "), "; block is valid");
            assert!(refused.starts_with(&begin) && refused.ends_with(end), "{refused}");
        }
    }
}
