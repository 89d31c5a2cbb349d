//! States of use that an unused drive can get in no drive time. Each FTL constructs them in its own way.

/// A state of use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Plant {
    /// Every unit written once, in order.
    Full,
    /// The steady state under uniform random overwrites of single units.
    Steady,
}

/// The result of planting.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct PlantReport {
    /// Units overwritten at random after the image was planted.
    pub overwritten: u64,
    /// Write amplification over the last of them.
    pub waf: f64,
}
