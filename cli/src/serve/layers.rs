//! `serve --over`: layers of a host between each drive, or an array of them, and its clients; and layers between an array and
//! its drives. `--set block.KEY=VALUE` adds a block layer.

use nandscape_lab_run::LiveSpec;
use nandscape_lab_run::chain::{Chain, Kind, LayerWords};

use super::array::ArrayArg;
use super::drives::check_below_layers;
use super::group::Group;
use crate::failure::Failure;

/// An array among layers.
pub(super) struct Arranged {
    /// The layers below it.
    pub(super) below: Vec<String>,
    /// The array.
    pub(super) array: ArrayArg,
    /// Its settings.
    pub(super) set: Vec<String>,
    /// The layers above it.
    pub(super) above: Vec<String>,
}

/// The name and the kind of a layer.
fn head(word: &str) -> String {
    word.split(',').next().unwrap_or_default().trim().to_owned()
}

fn is_array(word: &str) -> bool {
    let head = head(word);
    head.split_once('=').map_or(head.as_str(), |(_, kind)| kind).trim().starts_with("raid")
}

fn is_over_some(word: &str) -> bool {
    word.parse().is_ok_and(|words: LayerWords| !words.over.is_empty())
}

/// Layers that take several drives by a chain: with several arrays, with one whose commands are recorded, or of a tree. `array` is that
/// of `--array`.
pub(super) fn group(over: &[String], array: Option<&ArrayArg>, is_recorded: bool) -> Option<Group> {
    let arrays: Vec<&String> = over.iter().filter(|word| is_array(word)).collect();
    let count = arrays.len() + usize::from(array.is_some());
    let is_a_tree = over.iter().any(|word| is_over_some(word));
    if !is_a_tree && (count == 0 || count == 1 && !is_recorded) {
        return None;
    }
    let mut words = over.to_vec();
    let name = match (array, arrays.last()) {
        (Some(array), _) => {
            // Directly over the drives, or over their FTLs.
            words.insert(usize::from(begins_with_ftl(over)), array.shape.to_string());
            array.name.clone()
        }
        (None, last) => {
            last.and_then(|word| head(word).parse().ok()).map_or_else(String::new, |array: ArrayArg| array.name)
        }
    };
    Some(Group { words, name })
}

/// The array among layers, if there is one.
pub(super) fn arrange(over: &[String]) -> Result<Option<Arranged>, Failure> {
    let Some(place) = over.iter().position(|word| is_array(word)) else { return Ok(None) };
    let (below, word, above) = (&over[..place], &over[place], &over[place + 1..]);
    let array = head(word).parse().map_err(|problem| Failure::Input(anyhow::anyhow!("--over {word}: {problem}")))?;
    let setting = |change: &str| match change.trim().starts_with("array.") {
        true => change.trim().to_owned(),
        false => format!("array.{}", change.trim()),
    };
    let set = word.split(',').skip(1).map(setting).collect();
    Ok(Some(Arranged { below: below.to_vec(), array, set, above: above.to_vec() }))
}

/// Whether the lowest layer is the FTL of a host.
pub(super) fn begins_with_ftl(over: &[String]) -> bool {
    let lowest: Option<LayerWords> = over.first().and_then(|word| word.parse().ok());
    Chain { layers: lowest.into_iter().collect() }.has_ftl()
}

/// The layers, with their settings, and the other changes of keys.
pub(super) fn split(over: &[String], set: &[String]) -> Result<(Chain, Vec<String>), Failure> {
    let failed = |problem: String| Failure::Input(anyhow::anyhow!("--over: {problem}"));
    let layers = over.iter().map(|word| word.parse()).collect::<Result<Vec<_>, String>>().map_err(failed)?;
    let mut chain = Chain { layers };
    let others = chain.take_with_block(set).map_err(failed)?;
    chain.resolve().map_err(failed)?;
    Ok((chain, others))
}

/// Whether a change is one of a layer by the name of its kind. Those of arrays are an option's of `serve`.
pub(super) fn is_key(change: &str) -> bool {
    Kind::of_change(change).is_some_and(|kind| kind.name != "array")
}

/// Puts these layers over each drive.
pub(super) fn over(drives: &mut [LiveSpec], chain: &Chain) -> Result<(), Failure> {
    for drive in drives.iter_mut().filter(|_| !chain.is_empty()) {
        check_below_layers(drive)?;
        drive.chain.layers.extend(chain.layers.iter().cloned());
    }
    Ok(())
}
