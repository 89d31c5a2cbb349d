//! `nandscape fsck`: checks a drive image, which stays unchanged.
//!
//! The drive is started on the file with all changes kept in memory, which checks superblock, records of blocks, journal and
//! snapshot; then its tables are checked against each other and the records of pages, and all data against its checksums.
//!
//! Exit status: 0, the file is sound; 1, it is damaged; 2, it could not be checked: it is no store, or in use.
//!
//! Left out: repair. A drive treats damage as damage of flash: reads of unreadable data fail.

use std::path::PathBuf;

use clap::Args;
use nandscape_device_media::durable::{StoreError, StoreFile};

use crate::failure::Failure;
use crate::inspect::Inspected;
use crate::output;

/// Check a drive image; it stays unchanged.
#[derive(Args)]
#[command(after_help = "\
Example:
  nandscape fsck drive.nand

Exit status: 0 when it is sound, 1 when it is damaged, 2 when it could not be checked: it is no store, or in use.")]
pub(crate) struct FsckArgs {
    /// The file that was given to `nandscape serve --store`
    file: PathBuf,
}

/// Checks it.
pub(crate) fn run(args: &FsckArgs) -> Result<(), Failure> {
    let shown = args.file.display();
    match StoreFile::open_to_read(&args.file) {
        Ok((_, true)) => {
            return Err(Failure::Input(anyhow::anyhow!("{shown}: a drive uses it; stop the server first")));
        }
        Ok(_) => {}
        Err(error @ (StoreError::Damaged(_) | StoreError::Truncated { .. })) => {
            return Err(Failure::Run(anyhow::anyhow!("{shown}: {error}")));
        }
        Err(error) => return Err(Failure::Input(anyhow::anyhow!("{shown}: {error}"))),
    }
    // From here on everything that is wrong is damage.
    let inspected = Inspected::open(&args.file).map_err(Failure::Run)?;
    let problems = inspected.ssd.problems();
    let tables = inspected.ssd.tables();
    if problems.is_empty() {
        let ended = if inspected.of_file().is_some_and(|file| file.used.in_use) {
            "; it was not closed in order, and a start finds its tables again"
        } else {
            ""
        };
        let rest = inspected
            .channels_in_memory()
            .map(|channels| format!("; channels {channels} are in memory, and the file has nothing of them"));
        let rest = rest.unwrap_or_default();
        return output::result(&format!(
            "{shown} is sound: {} units on flash and {} in the write buffer{ended}{rest}",
            tables.on_flash, tables.in_buffer
        ));
    }
    output::result(&problems.join("\n"))?;
    Err(Failure::Run(anyhow::anyhow!("{shown} is damaged: {} problems", problems.len())))
}
