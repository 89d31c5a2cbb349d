//! A chain as text, from the bottom up, a layer a word: `block,deadline=2ms`, `raid5:4,technique=tea2`, `hot=cache,memory=64MiB`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use nandscape_device_controller::command_set::forward::BELOW;
use nandscape_host_path::LAYER as HOST;
use serde::{Deserialize, Serialize};

use super::kinds::{Kind, forms, kinds};
use super::{FtlLayer, Layer, Named, ftl, names, tree};
use crate::host_report::DRIVE;
use crate::tap::REMOTE;

/// Layers, the lowest first.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Chain {
    /// A word for each.
    pub layers: Vec<LayerWords>,
}

/// A layer as it is given: `[NAME=]KIND[:N][,over=NAME[+NAME]...][,KEY=VALUE]...`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LayerWords {
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// Its kind, with the number of nodes that it takes where it takes several: `raid5:4`.
    pub kind: String,
    /// The drives and layers that it lies over, if it was given any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<String>,
    /// Changes of its settings, `KEY=VALUE` each.
    pub set: Vec<String>,
}

/// Before the names of the drives and layers that a layer lies over.
pub(super) const OVER: &str = "over=";
/// What breakdowns list next to the layers: a layer of such a name would merge with it.
const OTHERS: [&str; 4] = [DRIVE, HOST, REMOTE, BELOW];

impl FromStr for LayerWords {
    type Err = String;

    fn from_str(word: &str) -> Result<LayerWords, String> {
        let mut parts = word.split(',').map(str::trim);
        let head = parts.next().unwrap_or_default();
        let (name, kind) = match head.split_once('=') {
            Some((name, kind)) => (Some(name.trim().to_owned()), kind.trim()),
            None => (None, head),
        };
        let (over, set): (Vec<&str>, Vec<&str>) = parts.partition(|part| part.starts_with(OVER));
        let over =
            over.iter().flat_map(|part| part[OVER.len()..].split('+')).map(|name| name.trim().to_owned()).collect();
        name.iter().try_for_each(|name| check_name(name)).map_err(|problem| format!("{word:?}: {problem}"))?;
        let set: Vec<String> = set.into_iter().map(str::to_owned).collect();
        if let Some(bad) = set.iter().find(|change| !change.contains('=')) {
            return Err(format!("{word:?}: {bad:?} is no setting; KEY=VALUE is valid"));
        }
        let words = LayerWords { name, kind: kind.to_owned(), over, set };
        words.layer().map_err(|problem| format!("{word:?}: {problem}"))?;
        Ok(words)
    }
}

/// Checks a layer's name, which reports and orders use next to those of drives.
///
/// # Errors
/// Why it cannot have this name, and what would be valid.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!("{name:?} is no name of a layer; letters, digits, - and _ are valid in it"));
    }
    if tree::is_drive_name(name) {
        return Err(format!("{name:?} is the name of a drive; another one is valid"));
    }
    match OTHERS.contains(&name) {
        true => Err(format!(
            "{name:?} is the name of another time in reports, as are {}; any other name is valid",
            OTHERS.join(", ")
        )),
        false => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
}

impl fmt::Display for LayerWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.iter().try_for_each(|name| write!(f, "{name}="))?;
        write!(f, "{}", self.kind)?;
        if !self.over.is_empty() {
            write!(f, ",{OVER}{}", self.over.join("+"))?;
        }
        self.set.iter().try_for_each(|change| write!(f, ",{change}"))
    }
}

impl LayerWords {
    /// Whether it is of the kind whose layers have this name.
    fn is_of(&self, name: &str) -> bool {
        Kind::of(&self.kind).is_some_and(|kind| kind.name == name)
    }

    /// The layer, with its settings.
    fn layer(&self) -> Result<Arc<dyn Layer>, String> {
        match Kind::of(&self.kind) {
            Some(kind) => kind.read(self),
            None => {
                let mirror = if self.kind.starts_with("mirror") { "; a mirror is raid1:2" } else { "" };
                Err(format!("there is no layer {:?}; valid are {}{mirror}", self.kind, forms()))
            }
        }
    }
}

impl fmt::Display for Chain {
    /// Words that [`Chain::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.layers.iter().map(LayerWords::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

impl FromStr for Chain {
    type Err = String;

    /// Reads layers with blanks between them: `block,deadline=2ms raid1:2 cache`.
    fn from_str(text: &str) -> Result<Chain, String> {
        let layers = text.split_whitespace().map(str::parse).collect::<Result<Vec<LayerWords>, String>>()?;
        let chain = Chain { layers };
        match chain.layers.is_empty() {
            true => Err(format!("there is no layer; valid are {}, with blanks between them", forms())),
            false => chain.resolve().map(|_| chain),
        }
    }
}

impl Chain {
    /// Whether there is no layer.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The layers in a sentence, from the bottom up: `"block", then "cache"`.
    pub fn in_words(&self) -> String {
        let words: Vec<String> = self.layers.iter().map(|words| format!("\"{words}\"")).collect();
        words.join(", then ")
    }

    /// Takes the lowest `count` layers out of it. Those of both parts keep their names.
    ///
    /// # Errors
    /// A layer that is not valid.
    pub fn take_lowest(&mut self, count: usize) -> Result<Chain, String> {
        if count == 0 {
            return Ok(Chain::default());
        }
        let names = names(&self.resolve()?);
        for (words, name) in self.layers.iter_mut().zip(names) {
            words.name = (name != words.kind || words.name.is_some()).then_some(name);
        }
        Ok(Chain { layers: self.layers.drain(..count).collect() })
    }

    /// Whether a key is one of a layer: of one of these, or of a kind by its own name.
    pub fn is_key(&self, key: &str) -> bool {
        let Some((name, _)) = key.split_once('.') else { return false };
        let is_named = |words: &LayerWords| words.name.as_deref() == Some(name);
        // Two of a kind are numbered.
        let kind =
            name.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(name, |(kind, _)| kind);
        kinds().iter().any(|one| one.name == kind) || self.layers.iter().any(is_named)
    }

    /// Takes the lowest layer out of it if that is the FTL of a host.
    ///
    /// # Errors
    /// What is wrong with its settings.
    pub fn take_ftl(&mut self) -> Result<Option<FtlLayer>, String> {
        match self.layers.first() {
            Some(words) if words.is_of(ftl::NAME) => FtlLayer::with(&self.layers.remove(0).set).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether the lowest layer is the FTL of a host.
    pub fn has_ftl(&self) -> bool {
        self.layers.first().is_some_and(|words| words.is_of(ftl::NAME))
    }

    /// Whether an array is among them: what lies below it are its members, even a single drive.
    pub(crate) fn has_array(&self) -> bool {
        self.layers.iter().any(|words| words.is_of("array"))
    }

    /// The firmware of FTLs of the host takes no time.
    pub fn without_delay(&mut self) {
        let ftls = self.layers.iter_mut().filter(|words| words.is_of(ftl::NAME));
        ftls.for_each(|words| words.set.push("no-delay=true".to_owned()));
    }

    /// As [`Chain::take`]. Settings of a block layer put one over each drive if the chain has none.
    ///
    /// # Errors
    /// As [`Chain::take`].
    pub fn take_with_block(&mut self, set: &[String]) -> Result<Vec<String>, String> {
        let is_of_block = |change: &String| change.trim_start().starts_with("block.");
        if set.iter().any(is_of_block) && !self.layers.iter().any(|words| words.is_of("block")) {
            if self.layers.iter().any(|words| !words.over.is_empty()) {
                return Err("a tree of layers names its block layer itself, as in block,deadline=2ms".to_owned());
            }
            self.layers.insert(0, "block".parse()?);
        }
        self.take(set)
    }

    /// The layers.
    ///
    /// # Errors
    /// Which one is not valid, and what would be.
    pub fn resolve(&self) -> Result<Vec<Named>, String> {
        let layer = |words: &LayerWords| {
            let layer = words.layer().map_err(|problem| format!("{words}: {problem}"))?;
            Ok(Named { name: words.name.clone(), over: words.over.clone(), layer })
        };
        let layers = self.layers.iter().map(layer).collect::<Result<Vec<Named>, String>>()?;
        let all = names(&layers);
        match all.iter().enumerate().find(|(number, name)| all[..*number].contains(name)) {
            Some((_, name)) => Err(format!("two layers are called {name:?}; names differ")),
            None => tree::drives_below(&layers).map(|_| layers),
        }
    }

    /// Takes the changes of settings that name a layer of it, `NAME.KEY=VALUE`, and returns the others.
    ///
    /// # Errors
    /// A change that its layer does not take.
    pub fn take(&mut self, set: &[String]) -> Result<Vec<String>, String> {
        let names = names(&self.resolve()?);
        let mut others = Vec::new();
        for change in set {
            let addressed = change.trim_start().split_once('.');
            let found = addressed.and_then(|(name, rest)| Some((names.iter().position(|one| one == name)?, rest)));
            match found {
                Some((number, rest)) => self.layers[number].set.push(rest.to_owned()),
                None => others.push(change.clone()),
            }
        }
        self.resolve()?;
        Ok(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_written_as_it_is_read() {
        for word in [
            "block",
            "raid5:4,technique=tea2",
            "hot=cache,memory=64MiB,hit=1us",
            "block,block.deadline=2ms",
            "ftl,moves=copy,buffer.size=1MiB",
            "ahci:6,uplink=2GB/s",
            "fast=cache,over=drive-0+low/1,memory=64MiB",
        ] {
            assert_eq!(word.parse::<LayerWords>().unwrap().to_string(), word);
        }
    }

    #[test]
    fn what_is_no_layer_is_refused_with_what_would_be() {
        for (word, problem) in [
            ("blok", "valid are block, cache, ftl, ahci:N, raid0:N"),
            ("mirror:2", "; a mirror is raid1:2"),
            ("ftl,over=drive-0", "ftl lies over all drives; leave it out"),
            ("ftl,moves=fast", "moves=fast: valid are copy, read-write"),
            ("ftl,buffer.sise=1MiB", "buffer.sise"),
            ("ahci", "ahci:N is"),
            ("ahci:33", "1 to 32 ports"),
            ("ahci:6,slots=64", "from 1 to 32"),
            ("", "there is no layer"),
            ("raid5:2", "raid5"),
            ("raid5:4,technique=fast", "technique"),
            ("raid5:4,journal=data", "has no journal"),
            ("cache,memory", "KEY=VALUE is valid"),
            ("cache,memory=1", "a size of a page"),
            ("a.b=cache", "no name of a layer"),
            ("drive-1=cache", "is the name of a drive"),
            ("drive=cache", "is the name of another time in reports, as are drive, host, remote, below; any other"),
            ("host=block", "\"host\" is the name of another time"),
            ("block,deadline=soon", "deadline"),
        ] {
            let error = word.parse::<LayerWords>().unwrap_err();
            assert!(error.contains(problem), "{word:?}: {error}");
        }
        let twice = Chain { layers: vec!["a=cache".parse().unwrap(), "a=block".parse().unwrap()] };
        assert!(twice.resolve().unwrap_err().contains("two layers are called \"a\""));
    }

    #[test]
    fn settings_go_to_the_layer_that_they_name() {
        let mut chain = Chain { layers: vec!["block".parse().unwrap(), "raid1:2".parse().unwrap()] };
        let set = ["block.deadline=2ms", "array.technique=tea2", "ftl.gc.scheme=plane"].map(str::to_owned);
        assert_eq!(chain.take(&set).unwrap(), ["ftl.gc.scheme=plane"]);
        assert_eq!(chain.layers[1].to_string(), "raid1:2,technique=tea2");
        assert!(chain.take(&["array.technique=x".to_owned()]).is_err());
        // Keys of the drive's own FTL are no keys of the layer.
        let mut chain = Chain { layers: vec!["ftl".parse().unwrap()] };
        let set = ["host_ftl.ftl.gc.victim=cost_benefit", "ftl.kind=open_channel"].map(str::to_owned);
        assert_eq!(chain.take(&set).unwrap(), ["ftl.kind=open_channel"]);
        assert_eq!(chain.layers[0].to_string(), "ftl,ftl.gc.victim=cost_benefit");
    }
}
