//! Orders for garbage collection as text, for the operator of a running drive: `gc.run=100ms`, or `even:gc.run=100ms` for an FTL of several.
//!
//! | order | effect |
//! |---|---|
//! | `gc.watermarks=LOW-HIGH` | sets both watermarks, in blocks |
//! | `gc.run=TIME` | collects for that time, or up to the high watermark |
//! | `gc.ready_for_read=ask` | asks for reads without internal work in their way; counters tell when the drive is ready |
//!
//! Left out: `changes` of a profile, which only change settings.

use std::cell::Cell;

use nandscape_device_ftl_core::{Collections, Watermarks};
use nandscape_sim::Span;

use crate::part::Part;
use crate::profile::ProfileError;

const WATERMARKS: &str = "gc.watermarks";
const RUN: &str = "gc.run";
const READY: &str = "gc.ready_for_read";

/// The part of an order, if it names one, and its key; `None` of a setting that is no order.
pub(crate) fn split(key: &str) -> Option<(Option<&str>, &str)> {
    let (part, key) = match key.trim().rsplit_once(':') {
        Some((part, key)) => (Some(part), key),
        None => (None, key.trim()),
    };
    key.starts_with("gc.").then_some((part, key))
}

/// What has become of the orders to each part of a drive.
pub(crate) struct Orders {
    /// Whether the last run was accepted.
    ran: Box<[Cell<Option<bool>>]>,
}

impl Orders {
    /// No part of `parts` has had an order yet.
    pub(crate) fn new(parts: usize) -> Orders {
        Orders { ran: (0..parts).map(|_| Cell::new(None)).collect() }
    }

    /// Gives an order to one of the parts, or to all of them.
    ///
    /// # Errors
    /// The problem, and what would be valid.
    pub(crate) fn give(&self, parts: &[Part], order: (Option<&str>, &str), value: &str) -> Result<(), ProfileError> {
        let (name, key) = order;
        let whole = name.map_or_else(|| key.to_owned(), |name| format!("{name}:{key}"));
        let wrong = |problem: String| ProfileError::new(&whole, problem);
        let chosen = parts.iter().zip(&self.ran).filter(|(part, _)| name.is_none_or(|name| part.name() == name));
        let chosen: Vec<_> = chosen.filter(|_| name.is_none() || parts.len() > 1).collect();
        if chosen.is_empty() {
            return Err(wrong(match parts {
                [_] => format!("names a part, and the drive has one FTL; {key} is valid"),
                _ => format!("names no part; PART:{key} is valid, with a part of {}", names(parts)),
            }));
        }
        let Some(chosen) =
            chosen.into_iter().map(|(part, ran)| Some((part.collections()?, ran))).collect::<Option<Vec<_>>>()
        else {
            return Err(wrong("is for FTLs of ftl.kind = \"page\", without parity stripes".to_owned()));
        };
        give(chosen, key, value).map_err(wrong)
    }

    /// The current values of the settings, and whether the last runs were accepted.
    pub(crate) fn settings(&self, parts: &[Part]) -> Vec<(String, String)> {
        let of = |(part, ran): (&Part, &Cell<Option<bool>>)| {
            let Watermarks { low, high } = part.collections()?.status().watermarks;
            let key = |key: &str| if parts.len() > 1 { format!("{}:{key}", part.name()) } else { key.to_owned() };
            let ran = ran.get().map(|ran| (key(RUN), if ran { "accepted" } else { "ignored" }.to_owned()));
            Some([(key(WATERMARKS), format!("{low}-{high}"))].into_iter().chain(ran))
        };
        parts.iter().zip(&self.ran).filter_map(of).flatten().collect()
    }
}

/// Gives an order to all of these.
fn give(to: Vec<(&dyn Collections, &Cell<Option<bool>>)>, key: &str, value: &str) -> Result<(), String> {
    match key {
        RUN => {
            let time: Span = value.parse().map_err(|error| format!("{error}"))?;
            to.iter().for_each(|(collections, ran)| ran.set(Some(collections.run(time))));
        }
        WATERMARKS => {
            let numbers = value.split_once('-').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
            let (low, high) = numbers.ok_or_else(|| format!("{value:?}: LOW-HIGH is valid, such as 32-64"))?;
            for (collections, _) in to {
                collections.set_watermarks(Watermarks { low, high }).map_err(|error| error.to_string())?;
            }
        }
        READY if value == "ask" => to.iter().for_each(|(collections, _)| _ = collections.is_ready_for_read()),
        READY => return Err(format!("{value:?}: ask is valid")),
        _ => return Err(format!("is no order; {WATERMARKS}, {RUN} and {READY} are valid")),
    }
    Ok(())
}

fn names(parts: &[Part]) -> String {
    parts.iter().map(Part::name).collect::<Vec<_>>().join(", ")
}
