//! The state of a drive at rest: what its flash holds and what its FTLs know. It is taken out of a drive and put into a new one, of
//! the same profile or of one that differs in what the state does not depend on.
//!
//! A drive is at rest when it was only planted, or after [`Ssd::come_to_rest`]. An OX-Block finds its tables in its flash, so that
//! its flash is its state, and a restored one starts as after an orderly stop and a loss of power. Open zones are closed, as after that.
//!
//! Left out: drives in files, which are their own states; counters, logs and namespaces of the controller, which begin anew.

use std::io;

use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_ftl_ox::ox_block::Layout;
use nandscape_device_media::{SavedMedia, StoreKind};
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
    /// What the flash holds.
    pub media: SavedMedia,
    /// What an FTL knows that is not in its flash.
    pub ftl: Option<SavedFtl>,
}

/// The kinds of FTL whose state can be taken.
const KINDS: &str = "\"page\" with ftl.tables = \"saved\", \"zone\", \"lsm\", and \"ox_block\"";

impl Resolved {
    /// Whether the state of such a drive can be taken out.
    ///
    /// # Errors
    /// Why not, and what can be.
    pub fn check_can_be_saved(&self) -> Result<(), String> {
        let parts = self.parts().iter().map(|part| &part.drive);
        let cannot = |drive: &&Resolved| {
            let finds_in_data = drive.ox_block().is_some_and(|config| config.layout != Layout::Log);
            finds_in_data || drive.open_channel().is_some() || drive.rebuilds_in_memory()
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
    /// Brings the drive to rest. No command is under way, and none may come any more.
    pub async fn come_to_rest(&self) {
        for part in self.parts() {
            part.come_to_rest().await;
        }
        // An OX-Block goes on with collections and checkpoints of its own. Without power they end, and the start after that
        // deals with what they leave.
        if self.parts().iter().any(|part| part.ox_block().is_some()) {
            self.media().lose_power().await;
        }
    }

    /// Takes out the state of a drive at rest, which is not to be used any more.
    ///
    /// # Errors
    /// Why it cannot be taken.
    pub fn take_saved(&self) -> Result<SavedDrive, String> {
        let is_filled = self.parts().iter().any(crate::Part::holds_data);
        let take = |part: &crate::Part| {
            let ftl = part.take_tables()?;
            Ok(SavedPart { ftl, media: part.media().take_saved()? })
        };
        Ok(SavedDrive { parts: self.parts().iter().map(take).collect::<Result<_, String>>()?, is_filled })
    }

    /// A drive in this state. What is left to chance from now on is as `seed` says.
    ///
    /// # Errors
    /// When the state is not of such a drive, or the system does not give the memory for tables.
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
}
