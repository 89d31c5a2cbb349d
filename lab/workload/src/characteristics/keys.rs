//! The table `[[characteristics]]` of a workload file.

use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio};
use serde::Deserialize;

use super::{Bursts, Characteristics, SizeSpec};
use crate::distribution::Distribution;
use crate::keys::read;
use crate::words::Share;

/// The keys as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    pub(crate) name: Option<String>,
    reads: String,
    size: Option<String>,
    read_size: Option<String>,
    write_size: Option<String>,
    max_size: Option<String>,
    max_read_size: Option<String>,
    max_write_size: Option<String>,
    align: Option<String>,
    sequential: Option<String>,
    footprint: Option<String>,
    distribution: Option<String>,
    interval: Option<String>,
    per_mega_instruction: Option<f64>,
    instructions_per_s: Option<f64>,
    burst_requests: Option<f64>,
    burst_gap: Option<String>,
    pub(crate) iodepth: Option<u32>,
}

impl Keys {
    /// The characteristics that they describe.
    ///
    /// # Errors
    /// The invalid key, with valid values.
    pub(crate) fn spec(&self) -> Result<Characteristics, String> {
        let Ratio(reads) = read("reads", Some(&self.reads), Ratio(0.0))?;
        let Bytes(align) = read("align", self.align.as_ref(), Bytes(4_096))?;
        let spec = Characteristics {
            reads,
            read_size: self.sizes("read", reads > 0.0)?,
            write_size: self.sizes("write", reads < 1.0)?,
            align,
            sequential: read("sequential", self.sequential.as_ref(), Ratio(0.0))?.0,
            footprint: read("footprint", self.footprint.as_ref(), Share::Of(1.0))?,
            distribution: read("distribution", self.distribution.as_ref(), Distribution::Uniform)?,
            interval_ns: self.interval_ns()?,
            bursts: self.bursts()?,
        };
        spec.check()?;
        Ok(spec)
    }

    /// The sizes of one direction; a direction that never occurs needs none.
    fn sizes(&self, way: &str, comes: bool) -> Result<SizeSpec, String> {
        let (mean, max) = match way {
            "read" => (&self.read_size, &self.max_read_size),
            _ => (&self.write_size, &self.max_write_size),
        };
        let (own_mean, own_max) = (format!("{way}_size"), format!("max_{way}_size"));
        let mean = read(&own_mean, mean.as_ref().or(self.size.as_ref()), Bytes(0))?.0;
        let max = read(&own_max, max.as_ref().or(self.max_size.as_ref()), Bytes(0))?.0;
        match (mean, max) {
            (0, _) if comes => Err(format!("has no {own_mean}, and no size for both directions")),
            // A mean alone is one size.
            (mean, 0) => Ok(SizeSpec { mean, max: mean }),
            (mean, max) => Ok(SizeSpec { mean, max }),
        }
    }

    fn interval_ns(&self) -> Result<Option<f64>, String> {
        match (&self.interval, self.per_mega_instruction, self.instructions_per_s) {
            (None, None, None) => Ok(None),
            (Some(interval), None, None) => Ok(Some(read::<Span>("interval", Some(interval), Span::ZERO)?.ns() as f64)),
            (None, Some(requests), Some(instructions)) if requests > 0.0 && instructions > 0.0 => {
                Ok(Some(1e6 / requests / instructions * 1e9))
            }
            _ => Err("give interval, or per_mega_instruction and instructions_per_s, both above 0".to_owned()),
        }
    }

    fn bursts(&self) -> Result<Option<Bursts>, String> {
        match (self.burst_requests, &self.burst_gap) {
            (None, None) => Ok(None),
            (Some(requests), Some(gap)) => {
                Ok(Some(Bursts { requests, gap: read("burst_gap", Some(gap), Span::ZERO)? }))
            }
            _ => Err("give both burst_requests and burst_gap, or neither".to_owned()),
        }
    }
}
