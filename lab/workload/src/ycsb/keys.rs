//! The table `[[ycsb]]` of a workload file.

use nandscape_sim::units::{Bytes, Ratio};
use serde::Deserialize;

use super::{Choice, Mix, Phase, Ycsb};
use crate::keys::{read, shown, within};
use crate::words::Share;

/// The keys as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    pub(crate) name: Option<String>,
    pub(crate) workload: Option<String>,
    read: Option<f64>,
    update: Option<f64>,
    insert: Option<f64>,
    scan: Option<f64>,
    read_modify_write: Option<f64>,
    distribution: Option<String>,
    phase: Option<String>,
    threads: Option<u32>,
    records: Option<u64>,
    record_size: Option<String>,
    page_size: Option<String>,
    load_factor: Option<String>,
    size: Option<String>,
    cache: Option<String>,
    max_scan: Option<u64>,
    sync: Option<bool>,
}

impl Keys {
    /// The load that they describe.
    ///
    /// # Errors
    /// The invalid key, with valid values.
    pub(crate) fn spec(&self) -> Result<Ycsb, String> {
        let (mix, choice) = self.mix()?;
        let bytes = |key: &str, text: &Option<String>, default: u64, least: u64| {
            within(key, read(key, text.as_ref(), Bytes(default))?.0, least, 1 << 50)
        };
        let page_size = bytes("page_size", &self.page_size, 4_096, 512)?;
        if page_size % 512 != 0 {
            return Err(format!("page_size = {} is not a multiple of 512B", Bytes(page_size)));
        }
        let Ratio(load_factor) = read("load_factor", self.load_factor.as_ref(), Ratio(0.8))?;
        if load_factor <= 0.0 || load_factor > 1.0 {
            return Err(format!("load_factor = {} is out of range; above 0% up to 100% is valid", shown(&load_factor)));
        }
        Ok(Ycsb {
            mix,
            choice: read("distribution", self.distribution.as_ref(), choice)?,
            phase: match self.phase.as_deref() {
                None | Some("run") => Phase::Run,
                Some("load") => Phase::Load,
                Some(other) => return Err(format!("phase: \"{other}\" is not a phase: load or run")),
            },
            threads: within("threads", self.threads.unwrap_or(16), 1, 65_536)?,
            records: self.records.map(|records| within("records", records, 1, 1 << 50)).transpose()?,
            record_size: bytes("record_size", &self.record_size, 1_024, 1)?,
            page_size,
            load_factor,
            size: read("size", self.size.as_ref(), Share::Of(0.5))?,
            cache: bytes("cache", &self.cache, 0, 0)?,
            max_scan: within("max_scan", self.max_scan.unwrap_or(100), 1, 1_000_000)?,
            sync: self.sync.unwrap_or(false),
        })
    }

    /// A core workload, or individual shares.
    fn mix(&self) -> Result<(Mix, Choice), String> {
        let own = [self.read, self.update, self.insert, self.scan, self.read_modify_write];
        match &self.workload {
            Some(_) if own.iter().any(Option::is_some) => {
                Err("give workload, or shares of read, update, insert, scan and read_modify_write, not both".to_owned())
            }
            Some(name) => {
                let found = Mix::CORE.iter().find(|(core, _, _)| core.eq_ignore_ascii_case(name));
                let found =
                    found.ok_or_else(|| format!("workload: \"{name}\" is not a core workload: a, b, c, d, e or f"))?;
                Ok((found.1, found.2))
            }
            None => {
                let [read, update, insert, scan, read_modify_write] = own.map(|share| share.unwrap_or(0.0));
                let mix = Mix { read, update, insert, scan, read_modify_write };
                mix.check()?;
                Ok((mix, Choice::Zipfian))
            }
        }
    }
}
