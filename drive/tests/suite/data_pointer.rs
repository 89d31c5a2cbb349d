//! Data described by PRPs or an SGL: the bytes agree with a flat model, and lists with any error give a status after
//! a bounded number of accesses.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_drive::mem::{DataPointer, Dma};
use nandscape_drive::testing::flat::FlatMemory;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use proptest::prelude::*;
use zerocopy::IntoBytes;

const PAGE: u64 = 4_096;
/// Pages of the host's memory, of which the first is not mapped.
const PAGES: u64 = 64;

/// The host's memory, all zeros.
fn flat() -> Rc<FlatMemory> {
    FlatMemory::new(vec![0; (PAGE * PAGES) as usize])
}

fn mem_of(flat: &Rc<FlatMemory>, entry: &SubmissionEntry) -> HostMem {
    let dma: Rc<dyn Dma> = flat.clone();
    HostMem::over(Rc::new(DataPointer::new(&dma, entry, PAGE as u32).unwrap()))
}

fn with_prps(opcode: IoOpcode, prp1: u64, prp2: u64) -> SubmissionEntry {
    let mut entry = SubmissionEntry::io(opcode, 1);
    (entry.prp1, entry.prp2) = (prp1.into(), prp2.into());
    entry
}

/// The addresses of the bytes of a command's data.
type Addresses = Vec<u64>;

/// Puts a PRP list at `list` for `pages`, which continues in `spare` pages where a page ends.
fn put_list(flat: &FlatMemory, list: u64, pages: &[u64], spare: &mut impl Iterator<Item = u64>) {
    let (mut at, mut rest) = (list, pages);
    loop {
        let room = ((PAGE - at % PAGE) / 8) as usize;
        if rest.len() <= room {
            rest.iter().zip(0u64..).for_each(|(page, index)| flat.write(at + index * 8, &page.to_le_bytes()).unwrap());
            return;
        }
        let (now, later) = rest.split_at(room - 1);
        let next = spare.next().unwrap();
        now.iter()
            .chain([&next])
            .zip(0u64..)
            .for_each(|(page, index)| flat.write(at + index * 8, &page.to_le_bytes()).unwrap());
        (at, rest) = (next, later);
    }
}

/// Data of `len` bytes on pages of the upper half, its first byte at `offset` of a page, and lists in the lower half.
fn prps(
    flat: &FlatMemory,
    opcode: IoOpcode,
    order: &[u64],
    offset: u64,
    len: u64,
    list_at: u64,
) -> (SubmissionEntry, Addresses) {
    let first = (PAGE - offset).min(len);
    let count = 1 + (len - first).div_ceil(PAGE);
    let pages: Vec<u64> = (0..count).map(|n| (32 + order[n as usize % order.len()] % 32) * PAGE).collect();
    let addresses = (0..len).map(|at| pages[((at + offset) / PAGE) as usize] + (at + offset) % PAGE).collect();
    let prp2 = match pages.len() {
        1 => 0xdead_beef,
        2 => pages[1],
        _ => {
            let list = 2 * PAGE + list_at;
            put_list(flat, list, &pages[1..], &mut (3..32).map(|page| page * PAGE));
            list
        }
    };
    (with_prps(opcode, pages[0] + offset, prp2), addresses)
}

/// Descriptors of pieces, in segments of `per_segment` descriptors each.
fn sgl(flat: &FlatMemory, pieces: &[(u64, u32)], per_segment: usize) -> (SglDescriptor, Addresses) {
    let addresses = pieces.iter().flat_map(|(at, len)| *at..*at + u64::from(*len)).collect();
    let blocks: Vec<SglDescriptor> =
        pieces.iter().map(|(at, len)| SglDescriptor::new(SglType::DATA_BLOCK, *at, *len)).collect();
    if let [only] = &*blocks {
        return (*only, addresses);
    }
    // From the last segment to the first: each ends with a descriptor of the next one.
    let mut next: Option<SglDescriptor> = None;
    for (number, chunk) in blocks.chunks(per_segment).enumerate().rev() {
        let at = (2 + number as u64) * PAGE;
        let descriptors: Vec<SglDescriptor> = chunk.iter().copied().chain(next).collect();
        flat.write(at, descriptors.as_bytes()).unwrap();
        let kind = if next.is_some() { SglType::SEGMENT } else { SglType::LAST_SEGMENT };
        next = Some(SglDescriptor::new(kind, at, descriptors.as_bytes().len() as u32));
    }
    (next.unwrap(), addresses)
}

/// Reads and writes in parts reach exactly the bytes at `addresses`.
fn agrees(flat: &Rc<FlatMemory>, read: &HostMem, write: &HostMem, addresses: &[u64], cut: usize) {
    for (address, value) in addresses.iter().zip((1..=251u8).cycle()) {
        flat.bytes.borrow_mut()[*address as usize] = value;
    }
    let right: Vec<u8> = addresses.iter().map(|address| flat.bytes.borrow()[*address as usize]).collect();
    let len = addresses.len();
    // From the host: the data of a write.
    write.cover(len).unwrap();
    let mut bytes = vec![0; len];
    let (first, second) = bytes.split_at_mut(cut.min(len));
    write.read(first.len(), second);
    write.part(0, first.len()).read(0, first);
    assert_eq!(bytes, right);
    // To the host: the data of a read.
    let mut model = flat.bytes.borrow().clone();
    read.cover(len).unwrap();
    let fresh: Vec<u8> = right.iter().map(|byte| byte ^ 0x5a).collect();
    read.write(0, &fresh);
    addresses.iter().zip(&fresh).for_each(|(address, byte)| model[*address as usize] = *byte);
    assert_eq!(*flat.bytes.borrow(), model);
    read.clear(cut.min(len), len - cut.min(len));
    addresses[cut.min(len)..].iter().for_each(|address| model[*address as usize] = 0);
    let same = *flat.bytes.borrow() == model;
    assert!(same && !read.has_failed() && !write.has_failed());
}

/// Any order of distinct pages.
fn order() -> impl Strategy<Value = Vec<u64>> {
    Just((0..32).collect::<Vec<u64>>()).prop_shuffle()
}

proptest! {
    #[test]
    fn prps_are_the_pages_that_they_name(
        order in order(), offset in (0u64..1_024).prop_map(|dword| dword * 4), len in 1u64..30 * PAGE,
        list_at in (0u64..512).prop_map(|entry| entry * 8), cut in 0usize..100_000,
    ) {
        let flat = flat();
        let (read, addresses) = prps(&flat, IoOpcode::READ, &order, offset, len, list_at);
        let (write, _) = prps(&flat, IoOpcode::WRITE, &order, offset, len, list_at);
        agrees(&flat, &mem_of(&flat, &read), &mem_of(&flat, &write), &addresses, cut);
    }

    #[test]
    fn an_sgl_is_the_pieces_that_it_names(
        gaps in prop::collection::vec((0u64..3_000, 1u32..2_000), 1..20), per_segment in 1usize..8, cut in 0usize..40_000,
    ) {
        let flat = flat();
        let mut at = 40 * PAGE;
        let pieces: Vec<(u64, u32)> = gaps.iter().map(|(gap, len)| {
            let piece = (at + gap, *len);
            at += gap + u64::from(*len);
            piece
        }).collect();
        prop_assume!(at <= PAGES * PAGE && pieces.len().div_ceil(per_segment) <= 30);
        let (descriptor, addresses) = sgl(&flat, &pieces, per_segment);
        let command = |opcode| SubmissionEntry::io(opcode, 1).with_sgl(descriptor);
        let (read, write) = (command(IoOpcode::READ), command(IoOpcode::WRITE));
        agrees(&flat, &mem_of(&flat, &read), &mem_of(&flat, &write), &addresses, cut);
    }

    /// Random bytes for lists and pointers: a status or an end after few accesses, none outside of the memory.
    #[test]
    fn nonsense_gives_a_status_and_bounded_work(
        words in prop::collection::vec(prop_oneof![
            (0u64..PAGES + 2).prop_map(|page| page * PAGE), any::<u64>(), (0u64..PAGES * PAGE).prop_map(|at| at & !7),
        ], 64),
        prp1 in 0u64..PAGES * PAGE, prp2 in 0u64..PAGES * PAGE, sgl in any::<bool>(), kind in 0u8..6, len in 0usize..1 << 20,
    ) {
        let flat = flat();
        for (place, word) in flat.bytes.borrow_mut().chunks_exact_mut(8).zip(words.iter().cycle()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let mut entry = with_prps(IoOpcode::READ, prp1, prp2 & !7);
        if sgl {
            entry = SubmissionEntry::io(IoOpcode::READ, 1).with_sgl(SglDescriptor::new(SglType(kind), prp1, (prp2 & !15) as u32));
        }
        let mem = mem_of(&flat, &entry);
        let covered = mem.cover(len);
        prop_assert!(flat.accesses.get() < 40_000, "{} accesses", flat.accesses.get());
        mem.clear(0, len);
        prop_assert!(covered.is_err() || !mem.has_failed());
    }
}

#[test]
fn what_is_wrong_with_a_prp_has_its_status() {
    let flat = flat();
    let status =
        |prp1, prp2, len| mem_of(&flat, &with_prps(IoOpcode::READ, prp1, prp2)).cover(len).map_err(Status::meaning);
    assert_eq!(status(PAGE + 4, 0, 4_092), Ok(()));
    assert_eq!(status(PAGE + 2, 0, 512), Err(Status::PRP_OFFSET_INVALID), "the first entry is aligned to dwords");
    assert_eq!(status(PAGE, 2 * PAGE + 8, 8_192), Err(Status::PRP_OFFSET_INVALID), "the second has no offset");
    assert_eq!(status(PAGE, 2 * PAGE + 4, 12_288), Err(Status::PRP_OFFSET_INVALID), "a list is aligned to entries");
    flat.write(3 * PAGE, &(4 * PAGE + 8).to_le_bytes()).unwrap();
    assert_eq!(status(PAGE, 3 * PAGE, 12_288), Err(Status::PRP_OFFSET_INVALID), "entries of a list have no offset");
    assert_eq!(status(PAGE, 4 * PAGE - 8, 16_384), Err(Status::DATA_TRANSFER_ERROR), "the next list is nowhere");
    assert_eq!(status(0, 0, 512), Err(Status::DATA_TRANSFER_ERROR), "nothing is mapped at 0");
    assert_eq!(status(PAGE, PAGES * PAGE, 8_192), Err(Status::DATA_TRANSFER_ERROR), "nor beyond the end");
    assert_eq!(status(PAGE, u64::MAX - 7, 1 << 20), Err(Status::DATA_TRANSFER_ERROR), "a list at the very end");
}

#[test]
fn what_is_wrong_with_an_sgl_has_its_status() {
    let flat = flat();
    let d = SglDescriptor::new;
    let status = |first, len| {
        mem_of(&flat, &SubmissionEntry::io(IoOpcode::READ, 1).with_sgl(first)).cover(len).map_err(Status::meaning)
    };
    let block = d(SglType::DATA_BLOCK, 9 * PAGE, 512);
    let put = |descriptors: &[SglDescriptor]| {
        flat.write(2 * PAGE, descriptors.as_bytes()).unwrap();
        descriptors.as_bytes().len() as u32
    };
    assert_eq!((status(block, 512), status(block, 100)), (Ok(()), Ok(())));
    assert_eq!(status(block, 513), Err(Status::DATA_SGL_LENGTH_INVALID));
    assert_eq!(status(SglDescriptor { identifier: 0x01, ..block }, 512), Err(Status::SGL_TYPE_INVALID), "an offset");
    assert_eq!(status(d(SglType(4), 0, 512), 512), Err(Status::SGL_TYPE_INVALID), "keyed");
    let len = put(&[block, block]);
    assert_eq!(status(d(SglType::LAST_SEGMENT, 2 * PAGE, len), 1_024), Ok(()));
    for wrong in [0, len - 1, 8] {
        assert_eq!(
            status(d(SglType::SEGMENT, 2 * PAGE, wrong), 512),
            Err(Status::INVALID_SGL_SEGMENT),
            "{wrong} bytes"
        );
    }
    let len = put(&[d(SglType::SEGMENT, 3 * PAGE, 16), block]);
    assert_eq!(status(d(SglType::SEGMENT, 2 * PAGE, len), 512), Err(Status::INVALID_SGL_COUNT), "not the last");
    let len = put(&[block, d(SglType::SEGMENT, 2 * PAGE, 32)]);
    let last = d(SglType::LAST_SEGMENT, 2 * PAGE, len);
    assert_eq!(status(last, 1_024), Err(Status::INVALID_SGL_SEGMENT), "a last segment has none after it");
    // A cycle of segments without data ends at the limit.
    let len = put(&[d(SglType::DATA_BLOCK, 0, 0), d(SglType::SEGMENT, 2 * PAGE, 32)]);
    flat.accesses.set(0);
    assert_eq!(status(d(SglType::SEGMENT, 2 * PAGE, len), 512), Err(Status::INVALID_SGL_COUNT));
    assert!(flat.accesses.get() < 10_000);
    assert_eq!(
        status(d(SglType::LAST_SEGMENT, 0, 32), 512),
        Err(Status::DATA_TRANSFER_ERROR),
        "a segment that is nowhere"
    );
    let reserved = SubmissionEntry { flags: 0xc0, ..SubmissionEntry::io(IoOpcode::READ, 1) };
    let dma: Rc<dyn Dma> = flat.clone();
    assert_eq!(DataPointer::new(&dma, &reserved, 4_096).err().map(Status::meaning), Some(Status::INVALID_FIELD));
}

#[test]
fn a_bit_bucket_takes_what_is_read_and_gives_nothing_to_a_write() {
    let flat = flat();
    let (bucket, block) =
        (SglDescriptor::new(SglType::BIT_BUCKET, 0, 4), SglDescriptor::new(SglType::DATA_BLOCK, 9 * PAGE, 4));
    flat.write(2 * PAGE, [bucket, block].as_bytes()).unwrap();
    let list = SglDescriptor::new(SglType::LAST_SEGMENT, 2 * PAGE, 32);
    let mem = |opcode| mem_of(&flat, &SubmissionEntry::io(opcode, 1).with_sgl(list));
    let read = mem(IoOpcode::READ);
    read.cover(8).unwrap();
    read.write(0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let write = mem(IoOpcode::WRITE);
    assert_eq!(write.cover(8).map_err(Status::meaning), Err(Status::DATA_SGL_LENGTH_INVALID));
    assert_eq!(write.part(0, 4).to_vec(), [5, 6, 7, 8]);
}

/// A failed copy is noted, gives zeros, and does not stop later copies.
#[test]
fn memory_that_goes_away_is_noted() {
    let flat = flat();
    let mem = mem_of(&flat, &with_prps(IoOpcode::WRITE, 2 * PAGE, PAGES * PAGE));
    assert_eq!(mem.cover(8_192), Err(Status::DATA_TRANSFER_ERROR));
    assert!(!mem.has_failed(), "nothing was copied so far");
    let mut bytes = [9; 16];
    mem.read(4_088, &mut bytes);
    assert_eq!((bytes, mem.has_failed(), mem.part(0, 1).has_failed()), ([0; 16], true, true));
}
