//! A victim policy of your own in the page-mapping FTL: d-choices, which draws a few blocks at random and cleans the one
//! with the most garbage. It examines fewer blocks than greedy, and costs a little write amplification.
//!
//! The example runs the same load with greedy, with d-choices of a few sizes, and twice with one seed: chance is part of the
//! seed, so both runs give the same figures.
//!
//!     cargo run --release -p nandscape --example victim_policy
//!     cargo run --release -p nandscape --example victim_policy -- --chances 0.1,0.5 --rate-iops 20000

use std::cell::RefCell;
use std::error::Error;
use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use clap::Parser;
use nandscape::policy::{Candidate, OwnPolicies, VictimPolicy};
use nandscape::run::{Precondition, Report, Simulation};
use nandscape::sim::Rng;
use nandscape::ssd::Profile;
use nandscape::workload::{JobSpec, Limit, Rate, RateProcess, Workload};

/// Compares d-choices with greedy: write amplification and the tail of reads.
#[derive(Parser)]
struct Args {
    /// Chances with which a block is drawn.
    #[arg(long, value_delimiter = ',', default_values_t = [0.5, 0.2])]
    chances: Vec<f64>,
    /// Requests a second, half of them reads.
    #[arg(long, default_value_t = 10_000)]
    rate_iops: u64,
}

/// Each block is drawn with this chance; drawn blocks rank by their garbage, all others below them.
struct DChoices {
    chance: f64,
    rng: RefCell<Rng>,
}

impl VictimPolicy for DChoices {
    fn merit(&self, candidate: &Candidate) -> u64 {
        let garbage = u64::from(candidate.units - candidate.valid);
        let is_drawn = self.rng.borrow_mut().chance(self.chance);
        // The largest merit wins. A drawn block ranks by its garbage, above all others; these count if none was drawn.
        if is_drawn { 2 * garbage + 1 } else { garbage.min(1) }
    }
}

/// A run on a small drive in steady state, with greedy or with d-choices.
fn run(args: &Args, chance: Option<f64>) -> Result<Report, Box<dyn Error>> {
    let mut profile = Profile::load("default")?;
    profile.set_all(["capacity=256MiB", "geometry.channels=2", "geometry.dies_per_channel=2"])?;
    let victim = chance.map(|chance| -> nandscape::policy::MakePolicy<dyn VictimPolicy> {
        Arc::new(move |_, seed| Box::new(DChoices { chance, rng: RefCell::new(seed.child("d-choices").rng()) }))
    });
    let rate = Some(Rate { iops: args.rate_iops as f64, process: RateProcess::Poisson });
    let job = JobSpec { rw: "randrw".parse()?, rate, ..JobSpec::default() };
    // The first half brings the drive to its steady state and is not counted.
    let workload = Workload { limit: Limit::Requests(120_000), warmup: 120_000, ..Workload::of(job) };
    let simulation = Simulation::on(
        profile.resolve()?.with_policies(OwnPolicies { victim, ..OwnPolicies::default() })?,
        Precondition::Full,
        workload,
        1,
    );
    Ok(simulation.run(Rc::new(()))?.into_drive().report)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<28} write amplification  read p99.9, us", "")?;
    let mut amplifications = Vec::new();
    for chance in std::iter::once(None).chain(args.chances.iter().copied().map(Some)) {
        let report = run(&args, chance)?;
        let name = chance.map_or("greedy".to_owned(), |chance| format!("d-choices of {:.0}%", chance * 100.0));
        let waf = report.waf.ok_or("nothing was written")?;
        let tail = report.latency_us.get("read").and_then(|read| read.p99_9).ok_or("too few reads")?;
        writeln!(out, "{name:<28} {waf:>19.3}  {tail:>14.1}")?;
        amplifications.push(waf);
    }
    check(&args, &amplifications)
}

/// What holds for this policy.
fn check(args: &Args, amplifications: &[f64]) -> Result<(), Box<dyn Error>> {
    let mut others = amplifications.iter().skip(1);
    assert!(
        others.all(|waf| *waf > amplifications[0]),
        "under uniform writes, fewer blocks to choose from cannot move less"
    );
    let waf = |chance| Ok::<_, Box<dyn Error>>(run(args, chance)?.waf);
    assert_eq!(waf(Some(0.2))?, waf(Some(0.2))?, "one seed, one result");
    Ok(())
}
