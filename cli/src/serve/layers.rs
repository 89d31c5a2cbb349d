//! `serve --over`: layers of a host between each drive, or an array of them, and its clients. `--set block.KEY=VALUE` puts a block
//! layer there.

use nandscape_lab_run::chain::{Chain, drives_below};

use super::args::input;
use super::plan::PlannedDrive;
use crate::failure::Failure;

/// The layers, with their settings, and the other changes of keys.
pub(super) fn split(over: &[String], set: &[String]) -> Result<(Chain, Vec<String>), Failure> {
    let failed = |problem: String| Failure::Input(anyhow::anyhow!("--over: {problem}"));
    let layers = over.iter().map(|word| word.parse()).collect::<Result<Vec<_>, String>>().map_err(failed)?;
    let mut chain = Chain { layers };
    let others = chain.take_with_block(set).map_err(failed)?;
    let layers = chain.resolve().map_err(failed)?;
    if drives_below(&layers) > 1 {
        return input(
            "--over: an array of served drives has records on them, and is --array LEVEL:N; --over puts layers over it",
        );
    }
    Ok((chain, others))
}

/// Whether a change is one of a layer by the name of its kind.
pub(super) fn is_key(change: &str) -> bool {
    ["block.", "cache."].iter().any(|prefix| change.trim_start().starts_with(prefix))
}

/// The drives with these layers over each.
pub(super) fn over(drives: Vec<PlannedDrive>, chain: &Chain) -> Result<Vec<PlannedDrive>, Failure> {
    if chain.layers.is_empty() {
        return Ok(drives);
    }
    let layered = |drive: PlannedDrive| {
        let name = drive.name().to_owned();
        if let Some(has) = drive.is_written_in_order() {
            return input(format!("--over: drive {name} has {has}, and layers pass on reads and writes anywhere"));
        }
        if let PlannedDrive::Model(spec) = &drive {
            let parts = spec.resolve().map_err(Failure::input)?.parts().len();
            if parts > 1 {
                return input(format!(
                    "--over: drive {name} has {parts} parts with a namespace each, and a layer is over one; leave out --over and the keys \
                     of block"
                ));
            }
        }
        Ok(PlannedDrive::Layered(Box::new(drive), chain.clone()))
    };
    drives.into_iter().map(layered).collect()
}
