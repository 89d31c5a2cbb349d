//! The settings of an array, and the keys by which users give them.

use std::ops::RangeInclusive;

use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use crate::serve::LAYER;
use crate::tail::Technique;

/// How windows of the members are set.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum WindowMode {
    /// As the technique has it: members take turns with `teafa`, collect together with `harmonia`, and else have no windows.
    #[default]
    Auto,
    /// None are set.
    None,
    /// Of one length, set when the array is made.
    Static,
    /// Of a length that follows from busy answers (Li 3.2.4).
    Dynamic,
}

/// The protection of stripes whose write was interrupted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum JournalMode {
    /// No protection, and no records of the array on its members.
    None,
    /// Regions being written are marked, and made consistent after a crash; with a member missing, as `data`.
    #[default]
    Intent,
    /// Each stripe write is in a journal on the members before it is in place.
    Data,
}

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Bytes of a chunk.
    pub chunk: u64,
    /// The tail policy.
    pub technique: Technique,
    /// The time after which `speculative` reads more.
    pub timeout: Span,
    /// How windows are set.
    pub windows: WindowMode,
    /// The length of windows; zero is the drives' own.
    pub window: Span,
    /// Ranges of each drive with separate windows; 1 is the drive as a whole.
    pub ranges: u16,
    /// The protection of interrupted writes, for an array that survives the program.
    pub journal: JournalMode,
    /// Whether an array is opened of which half-written stripes cannot be made consistent.
    pub force: bool,
    /// The most bytes a second that a rebuild or a scrub moves on a member; 0 is no limit.
    pub rebuild_rate: u64,
    /// How often `rails` swaps roles.
    pub swap: Span,
    /// Spare drives of the members' profile, if the drives are not named one by one.
    pub spares: usize,
    /// Seed of choices by chance.
    pub seed: u64,
    /// Its name as a layer in breakdowns.
    pub layer: &'static str,
    /// The identity of a new array, in addition to its drives: its name and, in wall time, a unique value. An
    /// existing array has its identity in its records.
    pub identity: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            chunk: 4_096,
            technique: Technique::Base,
            timeout: Span::from_us(500),
            windows: WindowMode::Auto,
            window: Span::ZERO,
            ranges: 1,
            journal: JournalMode::default(),
            force: false,
            rebuild_rate: 100 << 20,
            swap: Span::from_s(10),
            spares: 0,
            seed: 1,
            layer: LAYER,
            identity: String::new(),
        }
    }
}

/// The most spares.
const MOST_SPARES: usize = 8;
/// Lengths of windows that drives take.
const WINDOW: RangeInclusive<Span> = Span::from_ms(1)..=Span::from_s(3_600);
/// The shortest interval between swaps of roles: a drive could not do anything in between.
const LEAST_SWAP: Span = Span::from_ms(1);

/// Why a setting is not valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    key: String,
    problem: String,
}

const WINDOWS: [(&str, WindowMode); 4] = [
    ("auto", WindowMode::Auto),
    ("none", WindowMode::None),
    ("static", WindowMode::Static),
    ("dynamic", WindowMode::Dynamic),
];

const JOURNALS: [(&str, JournalMode); 3] =
    [("none", JournalMode::None), ("intent", JournalMode::Intent), ("data", JournalMode::Data)];

impl Config {
    /// The keys, with a line on each.
    pub const KEYS: [(&str, &str); 11] = [
        ("array.chunk", "bytes of a chunk: a multiple of the drives' mapping unit, such as 4KiB"),
        (
            "array.technique",
            "how reads evade busy drives: base, proactive, tea1, tea2, teafa, speculative, preempt, harmonia or rails",
        ),
        ("array.timeout", "the time after which technique speculative reads more, such as 500us"),
        ("array.windows", "windows of the drives: auto (as the technique has it), none, static or dynamic"),
        ("array.window", "the length of windows, from 1ms to 3600s, such as 100ms; 0 is what the drives recommend"),
        ("array.ranges", "ranges of each drive with windows of their own; 1 is the drive as a whole"),
        ("array.journal", "what protects interrupted writes where drives keep data: none, intent or data"),
        ("array.force", "open an array though a member was lost together with a crash: true or false"),
        ("array.swap", "how often technique rails swaps the roles of its drives, such as 10s"),
        ("array.spares", "drives that stand by to take the place of a member that fails: 0 to 8"),
        ("array.rebuild_rate", "bytes a second that a rebuild moves at the most, such as 100MiB; 0 is no limit"),
    ];

    /// Whether a change names a key of arrays.
    pub fn is_key(change: &str) -> bool {
        change.trim_start().starts_with("array.")
    }

    /// Changes a setting: `array.chunk=4KiB`.
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
        match key {
            "array.chunk" => self.chunk = bytes(value).ok_or_else(|| wrong("a size such as 4KiB is"))?,
            "array.technique" => {
                self.technique = named(&Technique::ALL, value).ok_or_else(|| wrong(&names(&Technique::ALL)))?
            }
            "array.timeout" => self.timeout = span(value).ok_or_else(|| wrong("a time such as 500us is"))?,
            "array.windows" => self.windows = named(&WINDOWS, value).ok_or_else(|| wrong(&names(&WINDOWS)))?,
            "array.window" => {
                let window = span(value).filter(|window| window.is_zero() || WINDOW.contains(window));
                self.window = window.ok_or_else(|| wrong("a time from 1ms to 3600s is, such as 100ms, and 0"))?;
            }
            "array.ranges" => {
                let ranges = value.parse().ok().filter(|ranges| *ranges > 0);
                self.ranges = ranges.ok_or_else(|| wrong("a number from 1 to 65535 is"))?;
            }
            "array.journal" => self.journal = named(&JOURNALS, value).ok_or_else(|| wrong(&names(&JOURNALS)))?,
            "array.force" => self.force = value.parse().map_err(|_| wrong("true and false are"))?,
            "array.rebuild_rate" => {
                self.rebuild_rate = bytes(value).ok_or_else(|| wrong("bytes a second such as 100MiB are, and 0"))?;
            }
            "array.swap" => {
                let swap = span(value).filter(|swap| *swap >= LEAST_SWAP);
                self.swap = swap.ok_or_else(|| wrong("a time such as 10s is, 1ms or more"))?;
            }
            "array.spares" => {
                let spares = value.parse().ok().filter(|spares| *spares <= MOST_SPARES);
                self.spares = spares.ok_or_else(|| wrong("a number from 0 to 8 is"))?;
            }
            _ => {
                let all: Vec<&str> = Config::KEYS.iter().map(|(key, _)| *key).collect();
                return Err(bad(key, format!("there is no such key; valid are {}", all.join(", "))));
            }
        }
        Ok(())
    }

    /// The settings that the figures of a run depend on, as [`Config::set`] takes them, without `array.`.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("chunk", Bytes(self.chunk).to_string()),
            ("technique", self.technique.name().to_owned()),
            ("timeout", self.timeout.to_string()),
            ("windows", name_of(&WINDOWS, self.windows).to_owned()),
            ("window", self.window.to_string()),
            ("ranges", self.ranges.to_string()),
            ("swap", self.swap.to_string()),
            ("spares", self.spares.to_string()),
            ("rebuild_rate", Bytes(self.rebuild_rate).to_string()),
        ]
    }

    /// Checks that the settings fit a level, and that the names in them exist.
    ///
    /// # Errors
    /// The invalid setting, and what would be valid.
    pub fn check(&self, shape: crate::level::Shape) -> Result<(), ConfigError> {
        if self.technique == Technique::Rails
            && shape != (crate::level::Shape { kind: crate::level::Kind::Raid1, members: 2 })
        {
            let problem = format!(
                "\"rails\" has a drive to read and a drive to write, and {shape} is not that; valid is raid1:2"
            );
            return Err(ConfigError { key: "array.technique".to_owned(), problem });
        }
        if self.spares > 0 && (self.technique == Technique::Rails || shape.level().tolerates() == 0) {
            let problem = format!(
                "a spare is rebuilt from what others have, and {shape} with {} has nothing to rebuild from; valid is 0",
                self.technique.name()
            );
            return Err(ConfigError { key: "array.spares".to_owned(), problem });
        }
        let is_plain = matches!(self.technique, Technique::Base | Technique::Harmonia);
        if shape.level().tolerates() == 0 && !is_plain {
            let problem = format!(
                "{:?} evades busy drives by redundancy, and {shape} has none; valid are base and harmonia, or another level",
                self.technique.name()
            );
            return Err(ConfigError { key: "array.technique".to_owned(), problem });
        }
        Ok(())
    }

    /// The mode of windows that the technique means.
    pub fn window_mode(&self) -> WindowMode {
        match (self.windows, self.technique) {
            (WindowMode::Auto, Technique::TeaFa | Technique::Harmonia) => WindowMode::Static,
            (WindowMode::Auto, _) => WindowMode::None,
            (mode, _) => mode,
        }
    }
}

fn bytes(value: &str) -> Option<u64> {
    value.parse::<Bytes>().ok().map(|Bytes(bytes)| bytes)
}

fn span(value: &str) -> Option<Span> {
    if value == "0" { Some(Span::ZERO) } else { value.parse().ok() }
}

fn named<T: Copy>(all: &[(&str, T)], value: &str) -> Option<T> {
    all.iter().find(|(name, _)| *name == value).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(all: &[(&'static str, T)], value: T) -> &'static str {
    all.iter().find(|(_, one)| *one == value).map_or("", |(name, _)| name)
}

fn names<T>(all: &[(&str, T)]) -> String {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    format!("valid are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_errors_say_what_is_valid() {
        let mut config = Config::default();
        for change in ["array.chunk=64KiB", "array.technique=teafa", "array.window=100ms", "array.ranges=4"] {
            config.set(change).unwrap();
        }
        assert_eq!((config.chunk, config.technique, config.window), (65_536, Technique::TeaFa, Span::from_ms(100)));
        assert_eq!((config.ranges, config.window_mode()), (4, WindowMode::Static));
        let mut again = Config::default();
        config.settings().iter().for_each(|(key, value)| again.set(&format!("array.{key}={value}")).unwrap());
        assert_eq!(again, config);
        for (change, problem) in [
            ("array.chunk=big", "a size such as 4KiB"),
            ("array.technique=tea3", "proactive, tea1"),
            ("array.windows=often", "auto, none, static, dynamic"),
            ("array.stripe=3", "valid are array.chunk"),
            ("array.ranges=0", "from 1"),
            ("array.window=1us", "from 1ms to 3600s is, such as 100ms, and 0"),
            ("array.window=3601s", "from 1ms to 3600s"),
            ("array.window=1min", "from 1ms to 3600s"),
            ("array.swap=0", "10s"),
            ("array.swap=1ns", "1ms or more"),
            ("array.spares=9", "from 0 to 8"),
            ("array.chunk", "KEY=VALUE"),
        ] {
            let error = config.clone().set(change).unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("array."), "{error}");
        }
        assert!(Config::KEYS.iter().all(|(key, _)| Config::is_key(key)) && !Config::is_key("ftl.gc=1"));
    }
}
