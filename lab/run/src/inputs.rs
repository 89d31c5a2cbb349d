//! The inputs of a run, as far as its figures depend on them. Two runs with the same inputs, precondition and version
//! differ in their seed only, so their figures can be pooled.

use std::collections::BTreeMap;

use nandscape_device_ssd::Resolved;
use nandscape_host_path::Profile;
use nandscape_lab_workload::{JobSpec, Workload};
use serde::Serialize;

use crate::record::workload_lines;

/// The inputs of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Inputs {
    /// Changes of the profile's keys as they were given, `KEY=VALUE` each.
    pub set: Vec<String>,
    /// Requests kept outstanding, over all jobs; null where requests arrive at their own times, or depend on each other.
    pub iodepth: Option<u64>,
    /// The jobs of the workload and when it ends, a line each; empty for a recording that is replayed.
    pub workload_lines: Vec<String>,
    /// All keys of the profile, with their values.
    pub profile_keys: serde_json::Value,
    /// The host; left out where hosts take no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostInputs>,
}

/// The host of a run.
#[derive(Clone, Debug, Serialize)]
pub struct HostInputs {
    /// The name of its profile.
    pub name: String,
    /// All its keys, with their values.
    pub keys: BTreeMap<&'static str, String>,
}

impl HostInputs {
    /// Of a profile with its changes.
    pub(crate) fn of(profile: &Profile) -> HostInputs {
        HostInputs { name: profile.name.clone(), keys: profile.config.settings().into_iter().collect() }
    }
}

impl Inputs {
    /// Of a profile under a workload. `set` is empty: a resolved profile does not record its changes.
    pub(crate) fn of(profile: &Resolved, workload: Option<&Workload>) -> Inputs {
        Inputs {
            set: Vec::new(),
            iodepth: workload.and_then(iodepth),
            workload_lines: workload.map(workload_lines).unwrap_or_default(),
            profile_keys: serde_json::to_value(&profile.keys).expect("keys are plain values"),
            host: None,
        }
    }
}

/// Whether all requests come from jobs that keep their requests outstanding.
pub(crate) fn is_closed(workload: &Workload) -> bool {
    workload.loads.is_empty() && !workload.jobs.iter().any(JobSpec::is_open)
}

pub(crate) fn iodepth(workload: &Workload) -> Option<u64> {
    let of_job = |job: &JobSpec| u64::from(job.iodepth) * u64::from(job.numjobs);
    is_closed(workload).then(|| workload.jobs.iter().map(of_job).sum())
}
