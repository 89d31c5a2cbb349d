//! A layer's part of the report.

use std::sync::Arc;

use nandscape_drive::layer::{LayerReport, Shown};
use nandscape_layers_array::ArrayReport;
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};

use super::json::Json;
use super::{Instance, drives_of};

/// A layer in the report. In JSON its figures stand under the [key](LayerReport::key) of its kind; `other` is null of a layer that counts
/// nothing.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name; one of several over the nodes of a chain has a number, as in `block/2`.
    pub layer: String,
    /// What it lies over: drives or layers, by name.
    pub over: Vec<String>,
    /// Its size, in bytes.
    pub bytes: u64,
    /// What it has counted, if it counts anything.
    pub report: Option<Arc<dyn LayerReport>>,
}

impl Section {
    pub(crate) fn of(instance: &Instance) -> Section {
        Section {
            layer: instance.name.clone(),
            over: instance.over.clone(),
            bytes: instance.node.info().bytes(),
            report: instance.node.report(),
        }
    }

    /// What it is called among others, as one of several over the nodes of a chain: an array by level and members.
    pub fn called(&self) -> &str {
        let own = self.report.as_ref().and_then(|report| report.called());
        own.unwrap_or_else(|| self.layer.split('/').next().unwrap_or_default())
    }

    /// The same with its main settings: `raid5:4 (base, chunks of 4KiB)`.
    pub fn called_with_settings(&self) -> String {
        let settings = self.report.as_ref().map(|report| report.settings()).filter(|settings| !settings.is_empty());
        settings.map_or_else(|| self.called().to_owned(), |settings| format!("{} ({settings})", self.called()))
    }

    /// What it has counted, for people.
    pub fn shown(&self) -> Vec<Shown> {
        self.report.as_ref().map_or_else(Vec::new, |report| report.shown())
    }

    /// The figures of a layer of one kind, if it is one.
    pub fn part<T: LayerReport>(&self) -> Option<&T> {
        self.report.as_ref()?.as_kind()
    }
}

impl Serialize for Section {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("layer", &self.layer)?;
        map.serialize_entry("over", &self.over)?;
        map.serialize_entry("bytes", &self.bytes)?;
        match &self.report {
            None => map.serialize_entry("other", &())?,
            Some(report) => {
                let json = report.json();
                let json: Json = serde_json::from_str(&json)
                    .map_err(|error| S::Error::custom(format!("layer {}: {json:?} is no JSON: {error}", self.layer)))?;
                map.serialize_entry(report.key(), &json)?;
            }
        }
        map.end()
    }
}

/// Layers in words, from the top down, as each is `called`: `cache over raid1:2`, or `raid0:2 over fast and raid1:2` of a tree.
pub fn stacked(chain: &[Section], called: impl Fn(&Section) -> String) -> String {
    let names: Vec<String> = chain.iter().map(called).collect();
    let lies_over = |upper: &str, lower: &Section| {
        chain.iter().zip(&names).any(|(one, name)| name == upper && one.over.contains(&lower.layer))
    };
    let (mut text, mut last) = (String::new(), "");
    for (section, name) in chain.iter().zip(&names).rev().filter(|(_, name)| !name.is_empty()) {
        if name == last {
            continue;
        }
        match last {
            "" => {}
            upper if lies_over(upper, section) => text += " over ",
            _ => text += " and ",
        }
        text += name;
        last = name;
    }
    text
}

/// The lowest array.
fn lowest_array(chain: &[Section]) -> Option<&Section> {
    chain.iter().find(|one| one.part::<ArrayReport>().is_some())
}

/// The drives, by number, that the members of the lowest array are, or lie over alone; none without an array.
pub fn drives_of_members(chain: &[Section], drives: &[&str]) -> Vec<Option<usize>> {
    let below = |name: &str| chain.iter().find(|one| one.layer == name).map(|one| &one.over[..]);
    lowest_array(chain).map_or_else(Vec::new, |array| drives_of(&array.over, drives, &below))
}

/// The names of these members: those of the drives, or of what lies over several.
pub(crate) fn names_of_members<'a>(chain: &'a [Section], drives: &[&'a str]) -> Vec<&'a str> {
    let over = lowest_array(chain).map_or(&[][..], |array| &array.over);
    let name = |(over, drive): (&'a String, Option<usize>)| drive.map_or(over.as_str(), |number| drives[number]);
    over.iter().zip(drives_of_members(chain, drives)).map(name).collect()
}
