//! The settings of the cache, and their keys.

use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use crate::cache::LAYER;
use crate::pages::PAGE;
use crate::replacement::ReplacementKind;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Memory for pages, in bytes.
    pub memory: u64,
    /// The eviction policy.
    pub replacement: ReplacementKind,
    /// How long a read of pages in memory takes, for each page.
    pub hit: Span,
    /// Whether the pages of a rejected read are still loaded, for later readers.
    pub load_rejected: bool,
    /// How long it takes to reject a read.
    pub reject: Span,
    /// Whether predictions are only attached to reads, which are all served.
    pub predict_only: bool,
    /// Its name as a layer in breakdowns.
    pub layer: &'static str,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memory: 64 << 20,
            replacement: ReplacementKind::Lru,
            // A system call, and 4 KiB copied at some GB/s.
            hit: Span::from_us(2),
            load_rejected: true,
            // Of the 5 us at most that a system call and its EBUSY take (Li 3.1.3).
            reject: Span::from_us(5),
            predict_only: false,
            layer: LAYER,
        }
    }
}

/// Why a setting is not valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    key: String,
    problem: String,
}

/// The longest time that is taken.
const LONGEST: Span = Span::from_s(3_600);
/// The most memory: its pages are numbered in 32 bits.
const MOST: u64 = 1 << 40;

impl Config {
    /// The keys, with a line on each.
    pub const KEYS: [(&str, &str); 6] = [
        ("cache.memory", "memory for pages, such as 64MiB"),
        ("cache.replacement", "which page goes when it is full: lru or clock"),
        ("cache.hit", "how long a read takes for each page in memory, such as 2us"),
        ("cache.load_rejected", "read the pages of rejected reads all the same: true or false"),
        ("cache.reject", "how long it takes to reject a read, such as 5us"),
        ("cache.predict_only", "attach predictions to reads and serve them all the same: true or false"),
    ];

    /// Changes a setting: `cache.memory=64MiB`.
    ///
    /// # Errors
    /// The fault, and what would be valid.
    pub fn set(&mut self, change: &str) -> Result<(), ConfigError> {
        let bad = |key: &str, problem: String| ConfigError { key: key.to_owned(), problem };
        let Some((key, value)) = change.split_once('=') else {
            return Err(bad(change, "the value is missing; KEY=VALUE is valid".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |valid: &str| bad(key, format!("{value:?} is not valid; {valid}"));
        let time = || span(value).ok_or_else(|| wrong("a time such as 5us is, and 0"));
        let yes = || value.parse().map_err(|_| wrong("true and false are"));
        match key {
            "cache.memory" => {
                let bytes = value.parse::<Bytes>().ok().map(|bytes| bytes.0);
                let valid = "a size of a page (4KiB) to 1TiB is";
                self.memory = bytes.filter(|bytes| (PAGE..=MOST).contains(bytes)).ok_or_else(|| wrong(valid))?;
            }
            "cache.replacement" => {
                let names = ReplacementKind::ALL.map(|(name, _)| name).join(", ");
                self.replacement = ReplacementKind::named(value).ok_or_else(|| wrong(&format!("valid are {names}")))?;
            }
            "cache.hit" => self.hit = time()?,
            "cache.load_rejected" => self.load_rejected = yes()?,
            "cache.reject" => self.reject = time()?,
            "cache.predict_only" => self.predict_only = yes()?,
            _ => {
                let all: Vec<&str> = Config::KEYS.iter().map(|(key, _)| *key).collect();
                return Err(bad(key, format!("there is no such key; valid are {}", all.join(", "))));
            }
        }
        Ok(())
    }

    /// The settings with their values, by key.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let replacement = ReplacementKind::ALL.iter().find(|(_, kind)| *kind == self.replacement);
        vec![
            ("memory", Bytes(self.memory).to_string()),
            ("replacement", replacement.map_or("", |(name, _)| name).to_owned()),
            ("hit", self.hit.to_string()),
            ("load_rejected", self.load_rejected.to_string()),
            ("reject", self.reject.to_string()),
            ("predict_only", self.predict_only.to_string()),
        ]
    }

    /// Pages that fit into the memory.
    pub fn pages(&self) -> usize {
        usize::try_from(self.memory / PAGE).unwrap_or(usize::MAX).max(1)
    }
}

fn span(value: &str) -> Option<Span> {
    let span = if value == "0" { Some(Span::ZERO) } else { value.parse().ok() };
    span.filter(|span| *span <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_errors_say_what_is_valid() {
        let mut config = Config::default();
        for change in ["cache.memory=1MiB", "cache.replacement=clock", "cache.hit=3us", "cache.load_rejected=false"] {
            config.set(change).unwrap();
        }
        assert_eq!((config.pages(), config.replacement), (256, ReplacementKind::Clock));
        assert!(!config.load_rejected && config.hit == Span::from_us(3));
        for (change, problem) in [
            ("cache.memory=1KiB", "4KiB"),
            ("cache.memory=much", "a size"),
            ("cache.replacement=fifo", "valid are lru, clock"),
            ("cache.hit=-1us", "a time such as"),
            ("cache.reject=9999h", "a time such as"),
            ("cache.predict_only=1", "true and false"),
            ("cache.size=3", "valid are cache.memory"),
            ("cache.hit", "KEY=VALUE"),
        ] {
            let error = config.clone().set(change).unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("cache."), "{error}");
        }
    }
}
