//! Notes for the user on the changes that another capacity than the profile's own makes, and their consequences.

use nandscape_device_media::geometry::Counts;

use super::Resolved;
use crate::profile::{Profile, Yardstick};
use crate::sizing::{MIN_BLOCKS, Sizing};

/// The difference of over-provisioning that a note is worth, as a share of the other value.
const NOTABLE: f64 = 0.1;

/// The consequence of fewer dies, at the end of the note on them, and the page on both.
const FEWER_DIES: &str = ": less bandwidth, the same latencies under the same load per die (docs/profiles.md#capacity)";

/// The counts that are below the profile's, and the consequence for the figures of the drive.
pub(super) fn notes(profile: &Counts, drive: &Counts) -> Vec<String> {
    let mut notes = Vec::new();
    let dies = |counts: &Counts| counts.channels * counts.dies_per_channel;
    if dies(drive) < dies(profile) {
        notes.push(format!("small drive: {} instead of {}{FEWER_DIES}", counted(dies(drive)), dies(profile)));
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

/// Notes the over-provisioning of a drive, where it notably differs from that of the profile at its own size, or from what a profile
/// asks that gives the size itself. Data and the reserve have whole blocks of every plane, so both are larger shares of a small
/// drive. The reserve counts only compared with another reserve: every drive of a kind that collects has one.
pub(super) fn note_over_provisioning(profile: &Profile, drive: &mut Resolved) {
    let (Some(asked), true) = (&drive.keys.ftl.over_provisioning, drive.reserve_blocks() > 0) else { return };
    let is_notable = |actual: f64, other: f64| (actual - other).abs() > NOTABLE * other + f64::EPSILON;
    let asked = asked.0.0;
    let Sizing { over_provisioning, with_reserve, .. } = drive.sizing;
    match profile.yardstick {
        Yardstick::Asked if drive.parts.is_empty() && is_notable(over_provisioning, asked) => {
            drive.notes.push(format!(
                "over-provisioning is {} ({} asked), and {} with the reserve of garbage collection: data and reserve have whole blocks \
                 of every plane",
                percent(over_provisioning),
                percent(asked),
                percent(with_reserve)
            ));
        }
        Yardstick::Profile(..) => {
            let own = profile.at_own_size().and_then(|own| own.resolve().ok());
            if let Some(own) = own.filter(|own| is_notable(with_reserve, own.sizing.with_reserve)) {
                note_spare(&mut drive.notes, with_reserve, own.sizing.with_reserve);
            }
        }
        Yardstick::Asked | Yardstick::Nothing => {}
    }
}

/// Notes the spare flash of a drive next to that of its profile, in one sentence with fewer dies.
fn note_spare(notes: &mut Vec<String>, spare: f64, own: f64) {
    let (size, effect) = if spare > own { ("small", "lower") } else { ("large", "higher") };
    let spare = format!("{} spare flash instead of {}", percent(spare), percent(own));
    let on_page = "write amplification (docs/profiles.md#capacity)";
    match notes.iter_mut().find_map(|note| Some((note.strip_suffix(FEWER_DIES)?.to_owned(), note))) {
        Some((dies, note)) => *note = format!("{dies}, {spare}: less bandwidth, {effect} {on_page}"),
        None => notes.push(format!("{size} drive: {spare}: {effect} {on_page}")),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
