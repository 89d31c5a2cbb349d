//! The description of a drive in its file: names and profile. The profile for opening must fit: keys that affect the
//! contents, such as geometry and capacity, must be equal; times and policies may differ.

use nandscape_device_controller::BufferMode;
use nandscape_device_ftl_ox::ox_block::Layout;
use nandscape_device_ftl_page::PageFtl;
use nandscape_device_media::durable::StoreSpec;
use nandscape_drive::Names;
use nandscape_sim::Seed;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::keys::{PartKeys, ProfileKeys};
use crate::resolve::{Resolved, ResolvedPart};
use crate::values::PartStore;

/// The keys, and sections of them, that the contents of a file depend on.
const FIXED: [&str; 22] = [
    "capacity",
    "lba_size",
    "geometry",
    "timing.cell",
    "timing.program_unit",
    "buffer.mode",
    "buffer.size",
    "ftl.kind",
    "ftl.mapping_unit",
    "ftl.over_provisioning",
    "ftl.zone.mapping",
    "ftl.zone.width",
    "ftl.zone.depth",
    "ftl.zone.size",
    "ftl.zone.max_active",
    "ftl.zone.max_open",
    "ftl.zone.zrwa_size",
    "ftl.zone.zrwa_granularity",
    "ftl.zone.zrwa_zones",
    "ftl.zone.descriptor_extension",
    "ftl.lsm.runs",
    "ftl.lsm.run_size",
];

/// The key that makes flash age, and can also turn aging off.
const RATES: &str = "wear.rber";

/// The keys of the life before a run, with their values for a drive without one. A state or a file keeps the life of its
/// drive.
const LIFE: [(&str, &str); 7] = [
    ("wear.age", "\"0hours\""),
    ("wear.shelf", "\"0hours\""),
    ("wear.cycles", "0"),
    ("wear.cycles_spread", "\"0\""),
    ("wear.writes_per_day", "1.0"),
    ("wear.write_amplification", "1.0"),
    ("wear.reads_per_day", "1.0"),
];

/// The same of each part.
const FIXED_IN_PARTS: [&str; 9] = [
    "channels",
    "dies",
    "name",
    "store",
    "capacity",
    "timing.cell",
    "timing.program_unit",
    "ftl.kind",
    "ftl.over_provisioning",
];

/// The text of a store. All stores of a drive with several FTLs have the same.
#[derive(Serialize, Deserialize)]
struct Text {
    /// The profile's name.
    profile_name: String,
    names: NamesText,
    profile: ProfileKeys,
}

#[derive(Serialize, Deserialize)]
struct NamesText {
    serial: String,
    model: String,
    nqn: String,
}

/// The drive in a file.
pub struct StoredDrive {
    /// The name of the profile that it was made from.
    pub profile_name: String,
    /// Its names.
    pub names: Names,
    /// All keys of the profile.
    pub keys: ProfileKeys,
}

impl StoredDrive {
    /// Reads the description.
    ///
    /// # Errors
    /// If the text does not describe a drive that this version supports.
    pub fn of(spec: &StoreSpec) -> Result<StoredDrive, String> {
        let text: Text = toml::from_str(&spec.text)
            .map_err(|error| format!("it does not describe a drive that this version knows: {}", error.message()))?;
        let NamesText { serial, model, nqn } = text.names;
        let names = Names { nqn, serial, model, firmware: env!("CARGO_PKG_VERSION").to_owned() };
        Ok(StoredDrive { profile_name: text.profile_name, names, keys: text.profile })
    }
}

impl Resolved {
    /// The stores for a new drive of this profile, built with `seed`: one for each of its file-backed FTLs.
    pub fn store_specs(&self, keeps_data: bool, seed: Seed) -> Vec<StoreSpec> {
        let text = self.store_text(seed);
        match self.parts() {
            [] => vec![self.spec_with(text, keeps_data, seed)],
            parts => {
                let of = |(part, seed): (&ResolvedPart, Seed)| part.drive.spec_with(text.clone(), keeps_data, seed);
                let kept = parts.iter().zip(part_seeds(seed)).filter(|(part, _)| part.store == PartStore::Drive);
                kept.map(of).collect()
            }
        }
    }

    /// The first of them.
    pub fn store_spec(&self, keeps_data: bool, seed: Seed) -> StoreSpec {
        self.store_specs(keeps_data, seed).remove(0)
    }

    fn store_text(&self, seed: Seed) -> String {
        let Names { nqn, serial, model, .. } = self.names(seed.child("identity"));
        let names = NamesText { serial, model, nqn };
        let text = Text { profile_name: self.name.clone(), names, profile: self.keys.clone() };
        toml::to_string(&text).expect("keys are plain values")
    }

    pub(crate) fn spec_with(&self, text: String, keeps_data: bool, seed: Seed) -> StoreSpec {
        let (ftl, timing) = (self.ftl(), self.timing());
        StoreSpec {
            geometry: *self.geometry().counts(),
            keeps_data,
            pages_per_program: timing.pages_per_program(),
            logical_units: ftl.logical_units,
            slots: if self.controller().buffer == BufferMode::Capacitor { ftl.buffer_units } else { 0 },
            // OX-Block has its tables in flash.
            snapshot_bytes: self.ox_block().map_or_else(|| PageFtl::snapshot_bytes(&self.geometry(), &ftl), |_| 0),
            seed: seed.value(),
            text,
            following: 0,
        }
    }

    /// Checks that the drive in a file can be started with this profile.
    ///
    /// # Errors
    /// The first key that differs and must not.
    pub fn check_store(&self, spec: &StoreSpec) -> Result<(), String> {
        let parts = self.parts().iter().map(|part| &part.drive);
        let cannot = |drive: &&Resolved| {
            drive.zone().is_some()
                || drive.lsm().is_some()
                || drive.open_channel().is_some()
                || drive.ox_block().is_some_and(|config| config.layout != Layout::Log)
        };
        if let Some(drive) = std::iter::once(self).chain(parts).find(cannot) {
            let kind = drive.keys.ftl.kind.map(|text| text.0.to_string()).unwrap_or_default();
            return Err(format!(
                "ftl.kind is \"{kind}\", and only drives with \"page\" or \"ox_block\" can be in files"
            ));
        }
        let stored = StoredDrive::of(spec)?;
        self.check_count(&stored.keys)?;
        let (there, here) = (values(&stored.keys), values(&self.keys));
        for path in FIXED {
            compare(path, at(&there, path), at(&here, path))?;
        }
        check_life(&there, &here, "the drive in the file")?;
        self.check_part_keys(&stored.keys)?;
        let Names { serial, model, nqn, .. } = &stored.names;
        let identity = &self.keys.identity;
        for (key, is, given) in
            [("serial", serial, &identity.serial), ("model", model, &identity.model), ("nqn", nqn, &identity.nqn)]
        {
            if let Some(given) = given.as_ref().filter(|given| *given != is) {
                return Err(format!("identity.{key} is \"{is}\" there, and \"{given}\" in the profile"));
            }
        }
        if self.store_spec(spec.keeps_data, Seed::new(spec.seed)).geometry != spec.geometry {
            return Err("its geometry is another one".to_owned());
        }
        Ok(())
    }

    /// Checks that a never started drive in a file begins with the life that it was created for.
    ///
    /// # Errors
    /// The first key of the life that differs.
    pub(crate) fn check_first_start(&self, spec: &StoreSpec) -> Result<(), String> {
        let (there, here) = (values(&StoredDrive::of(spec)?.keys), values(&self.keys));
        LIFE.iter().try_for_each(|(path, none)| {
            let value = |keys| at(keys, path).map_or_else(|| (*none).to_owned(), Value::to_string);
            match (value(&there), value(&here)) {
                (there, here) if there == here => Ok(()),
                (there, here) => Err(format!(
                    "{path} is {there} there, and {here} in the profile; its drive was never started: give {path} as the file has it"
                )),
            }
        })
    }

    /// Checks that a drive of this profile can have a state that was saved with these resolved keys.
    ///
    /// # Errors
    /// The first key that differs and must not.
    pub fn check_saved(&self, keys: &ProfileKeys) -> Result<(), String> {
        self.check_count(keys)?;
        let (there, here) = (values(keys), values(&self.keys));
        // A saved state has an empty write buffer.
        for path in FIXED.iter().filter(|path| !path.starts_with("buffer.")) {
            compare(path, at(&there, path), at(&here, path))?;
        }
        check_life(&there, &here, "the state")?;
        self.check_part_keys(keys)
    }

    fn check_count(&self, stored: &ProfileKeys) -> Result<(), String> {
        let (there, here) = (stored.ftl.parts.as_ref().map_or(0, Vec::len), self.parts().len());
        let count = |count| if count == 0 { "one FTL".to_owned() } else { format!("{count} parts") };
        match there == here {
            true => Ok(()),
            false => Err(format!("it has {} there, and {} in the profile", count(there), count(here))),
        }
    }

    /// Checks that the parts in the file and in the profile match.
    fn check_part_keys(&self, stored: &ProfileKeys) -> Result<(), String> {
        let there = stored.ftl.parts.as_deref().unwrap_or_default();
        let here = self.keys.ftl.parts.as_deref().unwrap_or_default();
        for (there, here) in there.iter().zip(here) {
            let (there, here) = (part_values(there), part_values(here));
            for path in FIXED_IN_PARTS {
                let name = format!("ftl.parts.{path}");
                compare(&name, at(&there, path), at(&here, path))?;
            }
        }
        Ok(())
    }
}

/// Checks that a life before the run equals the stored one, or is not given. Flash that aged keeps aging, unless the profile
/// turns aging off.
fn check_life(there: &Value, here: &Value, owner: &str) -> Result<(), String> {
    let ages = at(there, RATES).filter(|rates| rates.as_str() != Some("none"));
    if let (Some(ages), None) = (ages, at(here, RATES)) {
        return Err(format!(
            "its flash ages there, with {RATES} = {ages}, and the profile has no key of [wear]; {RATES} = {ages} goes on with its age, \
             and {RATES} = \"none\" leaves it out"
        ));
    }
    for (path, none) in LIFE {
        let (there, here) = (at(there, path), at(here, path));
        if here.is_some_and(|here| here.to_string() != none) {
            compare(path, there, here)
                .map_err(|differs| format!("{differs}; {owner} has its own age and wear: leave {path} out"))?;
        }
    }
    Ok(())
}

/// The seeds of the parts of a drive.
pub(crate) fn part_seeds(seed: Seed) -> impl Iterator<Item = Seed> {
    (0..).map(move |number| seed.child("part").nth(number))
}

fn part_values(keys: &PartKeys) -> Value {
    Value::try_from(keys).expect("keys are plain values")
}

fn values(keys: &ProfileKeys) -> Value {
    Value::try_from(keys).expect("keys are plain values")
}

fn at<'a>(keys: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(keys, |value, key| value.get(key))
}

/// For a section, reports the first key that differs.
fn compare(path: &str, there: Option<&Value>, here: Option<&Value>) -> Result<(), String> {
    if there == here {
        return Ok(());
    }
    if let (Some(Value::Table(there)), Some(Value::Table(here))) = (there, here) {
        let keys = |table: &Table| table.keys().cloned().collect::<Vec<_>>();
        for key in keys(there).into_iter().chain(keys(here)) {
            compare(&format!("{path}.{key}"), there.get(&key), here.get(&key))?;
        }
    }
    let shown = |value: Option<&Value>| value.map_or_else(|| "not given".to_owned(), Value::to_string);
    Err(format!("{path} is {} there, and {} in the profile", shown(there), shown(here)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn drive(changes: &[&str]) -> Resolved {
        let mut profile = Profile::load("default").unwrap();
        profile.set_all([&["capacity=1GiB"][..], changes].concat()).unwrap();
        profile.resolve().unwrap()
    }

    /// The life of a file-backed drive is that of the file: the same keys or none are accepted; others are rejected.
    #[test]
    fn a_drive_in_a_file_keeps_the_life_that_it_began_with() {
        let life = ["wear.cycles=2500", "wear.shelf=3months"];
        let spec = drive(&life).store_spec(true, Seed::new(1));
        for fits in
            [&life[..], &["wear.rber=tlc-72-layers"], &["wear.rber=none"], &["wear.refresh=80%", "wear.shelf=3months"]]
        {
            assert_eq!(drive(fits).check_store(&spec), Ok(()), "{fits:?}");
        }
        for (change, told) in [
            ("wear.cycles=3000", "wear.cycles is 2500 there, and 3000 in the profile"),
            ("wear.age=18months", "wear.age is \"0hours\" there, and \"18months\" in the profile"),
            ("wear.shelf=2months", "wear.shelf is \"3months\" there, and \"2months\" in the profile"),
        ] {
            let problem = drive(&[change]).check_store(&spec).unwrap_err();
            assert!(problem.starts_with(told), "{problem}");
            assert!(problem.contains("the drive in the file has its own age and wear: leave wear."), "{problem}");
        }
        let problem = drive(&[]).check_store(&spec).unwrap_err();
        assert!(problem.starts_with("its flash ages there, with wear.rber = \"tlc-72-layers\""), "{problem}");
    }

    /// A file created without a life cannot get one later.
    #[test]
    fn a_drive_in_a_file_gets_no_life_later() {
        let spec = drive(&["wear.erase_growth=50%"]).store_spec(true, Seed::new(1));
        assert_eq!(drive(&["wear.erase_growth=20%", "wear.cycles=0", "wear.age=0h"]).check_store(&spec), Ok(()));
        for key in ["wear.cycles=2500", "wear.age=18months", "wear.shelf=3months"] {
            let problem = drive(&[key]).check_store(&spec).unwrap_err();
            assert!(problem.contains("the drive in the file has its own age and wear: leave "), "{problem}");
        }
    }
}
