//! The drives of an engine: their profile, what a policy needs of them, and which numbers of them are valid.

use nandscape_apps_memcached_engine::policy::{Need, POLICIES, policy};
use nandscape_apps_memcached_engine::{PARITY_DRIVES, Placement};
use nandscape_device_ssd::{BUILTIN, Resolved};
use nandscape_lab_run::MemberLayers;
use nandscape_lab_run::chain::{Named, check_over, is_over_chunks};
use nandscape_sim::units::Bytes;

use crate::failure::Failure;
use crate::sim::{FaultWord, resolve, resolve_with};
use crate::store_drive::conventional;

/// What built-in drives have unless it is set: as much garbage collection as a run of seconds can show.
pub(super) const DEFAULTS: [(&str, &str); 8] = [
    ("capacity", "128MiB"),
    ("geometry.channels", "4"),
    ("geometry.dies_per_channel", "1"),
    ("geometry.planes_per_die", "2"),
    ("geometry.pages_per_block", "64"),
    ("lba_size", "4KiB"),
    ("buffer.mode", "capacitor"),
    ("buffer.size", "2MiB"),
];

/// Checks that a number of drives can have a placement under a policy.
pub(crate) fn check_drives(drives: u64, placement: Placement, name: &str) -> Result<(), Failure> {
    let replicas = policy(name).map_or(1, |policy| policy.replicas());
    let wrong = |text: String| Err(Failure::Input(anyhow::anyhow!("{text}")));
    match placement {
        Placement::Copies if !drives.is_multiple_of(2) => {
            wrong("--drives: the engine has pairs of an even and an odd drive; 2, 4, 6 and so on are valid".to_owned())
        }
        Placement::Parity if replicas == 1 => wrong(format!(
            "--policy {name}: it has no second drive to read; with --placement parity any other policy is valid"
        )),
        Placement::Parity if policy(name).is_some_and(|policy| policy.needs() == Need::Zones) => wrong(format!(
            "--placement parity: a zone takes each block once, so a row that a crash leaves unfinished could not be written again; with --policy {name} copies are valid"
        )),
        Placement::Parity if !placement.fits(drives as usize, replicas) => {
            let [least, most] = PARITY_DRIVES;
            wrong(format!("--drives {drives}: with --placement parity {least} to {most} are valid"))
        }
        _ => Ok(()),
    }
}

/// Checks that the FTLs of a drive have the same capacity, and that the loss of a drive with several loses no item, unless there is only one
/// drive.
pub(crate) fn check_parts(
    (drive, drives): (&Resolved, usize),
    (name, placement): (&str, Placement),
) -> Result<(), Failure> {
    let sizes: Vec<u64> = drive.parts().iter().map(|part| part.drive.capacity()).collect();
    let is_mirrored = policy(name).is_some_and(|policy| policy.replicas() > 1);
    let wrong = |text: String| Err(Failure::Input(anyhow::anyhow!("{text}")));
    if let Some(size) = sizes.iter().find(|size| **size != sizes[0]) {
        return wrong(format!(
            "drive {}: its FTLs have {} and {}; parts of the same capacity are valid",
            drive.name,
            Bytes(sizes[0]),
            Bytes(*size)
        ));
    }
    let parts = sizes.len();
    match placement {
        _ if parts < 2 || drives == 1 => Ok(()),
        Placement::Parity => wrong(format!(
            "--placement parity: each drive has {parts} FTLs, and parity repairs the loss of one; --drives 1, or copies, is valid"
        )),
        Placement::Copies if is_mirrored && !drives.is_multiple_of(2) => wrong(format!(
            "--drives {drives}: each drive has {parts} FTLs, whose copies belong on another drive; an even number, or 1, is valid"
        )),
        Placement::Copies => Ok(()),
    }
}

/// The policy that has windows.
pub(super) const WINDOWS: &str = "predictable_latency";

/// What a policy needs of its drives, as keys of a profile.
fn needed(policy: &str) -> &'static [(&'static str, &'static str)] {
    match policy {
        WINDOWS => &[("controller.predictable_latency", "true")],
        "fdp" => &[("ftl.fdp.handles", "2")],
        "zoned" => &[
            ("ftl.kind", "zone"),
            ("ftl.zone.mapping", "dies"),
            ("ftl.zone.width", "4"),
            ("controller.max_transfer", "1MiB"),
        ],
        _ => &[],
    }
}

/// The profile of the drives of an engine, below layers: defaults of built-in ones, what the policy needs, and changes.
pub(crate) fn drive_of(
    name: &str,
    set: &[String],
    (defaults, policy): (&[(&str, &str)], &str),
    (layers, faults): (&[Named], &[FaultWord]),
) -> Result<Resolved, Failure> {
    // A profile file has its own values, a drive that has zones its own zones, and chunks below the FTL of a host none of these keys.
    let is_built_in = BUILTIN.iter().any(|builtin| builtin.name == name) && !is_over_chunks(layers);
    let has_zones = is_built_in && resolve(name, &[])?.zone().is_some();
    let needed = if has_zones { &[] } else { needed(policy) };
    let is_set = |key: &str| set.iter().any(|change| change.split('=').next().unwrap_or_default().trim() == key);
    // Of a key that both give, the defaults count.
    let defaults = needed.iter().chain(defaults).filter(|(key, _)| is_built_in && !is_set(key));
    let defaults = defaults.map(|(key, value)| format!("{key}={value}"));
    let changes: Vec<String> = defaults.chain(set.iter().cloned()).collect();
    let drive = resolve_with(name, &changes, faults)?;
    let wants_zones = self::policy(policy).is_some_and(|policy| policy.needs() == Need::Zones);
    let wrong = |problem: String| Err(Failure::Input(anyhow::anyhow!("drive {}: {problem}", drive.name)));
    match (drive.zone().is_some(), wants_zones) {
        (true, true) => Ok(drive),
        (false, false) if layers.is_empty() => conventional(drive),
        (false, false) => match check_over(layers, &drive) {
            Ok(()) => Ok(drive),
            Err(problem) => Err(Failure::Input(anyhow::anyhow!("--over: {problem}"))),
        },
        (true, false) => wrong(format!(
            "ftl.kind = \"zone\" has zones, and --policy {policy} writes blocks in any order; --policy zoned, or a drive without zones, is valid"
        )),
        (false, true) => wrong(format!(
            "ftl.kind = \"{}\" has no zones, and --policy {policy} needs them; --set ftl.kind=zone is valid",
            drive.kind()
        )),
    }
}

/// Checks that what a policy needs of drives passes the layers over them.
pub(super) fn check_needs(name: &str, over: &MemberLayers) -> Result<(), Failure> {
    let needs = policy(name).map_or(Need::Nothing, |policy| policy.needs());
    let passes = match needs {
        Need::Nothing => Ok(()),
        Need::Zones => over.check_zones(),
        Need::Orders | Need::Windows | Need::Placement(_) => over.check_orders(),
    };
    let is_free = |name: &&str| policy(name).is_some_and(|policy| policy.needs() == Need::Nothing);
    passes.map_err(|problem| {
        let others: Vec<&str> = POLICIES.into_iter().filter(is_free).collect();
        Failure::Input(anyhow::anyhow!("--policy {name}: {problem}, and so are the policies {}", others.join(", ")))
    })
}
