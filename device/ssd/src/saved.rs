//! The state of a drive at rest: the contents of its flash and the tables of its FTLs. It can be restored to a new drive with
//! the same profile, or with one that differs only in keys that do not affect the state.
//!
//! A drive is at rest when it was only planted, or after [`Ssd::come_to_rest`]. An OX-Block has its tables in flash, so its
//! flash is its state. A restored OX-Block starts as after an orderly stop and a loss of power. Open zones become closed, as
//! after a loss of power.
//!
//! Left out: file-backed drives, whose file is the state; counters, logs and namespaces of the controller, which start fresh.

use std::io;

use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_ftl_ox::ox_block::Layout;
use nandscape_device_media::{Media, SavedMedia, StoreKind};
use nandscape_sim::{Seed, Sim};

use crate::assemble::{self, Stores};
use crate::resolve::Resolved;
use crate::ssd::Ssd;

/// The state of a drive.
pub struct SavedDrive {
    /// The state of each of its FTLs.
    pub parts: Vec<SavedPart>,
    /// Whether data was written to it, or planted.
    pub is_filled: bool,
}

/// The state of an FTL and its flash.
pub struct SavedPart {
    /// The contents of the flash.
    pub media: SavedMedia,
    /// The state of an FTL that is not in its flash.
    pub ftl: Option<SavedFtl>,
}

/// The kinds of FTL whose state can be saved.
const KINDS: &str = "\"page\" with ftl.tables = \"saved\", \"zone\", \"lsm\", \"open_channel\", and \"ox_block\"";

impl Resolved {
    /// Checks that the state of such a drive can be saved.
    ///
    /// # Errors
    /// The reason, and which drives can be saved.
    pub fn check_can_be_saved(&self) -> Result<(), String> {
        let parts = self.parts().iter().map(|part| &part.drive);
        let cannot = |drive: &&Resolved| {
            let finds_in_data = drive.ox_block().is_some_and(|config| config.layout != Layout::Log);
            finds_in_data || drive.rebuilds_in_memory()
        };
        match std::iter::once(self).filter(|drive| drive.parts().is_empty()).chain(parts).find(cannot) {
            None => Ok(()),
            Some(drive) => {
                let tables = if drive.rebuilds_in_memory() { " and ftl.tables = \"rebuilt\"" } else { "" };
                Err(format!(
                    "the state of a drive with ftl.kind = \"{}\"{tables} cannot be saved; that of {KINDS} can",
                    drive.kind()
                ))
            }
        }
    }
}

impl Ssd {
    /// Brings the drive to rest. No command is in progress, and none may follow.
    pub async fn come_to_rest(&self) {
        for part in self.parts() {
            part.come_to_rest().await;
        }
        // An OX-Block continues with its own collections and checkpoints. A power cut ends them, and the next start recovers
        // from their state.
        if self.parts().iter().any(|part| part.ox_block().is_some()) {
            self.media().lose_power().await;
        }
    }

    /// Takes the state of a drive at rest, which must not be used afterwards.
    ///
    /// # Errors
    /// Why it cannot be saved.
    pub fn take_saved(&self) -> Result<SavedDrive, String> {
        let is_filled = self.parts().iter().any(crate::Part::holds_data);
        let take = |part: &crate::Part| {
            let ftl = part.take_tables()?;
            Ok(SavedPart { ftl, media: part.media().take_saved()? })
        };
        Ok(SavedDrive { parts: self.parts().iter().map(take).collect::<Result<_, String>>()?, is_filled })
    }

    /// A drive in this state. `seed` determines its random choices from now on.
    ///
    /// # Errors
    /// If the state is not of such a drive, or the system does not provide memory for tables.
    pub fn restore(sim: &Sim, profile: &Resolved, store: StoreKind, seed: Seed, saved: SavedDrive) -> io::Result<Ssd> {
        profile.check_can_be_saved().map_err(io::Error::other)?;
        let SavedDrive { parts, is_filled } = saved;
        let count = profile.parts().len().max(1);
        if parts.len() != count {
            let problem = format!("the state is of {} FTLs, and the drive has {count}", parts.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let (mut media, mut tables) = (Vec::new(), Vec::new());
        for part in parts {
            media.push(part.media);
            tables.push(part.ftl);
        }
        let names = profile.names(seed.child("identity"));
        let assembled = match profile.parts() {
            [] => assemble::one_restored(sim, profile, store, seed, media.remove(0), names)?,
            _ => assemble::several(sim, profile, Stores::Saved(store, seed, media), names)?,
        };
        let ssd = Ssd::of(sim, profile, assembled);
        for (part, tables) in ssd.parts().iter().zip(tables) {
            part.put_tables(tables).map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))?;
        }
        if is_filled {
            ssd.was_filled();
        }
        Ok(ssd)
    }

    /// The flash of each part of a drive in this state: no FTL is started on it.
    ///
    /// # Errors
    /// As [`Ssd::restore`].
    pub fn restore_flash(
        sim: &Sim,
        profile: &Resolved,
        store: StoreKind,
        seed: Seed,
        saved: SavedDrive,
    ) -> io::Result<Vec<Media>> {
        let mut media: Vec<SavedMedia> = saved.parts.into_iter().map(|part| part.media).collect();
        match profile.parts() {
            [] => Ok(vec![assemble::media_restored(sim, profile, store, seed, media.remove(0))?]),
            _ => Ok(assemble::media_of(sim, profile, Stores::Saved(store, seed, media))?.0),
        }
    }
}
