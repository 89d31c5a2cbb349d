//! The identifier in the first block of each channel: the FTL that owns the channel, and the FTL's other channels. It is
//! written at the creation of a drive with several FTLs, and read at each start. FTLs treat the block as bad.
//!
//! | bytes | what |
//! |---|---|
//! | 7:0 | "NANDFTL1" |
//! | 11:8 | CRC-32 of the rest, from byte 12 on |
//! | 13:12 | version: 1; 2 where the FTL owns some of the dies of its channels |
//! | 15:14 | the number of this channel in the drive |
//! | 31:16 | UUID of the FTL's instance |
//! | 47:32 | kind of the FTL, ASCII, padded with zeros |
//! | 79:48 | name of the FTL's part, UTF-8, padded with zeros |
//! | 81:80 | count of channels |
//! | 593:82 | their numbers in the drive, two bytes each |
//! | 595:594 | of version 2: count of dies of each channel |
//! | 1107:596 | of version 2: their numbers in their channels, two bytes each |
//!
//! It is in the first two pages of the block, so a damaged page has a copy. All numbers are little-endian. Reading it takes
//! no drive time, because the drive's clock begins later.
//!
//! Left out: moving a channel from one FTL to another.

use std::rc::Rc;

use crate::geometry::{BlockId, PlaneId};
use crate::image::{Oob, PageImage};
use crate::media::Media;

const MAGIC: &[u8; 8] = b"NANDFTL1";
const VERSION: u16 = 1;
/// The version of an identifier with dies.
const WITH_DIES: u16 = 2;
/// Bytes of kind and name.
const KIND: usize = 16;
const NAME: usize = 32;
/// The most channels of a drive.
const CHANNELS: usize = 256;
const BYTES: usize = 82 + 2 * CHANNELS;
/// Maximum of dies of a shared channel.
pub const MOST_DIES: usize = 256;
const BYTES_WITH_DIES: usize = BYTES + 2 + 2 * MOST_DIES;
/// Pages that hold it.
const COPIES: u32 = 2;

/// The longest name of a part, in bytes.
pub const LONGEST_PART_NAME: usize = NAME;

/// The FTL that owns a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Its kind.
    pub kind: String,
    /// The name of its part.
    pub name: String,
    /// UUID of the instance.
    pub instance: [u8; 16],
    /// The numbers of its channels in the drive.
    pub channels: Vec<u32>,
    /// The numbers of its dies in each of these channels; empty if it owns all.
    pub dies: Vec<u32>,
}

/// The content of the first block of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing: it is erased.
    Nothing,
    /// An identifier.
    Identifier {
        /// The number in the drive of the channel that it was written for.
        channel: u32,
        /// Who owns the channel.
        owner: Owner,
    },
    /// Something else, or a damaged identifier: why it cannot be read.
    Damaged(&'static str),
}

impl Owner {
    fn encode(&self, channel: u32) -> Vec<u8> {
        let (version, len) = if self.dies.is_empty() { (VERSION, BYTES) } else { (WITH_DIES, BYTES_WITH_DIES) };
        let mut bytes = vec![0; len];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[12..14].copy_from_slice(&version.to_le_bytes());
        bytes[14..16].copy_from_slice(&(channel as u16).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.instance);
        bytes[32..][..self.kind.len()].copy_from_slice(self.kind.as_bytes());
        bytes[48..][..self.name.len()].copy_from_slice(self.name.as_bytes());
        let put = |at: &mut [u8], numbers: &[u32]| {
            at[..2].copy_from_slice(&(numbers.len() as u16).to_le_bytes());
            for (place, number) in at[2..].chunks_exact_mut(2).zip(numbers) {
                place.copy_from_slice(&(*number as u16).to_le_bytes());
            }
        };
        put(&mut bytes[80..BYTES], &self.channels);
        if version == WITH_DIES {
            put(&mut bytes[BYTES..], &self.dies);
        }
        let sum = crc32fast::hash(&bytes[12..]);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The channel of an identifier, and its owner.
    fn decode(bytes: &[u8]) -> Result<(u32, Owner), &'static str> {
        if !bytes.starts_with(MAGIC) {
            return Err("it does not begin with NANDFTL1");
        }
        let has_dies = bytes.get(12..14) == Some(&WITH_DIES.to_le_bytes()[..]);
        let len = if has_dies { BYTES_WITH_DIES } else { BYTES };
        let Some(bytes) = bytes.get(..len) else { return Err("it is cut short") };
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if bytes[8..12] != crc32fast::hash(&bytes[12..]).to_le_bytes() {
            return Err("its checksum is wrong");
        }
        if ![VERSION, WITH_DIES].contains(&u16_at(12)) {
            return Err("its version is neither 1 nor 2, which this program knows");
        }
        let text = |from: usize, len: usize| {
            let bytes = bytes[from..][..len].split(|byte| *byte == 0).next().unwrap_or_default();
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "its text is none")
        };
        let count = usize::from(u16_at(80));
        if count == 0 || count > CHANNELS {
            return Err("its count of channels is impossible");
        }
        let numbers = |at: usize, count: usize| (0..count).map(|index| u16_at(at + 2 * index).into()).collect();
        let dies = if has_dies { usize::from(u16_at(BYTES)) } else { 0 };
        if has_dies != (1..=MOST_DIES).contains(&dies) {
            return Err("its count of dies is impossible");
        }
        let (channels, dies) = (numbers(82, count), numbers(BYTES + 2, dies));
        let instance = bytes[16..32].try_into().expect("it has the length");
        let owner = Owner { kind: text(32, KIND)?, name: text(48, NAME)?, instance, channels, dies };
        Ok((u16_at(14).into(), owner))
    }
}

impl Media {
    /// The block that holds the identifier of a channel, counted in this flash: the channel's first.
    fn identifier_block(&self, channel: u32) -> BlockId {
        let counts = self.geometry.counts();
        let plane = PlaneId(channel * counts.dies_per_channel * counts.planes_per_die);
        self.geometry.blocks_of(plane).next().expect("a plane has blocks")
    }

    /// Whether a block holds an identifier, or will.
    pub fn holds_identifier(&self, block: BlockId) -> bool {
        let channel = self.geometry.channel_of(self.geometry.plane_of(block));
        self.has_identifiers() && self.identifier_block(channel) == block
    }

    /// Writes the identifiers of all channels that have none.
    ///
    /// # Panics
    /// When a name is too long.
    pub fn write_identifiers(&self, owner: &Owner) {
        assert!(owner.kind.len() <= KIND && owner.name.len() <= NAME, "names were checked when the profile was read");
        for channel in 0..self.geometry.channels() {
            let block = self.identifier_block(channel);
            if self.pages_programmed(block) > 0 {
                continue;
            }
            let mut unit = owner.encode(self.channels_of_drive()[channel as usize]);
            unit.resize(self.geometry.unit_size() as usize, 0);
            for page in 0..COPIES {
                let mut image = PageImage::metadata();
                let oob = Oob { tag: u32::MAX, ..Oob::default() };
                image.push_with_oob(oob, Some(Rc::from(&*unit)));
                for _ in 1..self.geometry.units_per_page() {
                    image.push_with_oob(oob, None);
                }
                self.plant_image(self.geometry.page_at(block, page), &image);
            }
        }
    }

    /// The content of the first block of each channel.
    pub fn identifiers(&self) -> Vec<Found> {
        (0..self.geometry.channels()).map(|channel| self.identifier_of(channel)).collect()
    }

    fn identifier_of(&self, channel: u32) -> Found {
        let block = self.identifier_block(channel);
        let programmed = self.pages_programmed(block).min(COPIES);
        let mut found = Found::Nothing;
        for page in (0..programmed).map(|page| self.geometry.page_at(block, page)) {
            if !self.is_readable(page) || self.check_sound(page).is_err() {
                found = Found::Damaged("its page cannot be read");
                continue;
            }
            let data = self.data(self.geometry.unit_at(page, 0));
            match Owner::decode(data.as_deref().unwrap_or_default()) {
                Ok((channel, owner)) => return Found::Identifier { channel, owner },
                Err(why) => found = Found::Damaged(why),
            }
        }
        found
    }

    /// Whether only blocks of identifiers are programmed.
    pub fn is_blank(&self) -> bool {
        let mut blocks = (0..self.geometry.blocks()).map(BlockId);
        blocks.all(|block| self.pages_programmed(block) == 0 || self.holds_identifier(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner {
            kind: "ox_block".to_owned(),
            name: "archive ä".to_owned(),
            instance: [7; 16],
            channels: (0..256).filter(|channel| channel % 3 != 1).collect(),
            dies: Vec::new(),
        }
    }

    fn owner_of_dies() -> Owner {
        Owner { channels: vec![0, 1, 7], dies: (0..256).filter(|die| die % 5 != 2).collect(), ..owner() }
    }

    #[test]
    fn an_identifier_is_read_as_it_was_written() {
        assert_eq!(Owner::decode(&owner().encode(200)), Ok((200, owner())));
        assert_eq!(Owner::decode(&owner_of_dies().encode(7)), Ok((7, owner_of_dies())));
    }

    #[test]
    fn every_damaged_bit_is_noticed() {
        for good in [owner().encode(3), owner_of_dies().encode(3)] {
            for bit in 0..good.len() * 8 {
                let mut bytes = good.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(Owner::decode(&bytes).is_err(), "bit {bit}");
            }
            for len in [100, good.len() - 1] {
                assert_eq!(Owner::decode(&good[..len]), Err("it is cut short"));
            }
        }
    }
}
