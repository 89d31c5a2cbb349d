//! One die under an open load, against the waiting time of the M/D/1 queue: rho S / (2 (1 - rho)) (Pollaczek 1930,
//! Khinchin 1932), through the whole drive. Link, firmware and host take no time, so that a read's latency is its wait
//! and its service.
//!
//! - Single register: the die is one server, and S = tR + transfer.
//! - Double register: two servers of constant times in line. The time spent in such a line does not depend on their
//!   order nor on the room between them (Avi-Itzhak 1965), so it is that of the slower one alone, after the faster.
//!
//! Each load runs with several seeds; the spread of the runs bounds the differences by chance.

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Workload};

/// Runs of each load.
const RUNS: u64 = 10;

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// One die of SLC with 40 us to sense.
struct Die {
    registers: &'static str,
    transfer_us: f64,
    bus: &'static str,
}

const SENSE_US: f64 = 40.0;

impl Die {
    /// Time of the slower server, which the load is relative to.
    fn server_us(&self) -> f64 {
        match self.registers {
            "single" => SENSE_US + self.transfer_us,
            _ => SENSE_US.max(self.transfer_us),
        }
    }

    fn run(&self, rho: f64, requests: u64, seed: u64) -> Report {
        let mut profile = Profile::load("femu-blackbox").unwrap();
        for change in [
            "capacity=128MiB",
            "geometry.channels=1",
            "geometry.dies_per_channel=1",
            &format!("timing.registers={}", self.registers),
            &format!("timing.bus={}", self.bus),
        ] {
            profile.set(change).unwrap();
        }
        let rate = Rate { iops: rho / self.server_us() * 1e6, process: RateProcess::Poisson };
        let job = JobSpec { rate: Some(rate), ..JobSpec::default() };
        let workload = Workload { limit: Limit::Requests(requests), ..Workload::of(job) };
        let simulation = Simulation::on(profile.resolve().unwrap(), Precondition::Full, workload, seed);
        simulation.run(Rc::new(())).unwrap().into_drive().report
    }

    /// Runs the load and compares. With the same seeds, two dies would see the same arrivals in units of their service.
    fn waits_as_md1(&self, rho: f64, requests: u64, seeds: u64) {
        let expected = rho * self.server_us() / (2.0 * (1.0 - rho));
        let mut waits = Vec::new();
        for number in 0..RUNS {
            let seed = seed().wrapping_add(seeds + number);
            let report = self.run(rho, requests, seed);
            waits.push(report.latency_us["read"].mean.unwrap() - SENSE_US - self.transfer_us);

            // Utilisation: to the nanosecond what the reads take, and rho as far as the arrivals have their rate.
            assert_eq!(report.requests, requests, "seed {seed}");
            for (resource, time_us) in [("die", SENSE_US), ("channel", self.transfer_us)] {
                let busy = report.busy[resource].mean;
                let exact = requests as f64 * time_us / 1e6 / report.virtual_s;
                assert!((busy - exact).abs() < 1e-9, "seed {seed}: {resource} is busy {busy}, not {exact}");
                let offered = rho * time_us / self.server_us();
                // Five standard deviations of a Poisson count.
                let chance = 5.0 / (requests as f64).sqrt();
                assert!((busy - offered).abs() <= offered * chance, "seed {seed}: {resource} is busy {busy}");
            }
        }
        let mean = waits.iter().sum::<f64>() / RUNS as f64;
        let square = waits.iter().map(|wait| (wait - mean) * (wait - mean)).sum::<f64>();
        let error = (square / (RUNS * (RUNS - 1)) as f64).sqrt();
        let figures = format!(
            "{} register, rho {rho}: mean wait {mean:.3} us, M/D/1 {expected:.3} us ({:+.2}%), standard error {:.2}%, \
             seed {}",
            self.registers,
            100.0 * (mean / expected - 1.0),
            100.0 * error / expected,
            seed()
        );
        assert!(4.0 * error < 0.03 * expected, "too few requests to tell 3% from chance: {figures}");
        assert!((mean - expected).abs() < 0.03 * expected, "{figures}");
    }
}

const SENSING_ALONE: Die = Die { registers: "single", transfer_us: 0.0, bus: "unlimited" };
const SINGLE: Die = Die { registers: "single", transfer_us: 100.0, bus: "4KiB/100us" };
const DOUBLE: Die = Die { registers: "double", transfer_us: 25.0, bus: "4KiB/25us" };
const DOUBLE_SLOW_BUS: Die = Die { registers: "double", transfer_us: 100.0, bus: "4KiB/100us" };

#[test]
fn half_load() {
    SENSING_ALONE.waits_as_md1(0.5, 80_000, 0);
    SINGLE.waits_as_md1(0.5, 80_000, 100);
}

#[test]
fn load_of_four_fifths() {
    SINGLE.waits_as_md1(0.8, 300_000, 200);
}

#[test]
fn two_registers_wait_for_the_slower_of_array_and_channel() {
    DOUBLE.waits_as_md1(0.8, 300_000, 300);
    DOUBLE_SLOW_BUS.waits_as_md1(0.5, 80_000, 400);
}
