//! Points on drives with layers over them: all drives have the profile of the point, and some have separate faults.
//!
//! Left out: states that several points share and that are made once.

use nandscape_device_media::Rule;
use nandscape_device_ssd::Resolved;
use nandscape_lab_run::chain::{Chain, check_over, drives_below, lowest_array};
use nandscape_lab_run::{name_of_drive, takes_windows};
use nandscape_layers_array::Config;
use serde::{Deserialize, Serialize};

use crate::point::Drive;

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
        let of_drive = |name: &String| {
            let meant = self.faults.iter().filter(|(other, _)| other == name).map(|(_, rule)| rule);
            drive.resolve(&meant.collect::<Vec<_>>())
        };
        let drives = names.iter().map(of_drive).collect::<Result<Vec<_>, String>>()?;
        check_over(&layers, &drives[0]).map_err(|problem| format!("{}: {problem}", self.chain))?;
        if let Some(array) = lowest_array(&layers) {
            names.iter().zip(&drives).try_for_each(|(name, drive)| takes_windows(&array.config, (name, drive)))?;
        }
        Ok(drives)
    }
}

/// Checks a rule.
pub(crate) fn check_rule(rule: &str) -> Result<(), String> {
    rule.parse::<Rule>().map(drop).map_err(|error| error.to_string())
}
