//! The changes of a what-if: the drives of a recording as they might have been.

use nandscape_device_media::Rule;
use nandscape_device_ssd::{Profile, ProfileError};

use crate::build::Precondition;
use crate::live::DriveSpec;

/// What is other than in the recorded run.
#[derive(Clone, Default, Debug)]
pub struct WhatIf {
    /// A profile in place of a drive's, or of every drive's if none is named.
    pub drive: Option<(Option<String>, Profile)>,
    /// Changes of keys, `KEY=VALUE` each.
    pub set: Vec<String>,
    /// Faults in addition to those of the profiles.
    pub faults: Vec<Rule>,
    /// Flash, link and firmware take no time.
    pub no_delay: bool,
    /// The state the drives begin in.
    pub precondition: Option<Precondition>,
    /// The drives keep data. Without, only times are simulated.
    pub keeps_data: bool,
}

impl WhatIf {
    /// A drive with the changes.
    pub(super) fn apply(&self, spec: &DriveSpec) -> Result<DriveSpec, ProfileError> {
        let mut profile = match &self.drive {
            Some((name, profile)) if name.as_ref().is_none_or(|name| *name == spec.name) => profile.clone(),
            _ => Profile::of_keys(&spec.profile_name, Profile::parse(&spec.profile_name, &spec.profile)?.keys),
        };
        profile.set_all(&self.set)?;
        if !self.faults.is_empty() {
            let given = profile.keys.faults.iter().flat_map(|given| &given.0).map(|rule| &rule.0);
            // A rule contains no quotation mark.
            let all: Vec<String> = given.chain(&self.faults).map(|rule| format!("\"{rule}\"")).collect();
            profile.set(&format!("faults=[{}]", all.join(", ")))?;
        }
        let resolved = profile.resolve()?;
        let resolved = if self.no_delay { resolved.without_delay() } else { resolved };
        Ok(DriveSpec {
            name: spec.name.clone(),
            number: spec.number,
            profile_name: resolved.name.clone(),
            profile: resolved.to_toml(),
            keeps_data: self.keeps_data,
            precondition: self.precondition.unwrap_or(spec.precondition),
            // A state that was given takes the place of a saved one.
            from_state: spec.from_state.clone().filter(|_| self.precondition.is_none()),
            is_shared: spec.is_shared,
        })
    }

    /// The changes in words.
    pub(super) fn in_words(&self) -> Vec<String> {
        let drive = self.drive.iter().map(|(name, profile)| match name {
            Some(name) => format!("drive {name}={}", profile.name),
            None => format!("drive {}", profile.name),
        });
        let sets = self.set.iter().map(|change| format!("set {change}"));
        let faults = self.faults.iter().map(|rule| format!("fault {rule}"));
        let no_delay = self.no_delay.then(|| "no delay".to_owned());
        let precondition = self.precondition.map(|state| format!("precondition {}", state.name()));
        drive.chain(sets).chain(faults).chain(no_delay).chain(precondition).collect()
    }
}
