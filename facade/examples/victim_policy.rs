//! A victim policy of your own in the page-mapping FTL: d-choices, which draws a few blocks at random and cleans the one
//! with the most garbage. It examines fewer blocks than greedy, and costs a little write amplification.
//!
//! The example runs the same load with greedy, with d-choices of a few sizes, and twice with one seed: chance is part of the
//! seed, so both runs give the same figures.
//!
//!     cargo run --release -p nandscape --example victim_policy

use std::cell::RefCell;
use std::error::Error;
use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use nandscape::policy::{Candidate, OwnPolicies, VictimPolicy};
use nandscape::run::{Precondition, Simulation, StoreKind};
use nandscape::sim::Rng;
use nandscape::ssd::Profile;
use nandscape::workload::{JobSpec, Limit, Workload};

/// Each block is drawn with this chance; drawn blocks rank by their garbage, all others below them.
struct DChoices {
    chance: f64,
    rng: RefCell<Rng>,
}

impl VictimPolicy for DChoices {
    fn merit(&self, candidate: &Candidate) -> u64 {
        let garbage = u64::from(candidate.units - candidate.valid);
        let is_drawn = self.rng.borrow_mut().chance(self.chance);
        if is_drawn { garbage << 1 | 1 } else { garbage.min(1) }
    }
}

/// Write amplification of a small drive in steady state, with greedy or with d-choices.
fn write_amplification(chance: Option<f64>) -> Result<f64, Box<dyn Error>> {
    let mut profile = Profile::load("default")?;
    profile.set_all(["capacity=256MiB", "geometry.channels=2", "geometry.dies_per_channel=2"])?;
    let victim = chance.map(|chance| -> nandscape::policy::MakePolicy<dyn VictimPolicy> {
        Arc::new(move |_, seed| Box::new(DChoices { chance, rng: RefCell::new(seed.child("d-choices").rng()) }))
    });
    let job = JobSpec { rw: "randwrite".parse()?, iodepth: 16, ..JobSpec::default() };
    let simulation = Simulation {
        profile: profile.resolve()?.with_policies(OwnPolicies { victim, ..OwnPolicies::default() })?,
        store: StoreKind::None,
        precondition: Precondition::Full,
        // The first half brings the drive to its steady state and is not counted.
        workload: Workload { limit: Limit::Requests(120_000), warmup: 120_000, ..Workload::of(job) },
        seed: 1,
        trace: false,
        check: false,
        block: None,
        host: None,
    };
    let report = simulation.run(Rc::new(()))?.report;
    report.waf.ok_or_else(|| "nothing was written".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let greedy = write_amplification(None)?;
    writeln!(out, "greedy: write amplification {greedy:.3}")?;
    for chance in [0.5, 0.2] {
        let own = write_amplification(Some(chance))?;
        writeln!(out, "d-choices of {:.0}% of the blocks: {own:.3}", chance * 100.0)?;
        assert!(own > greedy, "under uniform writes, fewer blocks to choose from cannot move less");
    }
    assert_eq!(write_amplification(Some(0.2))?, write_amplification(Some(0.2))?, "one seed, one result");
    Ok(())
}
