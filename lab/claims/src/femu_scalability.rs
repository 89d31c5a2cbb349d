//! FEMU's scalability (FAST 2018, Fig. 2a; Li 2020, 5.3.4): many reads in flight without adding to each other's latency,
//! while the drive itself takes no time.
//!
//! The paper's guest has that many threads of fio with one read each. Here one thread keeps them in flight, on shared-memory
//! queue pairs: no guest, no kernel, no thread switches. So the latencies are the emulator's and its client's own, and the
//! bounds are kept as published.

use nandscape_sim::Span;

use crate::claim::{Bound, Claim, Effort, Findings, us};
use crate::cores::{CLIENT, on_core};
use crate::idle::Idle;
use crate::live::{Live, fixed_delay};
use crate::load::{Load, Seen};

pub(crate) const CLAIM: Claim = Claim {
    id: "femu-scalability",
    source: "FEMU, FAST 2018, Fig. 2a; Li 2020, 5.3.4",
    published: "4 KiB random reads, no NAND delay: mean latency under 52 us from 1 to 32 I/O threads, under 90 us at 64, \
                which is 0.71 M IOPS; stock QEMU NVMe is at 106 us with 8 threads",
    must_show: "mean latency under those two figures at 1 to 64 in flight, and over 0.71 M IOPS at 64, from a reactor on \
                one core",
    measure,
};

/// Reads in flight.
const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

fn measure(effort: &Effort) -> anyhow::Result<Findings> {
    let live = Live::start(vec![fixed_delay("undelayed", Span::ZERO)?])?;
    let mut load = Load::connect(live.handle(), 0, 64)?;
    let (mut seen, mut idle) = (vec![Seen::default(); DEPTHS.len()], Idle::default());
    for _ in 0..effort.rounds {
        for (depth, seen) in DEPTHS.iter().zip(&mut seen) {
            on_core(CLIENT, || load.run(*depth, effort.slice, seen))?;
        }
        idle.run(live.handle().clock(), Span::from_us(10), effort.slice);
    }
    let mut findings = Findings::default();
    for (depth, seen) in DEPTHS.iter().zip(&seen) {
        let bound = if *depth <= 32 { 52.0 } else { 90.0 };
        findings.judge(
            format!("mean latency, {depth} in flight"),
            seen.latency.mean_ns() / 1e3,
            "us",
            Bound::Below(bound),
        );
    }
    for (depth, seen) in DEPTHS.iter().zip(&seen) {
        match depth {
            64 => findings.judge("reads a second, 64 in flight", seen.rate(), "1/s", Bound::Above(0.71e6)),
            _ => findings.beside(format!("reads a second, {depth} in flight"), seen.rate(), "1/s"),
        }
    }
    for (depth, seen) in DEPTHS.iter().zip(&seen) {
        findings.beside(format!("p50 latency, {depth} in flight"), us(&seen.latency, 0.5), "us");
        findings.beside(format!("p99 latency, {depth} in flight"), us(&seen.latency, 0.99), "us");
    }
    idle.stand_beside(&mut findings);
    Ok(findings)
}
