//! An NBD request as NVMe commands: bytes become logical blocks, and a part too long for one command becomes several.

use nandscape_drive::{DriveInfo, HostMem};
use nandscape_wire_nbd::{Request, command, error, flag};
use nandscape_wire_nvme::io::{DEAC, DsmRange, FUA};
use nandscape_wire_nvme::status::Status;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::handshake::MAX_REQUEST;

/// Why a request is refused: the NBD error, and the reason in words.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) error: u32,
    pub(crate) reason: &'static str,
}

const fn invalid(reason: &'static str) -> Refusal {
    Refusal { error: error::EINVAL, reason }
}

/// Checks a request before any part of it is executed.
pub(crate) fn check(request: &Request, info: &DriveInfo, structured: bool) -> Result<(), Refusal> {
    let (kind, flags) = (request.kind.get(), request.flags.get());
    let allowed = match kind {
        command::READ if structured => flag::FUA | flag::DF,
        command::READ => flag::FUA,
        command::WRITE | command::TRIM | command::FLUSH => flag::FUA,
        command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE,
        _ => return Err(invalid("unknown request type")),
    };
    if flags & !allowed != 0 {
        return Err(invalid("a flag that does not go with this request, or was not offered"));
    }
    let (offset, len) = (request.offset.get(), u64::from(request.len.get()));
    if kind == command::FLUSH {
        return if (offset, len) == (0, 0) { Ok(()) } else { Err(invalid("a flush has no offset and no length")) };
    }
    if len == 0 {
        return Err(invalid("a length of zero"));
    }
    let block = u64::from(info.lba_bytes);
    if offset % block != 0 || len % block != 0 {
        return Err(invalid("offset and length are to be multiples of the minimum block size"));
    }
    if offset.checked_add(len).is_none_or(|end| end > info.bytes()) {
        let reason = "beyond the end of the drive";
        return Err(match kind {
            command::WRITE | command::WRITE_ZEROES => Refusal { error: error::ENOSPC, reason },
            _ => invalid(reason),
        });
    }
    if matches!(kind, command::READ | command::WRITE) && request.len.get() > MAX_REQUEST {
        // The protocol keeps EOVERFLOW for clients that want the data in one piece.
        let error = if flags & flag::DF != 0 { error::EOVERFLOW } else { error::EINVAL };
        return Err(Refusal { error, reason: "longer than the maximum block size" });
    }
    Ok(())
}

/// The commands that a sound request takes, each with its part of the request's memory.
pub(crate) fn commands(
    request: &Request,
    info: &DriveInfo,
    mem: &HostMem,
    mut each: impl FnMut(SubmissionEntry, HostMem),
) {
    let block = u64::from(info.lba_bytes);
    let (slba, blocks) = (request.offset.get() / block, u64::from(request.len.get()) / block);
    let fua = if request.flags.get() & flag::FUA != 0 { FUA } else { 0 };
    match request.kind.get() {
        command::FLUSH => each(SubmissionEntry::io(IoOpcode::FLUSH, info.nsid), HostMem::none()),
        command::TRIM => {
            let blocks = u32::try_from(blocks).expect("a length in bytes is a u32");
            let range = DsmRange { blocks: blocks.into(), slba: slba.into(), ..DsmRange::default() };
            each(SubmissionEntry::deallocate(info.nsid, 1), HostMem::from_bytes(range.as_bytes()));
        }
        kind => {
            let (opcode, flags, most) = match kind {
                command::READ => (IoOpcode::READ, 0, info.max_blocks),
                command::WRITE => (IoOpcode::WRITE, fua, info.max_blocks),
                // Zeros are not transferred: the field's own limit counts.
                _ if request.flags.get() & flag::NO_HOLE != 0 => (IoOpcode::WRITE_ZEROES, fua, 1 << 16),
                _ => (IoOpcode::WRITE_ZEROES, fua | DEAC, 1 << 16),
            };
            let mut done = 0;
            while done < blocks {
                let now = (blocks - done).min(u64::from(most));
                let mut entry = SubmissionEntry::blocks(opcode, info.nsid, slba + done, now as u32);
                entry.cdw12 = (entry.cdw12.get() | flags).into();
                each(entry, mem.part((done * block) as usize, (now * block) as usize));
                done += now;
            }
        }
    }
}

/// The NBD error for a status.
pub(crate) fn error_of(status: Status) -> u32 {
    match status.meaning() {
        Status::SUCCESS => 0,
        Status::LBA_OUT_OF_RANGE | Status::INVALID_FIELD => error::EINVAL,
        Status::CAPACITY_EXCEEDED => error::ENOSPC,
        Status::ABORTED_SQ_DELETION => error::ESHUTDOWN,
        // The protocol's error for writes to an export that is read-only. The export became so while it was in use.
        Status::READ_ONLY_RANGE | Status::RESERVATION_CONFLICT => error::EPERM,
        // Unreadable data, failed writes, lost power, and everything else that a client cannot mend.
        _ => error::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_told_as_errors_that_say_what_a_client_can_do() {
        for (status, error) in [
            (Status::SUCCESS, 0),
            (Status::UNRECOVERED_READ_ERROR, error::EIO),
            (Status::WRITE_FAULT.final_(), error::EIO),
            (Status::ABORTED_POWER_LOSS, error::EIO),
            (Status::READ_ONLY_RANGE, error::EPERM),
            (Status::RESERVATION_CONFLICT.final_(), error::EPERM),
            (Status::CAPACITY_EXCEEDED, error::ENOSPC),
            (Status::LBA_OUT_OF_RANGE, error::EINVAL),
            (Status::ABORTED_SQ_DELETION, error::ESHUTDOWN),
        ] {
            assert_eq!(error_of(status), error, "{status}");
        }
    }
}
