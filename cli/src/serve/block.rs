//! `serve --set block.KEY=VALUE`: the block layer of a host between each drive and its clients.

use nandscape_host_block::Config;
use nandscape_lab_run::BlockSpec;

use super::args::input;
use super::plan::PlannedDrive;
use crate::failure::Failure;

/// The drives behind a block layer each.
pub(super) fn over(
    drives: Vec<PlannedDrive>,
    config: &Config,
    is_recorded: bool,
) -> Result<Vec<PlannedDrive>, Failure> {
    if is_recorded {
        return input(
            "--record: a recording is of drives, not of a block layer over them; leave out the keys of block",
        );
    }
    config.check().map_err(Failure::input)?;
    let layered = |drive: PlannedDrive| {
        let name = drive.name().to_owned();
        if let Some(has) = drive.is_written_in_order() {
            return input(format!("block: drive {name} has {has}, and the layer passes on reads and writes anywhere"));
        }
        match drive {
            PlannedDrive::Model(drive) => {
                let parts = drive.resolve().map_err(Failure::input)?.parts().len();
                if parts > 1 {
                    return input(format!(
                        "block: drive {name} has {parts} parts with a namespace each, and the layer is over one; leave out the keys of block"
                    ));
                }
                Ok(PlannedDrive::Layered(Box::new(BlockSpec { drive, config: config.clone() })))
            }
            _ => input(format!(
                "block: drive {name} is no model of this process, whose flash a block layer would know; leave out the keys of block, \
                 or give them where it is served"
            )),
        }
    };
    drives.into_iter().map(layered).collect()
}
