//! Settings that can be changed while a drive runs: at drive times that its profile names, or by an operator.
//!
//! A change lasts until the drive is turned off; a power cut does not undo it.
//!
//! Left out: drives with several FTLs.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ftl::OxBlock;
use nandscape_device_ftl::ox_block::Layout;
use nandscape_sim::{Sim, Time};

use crate::profile::{Profile, ProfileError};
use crate::resolve::Resolved;
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
    /// The same drive after a change, `KEY=VALUE`, that can be made while it runs.
    fn changed(&self, setting: &str) -> Result<Resolved, ProfileError> {
        let key = setting.split_once('=').map_or(setting, |(key, _)| key).trim();
        if !CHANGEABLE.contains(&key) {
            let valid = CHANGEABLE.join(", ");
            return Err(ProfileError::new(key, format!("cannot be changed while a drive runs; these can: {valid}")));
        }
        if !self.parts().is_empty() {
            return Err(ProfileError::new(key, "cannot be changed while a drive with several FTLs runs"));
        }
        if !self.parts().is_empty() {
            return Err(ProfileError::new(key, "cannot be changed while a drive with several FTLs runs"));
        }
        if self.ox_block().is_none_or(|config| config.layout != Layout::Log) {
            return Err(ProfileError::new(key, "is for ftl.kind = \"ox_block\""));
        }
        let mut keys = self.keys.clone();
        keys.changes = None;
        let mut profile = Profile::of_keys(&self.name, keys);
        profile.set(setting).map_err(|error| ProfileError::new(setting, error.problem))?;
        profile.resolve()
    }

    /// The changes at drive times, in the order in which they are made.
    fn changes(&self) -> Vec<Change> {
        let given = self.keys.changes.iter().flat_map(|changes| &changes.0);
        let mut changes: Vec<Change> = given.map(|change| change.0.clone()).collect();
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// # Errors
    /// The change that cannot be made, and what would be valid.
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
    ftl: Option<Rc<OxBlock>>,
}

impl Settings {
    /// Those of a drive with an OX-Block, if it has one. Its changes are made at their times.
    pub(crate) fn new(sim: &Sim, profile: &Resolved, ftl: Option<&Rc<OxBlock>>) -> Rc<Settings> {
        let settings = Rc::new(Settings { drive: RefCell::new(profile.clone()), ftl: ftl.cloned() });
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

    /// Makes a change, `KEY=VALUE`.
    ///
    /// # Errors
    /// Why it cannot be made, and what would be valid. Nothing is changed then.
    pub(crate) fn change(&self, setting: &str) -> Result<(), ProfileError> {
        let changed = self.drive.borrow().changed(setting)?;
        let config = changed.ox_block();
        if let Some((ftl, config)) = self.ftl.as_ref().zip(config) {
            ftl.change(config.gc, config.checkpoint);
        }
        *self.drive.borrow_mut() = changed;
        Ok(())
    }

    /// The settings as they are now, by key.
    pub(crate) fn now(&self) -> Vec<(&'static str, String)> {
        let drive = self.drive.borrow();
        if self.ftl.is_none() || drive.ox_block().is_none_or(|config| config.layout != Layout::Log) {
            return Vec::new();
        }
        let keys = &drive.keys.ftl.ox_block;
        let values = [
            keys.checkpoint_interval.as_ref().map(|value| value.0.to_string()),
            keys.checkpoint_log.as_ref().map(|value| value.0.to_string()),
            keys.gc_slots.map(|value| value.to_string()),
            keys.gc_target.as_ref().map(|value| value.0.to_string()),
            keys.gc_threshold.as_ref().map(|value| value.0.to_string()),
        ];
        CHANGEABLE.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))).collect()
    }
}
