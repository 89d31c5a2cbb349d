//! FEMU's delay emulation (FAST 2018, 3.2.1, Fig. 2b; Li 2020, 5.4.1, Fig. 5.5): each I/O takes 50 us more, and hardly any
//! takes longer than that.
//!
//! The paper's 70 and 105 us count some 20 us of the guest's own. Here the model's completion time is known, so what is
//! judged is the release error: from that instant to the client thread's seeing the completion, through the reactor and
//! the shared-memory queue pair. Its bounds are what the paper's figures leave: 70 - 50 and 105 - 50 us.

use nandscape_sim::Span;

use crate::claim::{Bound, Claim, Effort, Findings, us};
use crate::cores::{CLIENT, on_core};
use crate::idle::Idle;
use crate::live::{Live, fixed_delay};
use crate::load::{Load, Seen};

pub(crate) const CLAIM: Claim = Claim {
    id: "femu-delay",
    source: "FEMU, FAST 2018, 3.2.1, Fig. 2b; Li 2020, 5.4.1, Fig. 5.5",
    published: "+50 us per I/O: 99% complete within 70 us (about 20 us of it guest overhead), 99.99% within 105 us; same \
                shape for +100 us",
    must_show: "release error (completion seen minus the model's completion time) p99 under 20 us, p99.99 under 55 us, for \
                50 and 100 us",
    measure,
};

/// Time added to each I/O, in microseconds.
const DELAYS: [u64; 2] = [50, 100];
/// Reads in flight.
const DEPTHS: [usize; 2] = [1, 16];

fn measure(effort: &Effort) -> anyhow::Result<Findings> {
    let drives = DELAYS.iter().map(|delay| fixed_delay(&format!("plus-{delay}"), Span::from_us(*delay)));
    let live = Live::start(drives.collect::<anyhow::Result<_>>()?)?;
    let mut loads = Vec::new();
    for export in 0..DELAYS.len() as u16 {
        loads.push(Load::connect(live.handle(), export, 16)?);
    }
    let (mut seen, mut idle) = (vec![Seen::default(); DELAYS.len() * DEPTHS.len()], Idle::default());
    for _ in 0..effort.rounds {
        for (load, seen) in loads.iter_mut().zip(seen.chunks_mut(DEPTHS.len())) {
            for (depth, seen) in DEPTHS.iter().zip(seen) {
                on_core(CLIENT, || load.run(*depth, effort.slice, seen))?;
            }
            idle.run(live.handle().clock(), Span::from_us(50), effort.slice);
        }
    }
    let mut findings = Findings::default();
    let points = DELAYS.iter().flat_map(|delay| DEPTHS.iter().map(move |depth| (delay, depth)));
    for ((delay, depth), seen) in points.zip(&seen) {
        let name = |what: &str| format!("{what}, +{delay} us, {depth} in flight");
        findings.beside(name("reads"), seen.latency.count() as f64, "");
        findings.beside(name("p50 latency"), us(&seen.latency, 0.5), "us");
        findings.beside(name("p50 release error"), us(&seen.late, 0.5), "us");
        findings.judge(name("p99 release error"), us(&seen.late, 0.99), "us", Bound::Below(20.0));
        findings.judge(name("p99.99 release error"), us(&seen.late, 0.9999), "us", Bound::Below(55.0));
    }
    idle.stand_beside(&mut findings);
    findings.reason.push_str(
        ". With several in flight there is more: reads that are due together are completed and seen one after the other",
    );
    Ok(findings)
}
