//! Orders for garbage collection as text, for the operator of a running drive: `gc.run=100ms`.
//!
//! | order | effect |
//! |---|---|
//! | `gc.watermarks=LOW-HIGH` | sets both watermarks, in blocks |
//! | `gc.run=TIME` | collects for that time, or up to the high watermark |
//! | `gc.ready_for_read=ask` | asks for reads without internal work in their way; counters tell when the drive is ready |
//!
//! Left out: `changes` of a profile, which only change settings.

use nandscape_device_ftl_core::{Collections, Watermarks};
use nandscape_sim::Span;

use crate::profile::ProfileError;

const WATERMARKS: &str = "gc.watermarks";
const RUN: &str = "gc.run";
const READY: &str = "gc.ready_for_read";

/// Whether a setting is an order.
pub(crate) fn is_key(key: &str) -> bool {
    key.trim().starts_with("gc.")
}

/// Gives an order.
///
/// # Errors
/// The problem, and what would be valid.
pub(crate) fn order(collections: Option<&dyn Collections>, key: &str, value: &str) -> Result<(), ProfileError> {
    let wrong = |problem: String| ProfileError::new(key, problem);
    let Some(collections) = collections else {
        return Err(wrong("is for drives with one FTL, ftl.kind = \"page\", without parity stripes".to_owned()));
    };
    match key {
        RUN => {
            let time: Span = value.parse().map_err(|error| wrong(format!("{error}")))?;
            collections.run(time);
        }
        WATERMARKS => {
            let numbers = value.split_once('-').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
            let (low, high) = numbers.ok_or_else(|| wrong(format!("{value:?}: LOW-HIGH is valid, such as 32-64")))?;
            collections.set_watermarks(Watermarks { low, high }).map_err(|error| wrong(error.to_string()))?;
        }
        READY if value == "ask" => _ = collections.is_ready_for_read(),
        READY => return Err(wrong(format!("{value:?}: ask is valid"))),
        _ => return Err(wrong(format!("is no order; {WATERMARKS}, {RUN} and {READY} are valid"))),
    }
    Ok(())
}

/// The current values of the settings.
pub(crate) fn settings(collections: Option<&dyn Collections>) -> Option<(String, String)> {
    let Watermarks { low, high } = collections?.status().watermarks;
    Some((WATERMARKS.to_owned(), format!("{low}-{high}")))
}
