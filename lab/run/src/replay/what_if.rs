//! The changes of a what-if: the drives of a recording as they might have been.

use nandscape_device_media::Rule;
use nandscape_device_ssd::{Profile, ProfileError};
use nandscape_drive::Precondition;

use crate::live::{DriveSpec, LiveDrives, Rules};

/// The key of rules for class and tenant.
const RULES: &str = "controller.assign";

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

/// A drive that the changes do not fit, and why.
pub(super) type Misfit = (String, ProfileError);

fn of_drive(spec: &DriveSpec) -> impl FnOnce(ProfileError) -> Misfit {
    |error| (spec.name.clone(), error)
}

impl WhatIf {
    /// All drives of a run with the changes of theirs, and the rules for their clients. Under layers a drive keeps its rules: changed
    /// rules are of what clients connect to.
    pub(super) fn apply_to(&self, live: &LiveDrives) -> Result<(Vec<DriveSpec>, Vec<Rules>), Misfit> {
        let all = |changes: &WhatIf| -> Result<Vec<DriveSpec>, Misfit> {
            live.drives.iter().map(|spec| changes.apply(spec).map_err(of_drive(spec))).collect()
        };
        let is_rule = |change: &String| change.split_once('=').is_some_and(|(key, _)| key.trim() == RULES);
        let drives = all(self)?;
        if !self.set.iter().any(is_rule) {
            return Ok((drives, live.assign.clone()));
        }
        let rules = |spec| DriveSpec::resolve(spec).map(|profile| Rules(profile.assignments().clone()));
        let rules = drives.iter().map(|spec| rules(spec).map_err(of_drive(spec))).collect::<Result<_, Misfit>>()?;
        if live.layers.is_empty() {
            return Ok((drives, rules));
        }
        let set = self.set.iter().filter(|change| !is_rule(change)).cloned().collect();
        Ok((all(&WhatIf { set, ..self.clone() })?, rules))
    }

    /// A drive with the changes.
    fn apply(&self, spec: &DriveSpec) -> Result<DriveSpec, ProfileError> {
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
            own_seed: spec.own_seed,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;

    fn live(layers: &str) -> LiveDrives {
        let mut profile = Profile::load("default").unwrap();
        profile.set("controller.assign=class=9").unwrap();
        let drive = DriveSpec {
            name: "small".to_owned(),
            number: 0,
            profile_name: "default".to_owned(),
            profile: profile.resolve().unwrap().to_toml(),
            keeps_data: false,
            precondition: Precondition::None,
            from_state: None,
            is_shared: false,
            own_seed: None,
        };
        let layers: Chain = if layers.is_empty() { Chain::default() } else { layers.parse().unwrap() };
        let assign = vec![Rules("class=8".parse().unwrap())];
        LiveDrives { version: "test".to_owned(), seed: 1, drives: vec![drive], layers, is_engine: false, assign }
    }

    /// The rules for clients, and those of the drive's profile.
    fn rules(live: &LiveDrives, set: &str) -> (String, String) {
        let what_if = WhatIf { set: vec![set.to_owned()], ..WhatIf::default() };
        let (drives, rules) = what_if.apply_to(live).unwrap();
        (rules[0].0.to_string(), drives[0].resolve().unwrap().assignments().to_string())
    }

    #[test]
    fn rules_are_read_as_a_profile_reads_them() {
        let text = |text: &str| text.to_owned();
        let (plain, layers) = (live(""), live("block,depth=8"));
        assert_eq!(rules(&plain, "timing.read=50us"), (text("class=8"), text("class=9")));
        for set in ["controller.assign=queue=2,class=15 class=3", "controller.assign = \"queue=2,class=15 class=3\""] {
            let given = || text("queue=2,class=15 class=3");
            assert_eq!(rules(&plain, set), (given(), given()), "{set}");
            assert_eq!(rules(&layers, set), (given(), text("class=9")), "{set}");
        }
        assert_eq!(rules(&plain, "controller.assign="), (text(""), text("")));
        assert_eq!(rules(&layers, "controller.assign=\"\""), (text(""), text("class=9")));
        let wrong = WhatIf { set: vec!["controller.assign=class=16".to_owned()], ..WhatIf::default() };
        let (name, error) = wrong.apply_to(&plain).unwrap_err();
        assert!(name == "small" && error.to_string().contains("from 1 to 15 is valid"), "{error}");
    }
}
