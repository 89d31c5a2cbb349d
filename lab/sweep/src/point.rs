//! The inputs of a point: everything its figures depend on, as text, so that it can be measured in another process or on
//! another machine; and its measurement.

use std::path::Path;
use std::rc::Rc;

use nandscape_device_ssd::{Profile, ProfileKeys, Resolved};
use nandscape_host_path::Profile as HostProfile;
use nandscape_lab_run::{FromState, Percentile, Phase, Precondition, Progress, Simulation};
use nandscape_lab_workload::{Workload, parse_table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::layers::LayerInputs;
use crate::start::{self, Load};
use crate::stored::{Stored, this_program};
use crate::trace_keys::TraceKeys;

/// Everything that the figures of a point depend on, besides the program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Inputs {
    /// The drive.
    pub drive: Drive,
    /// The changes of its profile, as they were given.
    pub set: Vec<String>,
    /// The layers over drives that all are that drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<LayerInputs>,
    /// The host in whose threads the workload runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostInputs>,
    /// The name of the workload.
    pub workload_name: String,
    /// The workload: the text of a workload file.
    pub workload: String,
    /// The trace in place of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceKeys>,
    /// Percentiles in addition to those of every report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<String>,
    /// The state of the drive at the start.
    pub precondition: Precondition,
    /// The load of `precondition = "load"`; left out, it is the workload or the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition_workload: Option<Load>,
    /// The file with the state at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_state: Option<FromState>,
    /// Policies that are functions of the measuring process, by their name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<String>,
    /// The seed of all random choices.
    pub seed: u64,
}

/// A host: a profile with its changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostInputs {
    /// The name of the profile.
    pub name: String,
    /// All its settings, `host.KEY=VALUE` each.
    pub settings: Vec<String>,
}

impl HostInputs {
    /// The profile of this host.
    ///
    /// # Errors
    /// When there can be no such host.
    pub(crate) fn profile(&self) -> Result<HostProfile, String> {
        let mut profile = HostProfile { name: self.name.clone(), ..HostProfile::default() };
        profile.set_all(&self.settings).map_err(|error| error.to_string())?;
        Ok(profile)
    }
}

/// A drive: a resolved profile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Drive {
    /// The name of the profile.
    pub name: String,
    /// All its keys as TOML.
    pub keys: String,
    /// Decisions that differ from the profile as given.
    pub notes: Vec<String>,
}

impl Drive {
    /// The profile, with these faults in addition to its own.
    ///
    /// # Errors
    /// When there can be no such drive.
    pub(crate) fn resolve(&self, faults: &[&String]) -> Result<Resolved, String> {
        let keys: ProfileKeys = toml::from_str(&self.keys).map_err(|error| error.to_string())?;
        let mut profile = Profile::of_keys(&self.name, keys);
        if !faults.is_empty() {
            let given = profile.keys.faults.iter().flat_map(|given| &given.0).map(|rule| rule.0.to_string());
            // A rule contains no quotation mark.
            let all: Vec<String> =
                given.chain(faults.iter().map(|rule| (*rule).clone())).map(|rule| format!("\"{rule}\"")).collect();
            profile.set(&format!("faults=[{}]", all.join(", "))).map_err(|error| error.to_string())?;
        }
        let mut resolved = profile.resolve().map_err(|error| error.to_string())?;
        resolved.notes.clone_from(&self.notes);
        Ok(resolved)
    }
}

/// Removes what depends on the machine.
fn without_host(report: &mut Value) {
    report.as_object_mut().expect("a report is an object").remove("host");
}

/// Forwards the progress of a run as one share.
pub(crate) struct Share<F>(pub(crate) F);

impl<F: Fn(f64)> Progress for Share<F> {
    /// Preconditioning is the first half.
    fn at(&self, phase: Phase, share: f64) {
        (self.0)(match phase {
            Phase::Preconditioning => share / 2.0,
            Phase::Running => 0.5 + share / 2.0,
        });
    }
}

impl Inputs {
    /// The name of the point's file: a digest of these inputs and of the program.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(&(this_program(), self)).expect("plain data");
        format!("{:032x}", xxh3_128(text.as_bytes()))
    }

    /// The point in words: drive, changes, workload, seed.
    pub fn in_words(&self) -> String {
        let changes: Vec<String> = self.set.iter().map(|change| format!(", {change}")).collect();
        let Inputs { drive, workload_name, seed, .. } = self;
        let host = self.host.as_ref().map_or(String::new(), |host| format!("host {} over ", host.name));
        let layers = self.layers.as_ref().map_or(String::new(), |layers| format!("{} over ", layers.chain));
        format!(
            "the point {} ({host}{layers}{}{}, workload {workload_name}, seed {seed})",
            self.digest(),
            drive.name,
            changes.concat()
        )
    }

    /// Measures the point. The result depends on the inputs and the program alone. `progress` takes shares from 0 to 1.
    ///
    /// # Errors
    /// Why the run failed.
    pub fn measure(&self, progress: impl Fn(f64) + 'static) -> Result<Stored, String> {
        let progress: Rc<dyn Progress> = Rc::new(Share(progress));
        self.measure_from(None, &progress)
    }

    /// The same, from the file that the state at the start was saved to, if there is one.
    pub(crate) fn measure_from(&self, made: Option<&Path>, progress: &Rc<dyn Progress>) -> Result<Stored, String> {
        if let Some(policies) = &self.policies {
            return Err(format!(
                "its policies ({policies}) are functions, and only the process that has them can call them"
            ));
        }
        self.measure_run(&self.simulation()?, made, progress)
    }

    /// The same, of a run that [`Inputs::simulation`] has made and the caller has given the point's policies.
    ///
    /// # Errors
    /// Why the run failed.
    pub fn measure_run(
        &self,
        simulation: &Simulation,
        made: Option<&Path>,
        progress: &Rc<dyn Progress>,
    ) -> Result<Stored, String> {
        let percentiles = self.percentiles.iter().map(|text| text.parse::<Percentile>());
        let percentiles: Vec<Percentile> = percentiles.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let begin = start::begin(self, simulation, made)?;
        let mut finished = match simulation.run_begun(&begin, progress.clone(), None) {
            // The file is damaged; the point does without.
            Err(error) if made.is_some() && start::is_of_state(&error) => {
                return self.measure_run(simulation, None, progress);
            }
            finished => finished.map_err(|error| error.to_string())?,
        };
        finished.choose_percentiles(&percentiles);
        let problem = match finished.failures().1 {
            0 => None,
            failed => Some(format!("{failed} requests failed; the report counts them by status")),
        };
        let mut figures = finished.to_value(simulation, &self.set, None);
        without_host(&mut figures);
        let drives = figures.get_mut("drives").and_then(Value::as_array_mut);
        drives.into_iter().flatten().for_each(|drive| without_host(&mut drive["report"]));
        Ok(Stored::new(self.clone(), problem, figures))
    }

    /// The run that measures it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn simulation(&self) -> Result<Simulation, String> {
        let (workload, precondition, seed) = (self.workload()?, self.precondition, self.seed);
        let simulation = match &self.layers {
            None => Simulation::on(self.drive.resolve(&[])?, precondition, workload, seed),
            Some(given) => {
                let (layers, drives) = (given.chain.resolve()?, given.drives(&self.drive)?);
                Simulation::under(layers, drives, precondition, workload, seed)
            }
        };
        Ok(Simulation { host: self.host.as_ref().map(HostInputs::profile).transpose()?, ..simulation })
    }

    /// The workload, or the trace in its place.
    pub(crate) fn workload(&self) -> Result<Workload, String> {
        match &self.trace {
            Some(trace) => trace.workload(),
            None => {
                let table = self.workload.parse().map_err(|error: toml::de::Error| error.to_string())?;
                parse_table(&self.workload_name, table).map_err(|error| error.to_string())
            }
        }
    }
}
