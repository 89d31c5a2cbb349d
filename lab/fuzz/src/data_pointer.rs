//! PRPs and SGLs of any bytes in a host's memory of any bytes: a walk ends after bounded work, with a status or with
//! pieces that do not depend on how the walk is done.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_drive::mem::{DataPointer, Dma};
use nandscape_drive::testing::flat::FlatMemory;
use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::input::Input;

const PAGE: u64 = 4_096;
/// Pages of the host's memory; the first is not mapped.
const PAGES: u64 = 32;
const BYTES: usize = (PAGE * PAGES) as usize;
/// The most bytes of a command's data.
const MOST_DATA: u64 = 2 << 20;
/// More accesses than any pointer needs: one an entry, one a list, and one for each piece when copied.
const MOST_ACCESSES: u64 = 40_000;

/// Walks a command's data pointer.
///
/// # Panics
/// When the walk takes too much work, or its outcome depends on how it is asked for.
pub fn data_pointer(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let entry = command(&mut input);
    let len = (input.number() % MOST_DATA) as usize;
    let cut = if len == 0 { 0 } else { input.number() as usize % len };
    let flat = FlatMemory::new(memory(&mut input));
    let dma: Rc<dyn Dma> = flat.clone();
    let Ok(pointer) = DataPointer::new(&dma, &entry, PAGE as u32) else { return };
    check(&flat, &HostMem::over(Rc::new(pointer)), len, cut);
}

fn check(flat: &FlatMemory, mem: &HostMem, len: usize, cut: usize) {
    let covered = mem.cover(len);
    let accesses = flat.accesses.replace(0);
    assert!(accesses < MOST_ACCESSES, "{accesses} accesses for {len} bytes");
    let mut whole = vec![0; len];
    mem.read(0, &mut whole);
    assert!(covered.is_err() || !mem.has_failed(), "it was covered, and cannot be read");
    if covered.is_ok() {
        let mut parts = vec![0; len];
        let (first, second) = parts.split_at_mut(cut);
        mem.part(cut, len - cut).read(0, second);
        mem.read(0, first);
        assert!(whole == parts, "two parts of {cut} and {} bytes are other bytes than the whole", len - cut);
    }
    // What is written may lie in the lists themselves.
    mem.write(0, &whole);
    mem.clear(cut, len - cut);
    assert!(covered.is_err() || !mem.has_failed(), "it was covered, and cannot be written");
}

/// A read or a write with PRPs or an SGL.
fn command(input: &mut Input<'_>) -> SubmissionEntry {
    let kind = input.byte();
    let opcode = if kind & 1 == 0 { IoOpcode::READ } else { IoOpcode::WRITE };
    let entry = SubmissionEntry::io(opcode, 1);
    let (first, second) = (address(input), address(input));
    match kind >> 1 & 3 {
        0 | 1 => SubmissionEntry { prp1: first.into(), prp2: second.into(), ..entry },
        2 => entry.with_sgl(SglDescriptor::new(SglType(kind >> 3), first, second as u32)),
        _ => SubmissionEntry { flags: kind & FLAGS_PSDT, prp1: first.into(), prp2: second.into(), ..entry },
    }
}

/// Mostly the start of a page, or near it.
fn address(input: &mut Input<'_>) -> u64 {
    match input.byte() {
        page @ 0..0x40 => u64::from(page) * PAGE,
        page @ 0x40..0x80 => (u64::from(page) & 0x3f) * PAGE + (input.number() & 0xfff),
        _ => input.number(),
    }
}

/// Entries and descriptors at places that the input names.
fn memory(input: &mut Input<'_>) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    while !input.is_empty() {
        let at = (address(input) & !7) as usize % BYTES;
        for word in bytes[at..].chunks_exact_mut(8).take(1 + input.below(64)) {
            let value = address(input);
            word.copy_from_slice(&value.to_le_bytes());
            if input.is_empty() {
                break;
            }
        }
    }
    bytes
}
