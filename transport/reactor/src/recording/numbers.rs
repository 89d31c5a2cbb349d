//! Numbers and commands in a record: small ones take little room.
//!
//! A number is in groups of seven bits, the lowest first, each but the last with its highest bit set (LEB128). A
//! signed number is first folded, so that small negative ones are short too. A command is its difference from the
//! last one with its opcode: the opcode, a bit for each of its 16 dwords that differs, and the differences.

use nandscape_wire_nvme::SubmissionEntry;
use zerocopy::{FromBytes, IntoBytes};

/// Dwords of a command.
const DWORDS: usize = 16;

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number; `None` when there is none, or it has more than 64 bits.
pub(super) fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Takes a number that fits a smaller type.
pub(super) fn take_as<T: TryFrom<u64>>(rest: &mut &[u8]) -> Option<T> {
    T::try_from(take(rest)?).ok()
}

/// Appends a signed number.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Takes a signed number.
pub(super) fn take_signed(rest: &mut &[u8]) -> Option<i64> {
    let folded = take(rest)?;
    Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
}

/// The last command of each opcode.
pub(super) struct Commands(Box<[[u32; DWORDS]]>);

impl Default for Commands {
    fn default() -> Commands {
        Commands(vec![[0; DWORDS]; 256].into())
    }
}

impl Commands {
    /// Appends a command.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, entry: &SubmissionEntry) {
        let last = &mut self.0[usize::from(entry.opcode)];
        let dwords = dwords(entry);
        let differs = (0..DWORDS).fold(0, |mask, index| mask | u64::from(dwords[index] != last[index]) << index);
        out.push(entry.opcode);
        put(out, differs);
        for (dword, before) in dwords.iter().zip(last.iter()).filter(|(dword, before)| dword != before) {
            put_signed(out, i64::from(dword.wrapping_sub(*before) as i32));
        }
        *last = dwords;
    }

    /// Takes a command.
    pub(super) fn take(&mut self, rest: &mut &[u8]) -> Option<SubmissionEntry> {
        let (opcode, after) = rest.split_first()?;
        *rest = after;
        let last = &mut self.0[usize::from(*opcode)];
        let differs: u16 = take_as(rest)?;
        for (index, dword) in last.iter_mut().enumerate() {
            if differs >> index & 1 != 0 {
                *dword = dword.wrapping_add(i32::try_from(take_signed(rest)?).ok()? as u32);
            }
        }
        let mut entry = entry(last);
        entry.opcode = *opcode;
        Some(entry)
    }
}

/// The dwords of a command. In the first, the command identifier is lowest, because it counts up, and the opcode is
/// left out.
fn dwords(entry: &SubmissionEntry) -> [u32; DWORDS] {
    let mut dwords = [0; DWORDS];
    for (dword, bytes) in dwords.iter_mut().zip(entry.as_bytes().chunks_exact(4)) {
        *dword = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    dwords[0] = (dwords[0] & !0xff).rotate_left(16);
    dwords
}

fn entry(dwords: &[u32; DWORDS]) -> SubmissionEntry {
    let mut bytes = [0; 4 * DWORDS];
    for (index, (dword, bytes)) in dwords.iter().zip(bytes.chunks_exact_mut(4)).enumerate() {
        let dword = if index == 0 { dword.rotate_right(16) } else { *dword };
        bytes.copy_from_slice(&dword.to_le_bytes());
    }
    SubmissionEntry::read_from_bytes(&bytes).expect("64 bytes are a command")
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Seed;
    use nandscape_wire_nvme::IoOpcode;

    use super::*;

    #[test]
    fn numbers_are_read_back_and_malformed_ones_are_not() {
        let mut bytes = Vec::new();
        let all = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        let all: Vec<u64> = all.collect();
        all.iter().for_each(|number| put(&mut bytes, *number));
        all.iter().for_each(|number| put_signed(&mut bytes, *number as i64));
        let mut rest = &bytes[..];
        assert!(all.iter().all(|number| take(&mut rest) == Some(*number)));
        assert!(all.iter().all(|number| take_signed(&mut rest) == Some(*number as i64)) && rest.is_empty());
        assert_eq!(take(&mut &[0x80; 3][..]), None, "it has no end");
        assert_eq!(take(&mut &[0xff; 10][..]), None, "it has 70 bits");
        assert_eq!(take_as::<u16>(&mut &[0xff, 0xff, 4][..]), None, "it has 17 bits");
    }

    #[test]
    fn commands_are_read_back_and_similar_ones_are_short() {
        let mut rng = Seed::new(3).rng();
        let (mut writer, mut reader) = (Commands::default(), Commands::default());
        for round in 0..1_000u64 {
            let mut any = [0; 64];
            any.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
            let random = SubmissionEntry::read_from_bytes(&any).unwrap();
            let mut next = SubmissionEntry::blocks(IoOpcode::READ, 1, 8 * round, 8);
            next.cid = (round as u16).into();
            for (entry, most) in [(random, 4 + 16 * 5), (next, 4 + 16 * 5), (next, 2)] {
                let mut bytes = Vec::new();
                writer.put(&mut bytes, &entry);
                assert!(bytes.len() <= most, "{} bytes", bytes.len());
                let mut rest = &bytes[..];
                assert_eq!(reader.take(&mut rest), Some(entry));
                assert!(rest.is_empty());
            }
        }
        assert_eq!(reader.take(&mut &[2, 1][..]), None, "a difference is missing");
    }
}
