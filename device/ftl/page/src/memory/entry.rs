//! Entries of the journal, 24 bytes each: kind and number in 8 bytes, the logical unit in 4, a count in 4, sectors in 8.

use nandscape_device_media::durable::JOURNAL_ENTRY;

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    /// Copies of these units with lower numbers are void, and none of their sectors is lost.
    Trim { sequence: u64, lpn: u32, count: u32 },
    /// Copies of these units with lower numbers are void: programs under way when they were deallocated, before the
    /// snapshot.
    Void { sequence: u64, lpn: u32, count: u32 },
    /// These sectors of a unit, a bit each, are lost.
    Lost { sequence: u64, lpn: u32, sectors: u64 },
    /// These sectors are not lost any more if a copy with this number or a higher one exists.
    Found { sequence: u64, lpn: u32, sectors: u64 },
}

const KIND: u32 = 56;

impl Entry {
    pub(super) fn encode(self) -> [u8; JOURNAL_ENTRY] {
        let (kind, sequence, lpn, count, sectors) = match self {
            Entry::Trim { sequence, lpn, count } => (1, sequence, lpn, count, 0),
            Entry::Void { sequence, lpn, count } => (4, sequence, lpn, count, 0),
            Entry::Lost { sequence, lpn, sectors } => (2, sequence, lpn, 0, sectors),
            Entry::Found { sequence, lpn, sectors } => (3, sequence, lpn, 0, sectors),
        };
        let mut bytes = [0; JOURNAL_ENTRY];
        bytes[..8].copy_from_slice(&(sequence | kind << KIND).to_le_bytes());
        bytes[8..12].copy_from_slice(&lpn.to_le_bytes());
        bytes[12..16].copy_from_slice(&count.to_le_bytes());
        bytes[16..].copy_from_slice(&sectors.to_le_bytes());
        bytes
    }

    /// `None` for an entry that this program does not know.
    pub(super) fn decode(bytes: &[u8; JOURNAL_ENTRY]) -> Option<Entry> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let (sequence, lpn) = (word(0) & ((1 << KIND) - 1), half(8));
        match word(0) >> KIND {
            1 => Some(Entry::Trim { sequence, lpn, count: half(12) }),
            4 => Some(Entry::Void { sequence, lpn, count: half(12) }),
            2 => Some(Entry::Lost { sequence, lpn, sectors: word(16) }),
            3 => Some(Entry::Found { sequence, lpn, sectors: word(16) }),
            _ => None,
        }
    }

    pub(super) fn sequence(self) -> u64 {
        match self {
            Entry::Trim { sequence, .. } | Entry::Void { sequence, .. } => sequence,
            Entry::Lost { sequence, .. } | Entry::Found { sequence, .. } => sequence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let (sequence, lpn) = ((1 << 56) - 2, 0xdead_beef);
        for entry in [
            Entry::Trim { sequence, lpn, count: u32::MAX },
            Entry::Void { sequence, lpn, count: 1 },
            Entry::Lost { sequence, lpn, sectors: u64::MAX - 1 },
            Entry::Found { sequence, lpn, sectors: 3 },
        ] {
            assert_eq!((Entry::decode(&entry.encode()), entry.sequence()), (Some(entry), sequence));
        }
        assert_eq!(Entry::decode(&[0; JOURNAL_ENTRY]), None);
    }
}
