//! Builds a drive from a resolved profile and brings it into a state. Simulations, live drives and replays build theirs here,
//! so that the same inputs give the same drive.

use nandscape_device_ftl::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_media::durable::StoreFile;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_sim::{Seed, Sim};
use serde::{Deserialize, Serialize};

use crate::simulation::{Phase, Progress};

/// The state of a drive at the start.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// New, nothing written.
    None,
    /// Every logical block written once.
    Full,
    /// The steady state of this drive under continuous uniform random overwrites of single mapping units.
    Steady,
}

impl Precondition {
    /// All states, by their names.
    pub const ALL: [(&str, Precondition); 3] =
        [("none", Precondition::None), ("full", Precondition::Full), ("steady", Precondition::Steady)];

    /// The name.
    pub fn name(self) -> &'static str {
        Precondition::ALL.iter().find(|(_, state)| *state == self).map_or("?", |(name, _)| name)
    }
}

/// Starts the drive in a file. A new one is brought into its state, which takes no drive time; one that was used before goes on.
///
/// # Errors
/// When the file cannot be read or written, or is damaged.
pub(crate) fn open_drive(
    sim: &Sim,
    profile: &Resolved,
    file: StoreFile,
    precondition: Precondition,
    seed: Seed,
    progress: &dyn Progress,
) -> std::io::Result<Ssd> {
    let is_new = file.before().starts == 0;
    let ssd = Ssd::open(sim, profile, file)?;
    if is_new {
        prepare(&ssd, precondition, seed, progress)?;
    }
    Ok(ssd)
}

/// Builds a drive and brings it into its state, which takes no drive time.
///
/// # Errors
/// When memory for its tables cannot be allocated, or the drive's FTL cannot be brought into the state in no time.
pub fn build_drive(
    sim: &Sim,
    profile: &Resolved,
    store: StoreKind,
    precondition: Precondition,
    seed: Seed,
    progress: &dyn Progress,
) -> std::io::Result<Ssd> {
    let ssd = Ssd::new(sim, profile, store, seed.child("drive"))?;
    prepare(&ssd, precondition, seed, progress)?;
    Ok(ssd)
}

fn prepare(ssd: &Ssd, precondition: Precondition, seed: Seed, progress: &dyn Progress) -> std::io::Result<()> {
    let plant = match precondition {
        Precondition::None => return Ok(()),
        Precondition::Full => Plant::Full,
        Precondition::Steady => Plant::Steady,
    };
    if !ssd.can_be_planted() {
        let problem = format!(
            "only ftl.kind = \"page\" and \"ox_block\" can be preconditioned in no time (\"{}\"); \"none\" is valid",
            precondition.name()
        );
        return Err(std::io::Error::other(problem));
    }
    ssd.plant(plant, seed.child("precondition"), &mut |share| progress.at(Phase::Preconditioning, share));
    Ok(())
}
