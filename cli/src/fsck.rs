//! `nandscape fsck`: checks a file that a drive is in. Nothing in it changes.
//!
//! The drive is started on the file with all changes kept in memory, which checks superblock, records of blocks, journal and
//! snapshot; then its tables are checked against each other and the records of pages, and all data against its checksums.
//!
//! Exit status: 0, the file is sound; 1, it is damaged; 2, it could not be checked: it is no store, or in use.
//!
//! Left out: repair. A drive deals with damage as with damage of flash: data that cannot be read is an error of the read.

use std::path::PathBuf;

use clap::Args;
use nandscape_device_media::durable::{PageStatus, StoreError, StoreFile};
use nandscape_device_media::{BlockId, UnitId};
use nandscape_device_ssd::Ssd;

use crate::failure::Failure;
use crate::inspect::Inspected;
use crate::output;

/// Check a file that a drive is in, without changing it.
///
/// Exit status: 0 it is sound, 1 it is damaged, 2 it could not be checked.
#[derive(Args)]
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
    let problems = problems(&inspected.ssd);
    let tables = inspected.ssd.tables();
    if problems.is_empty() {
        let ended =
            if inspected.used.in_use { "; it was not closed in order, and a start finds its tables again" } else { "" };
        return output::result(&format!(
            "{shown} is sound: {} units on flash and {} in the write buffer{ended}",
            tables.on_flash, tables.in_buffer
        ));
    }
    output::result(&problems.join("\n"))?;
    Err(Failure::Run(anyhow::anyhow!("{shown} is damaged: {} problems", problems.len())))
}

/// What is wrong, a sentence each.
fn problems(ssd: &Ssd) -> Vec<String> {
    let mut problems: Vec<String> =
        ssd.check().err().map(|what| format!("the tables disagree: {what}")).into_iter().collect();
    if ssd.ox_block().is_some_and(|ftl| ftl.has_failed()) {
        problems.push("the tables of OX-Block cannot be read: the drive would be out of service".to_owned());
    }
    let (media, mut stale) = (ssd.media(), 0);
    let geometry = *media.geometry();
    for block in (0..geometry.blocks()).map(BlockId) {
        for number in 0..media.pages_programmed(block) {
            let page = geometry.page_at(block, number);
            let is_programmed = media.page_record(page).is_some_and(|record| record.status == PageStatus::Programmed);
            let units = (0..geometry.units_per_page()).map(|unit| geometry.unit_at(page, unit));
            let damaged = units.filter(|unit| is_programmed && !is_sound(ssd, *unit));
            let (current, old): (Vec<UnitId>, Vec<UnitId>) = damaged.partition(|unit| ssd.is_current(*unit));
            stale += old.len();
            let of_unit = |unit: &UnitId| {
                format!("the data of logical unit {} is damaged (page {}, block {})", media.tag(*unit), page.0, block.0)
            };
            problems.extend(current.iter().map(of_unit));
        }
    }
    if stale > 0 && !problems.is_empty() {
        problems.push(format!("{stale} units that are out of date are damaged too"));
    }
    problems
}

fn is_sound(ssd: &Ssd, unit: UnitId) -> bool {
    ssd.media().data(unit);
    !ssd.media().take_read_failure()
}
