//! Notes for the user on the changes that a capacity below the profile's own makes, and their consequences.

use nandscape_device_media::geometry::Counts;

use crate::sizing::MIN_BLOCKS;

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
