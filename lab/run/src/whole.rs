//! The figures of a run on several drives as one object, in the format of a run on one drive where both have a figure.

use serde::Serialize;
use serde_json::{Value, json};

use crate::chain::{LayerSettings, stacked};
use crate::host_report::HostReport;
use crate::inputs::Inputs;
use crate::report::{Host, Report};
use crate::stack::StackFinished;

/// See the file.
#[derive(Serialize)]
pub struct Whole<'a> {
    schema: u32,
    profile: String,
    precondition: &'a str,
    initial_state: &'a str,
    #[serde(flatten)]
    requests: &'a HostReport,
    inputs: Inputs,
    host: Host,
    drives: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    report: &'a Report,
}

impl StackFinished {
    /// What it ran on, from the top down: `raid5:4 of default`, `cache over raid5:4 of default`.
    pub fn called(&self, profile: &str) -> String {
        match self.host.chain.is_empty() {
            true => format!("drives of {profile}"),
            false => format!("{} of {profile}", stacked(&self.host.chain, |one| one.called().to_owned())),
        }
    }

    /// All figures. `settings` are those of the layers, `set` the changed keys as given; `command` ran it.
    pub fn whole(&self, profile: &str, settings: &[LayerSettings], set: &[String], command: Option<&str>) -> Whole<'_> {
        let first = &self.drives[0].report;
        let mut inputs = first.inputs.clone();
        inputs.set = set.to_vec();
        for LayerSettings { layer, settings } in settings {
            let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), json!(value)));
            inputs.profile_keys[layer.as_str()] = Value::Object(settings.collect());
        }
        let mut host = first.host.clone();
        host.command = command.map(str::to_owned);
        Whole {
            schema: first.schema,
            profile: self.called(profile),
            precondition: first.precondition,
            initial_state: &first.initial_state,
            requests: &self.host,
            inputs,
            host,
            drives: self.drives.iter().map(|drive| Named { name: &drive.name, report: &drive.report }).collect(),
        }
    }
}
