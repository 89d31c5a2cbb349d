//! How a drive or a layer is opened: in which state, from which seed, and who receives the progress.

use nandscape_sim::{Seed, Sim};
use serde::{Deserialize, Serialize};

use crate::breakdown::layer_name;

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
    /// The state in which write amplification has settled under a load, which takes drive time: a run starts from it.
    Load,
}

impl Precondition {
    /// All states that take no drive time, by their names.
    pub const ALL: [(&str, Precondition); 3] =
        [("none", Precondition::None), ("full", Precondition::Full), ("steady", Precondition::Steady)];

    /// The name.
    pub fn name(self) -> &'static str {
        Precondition::ALL.iter().find(|(_, state)| *state == self).map_or("load", |(name, _)| name)
    }
}

/// A phase of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Bringing the drive into its state.
    Preconditioning,
    /// The workload.
    Running,
}

/// Receives the progress of a run.
pub trait Progress {
    /// A share, from 0 to 1, of a phase is done.
    fn at(&self, phase: Phase, share: f64);

    /// Write amplification in the last window of preconditioning under a load.
    fn at_waf(&self, _waf: f64) {}

    /// Whether the user ends the run now, with the figures so far. Called while the workload runs.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl Progress for () {
    fn at(&self, _: Phase, _: f64) {}
}

/// How a layer is opened.
pub struct Opening<'a> {
    /// The simulation that it is part of.
    pub sim: &'a Sim,
    /// The name in breakdowns, which all of its instances share.
    pub name: &'static str,
    /// The name of the instance.
    pub instance: &'a str,
    /// Seed of everything random in the instance.
    pub seed: Seed,
    /// The state that a layer with flash begins in; drives below have their own.
    pub precondition: Precondition,
    /// Receives the progress of reaching that state.
    pub progress: &'a dyn Progress,
    /// The contents of a layer of its kind, from which it continues; empty if it begins anew.
    pub held: &'a [u8],
}

impl<'a> Opening<'a> {
    /// Of a new layer, called `name`.
    pub fn new(sim: &'a Sim, name: &'a str) -> Opening<'a> {
        Opening {
            sim,
            name: layer_name(name),
            instance: name,
            seed: Seed::new(1),
            precondition: Precondition::None,
            progress: &(),
            held: &[],
        }
    }
}
