//! The head and the directory of a state file. The file holds one drive (version 1), or all drives under layers and the contents
//! of the layers (version 2). It begins with a head of 64 bytes, with the offset of the directory. The directory, JSON at the end
//! of the file, has the profile, the history, and the offset of each section. Sections begin at multiples of 4 KiB and have a
//! checksum for each MiB. All sections are little-endian but the large tables, which have the byte order of the machine; the head
//! records it.
//!
//! | bytes of the head | what |
//! |---|---|
//! | 0..8 | `NANDSTAT` |
//! | 8..12 | version of the format |
//! | 12..16 | 0x01020304 in the byte order of the machine |
//! | 16..24, 24..32 | offset and bytes of the directory |
//! | 32..40 | checksum of the directory |
//! | 40..48 | checksum of the 40 bytes before |
//!
//! Checksums are XXH3 with 64 bits.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::history::History;
use crate::chain::Chain;

/// The version of the format, of a drive without layers.
pub(super) const OF_DRIVE: u32 = 1;
/// The same of drives under layers.
pub(super) const OF_LAYERS: u32 = 2;
/// Bytes of the head.
pub(super) const HEAD: usize = 64;
/// Sections begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 4_096;
/// Bytes that have a checksum together.
pub(super) const CHUNK: usize = 1 << 20;
/// Bytes of a directory at most.
const MOST: u64 = 1 << 30;

/// The first bytes of a file.
pub(super) const MAGIC: &[u8; 8] = b"NANDSTAT";
const ORDER: u32 = 0x0102_0304;

/// See the file.
#[derive(Serialize, Deserialize)]
pub(super) struct Directory {
    pub(super) history: History,
    /// The drive, or the first one.
    #[serde(flatten)]
    pub(super) drive: DriveEntry,
    /// The other drives under layers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) others: Vec<DriveEntry>,
    /// The layers over the drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) layers: Option<LayersEntry>,
}

/// Layers over drives.
#[derive(Serialize, Deserialize)]
pub(super) struct LayersEntry {
    /// The layers as text, the lowest first.
    pub(super) chain: Chain,
    /// The contents of each working layer, in the order in which layers are opened; empty for layers that start anew.
    pub(super) held: Vec<Section>,
}

/// A drive.
#[derive(Serialize, Deserialize)]
pub(super) struct DriveEntry {
    /// The name of the profile.
    pub(super) profile_name: String,
    /// The resolved profile, as TOML.
    pub(super) profile: String,
    /// Notes on choices in which it differs from the written profile.
    pub(super) notes: Vec<String>,
    /// Whether the host's data is in it.
    pub(super) keeps_data: bool,
    /// Whether data was written to the drive, or planted.
    pub(super) is_filled: bool,
    pub(super) parts: Vec<PartEntry>,
}

/// An FTL with its flash.
#[derive(Serialize, Deserialize)]
pub(super) struct PartEntry {
    /// Channels, dies of a channel, planes of a die, blocks of a plane, pages of a block, bytes of a page, bytes of a unit.
    pub(super) geometry: [u32; 7],
    pub(super) tags: Section,
    pub(super) cells: Section,
    pub(super) data: Section,
    /// Map and tables of an FTL that has them in memory.
    pub(super) page: Option<(Section, Section)>,
}

/// Where a section lies.
#[derive(Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The checksum of each chunk; null where all of it is zero and it is not in the file.
    pub(super) checksums: Vec<Option<u64>>,
}

impl Section {
    /// The end of the section, if it is sound.
    pub(super) fn end(&self) -> Option<u64> {
        let chunks = self.bytes.div_ceil(CHUNK as u64);
        let is_sound = self.offset.is_multiple_of(ALIGNMENT) && self.checksums.len() as u64 == chunks;
        self.offset.checked_add(self.bytes).filter(|_| is_sound)
    }
}

/// The head of a file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) version: u32,
    /// Where the directory begins, and its bytes.
    pub(super) directory: (u64, u64),
    pub(super) checksum: u64,
}

impl Head {
    pub(super) fn encode(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&ORDER.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.directory.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.directory.1.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.checksum.to_le_bytes());
        let own = xxh3_64(&bytes[..40]);
        bytes[40..48].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Reads it from the first bytes of a file that has `len`.
    pub(super) fn decode(bytes: &[u8], len: u64) -> Result<Head, String> {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes.get(..8) != Some(&MAGIC[..]) {
            return Err("it is no state of a drive: its first bytes are not NANDSTAT; states are what `nandscape sim --save-state` \
                 writes"
                .to_owned());
        }
        if bytes.len() < HEAD {
            return Err(format!("it ends after {} bytes, in its head", bytes.len()));
        }
        let version = half(8);
        if ![OF_DRIVE, OF_LAYERS].contains(&version) {
            return Err(format!(
                "its format has version {version}, and this program knows versions {OF_DRIVE} and {OF_LAYERS}"
            ));
        }
        if bytes[12..16] != ORDER.to_ne_bytes() {
            return Err("it was written on a machine of another byte order, on which it can be used".to_owned());
        }
        if xxh3_64(&bytes[..40]) != long(40) {
            return Err("it is damaged: bytes 0 to 47, its head, have another checksum".to_owned());
        }
        let (at, size) = (long(16), long(24));
        match at.checked_add(size) {
            Some(end) if end <= len && size <= MOST => Ok(Head { version, directory: (at, size), checksum: long(32) }),
            _ => {
                Err(format!("it is cut short: it has {len} bytes, and its directory is {size} bytes from byte {at} on"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_byte_of_a_head_is_noticed() {
        let head = Head { version: OF_DRIVE, directory: (4_096, 100), checksum: 7 };
        let good = head.encode();
        assert_eq!(Head::decode(&good, 5_000), Ok(head));
        for at in 0..48 {
            let mut bytes = good;
            bytes[at] ^= 1;
            assert!(Head::decode(&bytes, 5_000).is_err(), "byte {at}");
        }
        for (len, expected) in [(0, "no state"), (7, "no state"), (20, "in its head"), (63, "in its head")] {
            let problem = Head::decode(&good[..len], len as u64).unwrap_err();
            assert!(problem.contains(expected), "{len}: {problem}");
        }
        assert!(Head::decode(&good, 4_195).unwrap_err().contains("cut short"));
    }
}
