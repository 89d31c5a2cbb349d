//! The form of every experiment: a claim, the parameters with their sources, the choices, the points, and the judgement
//! of their figures.

use anyhow::Result;
use nandscape_sim::{Seed, Span};

use crate::claim::{Check, Claim};
use crate::figures::{Figures, Results};
use crate::verdict::{Judgement, Published};

/// An experiment. Each is one file of `papers/claims`.
pub struct Experiment {
    /// The claim it measures.
    pub claim: Claim,
    /// Its clock.
    pub clock: Clock,
    /// Runs of a case with different seeds that its points make; 1 if the ledger repeats the points.
    pub runs: u32,
    /// The published figures of the criteria.
    pub published: &'static [Published],
    /// Runs that the ledger's rulings ask for and that this experiment does not make.
    pub awaits: &'static [&'static str],
    /// The parameters and their sources.
    pub parameters: &'static [Parameter],
    /// Choices where the paper is open or contradicts itself.
    pub choices: &'static [Choice],
    /// The measurements, in a fixed order.
    pub points: fn() -> Vec<Point>,
    /// The judgement of all points' figures.
    pub judge: fn(&Results) -> Result<Judgement>,
}

/// The seeds that a simulated figure is measured with.
const SEEDS: u32 = 3;

/// The clock of an experiment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Simulated time: points run in parallel, and give the same figures on any machine.
    Virtual,
    /// Real time: it runs alone, and its figures also depend on the machine.
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
    /// The source of the value.
    pub source: &'static str,
}

/// A point that the paper leaves open, or on which it contradicts itself.
#[derive(Copy, Clone, Debug)]
pub struct Choice {
    /// What is open.
    pub open: &'static str,
    /// The choice.
    pub taken: &'static str,
    /// The reason.
    pub why: &'static str,
}

/// How long to measure.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Percent of the requests of a full run, in simulated time.
    pub requests_percent: u32,
    /// Rounds of a measurement in real time. The alternatives run in turn in each round, so that disturbances of the
    /// machine affect all equally.
    pub rounds: u32,
    /// Time of each in a round.
    pub slice: Span,
    /// Whether all points are measured several times: with three seeds in simulated time, five times in real time.
    pub is_repeated: bool,
}

impl Effort {
    /// The effort required for a verdict.
    pub const FULL: Effort = Effort { requests_percent: 100, rounds: 20, slice: Span::from_ms(100), is_repeated: true };
    /// A first look.
    pub const QUICK: Effort = Effort { requests_percent: 10, rounds: 4, slice: Span::from_ms(50), is_repeated: false };

    /// This effort's share of a full run's number, at least one.
    pub fn of(&self, full: u64) -> u64 {
        (full * u64::from(self.requests_percent) / 100).max(1)
    }

    /// Whether it is less than a first look: enough to see that an experiment runs. Drives that must be written full before they are
    /// measured can be small then.
    pub fn is_a_moment(&self) -> bool {
        self.requests_percent < Effort::QUICK.requests_percent
    }
}

/// The context of a point's run.
pub struct Run<'a> {
    /// The seed of all random numbers: derived from the user's seed, the claim and the point's position, or the name of a shared
    /// measurement; independent of earlier points.
    pub seed: Seed,
    /// How long to measure.
    pub effort: Effort,
    /// Called with the share of the point that is done.
    pub progress: &'a dyn Fn(f64),
    /// A cost at another value, if one is varied.
    pub varied: Option<&'a Varied>,
}

/// A cost of an experiment at another value than its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Varied {
    /// The cost, by a name of [`Costs`].
    pub key: String,
    /// Times its own value.
    pub factor: f64,
}

impl std::fmt::Display for Varied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.factor {
            0.5 => write!(f, "{} at half", self.key),
            2.0 => write!(f, "{} at twice", self.key),
            times => write!(f, "{} times {times}", self.key),
        }
    }
}

/// The costs of an experiment that have no published value: its verdict is shown at half and at twice each.
#[derive(Copy, Clone, Debug)]
pub struct Costs {
    /// The claim.
    pub id: &'static str,
    /// Names of its costs.
    pub keys: &'static [&'static [&'static str]],
}

impl Run<'_> {
    /// A cost, at another value if it is the one that is varied.
    pub fn cost(&self, key: &str, cost: Span) -> Span {
        match self.varied {
            Some(varied) if varied.key == key => Span::from_ns((cost.ns() as f64 * varied.factor).round() as u64),
            _ => cost,
        }
    }
}

/// Measures a point.
pub type Measure = Box<dyn Fn(&Run<'_>) -> Result<Figures> + Send + Sync>;

/// A point: one measurement.
pub struct Point {
    /// Its name, unique in the experiment.
    pub name: String,
    /// The parameters that distinguish it.
    pub parameters: Vec<(&'static str, String)>,
    /// The name of a measurement that several claims have, if it is one: its random numbers derive from this name, and a
    /// run of these claims measures it once.
    pub shared: Option<String>,
    /// Measures it.
    pub measure: Measure,
}

impl Point {
    /// A point without parameters.
    pub fn new(
        name: impl Into<String>,
        measure: impl Fn(&Run<'_>) -> Result<Figures> + Send + Sync + 'static,
    ) -> Point {
        Point { name: name.into(), parameters: Vec::new(), shared: None, measure: Box::new(measure) }
    }

    /// With a parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Point {
        self.parameters.push((name, value.to_string()));
        self
    }

    /// As a measurement that other claims have as well, under this name.
    #[must_use]
    pub fn shared(mut self, name: impl Into<String>) -> Point {
        self.shared = Some(name.into());
        self
    }
}

impl Experiment {
    /// How often all points are measured, so that the spread between runs is known: with three seeds in simulated time, five
    /// times in real time. Formulas, and cases with their own runs, are measured once.
    pub fn repeats(&self) -> u32 {
        match self.clock {
            Clock::Wall => 5,
            Clock::Virtual if self.claim.check == Check::Exact || self.runs >= SEEDS => 1,
            Clock::Virtual => SEEDS,
        }
    }

    /// The seed of a point, by its number among those of the experiment or the name of a shared measurement.
    pub fn seed_of(&self, seed: u64, number: usize, shared: Option<&str>) -> Seed {
        match shared {
            Some(name) => Seed::new(seed).child(name),
            None => Seed::new(seed).child(self.claim.id).nth(number as u64),
        }
    }

    /// The reason why it cannot run on this machine, if any.
    pub fn lacks(&self) -> Option<String> {
        match self.clock {
            Clock::Virtual => None,
            Clock::Wall => crate::machine::lacks(),
        }
    }
}
