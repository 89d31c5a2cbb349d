//! The host's block layer on command lines: its keys among `--set`.

use nandscape_host_block::Config;
use nandscape_lab_run::chain::BlockOver;

use crate::failure::Failure;

/// The block layer with its settings, if there are any, and the other changes.
pub(crate) fn split(set: &[String]) -> Result<(Option<BlockOver>, Vec<String>), Failure> {
    let (of_block, others): (Vec<&String>, Vec<&String>) = set.iter().partition(|change| Config::is_key(change));
    let others = others.into_iter().cloned().collect();
    if of_block.is_empty() {
        return Ok((None, others));
    }
    let mut config = Config::default();
    for change in of_block {
        config.set(change).map_err(Failure::input)?;
    }
    let is_chosen = set.iter().any(|change| change.trim_start().starts_with("block.predictor"));
    Ok((Some(BlockOver { config, is_chosen }), others))
}
