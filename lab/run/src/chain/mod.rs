//! Layers of a host over the drives of a run: FTLs of open-channel drives, arrays, block layers, page caches, in any order. What a layer is
//! stands in [`nandscape_drive::layer`]; kinds that are no parts of devices are in crates of `layers`.
//!
//! | file | what |
//! |---|---|
//! | `mod` | how layers are opened over drives |
//! | `kinds` | the list of kinds |
//! | `words` | a chain as text: `raid5:4,technique=tea2` |
//! | `file` | a chain in a TOML file |
//! | `tree` | which nodes a layer lies over |
//! | `model` | the node at the bottom: a drive of this process |
//! | `ahci` | an AHCI controller over several drives |
//! | `ftl` | the FTL of a host over an open-channel drive |
//! | `section` | a layer's part of the report |
//! | `json` | JSON of a layer, with its fields in their order |
//!
//! A layer that takes one node lies over each node below it; one that takes several takes them in groups, in order. A layer with `over` takes the
//! drives and layers that it names. The jobs of a workload use what is at the top in turn.
//!
//! Left out: arrays in wall time, which open with their records ([`ArraySpec`](crate::ArraySpec)).

mod ahci;
mod file;
mod ftl;
mod json;
mod kinds;
mod model;
mod section;
mod tree;
mod words;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_ssd::Resolved;
use nandscape_drive::breakdown::layer_name;
use nandscape_drive::{Node, Offers, node};
use nandscape_layers_array::{Array, Schedule};
use nandscape_sim::Sim;

use crate::array_members::written_in_order;
use crate::record::Turns;

pub(crate) use ahci::Ports;
pub use ahci::{AhciLayer, AhciReport};
pub use ftl::{FtlLayer, FtlNode, FtlReport};
pub use kinds::{Kind, kinds, kinds_in_words};
pub use model::ModelNode;
pub use nandscape_drive::Opening;
pub use nandscape_drive::layer::{Layer, LayerNode, LayerReport, Shown};
pub use nandscape_layers_array::ArrayLayer;
pub use nandscape_layers_block::BlockOver;
pub use nandscape_layers_cache::{CacheLayer, CacheReport};
pub(crate) use section::names_of_members;
pub use section::{Section, drives_of_members, stacked};
use tree::Top;
pub(crate) use tree::{drives_of, instance, structure};
pub use words::{Chain, LayerWords};

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

/// The arrays among layers, the lowest first.
pub(crate) fn arrays(layers: &[Instance]) -> impl Iterator<Item = (&Instance, Rc<Array>)> {
    layers.iter().filter_map(|layer| Some((layer, node::view::<Array>(&*layer.node)?)))
}

/// The turns that drives of these names take: those of the lowest array that has some, if its members are these drives in order.
pub(crate) fn turns(layers: &[Instance], drives: &[&str]) -> Option<Turns> {
    let (layer, turns) = arrays(layers).find_map(|(layer, array)| Some((layer, Turns::of(&array)?)))?;
    let below = |name: &str| layers.iter().find(|one| one.name == name).map(|one| &one.over[..]);
    let members = drives_of(&layer.over, drives, &below);
    members.iter().enumerate().all(|(number, drive)| *drive == Some(number)).then_some(turns)
}

/// The windows of the drives below the lowest array that sets some.
pub(crate) fn schedule(layers: &[Instance]) -> Option<Schedule> {
    arrays(layers).find_map(|(_, array)| array.schedule())
}

/// The array that is the lowest layer: its settings reach the drives.
pub fn lowest_array(layers: &[Named]) -> Option<&ArrayLayer> {
    layers.first()?.layer.as_kind()
}

/// The FTL of a host that is the lowest layer.
pub(crate) fn lowest_ftl(layers: &[Named]) -> Option<&FtlLayer> {
    layers.first()?.layer.as_kind()
}

/// Drives that layers, as [`Chain::resolve`] gives them, need below them, so that one is at the top.
pub fn drives_below(layers: &[Named]) -> usize {
    tree::drives_below(layers).expect("layers that were resolved")
}

/// Whether the lowest layer is the FTL of a host: the flash below it has the state of a run through that layer only.
pub fn is_over_chunks(layers: &[Named]) -> bool {
    lowest_ftl(layers).is_some()
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
    match each.filter_map(|(name, one)| Some((name, one.layer.bars_flash_commands()?))).next() {
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
    let names = names(layers);
    for (number, (name, named)) in names.iter().cloned().zip(layers).enumerate() {
        let layer = &named.layer;
        words::check_name(&name)?;
        if names[..number].contains(&name) {
            return Err(format!("{name:?} is the name of two layers; another one is valid for the second"));
        }
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
