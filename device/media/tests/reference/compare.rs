//! Comparison of simulator and model, over random drives and scripts.

use nandscape_sim::{Executor, Seed};

use crate::drive::Drive;
use crate::model;
use crate::mutants::Rule;
use crate::outcome::Outcome;
use crate::script::{self, Script};
use crate::shrink::shrink;
use crate::simulator;

/// Operations of each customer.
const LENGTH: usize = 24;

/// Set by a user who wants other drives, or more of them.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

pub(crate) fn seeds(cases: u64) -> impl Iterator<Item = u64> {
    let first = number("NANDSCAPE_TEST_SEED", 1);
    (0..cases).map(move |index| first.wrapping_add(index))
}

/// A drive and its script.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Case {
    pub(crate) drive: Drive,
    pub(crate) script: Script,
}

impl Case {
    pub(crate) fn draw(seed: u64) -> Case {
        let mut rng = Seed::new(seed).rng();
        let drive = Drive::draw(&mut rng);
        let script = script::draw(&drive, LENGTH, &mut rng);
        Case { drive, script }
    }

    pub(crate) fn simulated(&self, broken: Option<Rule>) -> Outcome {
        simulator::run(&self.drive, &self.script, &model::retries(&self.drive), broken)
    }

    pub(crate) fn measured(&self) -> Outcome {
        model::run(Executor::new(), &self.drive, &self.script).0
    }

    /// Whether simulator and model differ, and where.
    fn difference(&self) -> Option<String> {
        let (expected, measured) = (self.simulated(None), self.measured());
        if expected == measured {
            return None;
        }
        let differs = |customer: usize| {
            let (expected, measured) = (&expected.served[customer], &measured.served[customer]);
            let at = (0..self.script[customer].len()).find(|&at| expected.get(at) != measured.get(at))?;
            let ended = expected.get(at).or(measured.get(at)).map_or(0, |served| served.ended);
            Some((ended, customer, at))
        };
        let first = (0..self.script.len()).filter_map(differs).min();
        Some(match first {
            Some((_, customer, at)) => format!(
                "operation {at} of customer {customer}, {:?}:\nexpected {:?}\nmeasured {:?}",
                self.script[customer][at],
                expected.served[customer].get(at),
                measured.served[customer].get(at),
            ),
            None => format!(
                "busy times of arrays and channels:\nexpected {:?}\nmeasured {:?}",
                (expected.arrays, expected.channels),
                (measured.arrays, measured.channels),
            ),
        })
    }
}

/// Every operation ends when the page predicts, and spends its time in the stages that the page gives; arrays and
/// channels are busy for as long.
#[test]
fn the_model_does_what_the_page_says() {
    for seed in seeds(number("NANDSCAPE_TEST_CASES", 1_500)) {
        let case = Case::draw(seed);
        let Some(difference) = case.difference() else { continue };
        let small = shrink(case, |case| case.difference().is_some());
        let least = small.difference().expect("it is the smallest that differs");
        panic!("seed {seed}: {difference}\nThe smallest such case: {least}\n{small:?}");
    }
}

/// Two suspensions begin at the same instant, and an operation that suspends no other joins the queue before the read
/// that causes one. Rare: two of 60,000 drives.
#[test]
fn suspensions_of_one_instant_begin_in_the_order_of_the_reads_that_cause_them() {
    for seed in [9_763, 43_577] {
        assert_eq!(Case::draw(seed).difference(), None, "seed {seed}");
    }
}

/// The simulator itself serves everything, and its stages of an operation sum to the operation's time.
#[test]
fn the_simulator_accounts_for_all_time() {
    for seed in seeds(300) {
        let case = Case::draw(seed);
        let served = case.simulated(None).served;
        assert!(served.iter().zip(&case.script).all(|(served, ops)| served.len() == ops.len()), "seed {seed}: stuck");
        for served in served.iter().flatten() {
            let total = served.stages.map_or(served.ended - served.asked, |stages| stages.total());
            assert_eq!(total, served.ended - served.asked, "seed {seed}: {served:?}");
        }
    }
}

/// Each rule, when it is broken, makes the simulator differ from the model somewhere.
#[test]
fn every_broken_rule_is_noticed() {
    let noticed = |rule, seed| {
        let case = Case::draw(seed);
        case.simulated(Some(rule)) != case.measured()
    };
    for rule in Rule::ALL {
        assert!(
            seeds(1_000).any(|seed| noticed(rule, seed)),
            "{rule:?}, from seed {}",
            number("NANDSCAPE_TEST_SEED", 1)
        );
    }
}
