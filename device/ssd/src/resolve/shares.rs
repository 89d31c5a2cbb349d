//! The dies that each part of a drive owns: those of whole channels, or some of the dies of channels shared with other parts.
//! Each die belongs to exactly one part.

use super::bounds::{need, wrong};
use super::{ResolvedPart, Result};
use crate::keys::{GeometryKeys, PartKeys, ProfileKeys};
use crate::values::{Channels, MediaKind};

/// The channels and dies of a part.
#[derive(Clone)]
pub(super) struct Share {
    pub(super) keys: PartKeys,
    /// Its channels, in ascending order.
    pub(super) channels: Vec<u32>,
    /// Its dies of each of them, in ascending order; `None` is all.
    pub(super) dies: Option<Vec<u32>>,
}

impl Share {
    /// The number of its dies, on a drive with `all` dies per channel; the number of its channels, if all parts own whole
    /// channels.
    pub(super) fn weight(&self, all: Option<u32>) -> u64 {
        let of_channel = all.map_or(1, |all| self.dies.as_ref().map_or(u64::from(all), |dies| dies.len() as u64));
        self.channels.len() as u64 * of_channel
    }

    fn has(&self, channel: u32, die: u32) -> bool {
        self.channels.contains(&channel) && self.dies.as_ref().is_none_or(|dies| dies.contains(&die))
    }

    /// Its channels and dies, for messages.
    pub(super) fn named(&self) -> String {
        let channels = Channels(self.channels.clone());
        match &self.dies {
            None => format!("channels {channels}"),
            Some(dies) => format!("channels {channels}, dies {}", Channels(dies.clone())),
        }
    }
}

/// The parts by their lowest channel and die; each die must belong to exactly one. Also returns the dies per channel if some
/// part owns only some dies.
pub(super) fn in_order(given: &[PartKeys], drive: &ProfileKeys) -> Result<(Vec<Share>, Option<u32>)> {
    let GeometryKeys { channels, dies_per_channel, .. } = &drive.geometry;
    let all = need("geometry.channels", channels)?;
    let mut shares = Vec::new();
    for keys in given {
        let channels = need("ftl.parts.channels", &keys.channels)?.0.0;
        let dies = keys.dies.as_ref().map(|dies| dies.0.0.clone());
        shares.push(Share { keys: keys.clone(), channels, dies });
    }
    shares.sort_by_key(|share| (share.channels[0], share.dies.as_ref().map_or(0, |dies| dies[0])));
    let dies = match shares.iter().any(|share| share.dies.is_some()) {
        true => Some(need("geometry.dies_per_channel", dies_per_channel)?),
        false => None,
    };
    for channel in 0..all {
        for die in 0..dies.unwrap_or(1) {
            check_owner(&shares, channel, die, dies.is_some())?;
        }
    }
    check_beyond(
        "ftl.parts.channels",
        "channel",
        "geometry.channels",
        all,
        shares.iter().flat_map(|share| &share.channels),
    )?;
    if let Some(dies) = dies {
        let owned = shares.iter().filter_map(|share| share.dies.as_ref()).flatten();
        check_beyond("ftl.parts.dies", "die", "geometry.dies_per_channel", dies, owned)?;
        check_shared(&shares)?;
    }
    match shares.len() {
        0 | 1 => wrong("ftl.parts", "has one part, which is the whole drive; give two or more, or none"),
        _ => Ok((shares, dies)),
    }
}

fn check_owner(shares: &[Share], channel: u32, die: u32, by_dies: bool) -> Result<()> {
    let owners = shares.iter().filter(|share| share.has(channel, die)).count();
    let problem = match owners {
        1 => return Ok(()),
        0 => "belongs to no part",
        _ => "belongs to several parts",
    };
    match by_dies {
        true => wrong("ftl.parts.dies", format!("die {die} of channel {channel} {problem}; each belongs to one")),
        false => wrong("ftl.parts.channels", format!("channel {channel} {problem}; each belongs to one")),
    }
}

fn check_beyond<'a>(
    key: &str,
    what: &str,
    count: &str,
    all: u32,
    mut owned: impl Iterator<Item = &'a u32>,
) -> Result<()> {
    match owned.find(|number| **number >= all) {
        Some(number) => {
            wrong(key, format!("{what} {number} is not there; {count} is {all}, so {what}s go to {}", all - 1))
        }
        None => Ok(()),
    }
}

/// Checks that no part that shares a channel is memory.
fn check_shared(shares: &[Share]) -> Result<()> {
    let is_ram = |share: &&Share| share.keys.media.is_some_and(|media| media.0.0 == MediaKind::Ram);
    for share in shares.iter().filter(is_ram) {
        let others = shares.iter().filter(|other| !std::ptr::eq(*other, share));
        let mut on_channel = others.filter(|other| meet(&share.channels, &other.channels));
        if let Some(other) = on_channel.next() {
            let (own, other) = (share.named(), other.named());
            let problem = format!("\"ram\" needs channels of its own: that of {own} shares some with that of {other}");
            return wrong("ftl.parts.media", problem);
        }
    }
    Ok(())
}

/// Checks that parts on the same channel use the same rate.
pub(super) fn check_rates(parts: &[ResolvedPart]) -> Result<()> {
    for (index, part) in parts.iter().enumerate() {
        let on_channel = parts[..index].iter().filter(|other| meet(&part.channels, &other.channels));
        let mut differ = on_channel.filter(|other| other.drive.timing.bus != part.drive.timing.bus);
        if let Some(other) = differ.next() {
            let problem = format!("differs between \"{}\" and \"{}\", which share a channel", other.name, part.name);
            return wrong("ftl.parts.timing.bus", problem);
        }
    }
    Ok(())
}

fn meet(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|channel| other.contains(channel))
}
