//! States of use into which an unused drive is brought without drive time. Each FTL has its own way there.

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
