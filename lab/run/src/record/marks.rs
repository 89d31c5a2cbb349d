//! Marks on the time axis of a report: when rules of the fault plan struck, and when the drive was without power.

use nandscape_device_ssd::Ssd;
use nandscape_sim::Time;
use serde::Serialize;

/// See the file. Times run from the beginning of the measured phase.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Marks {
    /// The rules that struck, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<RuleMarks>,
    /// Outages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageMark>,
}

/// When one rule struck.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RuleMarks {
    /// The rule.
    pub rule: String,
    /// When, a time for each mark; strikes that are near each other may share one.
    pub at_s: Vec<f64>,
    /// Operations that each mark stands for.
    pub struck: Vec<u64>,
}

/// An outage: from a power cut until commands are served again.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OutageMark {
    /// When power was cut.
    pub from_s: f64,
    /// When commands were served again.
    pub until_s: f64,
}

impl Marks {
    /// Those of a drive between two times.
    pub(super) fn of(ssd: &Ssd, begun: Time, ended: Time) -> Marks {
        let at_s = |time: Time| time.max(begun).since(begun).as_s();
        let plan = ssd.media().faults();
        let rules = plan.counts().into_iter().zip(plan.marks()).map(|(count, marks)| {
            let marks: Vec<_> = marks.into_iter().filter(|mark| mark.at >= begun && mark.at <= ended).collect();
            RuleMarks {
                rule: count.rule.to_string(),
                at_s: marks.iter().map(|mark| at_s(mark.at)).collect(),
                struck: marks.iter().map(|mark| mark.struck).collect(),
            }
        });
        let outages = ssd.outages().into_iter().filter(|(since, until)| *until > begun && *since < ended);
        Marks {
            faults: rules.filter(|rule| !rule.at_s.is_empty()).collect(),
            outages: outages
                .map(|(since, until)| OutageMark { from_s: at_s(since), until_s: at_s(until.min(ended)) })
                .collect(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.outages.is_empty()
    }
}
