//! `--over`: a layer of a host, or a TOML file of layers; and `--fault`, of the drives below.

use std::path::Path;
use std::str::FromStr;

use clap::Args;
use nandscape_device_ssd::Resolved;
use nandscape_lab_run::MemberLayers;
use nandscape_lab_run::chain::{Chain, LayerWords, Named, drives_below, kinds_in_words};

use crate::failure::Failure;
use crate::sim::FaultWord;
use crate::sim_layers::with_faults;

/// What lies below an engine or the stores of servers.
#[derive(Args)]
pub(crate) struct OverWords {
    /// Put a layer of a host over drives of the profile: [NAME=]KIND[:N][,KEY=VALUE]...; may be repeated, from the bottom up, as in
    /// `nandscape sim`. --set NAME.KEY=VALUE changes a layer, too
    #[arg(long, value_name = "LAYER")]
    over: Vec<Over>,
    /// Inject a fault into the flash, as in `nandscape sim`: a RULE for all drives, or for one of several: drive-1=RULE. May be repeated
    #[arg(long, value_name = "RULE")]
    fault: Vec<FaultWord>,
}

impl OverWords {
    /// The layers that are given, the lowest first.
    pub(crate) fn chain(&self) -> Chain {
        chain(&self.over)
    }

    /// Whether no layers are given.
    pub(crate) fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// The faults that are given.
    pub(crate) fn faults(&self) -> &[FaultWord] {
        &self.fault
    }

    /// The layers with their settings, and the changes that are not theirs. Settings of a block layer put one over each drive if the layers
    /// have none.
    ///
    /// # Errors
    /// Which layer or setting is not valid, and what would be.
    pub(crate) fn resolve(&self, set: &[String]) -> Result<(Vec<Named>, Vec<String>), Failure> {
        let mut chain = self.chain();
        if chain.is_empty() {
            return Ok((Vec::new(), set.to_vec()));
        }
        let resolved = chain.take_with_block(set).and_then(|others| Ok((chain.resolve()?, others)));
        resolved.map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))
    }

    /// The profile of the first drive, and the layers of `members` members. `load` resolves a drive with its faults.
    ///
    /// # Errors
    /// A fault of no drive, or a drive that cannot be.
    pub(crate) fn members(
        &self,
        layers: Vec<Named>,
        members: usize,
        load: impl Fn(&[FaultWord]) -> Result<Resolved, Failure>,
    ) -> Result<(Resolved, MemberLayers), Failure> {
        if self.fault.is_empty() {
            return Ok((load(&[])?, MemberLayers { layers, profiles: Vec::new() }));
        }
        let profiles = with_faults(&self.fault, members * drives_below(&layers), |_, faults| load(faults))?;
        Ok((profiles[0].clone(), MemberLayers { layers, profiles }))
    }
}

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
