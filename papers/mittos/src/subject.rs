//! What a noisy tenant disturbs, its settings, and their keys.

use nandscape_apps_kv_run::Load;

use crate::cache::CacheSpec;
use crate::keys::{Change, KeyError};
use crate::runtime::RuntimeSpec;
use crate::smr::SmrSpec;
use crate::vm::VmSpec;

/// See the file.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The memory of a page cache.
    Cache(Box<CacheSpec>),
    /// A shingled disk.
    Smr(Box<SmrSpec>),
    /// A core that virtual machines share.
    Vm(Box<VmSpec>),
    /// A managed runtime.
    Runtime(Box<RuntimeSpec>),
}

impl Subject {
    /// The names of all.
    pub const NAMES: [&str; 4] = ["cache", "smr", "vm", "runtime"];

    /// The subject of a name, with its usual settings.
    pub fn named(name: &str) -> Option<Subject> {
        Some(match name {
            "cache" => Subject::Cache(Box::default()),
            "smr" => Subject::Smr(Box::default()),
            "vm" => Subject::Vm(Box::default()),
            "runtime" => Subject::Runtime(Box::default()),
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Cache(_) => "cache",
            Subject::Smr(_) => "smr",
            Subject::Vm(_) => "vm",
            Subject::Runtime(_) => "runtime",
        }
    }

    /// Its keys, with a line on each.
    pub fn keys(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Subject::Cache(_) => CacheSpec::keys(),
            Subject::Smr(_) => SmrSpec::keys(),
            Subject::Vm(_) => VmSpec::keys(),
            Subject::Runtime(_) => RuntimeSpec::keys(),
        }
    }

    /// Changes a setting: `noise.on=1s`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be valid.
    pub fn set(&mut self, text: &str) -> Result<(), KeyError> {
        let change = Change::parse(text)?;
        match self {
            Subject::Cache(spec) => spec.set(&change, text),
            Subject::Smr(spec) => spec.set(&change),
            Subject::Vm(spec) => spec.set(&change),
            Subject::Runtime(spec) => spec.set(&change),
        }
    }

    pub(crate) fn usual_load(&self) -> Load {
        match self {
            Subject::Cache(_) => CacheSpec::usual_load(),
            Subject::Smr(_) => SmrSpec::usual_load(),
            Subject::Vm(_) => VmSpec::usual_load(),
            Subject::Runtime(_) => RuntimeSpec::usual_load(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_names_and_keys_that_they_take() {
        for name in Subject::NAMES {
            let mut subject = Subject::named(name).unwrap();
            assert_eq!(subject.name(), name);
            assert!(subject.keys().len() > 3);
            for (key, _) in subject.keys() {
                let error = subject.set(&format!("{key}=?")).unwrap_err().to_string();
                assert!(error.starts_with(key) && !error.contains("no such key"), "{error}");
            }
            let error = subject.set("noise.colour=pink").unwrap_err().to_string();
            assert!(error.contains("no such key") && error.contains("noise.on"), "{error}");
        }
        assert!(Subject::named("gpu").is_none());
    }
}
