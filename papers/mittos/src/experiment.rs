//! Runs in comparison: without noise, then each policy under the same noise; and the accuracy of predictions, under loads of
//! other intensity, where none rejects.

use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::{Load, Outcome};
use nandscape_host_block::Accuracy;
use nandscape_sim::Span;

use crate::cluster::{Known, RunError, run_knowing};
use crate::spec::Spec;

/// A time, or the 95th percentile that users expect: that without noise.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// That percentile (Li 3.1.8).
    P95,
    /// A time.
    Given(Span),
}

/// See the file.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What all runs have in common.
    pub spec: Spec,
    /// The policies.
    pub policies: Vec<String>,
    /// The deadline of Mitt, for the server. Of the percentile the way through the network is taken off.
    pub deadline: Limit,
    /// When Hedged sends its second try.
    pub hedge: Limit,
}

/// How right predictions were under a load.
#[derive(Clone)]
pub struct Right {
    /// The load, in words.
    pub load: String,
    /// The counts.
    pub accuracy: Accuracy,
}

/// What came of it.
#[derive(Clone)]
pub struct Report {
    /// The runs by their names; the first is without noise.
    pub runs: Vec<(String, Outcome)>,
    /// How right predictions were.
    pub right: Vec<Right>,
    /// The deadline.
    pub deadline: Span,
    /// When a get was hedged.
    pub hedge: Span,
}

/// Runs it. `begins` hears the name of each run.
///
/// # Errors
/// When a run is not possible.
pub fn experiment(of: &Experiment, begins: &mut dyn FnMut(&str)) -> Result<Report, RunError> {
    let known = Known::of(&of.spec.subject)?;
    begins("no noise");
    let quiet = run_knowing(&Spec { noisy: 0, policy: "base".to_owned(), ..of.spec.clone() }, &known)?.outcome;
    let p95 = quiet.gets.quantile(0.95);
    let network = of.spec.hop + of.spec.hop;
    let deadline = match of.deadline {
        Limit::P95 => p95.saturating_sub(network).max(Span::from_us(1)),
        Limit::Given(span) => span,
    };
    let hedge = match of.hedge {
        Limit::P95 => p95,
        Limit::Given(span) => span,
    };
    let tuning = Tuning { deadline, hedge: Some(hedge), ..of.spec.tuning };
    let mut runs = vec![("no noise".to_owned(), quiet)];
    for policy in &of.policies {
        begins(policy);
        let run = run_knowing(&Spec { policy: policy.clone(), tuning, ..of.spec.clone() }, &known)?;
        runs.push((policy.clone(), run.outcome));
    }
    let mut right = Vec::new();
    for (load, spec) in loads(&of.spec) {
        begins(&format!("predictions, {load}"));
        let spec = Spec { policy: "mitt".to_owned(), tuning, predict_only: true, ..spec };
        right.push(Right { load, accuracy: run_knowing(&spec, &known)?.accuracy });
    }
    Ok(Report { runs, right, deadline, hedge })
}

impl Experiment {
    /// Runs in all.
    pub fn runs(&self) -> usize {
        1 + self.policies.len() + loads(&self.spec).len()
    }
}

/// Loads under which predictions are compared: the same, twice as many clients, and four gets in a request.
fn loads(spec: &Spec) -> Vec<(String, Spec)> {
    let Load { clients, scale, requests, .. } = spec.load;
    let of = |name: String, load: Load| (name, Spec { load, ..spec.clone() });
    vec![
        of(format!("{clients} clients"), spec.load),
        of(format!("{} clients", 2 * clients), Load { clients: 2 * clients, ..spec.load }),
        of(
            format!("{clients} clients, {} gets a request", 4 * scale),
            Load { scale: 4 * scale, requests: requests.div_ceil(4), ..spec.load },
        ),
    ]
}
