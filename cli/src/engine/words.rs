//! Values of words: policies, placements, schedulers, tenants, small items.

use nandscape_apps_memcached_engine::policy::POLICIES;
use nandscape_apps_memcached_engine::{MOST_SMALL, Placement};
use nandscape_apps_memcached_run::Tenant;
use nandscape_host_block::scheduler::SchedulerKind;
use nandscape_sim::units::Bytes;

/// A policy's name.
pub(crate) fn known(name: &str) -> Result<String, String> {
    match POLICIES.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("{} are valid", POLICIES.join(", "))),
    }
}

/// The placement unless another is chosen.
pub(super) const COPIES: &str = "copies";

/// A placement by its name.
pub(crate) fn placement(name: &str) -> Result<Placement, String> {
    let found = Placement::ALL.into_iter().find(|(known, _)| *known == name);
    found
        .map(|(_, placement)| placement)
        .ok_or_else(|| format!("{} are valid", Placement::ALL.map(|(name, _)| name).join(" and ")))
}

/// The name of a run without a block layer.
pub(super) const NO_LAYER: &str = "none";

/// The name of a scheduler.
pub(super) fn scheduler(name: &str) -> Result<String, String> {
    let names: Vec<&str> = SchedulerKind::ALL.iter().map(|(name, _)| *name).collect();
    match name == NO_LAYER || names.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("{NO_LAYER}, {} are valid", names.join(", "))),
    }
}

/// Readers of a tenant, and their class.
pub(super) fn tenant(text: &str) -> Result<Tenant, String> {
    let parsed = text.split_once(':').and_then(|(readers, class)| {
        let (readers, class) = (readers.parse().ok()?, class.parse().ok()?);
        ((1..=4_096).contains(&readers) && class <= 15).then_some(Tenant { readers, class })
    });
    parsed.ok_or_else(|| "READERS:CLASS, with 1 to 4096 readers and a class from 0 to 15, is valid".to_owned())
}

/// The limit of small items.
pub(crate) fn small_items(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let most = MOST_SMALL as u64;
    if bytes.0 > most { Err(format!("{bytes} is too much; 0 to {most} are valid")) } else { Ok(bytes) }
}
