//! Hosts as TOML: the settings that differ from the defaults, and the source of each.
//!
//! ```toml
//! version = 1
//! description = "four cores of 3 GHz"
//! [host]
//! cores = 4
//! switch = "1200ns"
//! [source]
//! switch = "measured with perf bench sched pipe"
//! ```

use std::collections::BTreeMap;

use nandscape_files::excerpt;
use toml::{Table, Value};

use crate::config::{COSTS, Config, ConfigError};

/// A built-in profile.
#[derive(Copy, Clone, Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),*) => {
        /// The hosts that need no file.
        pub const BUILTIN: &[Builtin] =
            &[$(Builtin { name: $name, text: include_str!(concat!("../profiles/", $name, ".toml")) },)*];
    };
}

builtin!("server", "i7-4770", "i7-4790", "arm-8");

/// The host whose costs are the defaults.
const BASE: &str = "server";

/// A host as given.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The changes of the defaults.
    pub config: Config,
    /// Where settings come from, by key without `host.`.
    pub sources: BTreeMap<String, String>,
    /// The keys that the profile gives, without `host.`, with their values.
    pub given: BTreeMap<String, String>,
}

/// The maximum of bytes of a file with a host: a longer or endless file is none.
const MAX_BYTES: u64 = 1 << 20;

/// Why there is no such host.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct ProfileError {
    origin: String,
    problem: String,
}

impl Profile {
    /// A built-in host by name, or one in a file.
    ///
    /// # Errors
    /// That there is none, or what is wrong with it.
    pub fn load(name_or_path: &str) -> Result<Profile, ProfileError> {
        if let Some(Builtin { name, text }) = BUILTIN.iter().find(|builtin| builtin.name == name_or_path) {
            return Profile::parse(name, text);
        }
        let wrong = |problem: String| ProfileError { origin: name_or_path.to_owned(), problem };
        if !name_or_path.contains('/') && !name_or_path.ends_with(".toml") {
            let names: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
            let names = names.join(", ");
            return Err(wrong(format!("no such host exists; valid are {names}, and a path to a .toml file")));
        }
        let path = std::path::Path::new(name_or_path);
        let text = nandscape_files::input::text(path, MAX_BYTES, "host");
        let text = text.map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let name = path.file_stem().map_or_else(|| name_or_path.to_owned(), |stem| stem.to_string_lossy().into_owned());
        let profile = Profile::parse(name_or_path, &text)?;
        Ok(Profile { name, ..profile })
    }

    /// Reads a host from text; `origin` names it in errors.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(origin: &str, text: &str) -> Result<Profile, ProfileError> {
        let wrong = |problem: String| ProfileError { origin: origin.to_owned(), problem };
        let mut table: Table = toml::from_str(text).map_err(|error| misread(origin, text, &error))?;
        match table.remove("version") {
            Some(Value::Integer(1)) => {}
            Some(other) => return Err(wrong(format!("version = {other} is not valid; valid is 1"))),
            None => return Err(wrong("version is missing; version = 1 is valid".to_owned())),
        }
        let description = match table.remove("description") {
            Some(Value::String(text)) => text,
            None => String::new(),
            Some(other) => return Err(wrong(format!("description = {other} is not valid; a text is"))),
        };
        let host = section(&mut table, "host").map_err(wrong)?;
        let sources = section(&mut table, "source").map_err(wrong)?;
        if let Some(key) = table.keys().next() {
            return Err(wrong(format!(
                "{key}: no such key exists; valid are version, description, [host] and [source]"
            )));
        }
        let mut config = Config::default();
        for (key, value) in &host {
            config.set(&format!("host.{key}={value}")).map_err(|error| wrong(error.to_string()))?;
        }
        config.check().map_err(|error| wrong(error.to_string()))?;
        if let Some(key) = sources.keys().find(|key| !is_key(key)) {
            return Err(wrong(format!("source.{key}: no such key exists; the keys of [host] are valid")));
        }
        Ok(Profile { name: origin.to_owned(), description, config, sources, given: host })
    }

    /// Where the value of a key comes from: the profile's own words; for a cost that it does not give, those of `server`, too; `none`
    /// of a cost without a source.
    pub fn source_of(&self, key: &str) -> Option<String> {
        let short = key.trim_start_matches("host.");
        let own = self.sources.get(short);
        if !COSTS.contains(&key) {
            return own.cloned();
        }
        let is_default = self.name != BASE && !self.given.contains_key(short);
        let base = is_default.then(|| Profile::load(BASE).ok()?.sources.remove(short)).flatten();
        Some(match (own, base) {
            (Some(own), Some(base)) => format!("{own}; as {BASE}: {base}"),
            (Some(own), None) => own.clone(),
            (None, Some(base)) => format!("as {BASE}: {base}"),
            (None, None) => "none".to_owned(),
        })
    }

    /// Makes changes of the form `host.KEY=VALUE`.
    ///
    /// # Errors
    /// What is wrong with one, or with the host that results.
    pub fn set_all<S: AsRef<str>>(&mut self, changes: impl IntoIterator<Item = S>) -> Result<(), ConfigError> {
        let mut config = self.config.clone();
        for change in changes {
            config.set(change.as_ref())?;
        }
        config.check()?;
        self.config = config;
        Ok(())
    }
}

/// The place and the problem of a text that is no TOML.
fn misread(origin: &str, text: &str, error: &toml::de::Error) -> ProfileError {
    let place = error.span().map(|span| excerpt::line_and_column(text, span.start));
    let origin = place.map_or(origin.to_owned(), |(line, column)| format!("{origin}:{line}:{column}"));
    ProfileError { origin, problem: excerpt::brief(&error.message().trim().replace('\n', "; ")) }
}

fn is_key(key: &str) -> bool {
    Config::keys().any(|(known, _)| known.strip_prefix("host.") == Some(key))
}

/// The plain values of a section as text.
fn section(table: &mut Table, name: &str) -> Result<BTreeMap<String, String>, String> {
    let values = match table.remove(name) {
        None => Table::new(),
        Some(Value::Table(values)) => values,
        Some(_) => return Err(format!("{name} is not valid; a section [{name}] is")),
    };
    let plain = |(key, value): (String, Value)| match value {
        Value::String(text) => Ok((key, text)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok((key, value.to_string())),
        _ => Err(format!("{name}.{key}: a text, a number, true and false are valid")),
    };
    values.into_iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_a_long_line_is_named_by_its_place() {
        let text = format!("version = 1\n[host]\nswitch = \"{}\" x\n", "1".repeat(3_000));
        let error = Profile::parse("mine.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with("mine.toml:3:") && error.len() < 200, "{error}");
    }

    #[test]
    fn every_built_in_host_is_possible_and_has_a_source_for_each_cost() {
        for Builtin { name, .. } in BUILTIN {
            let profile = Profile::load(name).unwrap();
            assert!(!profile.description.is_empty(), "{name}");
            for key in profile.given.keys() {
                assert!(profile.sources.contains_key(key), "{name}: {key} has no source");
            }
            for cost in COSTS {
                let source = profile.source_of(cost).unwrap();
                assert!(source.len() > 20, "{name}: {cost} has the source {source}");
            }
        }
        let server = Profile::load(BASE).unwrap().config;
        let default = Config {
            machine: nandscape_host_machine::Config { cores: 16, ..Config::default().machine },
            ..Config::default()
        };
        assert_eq!(server, default, "what a profile does not give is as the server has it");
        let mine = Profile::parse("mine", "version = 1\n[host]\nswitch = '1us'").unwrap();
        assert_eq!(mine.source_of("host.switch").unwrap(), "none");
        assert!(mine.source_of("host.lock").unwrap().starts_with("as server: measured"));
        assert_eq!(mine.source_of("host.cores"), None);
    }

    #[test]
    fn what_is_no_host_is_refused_with_what_would_be() {
        for (text, problem) in [
            ("", "version = 1 is valid"),
            ("version = 2", "valid is 1"),
            ("version = 1\n[host]\ncores = 0", "host.cores: 0 is not valid"),
            ("version = 1\n[host]\ncolour = 'red'", "host.colour: no such key exists"),
            ("version = 1\n[host]\ncores = [1]", "host.cores: a text, a number"),
            ("version = 1\n[hosts]\ncores = 1", "valid are version, description"),
            ("version = 1\nhost = 3", "a section [host]"),
            ("version = 1\n[source]\ncolour = 'x'", "source.colour"),
            ("version = 1\n[host", "mine:2:6: "),
        ] {
            let error = Profile::parse("mine", text).unwrap_err().to_string();
            assert!(error.starts_with("mine:") && error.contains(problem), "{error}");
        }
        assert!(Profile::load("i9").unwrap_err().to_string().contains("valid are server, i7-4770"));
        assert!(Profile::load("/none.toml").unwrap_err().to_string().contains("cannot be read"));
    }
}
