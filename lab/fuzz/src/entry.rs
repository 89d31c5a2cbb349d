//! A submission queue entry from bytes: all 64 of them, or a known opcode with some fields set.

use nandscape_wire_nvme::{AdminOpcode as Admin, IoOpcode as Io, SubmissionEntry, open_channel as oc, vendor};
use zerocopy::FromBytes as _;

use crate::input::Input;

/// The opcodes of admin commands and of I/O commands for entries.
#[derive(Copy, Clone)]
pub(crate) struct Opcodes {
    admin: &'static [u8],
    io: &'static [u8],
}

/// Opcodes that a controller with the NVM command set may know, and some that it does not.
pub(crate) const NVM: Opcodes = Opcodes { admin: &ADMIN, io: &IO };
/// Those of every command set that a drive can have.
pub(crate) const ALL: Opcodes = Opcodes { admin: &ALL_ADMIN, io: &ALL_IO };

// Known inputs name an opcode by its position: new opcodes go to the end of the tables of `ALL`.
const ADMIN: [u8; 24] = [
    Admin::IDENTIFY.0,
    Admin::GET_LOG_PAGE.0,
    Admin::GET_FEATURES.0,
    Admin::SET_FEATURES.0,
    Admin::ASYNCHRONOUS_EVENT_REQUEST.0,
    Admin::ABORT.0,
    Admin::NAMESPACE_MANAGEMENT.0,
    Admin::NAMESPACE_ATTACHMENT.0,
    Admin::FORMAT_NVM.0,
    Admin::SANITIZE.0,
    Admin::DEVICE_SELF_TEST.0,
    Admin::KEEP_ALIVE.0,
    Admin::CREATE_IO_CQ.0,
    Admin::CREATE_IO_SQ.0,
    Admin::DELETE_IO_CQ.0,
    Admin::DELETE_IO_SQ.0,
    Admin::DOORBELL_BUFFER_CONFIG.0,
    Admin::DIRECTIVE_SEND.0,
    Admin::DIRECTIVE_RECEIVE.0,
    Admin::FIRMWARE_COMMIT.0,
    Admin::FIRMWARE_IMAGE_DOWNLOAD.0,
    0x03,
    0x1c,
    0xc0,
];
const IO: [u8; 16] = [
    Io::READ.0,
    Io::WRITE.0,
    Io::FLUSH.0,
    Io::COMPARE.0,
    Io::WRITE_ZEROES.0,
    Io::WRITE_UNCORRECTABLE.0,
    Io::DATASET_MANAGEMENT.0,
    Io::VERIFY.0,
    Io::COPY.0,
    0x0d,
    0x0e,
    0x11,
    0x15,
    0x03,
    0x80,
    0x90,
];
const ALL_ADMIN: [u8; 14] = [
    Admin::IDENTIFY.0,
    Admin::GET_LOG_PAGE.0,
    Admin::GET_FEATURES.0,
    Admin::SET_FEATURES.0,
    Admin::ASYNCHRONOUS_EVENT_REQUEST.0,
    Admin::ABORT.0,
    Admin::NAMESPACE_MANAGEMENT.0,
    Admin::NAMESPACE_ATTACHMENT.0,
    Admin::FORMAT_NVM.0,
    Admin::SANITIZE.0,
    Admin::DEVICE_SELF_TEST.0,
    Admin::DIRECTIVE_SEND.0,
    Admin::DIRECTIVE_RECEIVE.0,
    oc::GEOMETRY.0,
];
const ALL_IO: [u8; 22] = [
    Io::READ.0,
    Io::WRITE.0,
    Io::FLUSH.0,
    Io::COMPARE.0,
    Io::WRITE_ZEROES.0,
    Io::WRITE_UNCORRECTABLE.0,
    Io::DATASET_MANAGEMENT.0,
    Io::VERIFY.0,
    Io::COPY.0,
    Io::IO_MANAGEMENT_RECEIVE.0,
    Io::IO_MANAGEMENT_SEND.0,
    Io::ZONE_MANAGEMENT_SEND.0,
    Io::ZONE_MANAGEMENT_RECEIVE.0,
    Io::ZONE_APPEND.0,
    oc::VECTOR_RESET.0,
    oc::VECTOR_WRITE.0,
    oc::VECTOR_READ.0,
    oc::VECTOR_COPY.0,
    vendor::ATOMIC_WRITE.0,
    0x8f,
    vendor::LSS_FLUSH.0,
    vendor::BATCHED_READ.0,
];

/// An entry for an admin or an I/O queue. Its identifier and its data pointer are for the caller to set.
pub(crate) fn entry(input: &mut Input<'_>, opcodes: Opcodes, is_admin: bool) -> SubmissionEntry {
    let kind = input.byte();
    if kind == 0xff {
        return SubmissionEntry::read_from_bytes(&input.array::<64>()).expect("64 bytes are an entry");
    }
    let table = if is_admin { opcodes.admin } else { opcodes.io };
    let mut entry = SubmissionEntry { opcode: table[usize::from(kind) % table.len()], ..SubmissionEntry::default() };
    entry.nsid = (1 + u32::from(kind >> 7)).into();
    let fields = input.byte();
    let mut set = |bit: u32, field: &mut zerocopy::little_endian::U32| {
        if fields >> bit & 1 != 0 {
            *field = input.number32().into();
        }
    };
    set(0, &mut entry.cdw10);
    set(1, &mut entry.cdw11);
    set(2, &mut entry.cdw12);
    set(3, &mut entry.cdw13);
    set(4, &mut entry.cdw14);
    set(5, &mut entry.cdw15);
    set(6, &mut entry.nsid);
    if fields >> 7 != 0 {
        entry.flags = input.byte();
        set_wide(&mut entry, input);
    }
    entry
}

/// The fields that few commands have.
fn set_wide(entry: &mut SubmissionEntry, input: &mut Input<'_>) {
    entry.cdw2 = input.number32().into();
    entry.cdw3 = input.number32().into();
    entry.metadata = input.number().into();
}
