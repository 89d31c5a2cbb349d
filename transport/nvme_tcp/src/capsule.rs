//! The data of a command as its capsule describes it (NVMe/TCP 3.3.2): in the capsule, or moved by data transfers.

use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::sgl::{SUB_TYPE_OFFSET, SUB_TYPE_TRANSPORT, SglType};
use nandscape_wire_nvme::vendor::BATCHED_READ;
use nandscape_wire_nvme::{Status, SubmissionEntry};

/// The most bytes of data in a capsule, in any queue: Identify reports this as IOCCSZ.
pub(crate) const IN_CAPSULE: u32 = nandscape_wire_nvme::tcp::ADMIN_IN_CAPSULE;

/// How the data of a command moves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// There is none.
    None,
    /// Data in the capsule: this many bytes from `start` of the capsule's data on.
    InCapsule { start: u32, len: u32 },
    /// The controller requests it.
    FromHost(u32),
    /// The controller sends it.
    ToHost(u32),
    /// The controller requests its first bytes, the list of a batched read, and sends all of it.
    Both(u32),
}

/// PSDT 01b: an SGL describes the data.
const SGL: u8 = 0b01 << 6;
/// PSDT 10b: so does one for metadata, which is not moved separately over Fabrics.
const SGL_METADATA: u8 = 0b10 << 6;

/// How the data of a command is transferred. The capsule holds `came` bytes of data, and a command has at most `most`.
///
/// # Errors
/// The status of a data pointer that is not valid over TCP.
pub(crate) fn data_of(entry: &SubmissionEntry, transfer: Transfer, came: u32, most: u32) -> Result<Move, Status> {
    if !matches!(entry.flags & FLAGS_PSDT, SGL | SGL_METADATA) {
        // Base 4.1: commands over Fabrics use SGLs.
        return Err(Status::INVALID_FIELD.final_());
    }
    let descriptor = entry.sgl1();
    let len = descriptor.len.get();
    let how = match (descriptor.kind(), descriptor.sub_type(), transfer) {
        (_, _, Transfer::None) => Move::None,
        (SglType::DATA_BLOCK, SUB_TYPE_OFFSET, Transfer::ToController) => in_capsule(&descriptor, came)?,
        (SglType::TRANSPORT_DATA_BLOCK, SUB_TYPE_TRANSPORT, Transfer::ToController) => Move::FromHost(len),
        (SglType::TRANSPORT_DATA_BLOCK, SUB_TYPE_TRANSPORT, Transfer::ToHost) => Move::ToHost(len),
        // A host that moves no data may leave the descriptor empty.
        (SglType::DATA_BLOCK, 0, Transfer::ToController) if len == 0 => Move::FromHost(0),
        (SglType::DATA_BLOCK, 0, Transfer::ToHost) if len == 0 => Move::ToHost(0),
        (SglType::TRANSPORT_DATA_BLOCK, SUB_TYPE_TRANSPORT, Transfer::Both) if entry.opcode == BATCHED_READ.0 => {
            Move::Both(len)
        }
        // No other command moves data both ways.
        (_, _, Transfer::Both) => return Err(Status::INVALID_OPCODE.final_()),
        _ => return Err(Status::SGL_TYPE_INVALID.final_()),
    };
    match (how, came) {
        (Move::FromHost(len) | Move::ToHost(len) | Move::Both(len), _) if len > most => {
            Err(Status::DATA_SGL_LENGTH_INVALID.final_())
        }
        (Move::InCapsule { .. }, _) | (_, 0) => Ok(how),
        // The capsule has data that no descriptor covers.
        _ => Err(Status::DATA_SGL_LENGTH_INVALID.final_()),
    }
}

fn in_capsule(descriptor: &nandscape_wire_nvme::sgl::SglDescriptor, came: u32) -> Result<Move, Status> {
    let (start, len) = (descriptor.address.get(), descriptor.len.get());
    let start = u32::try_from(start).ok().filter(|start| *start <= came);
    let start = start.ok_or(Status::SGL_OFFSET_INVALID.final_())?;
    match start.checked_add(len).is_some_and(|end| end <= came) {
        true => Ok(Move::InCapsule { start, len }),
        false => Err(Status::DATA_SGL_LENGTH_INVALID.final_()),
    }
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nvme::IoOpcode;
    use nandscape_wire_nvme::sgl::SglDescriptor;

    use super::*;

    #[test]
    fn each_field_of_a_data_pointer_is_checked() {
        let (read, write, flush) = (IoOpcode::READ.0, IoOpcode::WRITE.0, IoOpcode::FLUSH.0);
        let descriptor = |identifier: u8, address: u64, len: u32| SglDescriptor {
            address: address.into(),
            len: len.into(),
            reserved: [0; 3],
            identifier,
        };
        let rows = [
            (read, 0x40, descriptor(0x5a, 0, 4_096), 0, Ok(Move::ToHost(4_096))),
            (write, 0x40, descriptor(0x5a, 0, 4_096), 0, Ok(Move::FromHost(4_096))),
            (write, 0x80, descriptor(0x01, 0, 4_096), 4_096, Ok(Move::InCapsule { start: 0, len: 4_096 })),
            (write, 0x40, descriptor(0x01, 512, 512), 4_096, Ok(Move::InCapsule { start: 512, len: 512 })),
            (flush, 0x40, descriptor(0x5a, 0, 0), 0, Ok(Move::None)),
            (flush, 0x40, descriptor(0, 0, 0), 0, Ok(Move::None)),
            (write, 0x40, descriptor(0, 0, 0), 0, Ok(Move::FromHost(0))),
            (read, 0x40, descriptor(0, 0, 0), 0, Ok(Move::ToHost(0))),
            // No SGL, or a reserved kind of pointer.
            (read, 0x00, descriptor(0x5a, 0, 512), 0, Err(Status::INVALID_FIELD)),
            (read, 0xc0, descriptor(0x5a, 0, 512), 0, Err(Status::INVALID_FIELD)),
            // Descriptors that are not TCP's.
            (read, 0x40, descriptor(0x00, 0, 512), 0, Err(Status::SGL_TYPE_INVALID)),
            (read, 0x40, descriptor(0x01, 0, 512), 0, Err(Status::SGL_TYPE_INVALID)),
            (write, 0x40, descriptor(0x40, 0, 512), 0, Err(Status::SGL_TYPE_INVALID)),
            (write, 0x40, descriptor(0x51, 0, 512), 0, Err(Status::SGL_TYPE_INVALID)),
            (write, 0x40, descriptor(0x30, 0, 512), 0, Err(Status::SGL_TYPE_INVALID)),
            // Outside the capsule.
            (write, 0x40, descriptor(0x01, 4_097, 0), 4_096, Err(Status::SGL_OFFSET_INVALID)),
            (write, 0x40, descriptor(0x01, 1 << 40, 0), 4_096, Err(Status::SGL_OFFSET_INVALID)),
            (write, 0x40, descriptor(0x01, 512, 4_096), 4_096, Err(Status::DATA_SGL_LENGTH_INVALID)),
            (write, 0x40, descriptor(0x01, 1, u32::MAX), 4_096, Err(Status::DATA_SGL_LENGTH_INVALID)),
            // Longer than any command, or in addition to data in the capsule.
            (read, 0x40, descriptor(0x5a, 0, u32::MAX), 0, Err(Status::DATA_SGL_LENGTH_INVALID)),
            (write, 0x40, descriptor(0x5a, 0, 512), 512, Err(Status::DATA_SGL_LENGTH_INVALID)),
            (flush, 0x40, descriptor(0x5a, 0, 0), 512, Err(Status::DATA_SGL_LENGTH_INVALID)),
            (0x87, 0x40, descriptor(0x5a, 0, 8_192), 0, Ok(Move::Both(8_192))),
            (0x87, 0x40, descriptor(0x5a, 0, u32::MAX), 0, Err(Status::DATA_SGL_LENGTH_INVALID)),
            (0x87, 0x40, descriptor(0x01, 0, 4_096), 4_096, Err(Status::INVALID_OPCODE)),
            (0x8b, 0x40, descriptor(0x5a, 0, 512), 0, Err(Status::INVALID_OPCODE)),
        ];
        for (opcode, flags, sgl, came, right) in rows {
            let mut entry = SubmissionEntry::default().with_sgl(sgl);
            (entry.opcode, entry.flags) = (opcode, flags);
            let result = data_of(&entry, Transfer::of(opcode), came, 1 << 20);
            assert_eq!(result, right.map_err(Status::final_), "{opcode:#x} {flags:#x} {sgl:?} {came}");
        }
    }
}
