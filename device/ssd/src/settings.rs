//! Settings of a running drive: changed at drive times in its profile, or by an operator.
//!
//! A change lasts until the drive is turned off, and survives power cuts.
//!
//! On a drive with several FTLs, a setting names its part: `archive:ftl.ox_block.gc_slots=4`.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ftl_ox::OxBlock;
use nandscape_device_ftl_ox::ox_block::Layout;
use nandscape_sim::{Sim, Time};

use crate::profile::{Profile, ProfileError};
use crate::resolve::{Resolved, ResolvedPart};
use crate::values::Change;

/// The keys.
const CHANGEABLE: [&str; 5] = [
    "ftl.ox_block.checkpoint_interval",
    "ftl.ox_block.checkpoint_log",
    "ftl.ox_block.gc_slots",
    "ftl.ox_block.gc_target",
    "ftl.ox_block.gc_threshold",
];

impl Resolved {
    /// The part number of a setting on a drive with several FTLs, and the setting without the part's name.
    ///
    /// # Errors
    /// If the setting names no part.
    fn part_of<'a>(&self, setting: &'a str) -> Result<(usize, &'a str), ProfileError> {
        let of = |(index, part): (usize, &ResolvedPart)| {
            Some((index, setting.strip_prefix(part.name.as_str())?.strip_prefix(':')?))
        };
        // If one name is a prefix of another, the longer name counts.
        let found = self.parts().iter().enumerate().filter_map(of).min_by_key(|(_, rest)| rest.len());
        found.ok_or_else(|| {
            let names: Vec<&str> = self.parts().iter().map(|part| part.name.as_str()).collect();
            let problem = format!(
                "names no part; of a drive with several FTLs it is PART:KEY=VALUE, with a part of {}",
                names.join(", ")
            );
            ProfileError::new(setting, problem)
        })
    }

    /// The same drive after a change at run time, `KEY=VALUE` or `PART:KEY=VALUE`.
    fn changed(&self, setting: &str) -> Result<Resolved, ProfileError> {
        if self.parts().is_empty() {
            return self.changed_alone(setting, |setting| {
                let mut keys = self.keys.clone();
                keys.changes = None;
                let mut profile = Profile::of_keys(&self.name, keys);
                profile.set(setting).map_err(|error| ProfileError::new(setting, error.problem))?;
                profile.resolve()
            });
        }
        let (index, setting) = self.part_of(setting)?;
        self.parts()[index].drive.changed_alone(setting, |setting| self.with_part_changed(index, setting))
    }

    /// The result of `change`, if the setting can be changed while this FTL runs.
    fn changed_alone(
        &self,
        setting: &str,
        change: impl FnOnce(&str) -> Result<Resolved, ProfileError>,
    ) -> Result<Resolved, ProfileError> {
        let key = setting.split_once('=').map_or(setting, |(key, _)| key).trim();
        if !CHANGEABLE.contains(&key) {
            let valid = CHANGEABLE.join(", ");
            return Err(ProfileError::new(key, format!("cannot be changed while a drive runs; these can: {valid}")));
        }
        if self.ox_block().is_none_or(|config| config.layout != Layout::Log) {
            return Err(ProfileError::new(key, "is for ftl.kind = \"ox_block\""));
        }
        change(setting)
    }

    /// The changes at drive times, in order.
    fn changes(&self) -> Vec<Change> {
        let given = self.keys.changes.iter().flat_map(|changes| &changes.0);
        let mut changes: Vec<Change> = given.map(|change| change.0.clone()).collect();
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// # Errors
    /// The invalid change, and what would be valid.
    pub(crate) fn check_changes(&self) -> Result<(), ProfileError> {
        let mut now = None;
        for change in self.changes() {
            let drive = now.as_ref().unwrap_or(self);
            let next = drive.changed(&change.setting);
            now = Some(next.map_err(|error| ProfileError::new("changes", format!("\"{change}\": {error}")))?);
        }
        Ok(())
    }
}

/// The settings of a drive that runs.
pub(crate) struct Settings {
    drive: RefCell<Resolved>,
    /// Each FTL that is an OX-Block, by the number of its part.
    ftls: Vec<Option<Rc<OxBlock>>>,
}

impl Settings {
    /// The settings of a drive with these FTLs, as far as they are OX-Blocks. Its changes are made at their times.
    pub(crate) fn new(sim: &Sim, profile: &Resolved, ftls: Vec<Option<Rc<OxBlock>>>) -> Rc<Settings> {
        let settings = Rc::new(Settings { drive: RefCell::new(profile.clone()), ftls });
        let changes = profile.changes();
        if !changes.is_empty() {
            let (sim, told) = (sim.clone(), Rc::downgrade(&settings));
            sim.clone().spawn(async move {
                for Change { at, setting } in changes {
                    sim.sleep_until(Time::ZERO + at).await;
                    let Some(settings) = told.upgrade() else { return };
                    settings.change(&setting).expect("changes were checked");
                }
            });
        }
        settings
    }

    /// Makes a change, `KEY=VALUE` or `PART:KEY=VALUE`.
    ///
    /// # Errors
    /// Why it cannot be made, and what would be valid. Then nothing changes.
    pub(crate) fn change(&self, setting: &str) -> Result<(), ProfileError> {
        let changed = self.drive.borrow().changed(setting)?;
        let index = if changed.parts().is_empty() { 0 } else { changed.part_of(setting)?.0 };
        let drive = changed.parts().get(index).map_or(&changed, |part| &part.drive);
        if let (Some(ftl), Some(config)) = (&self.ftls[index], drive.ox_block()) {
            ftl.change(config.gc, config.checkpoint);
        }
        *self.drive.borrow_mut() = changed;
        Ok(())
    }

    /// The current settings by key, with the name of the part if the drive has several.
    pub(crate) fn now(&self) -> Vec<(String, String)> {
        let drive = self.drive.borrow();
        match drive.parts() {
            [] => drive.settings(""),
            parts => parts.iter().flat_map(|part| part.drive.settings(&format!("{}:", part.name))).collect(),
        }
    }
}

impl Resolved {
    /// The settings of an FTL that can be changed, by key.
    fn settings(&self, before: &str) -> Vec<(String, String)> {
        if self.ox_block().is_none_or(|config| config.layout != Layout::Log) {
            return Vec::new();
        }
        let drive = self;
        let keys = &drive.keys.ftl.ox_block;
        let values = [
            keys.checkpoint_interval.as_ref().map(|value| value.0.to_string()),
            keys.checkpoint_log.as_ref().map(|value| value.0.to_string()),
            keys.gc_slots.map(|value| value.to_string()),
            keys.gc_target.as_ref().map(|value| value.0.to_string()),
            keys.gc_threshold.as_ref().map(|value| value.0.to_string()),
        ];
        CHANGEABLE.into_iter().zip(values).filter_map(|(key, value)| Some((format!("{before}{key}"), value?))).collect()
    }
}
