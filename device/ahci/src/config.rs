//! The settings of a controller, and the keys by which users give them.

use nandscape_sim::units::{Bytes, Rate};

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Command slots of each port.
    pub slots: u32,
    /// Data rate to the host, in each direction.
    pub uplink: Rate,
    /// Bytes of consecutive addresses on one drive, where the drives are used as one (RAID-0).
    pub chunk: u64,
    /// Its layer name in breakdowns.
    pub layer: &'static str,
}

impl Default for Config {
    /// Shin's system (thesis 2017, 3.4): 32 tags a port, 1.5 GB/s to the host, a stripe of 128 KiB.
    fn default() -> Config {
        let uplink = "1.5GB/s".parse().expect("a rate");
        Config { slots: Config::MOST_SLOTS, uplink, chunk: 128 << 10, layer: "ahci" }
    }
}

/// Why a setting is not valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    key: String,
    problem: String,
}

impl Config {
    /// The most slots of a port (AHCI 1.3.1, CAP.NCS).
    pub const MOST_SLOTS: u32 = 32;
    /// The most ports of a controller (AHCI 1.3.1, CAP.NP).
    pub const MOST_PORTS: usize = 32;

    /// The keys, with a line on each.
    pub const KEYS: [(&str, &str); 3] = [
        ("ahci.slots", "commands that each port takes at a time, 1 to 32"),
        ("ahci.uplink", "data rate to the host that all ports share, such as 1.5GB/s or unlimited"),
        ("ahci.chunk", "bytes of consecutive addresses on one drive, such as 128KiB"),
    ];

    /// Changes a setting: `ahci.slots=32`.
    ///
    /// # Errors
    /// The problem, and what would be valid.
    pub fn set(&mut self, change: &str) -> Result<(), ConfigError> {
        let bad = |key: &str, problem: String| ConfigError { key: key.to_owned(), problem };
        let Some((key, value)) = change.split_once('=') else {
            return Err(bad(change, "the value is missing; KEY=VALUE is valid".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |valid: &str| bad(key, format!("{value:?} is not valid; valid is {valid}"));
        match key {
            "ahci.slots" => {
                let slots = value.parse().ok().filter(|slots| (1..=Config::MOST_SLOTS).contains(slots));
                self.slots = slots.ok_or_else(|| wrong("a whole number from 1 to 32"))?;
            }
            "ahci.uplink" => {
                self.uplink = value.parse().map_err(|_| wrong("a rate such as 1.5GB/s, or unlimited"))?;
            }
            "ahci.chunk" => {
                let bytes = value.parse::<Bytes>().ok().map(|bytes| bytes.0);
                let is_valid = |bytes: &u64| bytes.is_power_of_two() && (4 << 10..=64 << 20).contains(bytes);
                self.chunk = bytes.filter(is_valid).ok_or_else(|| wrong("a power of two from 4KiB to 64MiB"))?;
            }
            _ => {
                let all: Vec<&str> = Config::KEYS.iter().map(|(key, _)| *key).collect();
                return Err(bad(key, format!("no such key exists; valid are {}", all.join(", "))));
            }
        }
        Ok(())
    }

    /// The settings with their values, by key.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("slots", self.slots.to_string()),
            ("uplink", self.uplink.to_string()),
            ("chunk", Bytes(self.chunk).to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_set_and_read_as_it_is_shown() {
        let mut config = Config::default();
        for change in ["ahci.slots=16", "ahci.uplink=2GB/s", "ahci.chunk=64KiB"] {
            config.set(change).unwrap();
        }
        let mut again = Config::default();
        config.settings().iter().for_each(|(key, value)| again.set(&format!("ahci.{key}={value}")).unwrap());
        assert_eq!((again.slots, again.chunk), (16, 64 << 10));
        assert_eq!(again, config);
    }

    #[test]
    fn what_is_not_valid_is_refused_with_what_is() {
        for (change, problem) in [
            ("ahci.slots=33", "from 1 to 32"),
            ("ahci.slots=0", "from 1 to 32"),
            ("ahci.uplink=fast", "1.5GB/s, or unlimited"),
            ("ahci.chunk=3KiB", "from 4KiB to 64MiB"),
            ("ahci.colour=red", "valid are ahci.slots"),
            ("ahci.slots", "KEY=VALUE"),
        ] {
            let error = Config::default().set(change).unwrap_err().to_string();
            assert!(error.starts_with("ahci.") && error.contains(problem), "{error}");
        }
    }
}
