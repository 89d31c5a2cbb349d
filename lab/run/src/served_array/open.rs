//! The start of a served array: made of new drives, made anew of drives that are emptied first, or opened as it was.

use std::rc::Rc;

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_layers_array::{Array, Config, JournalMode, Member, Shape, WindowMode};
use nandscape_sim::Sim;
use nandscape_wire_nvme::io::{DSM_DEALLOCATE, DsmRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::member::Under;
use crate::alone::{Claimed, User};

/// What is done with the drives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Opening {
    /// They are new and keep nothing for later: the array ends with the process.
    ForNow,
    /// They are new, and the array outlasts the process.
    New,
    /// They are emptied, and the array outlasts the process.
    Anew,
    /// An array is on them.
    Again,
}

/// What is known of a drive before its records are read.
pub(super) struct Known {
    name: String,
    holds_data: bool,
    is_elsewhere: bool,
}

impl Known {
    pub(super) fn of(drive: &Under) -> Known {
        Known { name: drive.name().to_owned(), holds_data: drive.holds_data(), is_elsewhere: drive.far().is_some() }
    }
}

/// Makes or opens the array, and returns it with the names of remote drives that keep no mark. Members beyond those of the
/// shape are spares.
pub(super) async fn open(
    sim: Sim,
    (shape, config): (Shape, Config),
    (members, drives): (Vec<Member>, Vec<Known>),
    (opening, overwrites): (Opening, bool),
) -> Result<(Rc<Array>, Vec<String>), String> {
    let issuer = Issuer::new(&sim);
    let elsewhere = drives.iter().zip(&members).filter(|(drive, _)| drive.is_elsewhere);
    let elsewhere = elsewhere.map(|(drive, member)| Claimed { name: &drive.name, drive: &*member.io, own: 1 });
    let elsewhere: Vec<Claimed<'_>> = elsewhere.collect();
    let unmarked = User::ARRAY.check_alone(&issuer, &elsewhere).await?;
    if opening == Opening::Anew {
        for (number, member) in members.iter().enumerate() {
            empty(&issuer, &*member.io)
                .await
                .map_err(|status| format!("drive {} cannot be emptied: {}", drives[number].name, status.name()))?;
        }
    }
    let has_windows = config.window_mode() != WindowMode::None;
    let all: Vec<usize> = (0..members.len()).collect();
    let array = made(&sim, (shape, config), (members, drives), (opening, overwrites)).await?;
    if !has_windows {
        array.end_windows(&all).await;
    }
    Ok((array, unmarked))
}

/// The array.
async fn made(
    sim: &Sim,
    (shape, config): (Shape, Config),
    (members, drives): (Vec<Member>, Vec<Known>),
    (opening, overwrites): (Opening, bool),
) -> Result<Rc<Array>, String> {
    let told = |error: nandscape_layers_array::ArrayError| error.to_string();
    let has_records = config.journal != JournalMode::None;
    match opening {
        Opening::ForNow => Array::new(sim, shape, config, members).map_err(told),
        // Without records an array is whatever its drives are. Drives with records would lose the information in them.
        Opening::Again if !has_records => match Array::has_records(sim, &config, &members).await {
            true => Err("the drives have records of an array, which array.journal=none would overlook: which members are missing, how large \
                         chunks are; leave it out to open that array, or give --array-create to empty the drives"
                .to_owned()),
            false => Array::new(sim, shape, config, members).map_err(told),
        },
        Opening::New | Opening::Anew => Array::create(sim, shape, config, members).await.map_err(told),
        Opening::Again => {
            if !overwrites {
                check_used(sim, &config, &members, &drives).await?;
            }
            let has_one = Array::has_records(sim, &config, &members).await;
            let way_out = if has_one { "" } else { "; --array-create makes an array of them" };
            let array = Array::open(sim, config, members).await.map_err(|error| format!("{error}{way_out}"))?;
            match array.shape() == shape {
                true => Ok(array),
                false => Err(format!("the drives are of an array {}; give that", array.shape())),
            }
        }
    }
}

/// A drive of no array would become a spare, and be overwritten. Rejects such a drive if it holds data, or is remote: a remote
/// drive does not report whether it does.
async fn check_used(sim: &Sim, config: &Config, members: &[Member], drives: &[Known]) -> Result<(), String> {
    let strangers = Array::strangers(sim, config, members).await;
    let used = strangers.iter().map(|number| &drives[*number]).filter(|drive| drive.holds_data || drive.is_elsewhere);
    let names: Vec<&str> = used.map(|drive| drive.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!(
        "drive {} holds data of no array, or may, which a rebuild would write over; --array-overwrite gives it up; without that, a file that does not exist yet is valid",
        names.join(", ")
    ))
}

/// Deallocates all of a drive.
async fn empty(issuer: &Issuer, drive: &dyn Drive) -> Result<(), Status> {
    let info = drive.info();
    let mut slba = 0;
    while slba < info.blocks {
        let blocks = (info.blocks - slba).min(u32::MAX.into()) as u32;
        let range = DsmRange { context_attributes: 0.into(), blocks: blocks.into(), slba: slba.into() };
        let mut entry = SubmissionEntry::io(IoOpcode::DATASET_MANAGEMENT, info.nsid);
        entry.cdw11 = DSM_DEALLOCATE.into();
        let status = issuer.execute(drive, entry, HostMem::from_bytes(range.as_bytes())).await.status;
        if !status.is_success() {
            return Err(status);
        }
        slba += u64::from(blocks);
    }
    Ok(())
}
