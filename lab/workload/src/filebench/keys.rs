//! The table `[[filebench]]` of a workload file.

use nandscape_sim::Span;
use nandscape_sim::units::Bytes;
use serde::Deserialize;

use super::{Filebench, Personality};
use crate::keys::{read, within};
use crate::words::Share;

/// The keys as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    pub(crate) name: Option<String>,
    pub(crate) personality: String,
    threads: Option<u32>,
    files: Option<u64>,
    mean_size: Option<String>,
    io_size: Option<String>,
    append_size: Option<String>,
    dir_width: Option<u64>,
    size: Option<String>,
    cache: Option<String>,
    journal: Option<bool>,
    commit_interval: Option<String>,
    fill: Option<bool>,
    think: Option<String>,
    rounds_per_s: Option<f64>,
    rate: Option<String>,
}

impl Keys {
    /// The load that they describe.
    ///
    /// # Errors
    /// The invalid key, with valid values.
    pub(crate) fn spec(&self) -> Result<Filebench, String> {
        let personality: Personality = self.personality.parse().map_err(|wrong| format!("personality: {wrong}"))?;
        let figures = personality.figures();
        let bytes = |key: &str, text: &Option<String>, default: u64| {
            Ok::<u64, String>(read(key, text.as_ref(), Bytes(default))?.0)
        };
        let least = |key: &str, value: u64| within(key, value, 1, 1 << 50);
        if self.rate.is_some() && personality != Personality::Videoserver {
            return Err(format!("rate: {} has none; videoserver has", personality.name()));
        }
        let rate = bytes("rate", &self.rate, figures.rate.unwrap_or(0))?;
        let rounds_per_s = within("rounds_per_s", self.rounds_per_s.unwrap_or(figures.rounds_per_s), 0.0, 1e9)?;
        if rounds_per_s > 0.0 && matches!(personality, Personality::Videoserver | Personality::Oltp) {
            return Err(format!("rounds_per_s: the threads of {} have no rounds", personality.name()));
        }
        Ok(Filebench {
            personality,
            threads: within("threads", self.threads.unwrap_or(figures.threads), 1, 65_536)?,
            files: self.files.map(|files| within("files", files, 2, u64::from(u32::MAX) - 1)).transpose()?,
            mean_size: match &self.mean_size {
                Some(_) => Some(least("mean_size", bytes("mean_size", &self.mean_size, 0)?)?),
                None => None,
            },
            io_size: least("io_size", bytes("io_size", &self.io_size, figures.io_size)?)?,
            append_size: least("append_size", bytes("append_size", &self.append_size, figures.append_size)?)?,
            dir_width: least("dir_width", self.dir_width.unwrap_or(figures.dir_width))?,
            size: read("size", self.size.as_ref(), Share::Of(0.8))?,
            cache: bytes("cache", &self.cache, 0)?,
            journal: self.journal.unwrap_or(true),
            commit_interval: read("commit_interval", self.commit_interval.as_ref(), Span::from_s(5))?
                .max(Span::from_us(1)),
            fill: self.fill.unwrap_or(false),
            think: read("think", self.think.as_ref(), Span::ZERO)?,
            rounds_per_s: (rounds_per_s > 0.0).then_some(rounds_per_s),
            rate: (rate > 0).then_some(rate),
        })
    }
}
