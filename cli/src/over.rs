//! `--over`: a layer of a host, or a TOML file of layers.

use std::path::Path;
use std::str::FromStr;

use nandscape_lab_run::chain::{Chain, LayerWords, kinds_in_words};

use crate::failure::Failure;

/// The help of the option in `nandscape sim`.
pub(crate) fn help() -> String {
    format!(
        "Put a layer of a host over the drives: [NAME=]KIND[:N][,KEY=VALUE]...; may be repeated, from the bottom up. Kinds: {}. A kind over \
         one drive lies over each, one with N takes N drives or layers; there are as many drives as that needs. --set NAME.KEY=VALUE \
         changes a layer, too. FILE.toml is a list of layers: docs/layers.md",
        kinds_in_words()
    )
}

/// The help of the option in `nandscape serve`.
pub(crate) fn help_of_serve() -> String {
    format!(
        "Put a layer of a host over each drive: [NAME=]KIND[:N][,KEY=VALUE]...; may be repeated, from the bottom up. Kinds: {}. Layers before \
         an array lie below it, those after it above. Several arrays lie over models in memory. --set NAME.KEY=VALUE changes a layer",
        kinds_in_words()
    )
}

/// What is given once.
#[derive(Clone, Debug)]
pub(crate) struct Over(Vec<LayerWords>);

impl FromStr for Over {
    type Err = String;

    fn from_str(word: &str) -> Result<Over, String> {
        match word.strip_suffix(".toml") {
            Some(_) => Chain::read(Path::new(word)).map(|chain| Over(chain.layers)),
            None => word.parse().map(|layer| Over(vec![layer])),
        }
    }
}

/// The layers of all that is given, the lowest first.
pub(crate) fn chain(given: &[Over]) -> Chain {
    Chain { layers: given.iter().flat_map(|over| over.0.iter().cloned()).collect() }
}

/// The same as words, a layer each.
///
/// # Errors
/// The file with what is wrong in it. A word is not checked.
pub(crate) fn words(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    for word in given {
        if word.ends_with(".toml") {
            let over: Over = word.parse().map_err(|problem| Failure::Input(anyhow::anyhow!("--over {problem}")))?;
            words.extend(over.0.iter().map(LayerWords::to_string));
        } else {
            words.push(word.clone());
        }
    }
    Ok(words)
}
