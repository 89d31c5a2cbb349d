//! LBA formats: data and metadata of a logical block, the place of the metadata, and protection information in it (NVM 1.4.1,
//! 5.3).
//!
//! Left out: guards of 32 and 64 bits and storage tags, which no format has.

use nandscape_device_ftl_core::address::{METADATA, SECTOR};
use nandscape_wire_nvme::Status;

/// Bytes of protection information with 16 bits of guard.
pub(crate) const PROTECTION_BYTES: u32 = 8;

/// The bytes of a logical block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LbaFormat {
    pub(crate) data: u32,
    pub(crate) metadata: u32,
}

/// The formats by index. A drive that keeps no metadata has the first [`PLAIN_FORMATS`].
const LBA_FORMATS: [LbaFormat; 5] = [
    LbaFormat { data: 512, metadata: 0 },
    LbaFormat { data: 4_096, metadata: 0 },
    LbaFormat { data: 512, metadata: 8 },
    LbaFormat { data: 4_096, metadata: 8 },
    LbaFormat { data: 4_096, metadata: 64 },
];

/// Formats without metadata.
const PLAIN_FORMATS: usize = 2;

// The metadata of a block divides evenly among its sectors.
const _: () = {
    let mut index = 0;
    while index < LBA_FORMATS.len() {
        let LbaFormat { data, metadata } = LBA_FORMATS[index];
        let sectors = data / SECTOR;
        assert!(metadata.is_multiple_of(sectors) && metadata <= sectors * METADATA);
        assert!((metadata == 0) == (index < PLAIN_FORMATS) && (metadata == 0 || metadata >= PROTECTION_BYTES));
        index += 1;
    }
};

/// The formats of a drive.
pub(crate) fn lba_formats(keeps_metadata: bool) -> &'static [LbaFormat] {
    if keeps_metadata { &LBA_FORMATS } else { &LBA_FORMATS[..PLAIN_FORMATS] }
}

/// How a namespace is formatted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Format {
    /// Its LBA format.
    pub(crate) index: u8,
    /// Metadata follows the data of each block in the host's memory, instead of lying in a separate buffer.
    pub(crate) is_extended: bool,
    pub(crate) protection: Option<Protection>,
    /// Its pages are chains of pieces, and it has no blocks for hosts.
    pub(crate) has_pieces: bool,
}

/// Protection information.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Protection {
    pub(crate) kind: ProtectionType,
    /// Protection information is the first bytes of the metadata, instead of the last.
    pub(crate) is_first: bool,
}

/// The meaning of a reference tag (NVM 5.3.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ProtectionType {
    /// The low dword of the block's number.
    Type1,
    /// It counts from a value that the command gives.
    Type2,
    /// The controller does not check it.
    Type3,
}

impl Format {
    /// Blocks of 512 or 4,096 bytes without metadata.
    ///
    /// # Panics
    /// If no such format exists.
    pub(crate) fn plain(lba_bytes: u32) -> Format {
        let index = LBA_FORMATS[..PLAIN_FORMATS].iter().position(|format| format.data == lba_bytes);
        let index = index.unwrap_or_else(|| panic!("there is no LBA format of {lba_bytes} bytes"));
        Format { index: index as u8, is_extended: false, protection: None, has_pieces: false }
    }

    /// A format as requested by a host: its index, the place of metadata, the type of protection information (PI or DPS), and
    /// whether that comes first.
    ///
    /// # Errors
    /// Invalid Format.
    pub(crate) fn asked_for(
        formats: &[LbaFormat],
        index: u8,
        is_extended: bool,
        (protection, is_first): (u8, bool),
    ) -> Result<Format, Status> {
        let has_metadata = formats.get(usize::from(index)).ok_or(Status::INVALID_FORMAT)?.metadata > 0;
        let kind = match protection {
            0 => None,
            1 => Some(ProtectionType::Type1),
            2 => Some(ProtectionType::Type2),
            3 => Some(ProtectionType::Type3),
            _ => return Err(Status::INVALID_FORMAT),
        };
        if !has_metadata && (is_extended || kind.is_some()) {
            return Err(Status::INVALID_FORMAT);
        }
        let protection = kind.map(|kind| Protection { kind, is_first });
        Ok(Format { index, is_extended, protection, has_pieces: false })
    }

    pub(crate) fn lba(&self) -> LbaFormat {
        LBA_FORMATS[usize::from(self.index)]
    }

    /// FLBAS of Identify Namespace: bits 3:0 and 6:5 are the index, bit 4 is the place of metadata.
    pub(crate) fn flbas(&self) -> u8 {
        self.index & 0xf | (self.index & 0x30) << 1 | u8::from(self.is_extended) << 4
    }

    /// DPS of Identify Namespace: the type in bits 2:0, and in bit 3 whether protection information comes first.
    pub(crate) fn dps(&self) -> u8 {
        self.protection.map_or(0, |protection| (protection.kind as u8 + 1) | u8::from(protection.is_first) << 3)
    }
}

impl LbaFormat {
    /// Sectors of a block.
    pub(crate) fn sectors(self) -> u32 {
        self.data / SECTOR
    }

    /// Where protection information lies in the metadata.
    pub(crate) fn place_of(self, protection: Protection) -> usize {
        if protection.is_first { 0 } else { (self.metadata - PROTECTION_BYTES) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_reads_in_identify_as_it_was_asked_for() {
        let all = lba_formats(true);
        let format = Format::asked_for(all, 4, true, (3, true)).unwrap();
        assert_eq!((format.flbas(), format.dps(), format.lba().metadata), (0x14, 0b1011, 64));
        let format = Format::asked_for(all, 2, false, (1, false)).unwrap();
        assert_eq!((format.flbas(), format.dps()), (2, 1));
        assert_eq!((Format::plain(4_096).flbas(), Format::plain(512).dps()), (1, 0));
    }

    #[test]
    fn what_a_format_cannot_have_is_refused() {
        let (all, plain) = (lba_formats(true), lba_formats(false));
        for (formats, index, is_extended, protection) in
            [(all, 5, false, 0), (plain, 2, false, 0), (all, 0, true, 0), (all, 1, false, 1), (all, 2, false, 4)]
        {
            let format = Format::asked_for(formats, index, is_extended, (protection, false));
            assert_eq!(format, Err(Status::INVALID_FORMAT), "{index} {is_extended} {protection}");
        }
    }
}
