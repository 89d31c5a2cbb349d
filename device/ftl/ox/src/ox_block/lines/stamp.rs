//! The content of the out-of-band area of a unit of data, in addition to the logical unit in its tag.
//!
//! | bytes of the area | what |
//! |---|---|
//! | 0 | zero: data of the host |
//! | 1..7 | the number of the write |
//! | 7..11 | sectors that are lost, a bit each |
//! | 11 | the stream and one; zero is no stamp |

use nandscape_device_ftl_core::component::Stream;
use nandscape_device_media::{Oob, OobBytes};

/// A stamp. A copy that a collection makes keeps the number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::ox_block) struct Stamp {
    /// The number of the write: later ones have higher numbers.
    pub(in crate::ox_block) sequence: u64,
    /// Sectors that are lost.
    pub(in crate::ox_block) lost: u32,
    /// The stream whose line it is in.
    pub(in crate::ox_block) stream: Stream,
}

impl Stamp {
    /// Bytes of a stamp with its tag in a list.
    pub(super) const ENTRY: usize = 16;

    /// The area of a unit with this stamp.
    pub(in crate::ox_block) fn area(self, tag: u32) -> Oob {
        let mut bytes = OobBytes::default();
        bytes[1..7].copy_from_slice(&self.sequence.to_le_bytes()[..6]);
        bytes[7..11].copy_from_slice(&self.lost.to_le_bytes());
        bytes[11] = self.stream.0 + 1;
        Oob { tag, bytes }
    }

    /// The stamp in an area; `None` if there is none.
    pub(in crate::ox_block) fn of(area: &Oob) -> Option<Stamp> {
        let bytes = &area.bytes;
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let stream = Stream(bytes[11].checked_sub(1)?);
        Some(Stamp { sequence: number(1..7), lost: number(7..11) as u32, stream })
    }

    /// An entry of a list; an area without a stamp where there is nothing to list.
    pub(super) fn entry(area: Option<&Oob>) -> [u8; Stamp::ENTRY] {
        let mut entry = [0; Stamp::ENTRY];
        if let Some(area) = area {
            entry[..4].copy_from_slice(&area.tag.to_le_bytes());
            entry[4..].copy_from_slice(&area.bytes);
        }
        entry
    }

    /// The area that an entry of a list describes.
    pub(super) fn area_of(entry: &[u8]) -> Oob {
        let tag = u32::from_le_bytes(entry[..4].try_into().expect("4 bytes"));
        Oob { tag, bytes: entry[4..Stamp::ENTRY].try_into().expect("12 bytes") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        for (sequence, lost, stream) in [(1, 0, 0), ((1 << 48) - 1, u32::MAX, 1), (0x1234_5678_9abc, 0x81, 0)] {
            let stamp = Stamp { sequence, lost, stream: Stream(stream) };
            let area = stamp.area(77);
            assert_eq!((Stamp::of(&area), area.tag), (Some(stamp), 77));
            assert_eq!(Stamp::area_of(&Stamp::entry(Some(&area))), area);
        }
        assert_eq!(Stamp::of(&Stamp::area_of(&Stamp::entry(None))), None);
    }
}
