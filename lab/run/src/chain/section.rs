//! A layer's part of the report.

use serde::Serialize;

use super::{AhciReport, CacheReport, FtlReport, Instance, drives_of};
use crate::array::ArrayReport;
use crate::block::BlockReport;

/// What a layer has counted in the measured phase, by its kind.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// An array.
    Array(Box<ArrayReport>),
    /// A block layer.
    Block(Box<BlockReport>),
    /// A page cache.
    Cache(CacheReport),
    /// An AHCI controller.
    Ahci(AhciReport),
    /// The FTL of a host.
    Ftl(Box<FtlReport>),
    /// One that counts nothing.
    Other,
}

/// A layer in the report.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// Its name; one of several over the nodes of a chain has a number, as in `block/2`.
    pub layer: String,
    /// What it lies over: drives or layers, by name.
    pub over: Vec<String>,
    /// Its size, in bytes.
    pub bytes: u64,
    /// What it has counted, under the name of its kind.
    #[serde(flatten)]
    pub part: Part,
}

impl Section {
    pub(crate) fn of(instance: &Instance) -> Section {
        Section {
            layer: instance.name.clone(),
            over: instance.over.clone(),
            bytes: instance.node.info().bytes(),
            part: instance.node.part(),
        }
    }

    /// What it is called among others, as one of several over the nodes of a chain: an array by level and members.
    pub fn called(&self) -> &str {
        match &self.part {
            Part::Array(report) => &report.array,
            Part::Ahci(_) | Part::Block(_) | Part::Cache(_) | Part::Ftl(_) | Part::Other => {
                self.layer.split('/').next().unwrap_or_default()
            }
        }
    }

    /// The array, if it is one.
    pub fn array(&self) -> Option<&ArrayReport> {
        match &self.part {
            Part::Array(report) => Some(report),
            Part::Ahci(_) | Part::Block(_) | Part::Cache(_) | Part::Ftl(_) | Part::Other => None,
        }
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
    chain.iter().find(|one| one.array().is_some())
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
