//! Points on drives with layers over them: all drives have the profile of the point, and some have separate faults.
//!
//! Left out: states that several points share and that are made once.

use std::rc::Rc;

use nandscape_device_media::{Rule, StoreKind};
use nandscape_device_ssd::{Profile, ProfileKeys, Resolved};
use nandscape_lab_run::chain::{Chain, LayerSettings, check_over, drives_below};
use nandscape_lab_run::{Begin, Percentile, Progress, RigDrive, Stack, Wanted, name_of_drive, takes_windows};
use nandscape_layers_array::Config;
use nandscape_sim::Seed;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::point::{Drive, HostInputs, Inputs};
use crate::stored::Stored;

/// The layers over the drives of a point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LayerInputs {
    /// The layers, with their settings.
    pub chain: Chain,
    /// Faults of one drive: its name, and the rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<(String, String)>,
}

/// What is wrong with the change of a setting of an array, if it is none.
pub(crate) fn check_setting(change: &str) -> Result<(), String> {
    let key = change.split('=').next().unwrap_or_default();
    if ["array.journal", "array.force"].contains(&key) {
        return Err("the array of a simulation is new in each run, and has no journal; leave it out".to_owned());
    }
    Config::default().set(change).map_err(|error| error.to_string())
}

/// A fault rule of one drive, `NAME=RULE`; `None` is one of all. The first word of a rule has no `=` in it.
pub(crate) fn of_one_drive(text: &str) -> Option<(&str, &str)> {
    let (name, _) = text.split_whitespace().next()?.split_once('=')?;
    Some((name, &text.trim_start()[name.len() + 1..]))
}

impl LayerInputs {
    /// The drives that the layers need.
    ///
    /// # Errors
    /// Why there can be no such layers over them.
    pub(crate) fn drives(&self, drive: &Drive) -> Result<Vec<Resolved>, String> {
        let layers = self.chain.resolve()?;
        let names: Vec<String> = (0..drives_below(&layers)).map(name_of_drive).collect();
        if let Some((name, rule)) = self.faults.iter().find(|(name, _)| !names.contains(name)) {
            let known = names.join(", ");
            return Err(format!("fault = {name}={rule}: there is no drive {name:?}; NAME=RULE names one of {known}"));
        }
        let drives = names.iter().map(|name| self.drive(drive, name)).collect::<Result<Vec<_>, String>>()?;
        check_over(&layers, &drives[0]).map_err(|problem| format!("{}: {problem}", self.chain))?;
        if let Some(array) = layers.first().and_then(|lowest| lowest.layer.array()) {
            names.iter().zip(&drives).try_for_each(|(name, drive)| takes_windows(&array.config, (name, drive)))?;
        }
        Ok(drives)
    }

    /// One of the drives, with its faults.
    fn drive(&self, drive: &Drive, name: &str) -> Result<Resolved, String> {
        let keys: ProfileKeys = toml::from_str(&drive.keys).map_err(|error| error.to_string())?;
        let mut profile = Profile::of_keys(&drive.name, keys);
        let meant: Vec<&String> = self.faults.iter().filter(|(other, _)| other == name).map(|(_, rule)| rule).collect();
        if !meant.is_empty() {
            let given = profile.keys.faults.iter().flat_map(|given| &given.0).map(|rule| rule.0.to_string());
            // A rule contains no quotation mark.
            let all: Vec<String> = given.chain(meant.into_iter().cloned()).map(|rule| format!("\"{rule}\"")).collect();
            profile.set(&format!("faults=[{}]", all.join(", "))).map_err(|error| error.to_string())?;
        }
        let mut resolved = profile.resolve().map_err(|error| error.to_string())?;
        resolved.notes.clone_from(&drive.notes);
        Ok(resolved)
    }
}

/// Checks a rule.
pub(crate) fn check_rule(rule: &str) -> Result<(), String> {
    rule.parse::<Rule>().map(drop).map_err(|error| error.to_string())
}

impl Inputs {
    /// Measures a point with layers. The figures are those of `nandscape sim --over`.
    ///
    /// # Errors
    /// Why the run failed, or that the point has no layers.
    pub fn measure_layers(&self, progress: &Rc<dyn Progress>) -> Result<Stored, String> {
        let given = self.layers.as_ref().ok_or("the point has no layers")?;
        let drive = |(number, profile): (usize, Resolved)| RigDrive {
            name: name_of_drive(number),
            profile,
            store: StoreKind::None,
            precondition: self.precondition,
            seed: Seed::new(self.seed).child("array").nth(number as u64),
        };
        let stack = Stack {
            drives: given.drives(&self.drive)?.into_iter().enumerate().map(drive).collect(),
            layers: given.chain.resolve()?,
            workload: self.workload()?,
            seed: self.seed,
            wanted: Wanted { trace: false, details: false },
            check: false,
            host: self.host.as_ref().map(HostInputs::profile).transpose()?,
        };
        let percentiles = self.percentiles.iter().map(|text| text.parse::<Percentile>());
        let percentiles: Vec<Percentile> = percentiles.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let begin = Begin { start: self.start(&stack.workload)?, ..Begin::default() };
        let finished = stack.run_begun((&begin, &given.chain), progress.clone(), None);
        let mut finished = finished.map_err(|error| error.to_string())?;
        finished.choose_percentiles(&percentiles);
        let problem = match finished.failures().1 {
            0 => None,
            failed => Some(format!("{failed} requests failed; the report counts them by status")),
        };
        let settings = LayerSettings::of(&stack.layers);
        let whole = finished.whole(&self.drive.name, &settings, &self.set, None);
        let mut figures = serde_json::to_value(&whole).expect("a report is plain data");
        without_host(&mut figures);
        for drive in figures["drives"].as_array_mut().into_iter().flatten() {
            without_host(&mut drive["report"]);
        }
        Ok(Stored::new(self.clone(), problem, figures))
    }
}

/// Removes what depends on the machine.
fn without_host(report: &mut Value) {
    report.as_object_mut().expect("a report is an object").remove("host");
}
