//! Builds a drive from a resolved profile and brings it into a state. Simulations, live drives and replays build theirs here,
//! so that the same inputs give the same drive.

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, SavedDrive, Ssd};
use nandscape_drive::{Phase, Precondition, Progress};
use nandscape_sim::{Seed, Sim};

/// Why a drive cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Memory for its tables cannot be allocated.
    #[error("the drive's tables do not fit this machine's memory")]
    Memory(#[from] std::io::Error),
    /// It cannot be brought into the state.
    #[error("{0}")]
    State(String),
}

/// Builds a drive and brings it into its state, which takes no drive time.
///
/// # Errors
/// [`DriveError`].
pub fn build_drive(
    sim: &Sim,
    profile: &Resolved,
    store: StoreKind,
    precondition: Precondition,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<Ssd, DriveError> {
    let ssd = Ssd::new(sim, profile, store, seed.child("drive")).map_err(|error| match error.kind() {
        // The drive has not survived its life before the run.
        std::io::ErrorKind::InvalidInput => DriveError::State(error.to_string()),
        _ => DriveError::Memory(error),
    })?;
    prepare(&ssd, profile, precondition, seed, progress)?;
    Ok(ssd)
}

/// Builds a drive in a state that was taken out of another one.
pub(crate) fn restore_drive(
    sim: &Sim,
    profile: &Resolved,
    store: StoreKind,
    seed: Seed,
    saved: SavedDrive,
) -> Result<Ssd, DriveError> {
    Ssd::restore(sim, profile, store, seed.child("drive"), saved).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => DriveError::State(format!("the saved state cannot be used: {error}")),
        _ => DriveError::Memory(error),
    })
}

/// Brings a new drive into its state, which takes no drive time.
///
/// # Errors
/// [`DriveError::State`].
pub(crate) fn prepare(
    ssd: &Ssd,
    profile: &Resolved,
    precondition: Precondition,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<(), DriveError> {
    let plant = match precondition {
        Precondition::None => return Ok(()),
        Precondition::Full => Plant::Full,
        Precondition::Steady => Plant::Steady,
        Precondition::Load => {
            return Err(DriveError::State(
                "precondition load: the drive has no load here; none, full and steady are valid".to_owned(),
            ));
        }
    };
    if !ssd.can_be_planted() {
        return Err(DriveError::State(cannot_be_planted(profile, precondition)));
    }
    if profile.zone().is_some() && plant == Plant::Steady {
        let name = &profile.name;
        return Err(DriveError::State(format!(
            "precondition steady: drive {name} has zones, which are not overwritten at random; none and full are valid"
        )));
    }
    if profile.open_channel().is_some() && plant == Plant::Steady {
        let name = &profile.name;
        return Err(DriveError::State(format!(
            "precondition steady: drive {name} is an open-channel one, which its host collects; none and full are valid"
        )));
    }
    ssd.plant(plant, seed.child("precondition"), &mut |share| progress.at(Phase::Preconditioning, share));
    Ok(())
}

/// Why a drive can only start new.
fn cannot_be_planted(profile: &Resolved, precondition: Precondition) -> String {
    let (name, state) = (&profile.name, precondition.name());
    let of_parts = profile.parts().iter().map(|part| part.drive.kind());
    let other = of_parts.chain([profile.kind()]).find(|kind| kind != "page" && kind != "ox_block");
    let kind = other.expect("drives of page FTLs and OX-Block are planted");
    let why =
        if kind == "lsm" { "its runs are those of its host" } else { "its tables lie in the data that was written" };
    format!(
        "precondition {state}: drive {name} has ftl.kind = \"{kind}\" and can only start new, because {why}; valid are precondition none, and ftl.kind = \"page\" and \"ox_block\""
    )
}
