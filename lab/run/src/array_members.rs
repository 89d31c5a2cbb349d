//! Whether drives can be the members of an array.

use nandscape_device_ssd::Resolved;
use nandscape_layers_array::{Config, WindowMode};

/// What the blocks of a drive are in that must be written in order, if they are: it cannot be a member of an array.
pub fn written_in_order(drive: &Resolved) -> Option<&'static str> {
    let runs = drive.lsm().map(|_| "runs");
    let zones = drive.zone().map(|_| "zones");
    runs.or(zones).or(drive.open_channel().map(|_| "chunks"))
}

/// Checks that a member's drive takes the windows of the array.
///
/// # Errors
/// The setting that it does not take, and what would be valid.
pub fn takes_windows(config: &Config, (name, drive): (&str, &Resolved)) -> Result<(), String> {
    let (wanted, has) = (u32::from(config.ranges), drive.window_ranges());
    if !matches!(config.window_mode(), WindowMode::Static | WindowMode::Dynamic) || wanted == 1 || wanted == has {
        return Ok(());
    }
    let valid = match has {
        0 => format!("1 is valid, and {wanted} with ftl.windows.ranges={wanted}"),
        _ => format!("1 and {has} are valid, its ftl.windows.ranges"),
    };
    Err(format!("array.ranges={wanted}: drive {name} has no {wanted} ranges with windows; {valid}"))
}

/// Members by their numbers in a sentence: `member 2 is`, `members 1 and 2 are`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "arrays are served on Linux"))]
pub(crate) fn in_words(members: &[usize]) -> String {
    let numbers: Vec<String> = members.iter().map(usize::to_string).collect();
    match &numbers[..] {
        [] => "no member is".to_owned(),
        [one] => format!("member {one} is"),
        [all @ .., last] => format!("members {} and {last} are", all.join(", ")),
    }
}

/// The name of a drive of a simulated array, by its number; spares follow the members.
pub fn name_of_drive(number: usize) -> String {
    format!("drive-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_in_words() {
        assert_eq!(
            [&[2][..], &[1, 2], &[0, 1, 3]].map(in_words),
            ["member 2 is", "members 1 and 2 are", "members 0, 1 and 3 are"]
        );
    }
}
