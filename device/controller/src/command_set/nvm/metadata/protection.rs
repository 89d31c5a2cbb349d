//! Protection information: guard, application tag and reference tag of a block (NVM 5.3).
//!
//! Left out: guards of 32 and 64 bits, and storage tags.

use crc_fast::{CrcAlgorithm, Digest};
use nandscape_wire_nvme::io::{Cdw12, Prinfo, ProtectionInformation};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::namespace::{Format, PROTECTION_BYTES, Protection, ProtectionType};

/// An application tag that disables the checks of a block.
const NO_APPLICATION_TAG: u16 = u16::MAX;
/// The same for a reference tag of type 3, which must have both values.
const NO_REFERENCE_TAG: u32 = u32::MAX;

/// The guard of any number of zeros.
const GUARD_OF_ZEROS: u16 = 0;

/// The protection information fields of a command.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Tags {
    pub(super) prinfo: Prinfo,
    /// Initial Logical Block Reference Tag, or the one that is expected (ILBRT, EILBRT).
    pub(super) reference: u32,
    /// Application Tag, or the one that is expected (LBAT, ELBAT).
    pub(super) application: u16,
    /// The bits of the application tag that are compared (LBATM, ELBATM).
    pub(super) mask: u16,
}

impl Tags {
    /// The fields of a command of one range of blocks.
    pub(super) fn of(entry: &SubmissionEntry) -> Tags {
        Tags::with(entry, Prinfo(Cdw12::of(entry).prinfo()))
    }

    /// The fields in CDW14 and CDW15, with the given PRINFO.
    pub(super) fn with(entry: &SubmissionEntry, prinfo: Prinfo) -> Tags {
        let tags = entry.cdw15.get();
        Tags { prinfo, reference: entry.cdw14.get(), application: tags as u16, mask: (tags >> 16) as u16 }
    }

    /// Checks that the fields fit the blocks from `slba`: with type 1, a checked reference tag must be that of its block;
    /// with type 3, none may be checked.
    ///
    /// # Errors
    /// Invalid Protection Information.
    pub(super) fn fit(&self, format: &Format, slba: u64) -> Result<(), Status> {
        let Some(protection) = format.protection else { return Ok(()) };
        let fits = match protection.kind {
            _ if !self.prinfo.checks_reference_tag() => true,
            ProtectionType::Type1 => self.reference == slba as u32,
            ProtectionType::Type2 => true,
            ProtectionType::Type3 => false,
        };
        if fits { Ok(()) } else { Err(Status::INVALID_PROTECTION.final_()) }
    }

    /// Whether the controller inserts protection information into a write, and strips it from a read.
    pub(super) fn acts(&self, format: &Format) -> bool {
        self.prinfo.action() && format.protection.is_some()
    }

    /// Whether the host sees no metadata, because all of it is protection information that the controller inserts and strips.
    pub(super) fn strips(&self, format: &Format) -> bool {
        self.acts(format) && format.lba().metadata == PROTECTION_BYTES
    }

    /// The reference tag of the block `index` blocks after the first.
    fn reference_at(&self, kind: ProtectionType, index: u32) -> u32 {
        if kind == ProtectionType::Type3 { self.reference } else { self.reference.wrapping_add(index) }
    }

    /// Inserts protection information into the metadata of a block.
    ///
    /// # Panics
    /// When the format has none.
    pub(super) fn insert(&self, format: &Format, index: u32, data: &[u8], metadata: &mut [u8]) {
        let protection = format.protection.expect("it is inserted where there is some");
        let guard = guard(data, &metadata[..format.lba().place_of(protection)]);
        self.insert_with(format, protection, (index, guard), metadata);
    }

    /// The same for a block of zeros. Its guard is not computed: a Write Zeroes may have many such blocks.
    ///
    /// # Panics
    /// When the format has none.
    pub(super) fn insert_into_zeros(&self, format: &Format, index: u32, metadata: &mut [u8]) {
        let protection = format.protection.expect("it is inserted where there is some");
        self.insert_with(format, protection, (index, GUARD_OF_ZEROS), metadata);
    }

    fn insert_with(&self, format: &Format, protection: Protection, (index, guard): (u32, u16), metadata: &mut [u8]) {
        let place = format.lba().place_of(protection);
        let information = ProtectionInformation {
            guard: guard.into(),
            application_tag: self.application.into(),
            reference_tag: self.reference_at(protection.kind, index).into(),
        };
        metadata[place..place + size_of::<ProtectionInformation>()].copy_from_slice(information.as_bytes());
    }

    /// Checks the protection information of a block, as selected by the command.
    ///
    /// # Errors
    /// End-to-end Guard, Application Tag, or Reference Tag Check Error.
    pub(super) fn check(&self, format: &Format, index: u32, data: &[u8], metadata: &[u8]) -> Result<(), Status> {
        let Some(protection) = format.protection else { return Ok(()) };
        let place = format.lba().place_of(protection);
        let (found, _) = ProtectionInformation::read_from_prefix(&metadata[place..]).expect("there is room");
        let (application, reference) = (found.application_tag.get(), found.reference_tag.get());
        let is_off = application == NO_APPLICATION_TAG
            && (protection.kind != ProtectionType::Type3 || reference == NO_REFERENCE_TAG);
        let prinfo = self.prinfo;
        match () {
            () if is_off => Ok(()),
            () if prinfo.checks_guard() && found.guard.get() != guard(data, &metadata[..place]) => {
                Err(Status::GUARD_CHECK)
            }
            () if prinfo.checks_application_tag() && (application ^ self.application) & self.mask != 0 => {
                Err(Status::APPLICATION_TAG_CHECK)
            }
            () if prinfo.checks_reference_tag() && reference != self.reference_at(protection.kind, index) => {
                Err(Status::REFERENCE_TAG_CHECK)
            }
            () => Ok(()),
        }
    }
}

/// The CRC-16 of T10 DIF over a block's data and the metadata before its protection information.
fn guard(data: &[u8], metadata: &[u8]) -> u16 {
    let mut digest = Digest::new(CrcAlgorithm::Crc16T10Dif);
    digest.update(data);
    digest.update(metadata);
    digest.finalize() as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::lba_formats;

    fn format(index: u8, kind: u8, is_first: bool) -> Format {
        Format::asked_for(lba_formats(true), index, true, (kind, is_first)).unwrap()
    }

    fn tags(prinfo: u8) -> Tags {
        Tags { prinfo: Prinfo(prinfo), reference: 7, application: 0x1234, mask: 0xff00 }
    }

    /// Base values: the CRC's check value, and 32 bytes of FFh from the tables of T10.
    #[test]
    fn the_guard_is_that_of_t10() {
        assert_eq!(guard(b"123456789", &[]), 0xd0db);
        assert_eq!(guard(b"12345", b"6789"), 0xd0db);
    }

    #[test]
    fn blocks_of_zeros_need_no_crc() {
        for (index, kind, first) in [(2, 1, false), (3, 2, true), (4, 1, true), (4, 2, false), (4, 3, false)] {
            let format = format(index, kind, first);
            let (data, mut computed) = (vec![0; format.lba().data as usize], vec![0; format.lba().metadata as usize]);
            let mut known = computed.clone();
            tags(0).insert(&format, 3, &data, &mut computed);
            tags(0).insert_into_zeros(&format, 3, &mut known);
            assert_eq!(known, computed, "{format:?}");
        }
    }

    #[test]
    fn what_was_inserted_passes_and_each_field_is_checked() {
        for (index, kind, first) in [(2, 1, false), (3, 2, true), (4, 1, true), (4, 2, false), (4, 3, false)] {
            let format = format(index, kind, first);
            let mut metadata = vec![9; format.lba().metadata as usize];
            let data = vec![5; format.lba().data as usize];
            tags(0).insert(&format, 3, &data, &mut metadata);
            let place = format.lba().place_of(format.protection.unwrap());
            let check = |tags: Tags, metadata: &[u8]| tags.check(&format, 3, &data, metadata);
            assert_eq!(check(tags(0b111), &metadata), Ok(()), "{format:?}");
            let altered = |at: usize| {
                let mut altered = metadata.clone();
                altered[place + at] ^= 1;
                altered
            };
            assert_eq!(check(tags(0b100), &altered(1)), Err(Status::GUARD_CHECK));
            assert_eq!(check(tags(0b010), &altered(2)), Err(Status::APPLICATION_TAG_CHECK));
            assert_eq!(check(tags(0b010), &altered(3)), Ok(()), "it is masked");
            assert_eq!(check(tags(0b001), &altered(7)), Err(Status::REFERENCE_TAG_CHECK));
            assert_eq!(check(tags(0), &altered(1)), Ok(()), "nothing is asked for");
            if place > 0 {
                let mut before = metadata.clone();
                before[0] ^= 1;
                assert_eq!(check(tags(0b100), &before), Err(Status::GUARD_CHECK), "the guard covers it");
            }
        }
    }

    #[test]
    fn escape_values_switch_the_checks_off() {
        let data = vec![0; 512];
        let blank = |application: u16, reference: u32| {
            [&[1, 2][..], &application.to_be_bytes(), &reference.to_be_bytes()].concat()
        };
        for (kind, application, reference, passes) in [
            (1, 0xffff, 0, true),
            (2, 0xffff, 0, true),
            (3, 0xffff, 0, false),
            (3, 0xffff, u32::MAX, true),
            (1, 0xfffe, u32::MAX, false),
        ] {
            let checked = tags(0b100).check(&format(2, kind, false), 0, &data, &blank(application, reference));
            assert_eq!(checked.is_ok(), passes, "type {kind}, {application:x}, {reference:x}");
        }
    }

    #[test]
    fn fields_that_do_not_fit_are_refused() {
        let invalid = Err(Status::INVALID_PROTECTION.final_());
        assert_eq!(tags(1).fit(&format(2, 1, false), 0x1_0000_0007), Ok(()));
        assert_eq!(tags(1).fit(&format(2, 1, false), 8), invalid);
        assert_eq!(tags(6).fit(&format(2, 1, false), 8), Ok(()), "it is not checked");
        assert_eq!(tags(1).fit(&format(2, 2, false), 8), Ok(()));
        assert_eq!(tags(1).fit(&format(2, 3, false), 7), invalid);
        assert_eq!(tags(1).fit(&Format::plain(512), 8), Ok(()));
    }
}
