//! Commands as NBD requests, and NBD's errors as statuses.
//!
//! A command becomes one request; a deallocation of several ranges becomes one for each. A command without an NBD
//! equivalent is rejected with the status of an unsupported command.

use nandscape_drive::{DriveInfo, HostMem};
use nandscape_wire_nbd::{command, error, flag, transmission};
use nandscape_wire_nvme::io::{Cdw12, DSM_DEALLOCATE, DsmRange};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status, SubmissionEntry};
use zerocopy::FromBytes;

use super::handshake::Offer;

/// One request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// The most bytes of a request without data: a multiple of every block size.
const LONGEST: u64 = 1 << 30;

/// The requests for a command; none if it has nothing to do.
///
/// # Errors
/// The status of a command that NBD or this server cannot carry out.
pub(crate) fn requests(entry: &SubmissionEntry, mem: &HostMem, offer: &Offer) -> Result<Vec<Wanted>, Status> {
    let Offer { info, flags } = *offer;
    let has = |flag: u16| if flags & flag != 0 { Ok(()) } else { Err(Status::INVALID_OPCODE.final_()) };
    check_namespace(entry, &info)?;
    match IoOpcode(entry.opcode) {
        IoOpcode::FLUSH if flags & transmission::SEND_FLUSH == 0 => Ok(Vec::new()),
        IoOpcode::FLUSH => Ok(vec![Wanted { kind: command::FLUSH, flags: 0, offset: 0, len: 0 }]),
        IoOpcode::WRITE_ZEROES => {
            has(transmission::SEND_WRITE_ZEROES)?;
            let hole = if Cdw12::of(entry).deac() { 0 } else { flag::NO_HOLE };
            let (offset, len) = extent(entry, &info)?;
            Ok(split(command::WRITE_ZEROES, hole | forced(entry, flags), offset, len))
        }
        IoOpcode::DATASET_MANAGEMENT => {
            if entry.cdw11.get() & DSM_DEALLOCATE == 0 {
                return Ok(Vec::new());
            }
            has(transmission::SEND_TRIM)?;
            deallocation(entry, mem, &info)
        }
        _ => Err(Status::INVALID_OPCODE.final_()),
    }
}

/// The request for a Read or Write with data; `None` for other commands.
pub(crate) fn transfer(entry: &SubmissionEntry, mem: &HostMem, offer: &Offer) -> Result<Option<Wanted>, Status> {
    let kind = match IoOpcode(entry.opcode) {
        IoOpcode::READ => command::READ,
        IoOpcode::WRITE => command::WRITE,
        _ => return Ok(None),
    };
    check_namespace(entry, &offer.info)?;
    let (offset, len) = extent(entry, &offer.info)?;
    if u64::from(Cdw12::of(entry).nlb_z()) >= u64::from(offer.info.max_blocks) {
        return Err(Status::INVALID_FIELD.final_());
    }
    mem.cover(len as usize)?;
    let flags = if kind == command::WRITE { forced(entry, offer.flags) } else { 0 };
    // Not longer than the longest request of the server, which is a 32-bit number.
    Ok(Some(Wanted { kind, flags, offset, len: len as u32 }))
}

fn check_namespace(entry: &SubmissionEntry, info: &DriveInfo) -> Result<(), Status> {
    let all = entry.nsid.get() == NSID_ALL && IoOpcode(entry.opcode) == IoOpcode::FLUSH;
    if entry.flags != 0 {
        return Err(Status::INVALID_FIELD.final_());
    }
    if entry.nsid.get() == info.nsid || all { Ok(()) } else { Err(Status::INVALID_NAMESPACE.final_()) }
}

fn forced(entry: &SubmissionEntry, flags: u16) -> u16 {
    let forced = Cdw12::of(entry).fua() && flags & transmission::SEND_FUA != 0;
    if forced { flag::FUA } else { 0 }
}

/// Offset and length in bytes of a command's blocks.
fn extent(entry: &SubmissionEntry, info: &DriveInfo) -> Result<(u64, u64), Status> {
    range(entry.slba(), u64::from(Cdw12::of(entry).nlb_z()) + 1, info)
}

fn range(first: u64, blocks: u64, info: &DriveInfo) -> Result<(u64, u64), Status> {
    match first.checked_add(blocks).is_some_and(|end| end <= info.blocks) {
        true => Ok((first * u64::from(info.lba_bytes), blocks * u64::from(info.lba_bytes))),
        false => Err(Status::LBA_OUT_OF_RANGE.final_()),
    }
}

fn deallocation(entry: &SubmissionEntry, mem: &HostMem, info: &DriveInfo) -> Result<Vec<Wanted>, Status> {
    let count = (entry.cdw10.get() & 0xff) as usize + 1;
    mem.must_cover(count * size_of::<DsmRange>())?;
    let mut requests = Vec::new();
    for number in 0..count {
        let mut bytes = [0; size_of::<DsmRange>()];
        mem.read(number * bytes.len(), &mut bytes);
        let given = DsmRange::read_from_bytes(&bytes).expect("as many bytes as it has");
        let (offset, len) = range(given.slba.get(), given.blocks.get().into(), info)?;
        requests.extend(split(command::TRIM, 0, offset, len));
    }
    Ok(requests)
}

/// Requests without data for a range of any length.
fn split(kind: u16, flags: u16, offset: u64, len: u64) -> Vec<Wanted> {
    let part = |done: u64| Wanted { kind, flags, offset: offset + done, len: (len - done).min(LONGEST) as u32 };
    (0..len).step_by(LONGEST as usize).map(part).collect()
}

/// The status for an error ("Error values").
pub(crate) fn status_of(code: u32, kind: u16) -> Status {
    match code {
        0 => Status::SUCCESS,
        error::EPERM => Status::READ_ONLY_RANGE.final_(),
        error::EINVAL | error::EOVERFLOW => Status::INVALID_FIELD.final_(),
        error::ENOTSUP => Status::INVALID_OPCODE.final_(),
        error::ENOSPC => Status::CAPACITY_EXCEEDED.final_(),
        error::ENOMEM => Status::INTERNAL_ERROR,
        error::ESHUTDOWN => Status::ABORTED_SQ_DELETION,
        _ if kind == command::READ => Status::UNRECOVERED_READ_ERROR,
        _ => Status::WRITE_FAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_drive::testing::INFO;
    use nandscape_wire_nvme::io::{DEAC, FUA};
    use zerocopy::IntoBytes;

    const ALL: u16 =
        transmission::SEND_FLUSH | transmission::SEND_FUA | transmission::SEND_TRIM | transmission::SEND_WRITE_ZEROES;

    fn offer(flags: u16) -> Offer {
        Offer { info: DriveInfo { nsid: 1, blocks: 1 << 30, lba_bytes: 512, max_blocks: 256, ..INFO }, flags }
    }

    fn wanted(kind: u16, flags: u16, offset: u64, len: u32) -> Wanted {
        Wanted { kind, flags, offset, len }
    }

    #[test]
    fn transfers_are_one_request() {
        let mut write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 8, 8);
        write.cdw12 = (write.cdw12.get() | FUA).into();
        let none = HostMem::none();
        assert_eq!(transfer(&write, &none, &offer(ALL)), Ok(Some(wanted(command::WRITE, flag::FUA, 4_096, 4_096))));
        assert_eq!(transfer(&write, &none, &offer(0)), Ok(Some(wanted(command::WRITE, 0, 4_096, 4_096))));
        let read = |first, blocks| SubmissionEntry::blocks(IoOpcode::READ, 1, first, blocks);
        assert_eq!(transfer(&read(1, 1), &none, &offer(0)), Ok(Some(wanted(command::READ, 0, 512, 512))));
        let bad = |entry: &SubmissionEntry, mem: &HostMem| transfer(entry, mem, &offer(ALL)).unwrap_err().meaning();
        assert_eq!(bad(&read(1 << 30, 1), &none), Status::LBA_OUT_OF_RANGE);
        assert_eq!(bad(&read(u64::MAX, 2), &none), Status::LBA_OUT_OF_RANGE);
        assert_eq!(bad(&read(0, 257), &none), Status::INVALID_FIELD);
        assert_eq!(bad(&read(0, 2), &HostMem::zeroed(512)), Status::DATA_SGL_LENGTH_INVALID);
        assert_eq!(bad(&SubmissionEntry::blocks(IoOpcode::READ, 2, 0, 1), &none), Status::INVALID_NAMESPACE);
    }

    #[test]
    fn other_commands_are_as_many_requests_as_they_need() {
        let none = HostMem::none();
        let flush = SubmissionEntry::io(IoOpcode::FLUSH, NSID_ALL);
        assert_eq!(requests(&flush, &none, &offer(ALL)), Ok(vec![wanted(command::FLUSH, 0, 0, 0)]));
        assert_eq!(requests(&flush, &none, &offer(0)), Ok(Vec::new()));
        let mut zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 0, 2);
        assert_eq!(
            requests(&zeroes, &none, &offer(ALL)),
            Ok(vec![wanted(command::WRITE_ZEROES, flag::NO_HOLE, 0, 1_024)])
        );
        zeroes.cdw12 = (zeroes.cdw12.get() | DEAC).into();
        assert_eq!(requests(&zeroes, &none, &offer(ALL)), Ok(vec![wanted(command::WRITE_ZEROES, 0, 0, 1_024)]));
        assert_eq!(requests(&zeroes, &none, &offer(0)).unwrap_err().meaning(), Status::INVALID_OPCODE);
        let verify = SubmissionEntry::blocks(IoOpcode::VERIFY, 1, 0, 1);
        assert_eq!(requests(&verify, &none, &offer(ALL)).unwrap_err().meaning(), Status::INVALID_OPCODE);
    }

    #[test]
    fn each_range_is_trimmed_in_parts_that_fit() {
        let range =
            |slba: u64, blocks: u32| DsmRange { slba: slba.into(), blocks: blocks.into(), ..DsmRange::default() };
        let two = [range(8, 8), range(0, 5 << 20)];
        let (entry, mem) = (SubmissionEntry::deallocate(1, 2), HostMem::from_bytes(two.as_bytes()));
        let parts = requests(&entry, &mem, &offer(ALL)).unwrap();
        let gib = 1 << 30;
        assert_eq!(
            parts.iter().map(|part| (part.offset, part.len)).collect::<Vec<_>>(),
            [(4_096, 4_096), (0, gib), (u64::from(gib), gib), (2 * u64::from(gib), gib / 2)]
        );
        assert_eq!(
            requests(&entry, &HostMem::zeroed(16), &offer(ALL)).unwrap_err().meaning(),
            Status::DATA_SGL_LENGTH_INVALID
        );
        let beyond = HostMem::from_bytes([range(1 << 30, 1), range(0, 0)].as_bytes());
        assert_eq!(requests(&entry, &beyond, &offer(ALL)).unwrap_err().meaning(), Status::LBA_OUT_OF_RANGE);
    }

    #[test]
    fn errors_are_statuses() {
        assert_eq!(status_of(0, command::READ), Status::SUCCESS);
        assert_eq!(status_of(error::EIO, command::READ), Status::UNRECOVERED_READ_ERROR);
        assert_eq!(status_of(error::EIO, command::WRITE), Status::WRITE_FAULT);
        assert_eq!(status_of(error::ENOSPC, command::WRITE).meaning(), Status::CAPACITY_EXCEEDED);
        assert_eq!(status_of(77, command::TRIM), Status::WRITE_FAULT);
    }
}
