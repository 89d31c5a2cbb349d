//! Notes for the user on the changes that another capacity than the profile's own makes, and their consequences.

use nandscape_device_media::geometry::Counts;
use nandscape_sim::units::Bytes;

use super::Resolved;
use crate::profile::{Profile, Yardstick};
use crate::sizing::{MIN_BLOCKS, Sizing};

/// The difference of over-provisioning that a note is worth, as a share of the other value.
const NOTABLE: f64 = 0.1;

/// The counts that are below the profile's, and the consequence for the figures of the drive.
pub(super) fn notes(profile: &Counts, drive: &Counts) -> Vec<String> {
    let mut notes = Vec::new();
    let dies = |counts: &Counts| counts.channels * counts.dies_per_channel;
    if dies(drive) < dies(profile) {
        notes.push(format!(
            "geometry.channels x dies_per_channel is {} x {} instead of {} x {}, so that each plane has {MIN_BLOCKS} blocks or \
             more: bandwidth and IOPS are those of {} instead of {}; latencies under the same load per die stay",
            drive.channels,
            drive.dies_per_channel,
            profile.channels,
            profile.dies_per_channel,
            counted(dies(drive)),
            dies(profile),
        ));
    }
    if drive.pages_per_block < profile.pages_per_block {
        notes.push(format!(
            "WARNING: geometry.pages_per_block is {} instead of {}, so that each plane has {MIN_BLOCKS} blocks or more: an \
             erase takes as long as the profile's and frees less, so garbage collection, wear and tail latencies are not \
             the profile's; give a larger capacity for those",
            drive.pages_per_block, profile.pages_per_block,
        ));
    }
    notes
}

fn counted(dies: u32) -> String {
    if dies == 1 { "1 die".to_owned() } else { format!("{dies} dies") }
}

/// The over-provisioning of a drive, where it notably differs from that of the profile at its own size, or from what a profile
/// asks that gives the size itself. Data and the reserve have whole blocks of every plane, so both are larger shares of a small
/// drive. The reserve counts only compared with another reserve: every drive of a kind that collects has one.
pub(super) fn over_provisioning(profile: &Profile, drive: &Resolved) -> Option<String> {
    if drive.reserve_blocks() == 0 {
        return None;
    }
    let is_notable = |actual: f64, other: f64| (actual - other).abs() > NOTABLE * other + f64::EPSILON;
    let asked = drive.keys.ftl.over_provisioning?.0.0;
    let Sizing { over_provisioning, with_reserve, .. } = drive.sizing;
    let becomes = format!(
        "over-provisioning is {} ({} asked), and {} with the reserve of garbage collection",
        percent(over_provisioning),
        percent(asked),
        percent(with_reserve)
    );
    let why = "data and reserve have whole blocks of every plane";
    match profile.yardstick {
        Yardstick::Asked if drive.parts.is_empty() && is_notable(over_provisioning, asked) => {
            Some(format!("{becomes}: {why}"))
        }
        Yardstick::Profile(..) => {
            let own = profile.at_own_size()?.resolve().ok()?;
            let effect = if with_reserve > own.sizing.with_reserve { "lower" } else { "higher" };
            is_notable(with_reserve, own.sizing.with_reserve).then(|| {
                format!(
                    "{becomes}; the profile at its {} has {} and {}, as {why}: write amplification is {effect} than the profile's",
                    Bytes(own.capacity()),
                    percent(own.sizing.over_provisioning),
                    percent(own.sizing.with_reserve),
                )
            })
        }
        Yardstick::Asked | Yardstick::Nothing => None,
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
