//! The form of every experiment: a claim, the parameters and where they come from, what the paper leaves open, the points,
//! and how the verdict follows from their figures.

use anyhow::Result;
use nandscape_sim::{Seed, Span};

use crate::claim::Claim;
use crate::figures::{Figures, Results};
use crate::verdict::Judgement;

/// An experiment. Each has a file of its own in [`crate::experiments`].
pub struct Experiment {
    /// What it is about.
    pub claim: Claim,
    /// Which clock it runs by.
    pub clock: Clock,
    /// What is set, and who says so.
    pub parameters: &'static [Parameter],
    /// What the paper leaves open or contradicts, and what was chosen.
    pub choices: &'static [Choice],
    /// What is measured, in an order that stays.
    pub points: fn() -> Vec<Point>,
    /// What the figures of all points come to.
    pub judge: fn(&Results) -> Result<Judgement>,
}

/// The clock of an experiment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Virtual time: points run side by side, and give the same on any machine.
    Virtual,
    /// Real time: it runs alone, and its figures are the machine's too.
    Wall,
}

impl Clock {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Virtual => "virtual",
            Clock::Wall => "wall",
        }
    }
}

/// A parameter.
#[derive(Copy, Clone, Debug)]
pub struct Parameter {
    /// What is set.
    pub what: &'static str,
    /// To what.
    pub value: &'static str,
    /// The place that says so.
    pub source: &'static str,
}

/// Something the paper leaves open, or contradicts itself in.
#[derive(Copy, Clone, Debug)]
pub struct Choice {
    /// What is open.
    pub open: &'static str,
    /// What is taken.
    pub taken: &'static str,
    /// Why.
    pub why: &'static str,
}

/// How long to measure.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Percent of the requests of a full run, in virtual time.
    pub requests_percent: u32,
    /// Rounds of a measurement in real time. What it compares takes turns, round after round, so that what disturbs the
    /// machine meets all alike.
    pub rounds: u32,
    /// Time of each in a round.
    pub slice: Span,
}

impl Effort {
    /// What verdicts rest on.
    pub const FULL: Effort = Effort { requests_percent: 100, rounds: 20, slice: Span::from_ms(100) };
    /// A first look.
    pub const QUICK: Effort = Effort { requests_percent: 10, rounds: 4, slice: Span::from_ms(50) };

    /// The share of a full run's number, at least one.
    pub fn of(&self, full: u64) -> u64 {
        (full * u64::from(self.requests_percent) / 100).max(1)
    }
}

/// What a point is given to run with.
pub struct Run<'a> {
    /// Decides everything random: a child of the user's seed for the claim and the point's place, whatever ran before.
    pub seed: Seed,
    /// How long to measure.
    pub effort: Effort,
    /// Is told which share of the point is done.
    pub progress: &'a dyn Fn(f64),
}

/// Measures a point.
pub type Measure = Box<dyn Fn(&Run<'_>) -> Result<Figures> + Send + Sync>;

/// A point: what is measured in one go.
pub struct Point {
    /// Its name, of which there is one in an experiment.
    pub name: String,
    /// What makes it differ from the others.
    pub parameters: Vec<(&'static str, String)>,
    /// Measures it.
    pub measure: Measure,
}

impl Point {
    /// A point without parameters of its own.
    pub fn new(
        name: impl Into<String>,
        measure: impl Fn(&Run<'_>) -> Result<Figures> + Send + Sync + 'static,
    ) -> Point {
        Point { name: name.into(), parameters: Vec::new(), measure: Box::new(measure) }
    }

    /// With a parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Point {
        self.parameters.push((name, value.to_string()));
        self
    }
}

impl Experiment {
    /// The seed of a point.
    pub fn seed_of(&self, seed: u64, point: usize) -> Seed {
        Seed::new(seed).child(self.claim.id).nth(point as u64)
    }

    /// Why it cannot run on this machine, if it cannot.
    pub fn lacks(&self) -> Option<String> {
        match self.clock {
            Clock::Virtual => None,
            Clock::Wall => crate::wall::lacks(),
        }
    }
}
