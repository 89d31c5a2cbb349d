//! Outages of a drive: the times after power cuts in which it serves nothing, and the cost of outages and of fault rules to the
//! requests that met them.

use nandscape_drive::breakdown::POWER_CUT;
use nandscape_lab_workload::{Met, Outcome};
use nandscape_sim::{Span, Time};
use serde::Serialize;

/// Outages of the measured phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outages {
    /// How many.
    pub outages: u64,
    /// From the cuts until commands were served again, summed.
    pub out_s: f64,
    /// Requests that have waited in their queue for power.
    pub requests: u64,
    /// Their mean wait for it; null without any.
    pub mean_us: Option<f64>,
    /// The longest; null without any.
    pub max_us: Option<f64>,
}

impl Outages {
    /// Of those that ended after `begun`, if there were any.
    pub(crate) fn of(outages: &[(Time, Time)], begun: Time, outcome: &Outcome) -> Option<Outages> {
        let ours = || outages.iter().filter(|(_, until)| *until > begun);
        let met = outcome.met.get(&POWER_CUT).copied().unwrap_or_default();
        let out: Span = ours().map(|(since, until)| until.since((*since).max(begun))).sum();
        let some = met.requests > 0;
        (ours().count() > 0).then(|| Outages {
            outages: ours().count() as u64,
            out_s: out.as_s(),
            requests: met.requests,
            mean_us: some.then(|| mean_us(&met)),
            max_us: some.then(|| met.longest.as_us()),
        })
    }
}

/// What a rule cost the requests that met it: those whose own operation of flash it struck.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FaultCost {
    /// How many.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Their mean latency.
    pub mean_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl FaultCost {
    /// Of the rule with this number; `None` if no request met it.
    pub(crate) fn of(number: u32, outcome: &Outcome) -> Option<FaultCost> {
        let met = outcome.met.get(&number.min(POWER_CUT - 1))?;
        let Met { requests, failed, longest, .. } = *met;
        Some(FaultCost { requests, failed, mean_us: mean_us(met), max_us: longest.as_us() })
    }
}

fn mean_us(met: &Met) -> f64 {
    met.sum.as_us() / met.requests as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_count_from_the_measured_phase_on() {
        let at = Time::from_ns;
        let mut outcome = Outcome::default();
        let all = [(at(1), at(5)), (at(100), at(1_100)), (at(2_000), at(2_500))];
        assert_eq!(Outages::of(&all[..1], at(50), &outcome), None);
        let none = Outages::of(&all, at(600), &outcome).unwrap();
        assert_eq!((none.outages, none.out_s, none.mean_us), (2, 1e-6, None));
        let met = Met { requests: 4, failed: 1, sum: Span::from_us(10), longest: Span::from_us(7) };
        outcome.met = [(POWER_CUT, met), (2, met)].into();
        let waited = Outages::of(&all, at(600), &outcome).unwrap();
        assert_eq!((waited.requests, waited.mean_us, waited.max_us), (4, Some(2.5), Some(7.0)));
        assert_eq!(FaultCost::of(0, &outcome), None);
        assert_eq!(FaultCost::of(2, &outcome).unwrap().failed, 1);
    }
}
