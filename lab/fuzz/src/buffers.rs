//! Buffers and batches of pages in chains of pieces, mostly valid: a random script would not build one.

use nandscape_drive::HostMem;
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::lss::{Head, LIST, PAGE};
use nandscape_wire_nvme::pieces::{Entry, head};
use nandscape_wire_nvme::vendor::{BATCHED_READ, LSS_FLUSH};
use zerocopy::IntoBytes;

use crate::input::Input;

/// Pages that scripts use.
const LPIDS: usize = 24;

/// The data of an I/O command that is a flush or a batch, with its entry made to fit; `None` for other commands.
pub(crate) fn of(entry: &mut SubmissionEntry, input: &mut Input<'_>) -> Option<HostMem> {
    match entry.opcode {
        opcode if opcode == LSS_FLUSH.0 => Some(flush(entry, input)),
        opcode if opcode == BATCHED_READ.0 => Some(batch(entry, input)),
        _ => None,
    }
}

fn flush(entry: &mut SubmissionEntry, input: &mut Input<'_>) -> HostMem {
    let count = 1 + input.below(24);
    let mut offset = (size_of::<Head>() + count * size_of::<Entry>()) as u32;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let (lpid, shape) = (input.below(LPIDS) as u64, input.byte());
        let bytes = match shape >> 4 {
            0 => 0,
            1..12 => u32::from(shape) * 37,
            _ => input.number32() & 0xffff,
        };
        let piece = Entry::of(lpid, offset, bytes, shape & 1 != 0);
        // One field in 16 is arbitrary.
        entries.push(match input.byte() {
            0..4 => Entry { lpid: input.number().into(), ..piece },
            4..8 => Entry { offset: input.number32().into(), ..piece },
            8..16 => Entry { kind_bytes: input.number32().into(), ..piece },
            _ => piece,
        });
        offset = offset.saturating_add(bytes);
    }
    let mut data = [head(count as u32).as_bytes(), entries.as_bytes()].concat();
    if let (0, at) = (input.byte() & 15, input.below(size_of::<Head>())) {
        data[at] ^= input.byte();
    }
    data.resize((offset as usize).min(1 << 20).next_multiple_of(PAGE), 0x5a);
    entry.cdw10 = ((data.len() / PAGE) as u32 - 1).into();
    HostMem::from_bytes(&data)
}

fn batch(entry: &mut SubmissionEntry, input: &mut Input<'_>) -> HostMem {
    let (count, pages) = (1 + input.below(LPIDS), 1 + input.below(20));
    let list: Vec<u8> = (0..count).flat_map(|_| (input.below(LPIDS) as u64).to_le_bytes()).collect();
    let mem = HostMem::zeroed(LIST + pages * PAGE);
    mem.write(0, &list);
    (entry.cdw10, entry.cdw11) = ((count as u32 - 1).into(), (pages as u32).into());
    mem
}
