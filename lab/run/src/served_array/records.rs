//! The check of a remote member after a reconnect: whether it still has the last record of the array.

use nandscape_drive::DriveInfo;
use nandscape_host_driver::nvme_tcp::{Execute, Refusal};
use nandscape_layers_array::{Seen, Witness};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::alone::Records;

/// See the file. An array without records has no `witness`.
pub(super) fn look_for_records(info: DriveInfo, witness: Option<Witness>) -> Records {
    Box::new(move |execute| witness.as_ref().map_or(Ok(()), |witness| look(info, witness, execute)))
}

fn look(info: DriveInfo, witness: &Witness, execute: Execute<'_>) -> Result<(), Refusal> {
    let mut blocks = Vec::new();
    for place in witness.places() {
        let entry = SubmissionEntry::blocks(IoOpcode::READ, info.nsid, place, 1);
        let (status, block) = execute(entry, &[], info.lba_bytes as usize)?;
        // The other record may be the newest that the drive took. Only if both are read, a missing record is known to be lost.
        if status.is_success() {
            blocks.push(block);
        }
    }
    match witness.sees(&blocks) {
        Seen::Same => Ok(()),
        Seen::Newer => Err(Refusal::ForGood("another server has continued the array since".to_owned())),
        Seen::Older if blocks.len() < witness.places().len() => {
            Err(Refusal::ForNow("the records of the array cannot be read".to_owned()))
        }
        Seen::Older => Err(Refusal::ForGood(
            "the last writes of the array are missing: the drive has lost data, or was restored to an earlier state"
                .to_owned(),
        )),
    }
}
