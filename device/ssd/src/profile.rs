//! A profile as written: a TOML file on top of its base profile, with changes on top.

use std::path::{Path, PathBuf};

use nandscape_files::excerpt;
use nandscape_sim::units::Bytes;
use toml::{Table, Value};

use crate::builtin::{BUILTIN, Builtin};
use crate::keys::{GeometryKeys, KeyDoc, ProfileKeys, key_docs};
use crate::values::Text;

/// An error in a profile: where, what, and what would be valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct ProfileError {
    /// The file with line and column, the change on the command line, or the key.
    pub origin: String,
    /// The problem, and what would be valid.
    pub problem: String,
}

impl ProfileError {
    pub(crate) fn new(origin: impl Into<String>, problem: impl Into<String>) -> ProfileError {
        ProfileError { origin: origin.into(), problem: problem.into() }
    }
}

/// A profile and its name.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// The built-in name, or the file's name without its ending.
    pub name: String,
    /// All given keys, including those of the base.
    pub keys: ProfileKeys,
    /// The geometry counts that a small capacity keeps.
    pub(crate) kept: Kept,
    /// What its over-provisioning is compared with.
    pub(crate) yardstick: Yardstick,
}

/// What the over-provisioning of a drive is compared with, for a note if it differs.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Yardstick {
    /// `ftl.over_provisioning`: the profile gives the size of the drive itself.
    Asked,
    /// The drive at the profile's size, which a change has replaced: its capacity, or its blocks per plane.
    Profile(Option<Text<Bytes>>, Option<u32>),
    /// Nothing: all keys are resolved, or are those of a part.
    Nothing,
}

/// Geometry counts that a small capacity keeps: those given in the layer of the capacity or above. The others, from lower
/// layers, are adjusted to fit.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Kept {
    pub(crate) channels: bool,
    pub(crate) dies_per_channel: bool,
    pub(crate) pages_per_block: bool,
}

impl Kept {
    pub(crate) const ALL: Kept = Kept { channels: true, dies_per_channel: true, pages_per_block: true };

    fn given(keys: &ProfileKeys) -> Kept {
        let GeometryKeys { channels, dies_per_channel, pages_per_block, .. } = &keys.geometry;
        Kept {
            channels: channels.is_some(),
            dies_per_channel: dies_per_channel.is_some(),
            pages_per_block: pages_per_block.is_some(),
        }
    }

    /// The kept counts with a layer on top.
    fn under(self, over: &ProfileKeys) -> Kept {
        let given = Kept::given(over);
        if over.capacity.is_some() {
            return given;
        }
        Kept {
            channels: self.channels || given.channels,
            dies_per_channel: self.dies_per_channel || given.dies_per_channel,
            pages_per_block: self.pages_per_block || given.pages_per_block,
        }
    }
}

/// Maximum depth of base profiles: more is a cycle.
const MAX_BASES: usize = 16;

impl Profile {
    /// Reads a profile by name or path, with its bases.
    ///
    /// # Errors
    /// If the file does not exist or is not a profile.
    pub fn load(name_or_path: &str) -> Result<Profile, ProfileError> {
        Source::find(name_or_path, Path::new(""))?.profile(MAX_BASES)
    }

    /// The readable files of a profile and its bases. Built-in profiles have none.
    pub fn files(name_or_path: &str) -> Vec<PathBuf> {
        let (mut files, mut next) = (Vec::new(), Source::find(name_or_path, Path::new("")).ok());
        while let Some(source) = next.take_if(|_| files.len() <= MAX_BASES) {
            let base = toml::from_str::<ProfileKeys>(&source.text).ok().and_then(|keys| keys.base);
            if BUILTIN.iter().all(|builtin| builtin.name != source.origin) {
                files.push(PathBuf::from(&source.origin));
            }
            next = base.and_then(|base| Source::find(&base, &source.folder).ok());
        }
        files
    }

    /// Reads a profile from text; `origin` names it in errors.
    ///
    /// # Errors
    /// If the text is not a profile.
    pub fn parse(origin: &str, text: &str) -> Result<Profile, ProfileError> {
        Source { origin: origin.to_owned(), text: text.to_owned(), folder: PathBuf::new() }.profile(MAX_BASES)
    }

    /// A profile of all keys, as [`Resolved::to_toml`](crate::Resolved::to_toml) writes them.
    pub fn of_keys(name: impl Into<String>, keys: ProfileKeys) -> Profile {
        Profile { name: name.into(), keys, kept: Kept::ALL, yardstick: Yardstick::Nothing }
    }

    /// Makes one change, like [`Profile::set_all`]. A later call overrides earlier ones.
    ///
    /// # Errors
    /// If the key does not exist, or the value is invalid for it.
    pub fn set(&mut self, change: &str) -> Result<(), ProfileError> {
        self.set_all([change])
    }

    /// Makes changes of the form `KEY=VALUE`, as `ftl.gc.victim=greedy`. A value is read as TOML, else as text.
    ///
    /// They are one layer on top of the profile: if both are given, capacity and blocks per plane must agree.
    ///
    /// # Errors
    /// If the key does not exist, or the value is invalid for it. Then nothing changes.
    pub fn set_all<S: AsRef<str>>(&mut self, changes: impl IntoIterator<Item = S>) -> Result<(), ProfileError> {
        let mut over = ProfileKeys::default();
        for change in changes {
            over.overlay(change_keys(change.as_ref())?);
        }
        self.put(over);
        Ok(())
    }

    /// Puts keys on top. Capacity and blocks per plane follow from each other: the upper layer's value counts. If it gives
    /// both, they must agree, which is checked at resolution.
    fn put(&mut self, over: ProfileKeys) {
        let (gives_capacity, gives_blocks) = (over.capacity.is_some(), over.geometry.blocks_per_plane.is_some());
        let own = (self.keys.capacity, self.keys.geometry.blocks_per_plane);
        let is_replaced = (gives_capacity || gives_blocks) && own != (None, None);
        if is_replaced && self.yardstick == Yardstick::Asked {
            self.yardstick = Yardstick::Profile(own.0, own.1);
        }
        self.kept = self.kept.under(&over);
        match (gives_capacity, gives_blocks) {
            (true, false) => self.keys.geometry.blocks_per_plane = None,
            (false, true) => self.keys.capacity = None,
            _ => {}
        }
        self.keys.overlay(over);
    }

    /// The profile at its own size, if a change has replaced that.
    pub(crate) fn at_own_size(&self) -> Option<Profile> {
        let Yardstick::Profile(capacity, blocks_per_plane) = self.yardstick else { return None };
        let mut profile = Profile { kept: Kept::ALL, yardstick: Yardstick::Nothing, ..self.clone() };
        (profile.keys.capacity, profile.keys.geometry.blocks_per_plane) = (capacity, blocks_per_plane);
        Some(profile)
    }

    /// The profile as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.keys).expect("keys are plain values")
    }
}

/// The key of a change.
fn change_keys(change: &str) -> Result<ProfileKeys, ProfileError> {
    let origin = || excerpt::brief(&format!("--set {change}"));
    let (key, value) = change
        .split_once('=')
        .ok_or_else(|| ProfileError::new(origin(), "a change is KEY=VALUE, for example ftl.gc.victim=greedy"))?;
    if let given @ ("version" | "base") = key.trim() {
        let problem = format!("{given} belongs into a profile's file; name the profile itself instead");
        return Err(ProfileError::new(origin(), problem));
    }
    let text = value.trim();
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok().and_then(|mut table| table.remove("value"));
    let mut nested = parsed.unwrap_or_else(|| Value::String(text.to_owned()));
    for part in key.trim().rsplit('.') {
        nested = Value::Table(Table::from_iter([(part.to_owned(), nested)]));
    }
    nested.try_into().map_err(|error: toml::de::Error| ProfileError::new(origin(), message(&error)))
}

/// The source of a profile's text.
struct Source {
    origin: String,
    text: String,
    /// The folder for relative paths of bases.
    folder: PathBuf,
}

impl Source {
    fn find(name: &str, folder: &Path) -> Result<Source, ProfileError> {
        if let Some(Builtin { name, text }) = BUILTIN.iter().find(|builtin| builtin.name == name) {
            return Ok(Source { origin: (*name).to_owned(), text: (*text).to_owned(), folder: PathBuf::new() });
        }
        if !name.contains('/') && !name.ends_with(".toml") {
            let names: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
            let valid = names.join(", ");
            return Err(ProfileError::new(
                name,
                format!("no such profile; there are {valid}, or give a path to a .toml file"),
            ));
        }
        let path = folder.join(name);
        let text = read(&path).map_err(|error| ProfileError::new(name, format!("cannot be read: {error}")))?;
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Source { origin: path.display().to_string(), text, folder })
    }

    fn name(&self) -> String {
        Path::new(&self.origin)
            .file_stem()
            .map_or_else(|| self.origin.clone(), |name| name.to_string_lossy().into_owned())
    }

    fn profile(&self, bases_left: usize) -> Result<Profile, ProfileError> {
        let keys: ProfileKeys = toml::from_str(&self.text).map_err(|error| {
            let place = error.span().map(|span| excerpt::line_and_column(&self.text, span.start));
            let origin = place.map_or(self.origin.clone(), |(line, column)| format!("{}:{line}:{column}", self.origin));
            ProfileError::new(origin, message(&error))
        })?;
        match keys.version {
            Some(1) => {}
            Some(other) => {
                return Err(ProfileError::new(
                    &self.origin,
                    format!("version = {other} is not known; this is version 1"),
                ));
            }
            None => return Err(ProfileError::new(&self.origin, "the first line must be: version = 1")),
        }
        let Some(base) = &keys.base else {
            let kept = Kept::given(&keys);
            return Ok(Profile { name: self.name(), keys, kept, yardstick: Yardstick::Asked });
        };
        if bases_left == 0 {
            return Err(ProfileError::new(&self.origin, "profiles start from each other in a circle"));
        }
        let source = Source::find(base, &self.folder);
        let source = source.map_err(|error| ProfileError::new(&self.origin, format!("base: {error}")))?;
        let mut profile = Profile { name: self.name(), ..source.profile(bases_left - 1)? };
        profile.put(keys);
        if BUILTIN.iter().any(|builtin| builtin.name == self.origin) {
            // Its capacity is that of a drive, and not of a smaller one.
            profile.yardstick = Yardstick::Asked;
        }
        Ok(profile)
    }
}

/// The maximum of bytes of a profile: a longer or endless file is no profile.
const MAX_BYTES: u64 = 1 << 20;

fn read(path: &Path) -> std::io::Result<String> {
    nandscape_files::input::text(path, MAX_BYTES, "profile")
}

/// The error in one line, without TOML's excerpt and without names of Rust types.
fn message(error: &toml::de::Error) -> String {
    let text = error
        .message()
        .trim()
        .replace('\n', "; ")
        .replace("expected u32", "expected a whole number from 0 to 4294967295");
    let text = match text.split_once("expected struct ") {
        Some((found, _)) => format!("{found}expected a section of keys, such as ftl.gc with ftl.gc.victim"),
        None => text.replace("invalid type: map", "invalid type: a section of keys"),
    };
    match text.strip_prefix("unknown field `").and_then(|rest| meant(rest.split('`').next()?)) {
        Some(key) => format!("{}; did you mean {key}?", excerpt::brief(&text)),
        None => excerpt::brief(&text),
    }
}

/// The full name of the key that the user probably meant.
fn meant(unknown: &str) -> Option<String> {
    let likeness = |doc: &KeyDoc| strsim::jaro_winkler(unknown, doc.key);
    let docs = key_docs();
    // Of equally similar keys, the first on the page of keys.
    let nearest = docs.iter().rev().max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    let full = || {
        if nearest.section.is_empty() { nearest.key.to_owned() } else { format!("{}.{}", nearest.section, nearest.key) }
    };
    (likeness(nearest) > 0.85).then(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Profile::parse("mine.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_valid_ones() {
        let text = error("version = 1\n[geometry]\nchanels = 8\n");
        assert!(text.starts_with("mine.toml:3:1: unknown field `chanels`"), "{text}");
        assert!(text.contains("`channels`") && text.ends_with("; did you mean geometry.channels?"), "{text}");
        assert!(error("version = 1\nover_provisioning = 0.1\n").ends_with("; did you mean ftl.over_provisioning?"));
        assert!(!error("version = 1\nxyzzy = 0.1\n").contains("did you mean"));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place_and_an_example() {
        let text = error("version = 1\n[timing]\nerase = \"soon\"\n");
        assert!(text.starts_with("mine.toml:3:") && text.contains("such as \"40us\""), "{text}");
        let text = error("version = 1\n[ftl.gc]\nvictim = \"lucky\"\n");
        assert!(text.contains("none of greedy, cost_benefit"), "{text}");
        let text = error("version = 1\n[timing]\nread = [1, true]\n");
        assert!(text.starts_with("mine.toml:3:"), "{text}");
    }

    #[test]
    fn the_version_and_the_base_are_checked() {
        assert!(error("[geometry]\n").contains("version = 1"));
        assert!(error("version = 2\n").contains("version = 2 is not known"));
        assert!(error("version = 1\nbase = \"nothing\"\n").contains("no such profile; there are default,"));
        assert!(error("version = 1\nbase = \"./nowhere.toml\"\n").contains("cannot be read"));
    }

    #[test]
    fn changes_are_read_as_toml_or_as_text() {
        let mut profile = Profile::load("default").unwrap();
        for change in [
            "ftl.gc.victim=cost_benefit",
            "geometry.channels=4",
            "timing.read=[\"1us\",\"2us\",\"3us\"]",
            "ftl.over_provisioning=0.2",
            "ftl.over_provisioning = 20%",
        ] {
            profile.set(change).unwrap();
        }
        assert_eq!(profile.keys.geometry.channels, Some(4));
        assert_eq!(profile.keys.ftl.over_provisioning.unwrap().0.0, 0.2);
        let error = profile.set("ftl.gc.victm=greedy").unwrap_err().to_string();
        assert!(error.starts_with("--set ftl.gc.victm=greedy: unknown field `victm`"), "{error}");
        assert!(profile.set("capacity").unwrap_err().to_string().contains("KEY=VALUE"));
        assert!(profile.set("base=femu-ocssd").unwrap_err().to_string().contains("belongs into a profile's file"));
        assert!(profile.set("ftl=3").unwrap_err().to_string().contains("expected a section of keys"));
    }

    #[test]
    fn the_upper_of_capacity_and_blocks_counts() {
        let mut profile = Profile::load("default").unwrap();
        profile.set("geometry.blocks_per_plane=100").unwrap();
        assert!(profile.keys.capacity.is_none());
        profile.set("capacity=1GiB").unwrap();
        assert!(profile.keys.geometry.blocks_per_plane.is_none());
        // In one layer, neither overrides the other.
        for changes in
            [["capacity=1GiB", "geometry.blocks_per_plane=100"], ["geometry.blocks_per_plane=100", "capacity=1GiB"]]
        {
            profile.set_all(changes).unwrap();
            assert!(profile.keys.capacity.is_some() && profile.keys.geometry.blocks_per_plane == Some(100));
        }
    }

    #[test]
    fn of_a_key_given_twice_the_last_counts_and_bad_changes_change_nothing() {
        let mut profile = Profile::load("default").unwrap();
        profile.set_all(["geometry.channels=4", "geometry.channels=2"]).unwrap();
        assert_eq!(profile.keys.geometry.channels, Some(2));
        let before = profile.clone();
        profile.set_all(["geometry.channels=8", "geometry.chanels=8"]).unwrap_err();
        assert_eq!(profile, before);
    }

    #[test]
    fn a_profile_is_written_and_read_back() {
        let profile = Profile::load("femu-ocssd").unwrap();
        let again = Profile::parse("femu-ocssd", &profile.to_toml()).unwrap();
        assert_eq!(again, profile);
    }
}
