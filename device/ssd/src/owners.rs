//! Which FTL owns which channel. The creation of a drive with several FTLs writes an identifier into the first block of each
//! channel. Every start reads the identifiers; they must agree with each other and with the profile.
//!
//! Left out: a start without the parts in a profile. The identifiers name the owner of a channel, but not the settings of its
//! FTL.

use std::io;

use nandscape_device_media::Media;
use nandscape_device_media::identifier::{Found, Owner};
use nandscape_sim::Seed;

use crate::resolve::ResolvedPart;
use crate::values::{Channels, PartStore};

/// Writes the identifiers of a new drive, and those of parts in memory of a file-backed drive. Reads all.
///
/// # Errors
/// The first channel whose identifier is missing or damaged, or differs from the profile.
pub(crate) fn settle(parts: &[ResolvedPart], media: &[Media], seed: Seed) -> io::Result<()> {
    let is_kept = |part: &ResolvedPart| part.store == PartStore::Drive;
    let is_new = parts.iter().zip(media).all(|(part, media)| !is_kept(part) || media.is_blank());
    for (number, (part, media)) in (0..).zip(parts.iter().zip(media)) {
        if is_new || !is_kept(part) {
            media.write_identifiers(&owner(part, instance(seed.child("instance").nth(number))));
        }
    }
    let mut instances = Vec::new();
    for (part, media) in parts.iter().zip(media) {
        let instance = check(part, media).map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))?;
        if instances.contains(&instance) {
            let problem = format!("part \"{}\" has the identifier of another part's FTL", part.name);
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        instances.push(instance);
    }
    Ok(())
}

fn owner(part: &ResolvedPart, instance: [u8; 16]) -> Owner {
    Owner {
        kind: part.drive.kind(),
        name: part.name.clone(),
        instance,
        channels: part.channels.clone(),
        dies: part.dies.clone().unwrap_or_default(),
    }
}

/// A UUID of version 8 (RFC 9562), with the bits of the seed.
fn instance(seed: Seed) -> [u8; 16] {
    let halves = [seed.child("high").value(), seed.child("low").value()];
    let mut bytes = [0; 16];
    bytes.chunks_exact_mut(8).zip(halves).for_each(|(half, value)| half.copy_from_slice(&value.to_be_bytes()));
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// Checks the identifiers of a part's channels. Returns the instance of the owning FTL.
fn check(part: &ResolvedPart, media: &Media) -> Result<[u8; 16], String> {
    let mut instance = None;
    for (number, found) in media.channels_of_drive().iter().zip(media.identifiers()) {
        let (channel, found) = match found {
            Found::Identifier { channel, owner } => (channel, owner),
            Found::Nothing => {
                return Err(format!(
                    "channel {number} has no identifier: its first block is erased, and others hold data"
                ));
            }
            Found::Damaged(why) => return Err(format!("the identifier of channel {number} cannot be read: {why}")),
        };
        if channel != *number {
            return Err(format!("channel {number} holds the identifier of channel {channel}"));
        }
        let expected = owner(part, *instance.get_or_insert(found.instance));
        if found != expected {
            return Err(format!(
                "channel {number} belongs to {}, and in the profile to {}",
                say(&found),
                say(&expected)
            ));
        }
    }
    instance.ok_or_else(|| format!("part \"{}\" has no channels", part.name))
}

fn say(owner: &Owner) -> String {
    let Owner { kind, name, instance, channels, dies } = owner;
    let dies = if dies.is_empty() { String::new() } else { format!(", dies {}", Channels(dies.clone())) };
    let instance: String = instance.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{name}\", an FTL of kind \"{kind}\" with channels {}{dies} ({instance})", Channels(channels.clone()))
}
