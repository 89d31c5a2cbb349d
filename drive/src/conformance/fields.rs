//! Commands with one invalid field each: they get the specified status and change nothing.
//!
//! Where the specification allows several statuses, each of them is right. Do Not Retry is not checked.
//! Left out: fields that depend on the transport (SGL types), and features that no drive here has: protection
//! information, directives. Of fused operations, only single halves are tried.

use std::ops::Range;

use nandscape_sim::Executor;
use nandscape_wire_nvme::io::DsmRange;
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::Make;
use super::host::Host;
use super::model::{Deallocation, Model};
use crate::drive::DriveInfo;
use crate::mem::HostMem;

/// A bad command.
struct Case {
    name: String,
    entry: SubmissionEntry,
    mem: HostMem,
    /// The right statuses.
    right: Vec<Status>,
}

/// The drives that are checked have fewer namespaces.
const NAMESPACES: u32 = 40;
/// Memory that is missing or too small. PRPs have no length, so the specification has no single status for it.
const SHORT: [Status; 2] = [Status::DATA_SGL_LENGTH_INVALID, Status::DATA_TRANSFER_ERROR];
/// The commands that name a run of blocks.
const RUNS: [IoOpcode; 5] =
    [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::COMPARE, IoOpcode::VERIFY, IoOpcode::WRITE_ZEROES];

/// Checks the status of every invalid field, and that the drive is unchanged.
///
/// # Errors
/// The drive's fault.
pub fn fields(make: Make<'_>, seed: u64) -> Result<(), String> {
    super::run("fields", seed, Executor::new(), make, async |host, _| {
        let mut guard = Guard::new(host, seed).await?;
        for case in cases(&host.info()) {
            let Case { name, entry, mem, right } = case;
            let status = host.execute(entry, mem).await?.status.meaning();
            if !right.contains(&status) {
                return Err(format!("{name}: ended with {status} instead of {right:?}"));
            }
            guard.check().await.map_err(|what| format!("after {name}: {what}"))?;
        }
        longer_memory(host).await?;
        last_blocks(host).await
    })
}

fn cases(info: &DriveInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    opcodes_and_flags(info, &mut cases);
    namespaces(info, &mut cases);
    extents(info, &mut cases);
    memory(info, &mut cases);
    deallocations(info, &mut cases);
    cases
}

/// A command of one block, as it should be.
fn good(info: &DriveInfo, opcode: IoOpcode) -> (SubmissionEntry, HostMem) {
    let bytes = info.lba_bytes as usize;
    match opcode {
        IoOpcode::FLUSH => (SubmissionEntry::io(opcode, info.nsid), HostMem::none()),
        IoOpcode::DATASET_MANAGEMENT => (SubmissionEntry::deallocate(info.nsid, 1), ranges(&[(0, 1)])),
        IoOpcode::VERIFY | IoOpcode::WRITE_ZEROES => {
            (SubmissionEntry::blocks(opcode, info.nsid, 0, 1), HostMem::none())
        }
        _ => (SubmissionEntry::blocks(opcode, info.nsid, 0, 1), HostMem::from_bytes(&vec![0x5a; bytes])),
    }
}

/// The commands that a drive has.
fn supported(info: &DriveInfo) -> Vec<IoOpcode> {
    let all = RUNS.into_iter().chain([IoOpcode::FLUSH, IoOpcode::DATASET_MANAGEMENT]);
    // A drive that keeps no data cannot compare.
    all.filter(|opcode| info.keeps_data || *opcode != IoOpcode::COMPARE).collect()
}

fn ranges(list: &[(u64, u32)]) -> HostMem {
    let range =
        |&(slba, blocks): &(u64, u32)| DsmRange { slba: slba.into(), blocks: blocks.into(), ..DsmRange::default() };
    HostMem::from_bytes(list.iter().map(range).collect::<Vec<_>>().as_bytes())
}

/// Opcodes that the NVM command set reserves (NVM 3); halves of fused operations (Base 3.4.2: Invalid Field in
/// Command if they are not supported) and the reserved value of PSDT (Base 4.1).
fn opcodes_and_flags(info: &DriveInfo, cases: &mut Vec<Case>) {
    for opcode in [0x03, 0x06, 0x7c, 0x7f] {
        let entry = SubmissionEntry::io(IoOpcode(opcode), info.nsid);
        let name = format!("opcode {opcode:02x}h");
        cases.push(Case { name, entry, mem: HostMem::none(), right: vec![Status::INVALID_OPCODE] });
    }
    for opcode in supported(info) {
        for (field, flags) in [("FUSE 01b", 0b01), ("FUSE 10b", 0b10), ("FUSE 11b", 0b11), ("PSDT 11b", 0b11 << 6)] {
            let (mut entry, mem) = good(info, opcode);
            entry.flags = flags;
            let right = match flags {
                // Half of a fused operation, alone.
                0b01 | 0b10 => vec![Status::INVALID_FIELD, Status::FUSED_MISSING],
                _ => vec![Status::INVALID_FIELD],
            };
            cases.push(Case { name: format!("{opcode:?}, {field}"), entry, mem, right });
        }
    }
}

/// Base 4.1, "Namespace Identifier": an invalid one is Invalid Namespace or Format. An inactive one, or the broadcast
/// value if it is not supported, is Invalid Field in Command.
fn namespaces(info: &DriveInfo, cases: &mut Vec<Case>) {
    for opcode in supported(info) {
        let mut case = |nsid: u32, right: &[Status]| {
            let (mut entry, mem) = good(info, opcode);
            entry.nsid = nsid.into();
            cases.push(Case { name: format!("{opcode:?}, NSID {nsid:x}h"), entry, mem, right: right.to_vec() });
        };
        case(0, &[Status::INVALID_NAMESPACE]);
        case(NSID_ALL - 1, &[Status::INVALID_NAMESPACE]);
        // Only the drive knows whether an identifier that is not in use is invalid or inactive.
        case(info.nsid + NAMESPACES, &[Status::INVALID_NAMESPACE, Status::INVALID_FIELD]);
        match opcode {
            IoOpcode::FLUSH => case(NSID_ALL, &[Status::SUCCESS, Status::INVALID_NAMESPACE, Status::INVALID_FIELD]),
            _ => case(NSID_ALL, &[Status::INVALID_FIELD]),
        }
    }
}

/// NVM 3.1.2.1, LBA Out of Range; and Base 5.1.13.2.1, MDTS: a transfer above it is Invalid Field in Command.
fn extents(info: &DriveInfo, cases: &mut Vec<Case>) {
    let (end, max) = (info.blocks, u64::MAX);
    let short = u64::from(info.max_blocks.min(8));
    let beyond = [(end, 1), (end - 1, 2), (end - short + 1, short), (1 << 63, 1), (max, 1), (max - 1, 2), (max, short)];
    for opcode in RUNS.into_iter().filter(|opcode| supported(info).contains(opcode)) {
        let has_data = !good(info, opcode).1.is_empty();
        let mut case = |slba: u64, blocks: u64, right: Status| {
            let entry = SubmissionEntry::blocks(opcode, info.nsid, slba, blocks as u32);
            let bytes = if has_data { blocks as usize * info.lba_bytes as usize } else { 0 };
            let mem = if has_data { HostMem::zeroed(bytes) } else { HostMem::none() };
            cases.push(Case { name: format!("{opcode:?} of {blocks} at {slba}"), entry, mem, right: vec![right] });
        };
        // One bad field at a time.
        for (slba, blocks) in
            beyond.into_iter().filter(|(_, blocks)| !has_data || *blocks <= u64::from(info.max_blocks))
        {
            case(slba, blocks, Status::LBA_OUT_OF_RANGE);
        }
        if has_data && info.max_blocks < 1 << 16 {
            case(0, u64::from(info.max_blocks) + 1, Status::INVALID_FIELD);
            case(0, 1 << 16, Status::INVALID_FIELD);
        }
    }
}

fn memory(info: &DriveInfo, cases: &mut Vec<Case>) {
    if !info.keeps_data {
        return;
    }
    let blocks = info.max_blocks.min(2);
    let bytes = (blocks * info.lba_bytes) as usize;
    for opcode in [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::COMPARE] {
        let entry = SubmissionEntry::blocks(opcode, info.nsid, 0, blocks);
        for len in [bytes / 2, bytes - 1] {
            let name = format!("{opcode:?} of {blocks} blocks with {len} bytes");
            cases.push(Case { name, entry, mem: HostMem::zeroed(len), right: SHORT.to_vec() });
        }
        if opcode != IoOpcode::READ {
            let name = format!("{opcode:?} without memory");
            cases.push(Case { name, entry, mem: HostMem::none(), right: SHORT.to_vec() });
        }
    }
}

/// NVM 3.3.3. One invalid range makes the command invalid: no range is deallocated.
fn deallocations(info: &DriveInfo, cases: &mut Vec<Case>) {
    let end = info.blocks;
    let entry = |count| SubmissionEntry::deallocate(info.nsid, count);
    let mut case = |name: &str, entry, mem, right: &[Status]| {
        cases.push(Case { name: format!("deallocation, {name}"), entry, mem, right: right.to_vec() });
    };
    let out = [Status::LBA_OUT_OF_RANGE];
    case("a range at the end", entry(1), ranges(&[(end, 1)]), &out);
    case("a range over the end", entry(1), ranges(&[(end - 1, 2)]), &out);
    case("a range that wraps", entry(1), ranges(&[(u64::MAX, 2)]), &out);
    case("the longest range", entry(1), ranges(&[(end - 1, u32::MAX)]), &out);
    case("a bad range after good ones", entry(3), ranges(&[(0, 8), (end - 8, 8), (end - 7, 8)]), &out);
    case("fewer ranges than said", entry(2), ranges(&[(0, 8)]), &SHORT);
    case("half a range", entry(1), ranges(&[(0, 8)]).part(0, 8), &SHORT);
    case("no memory", entry(256), HostMem::none(), &SHORT);
}

/// Memory may be longer than the transfer: the command succeeds, and the rest of the memory is unchanged.
async fn longer_memory(host: &Host) -> Result<(), String> {
    let info = host.info();
    let run = async |opcode: IoOpcode, mut entry: SubmissionEntry, moved: &[u8], more: Vec<u8>| {
        let slba = info.blocks / 2;
        (entry.cdw10, entry.cdw11) = ((slba as u32).into(), ((slba >> 32) as u32).into());
        let mem = HostMem::from_bytes(&[moved, &more].concat());
        let status = host.execute(entry, mem.clone()).await?.status;
        let name = format!("{opcode:?} with {} bytes more than it moves", more.len());
        if !status.is_success() {
            return Err(format!("{name}: ended with {status}"));
        }
        let after = mem.to_vec();
        // Reads must return the data written before.
        let (_, right) = good(&info, opcode);
        match after[moved.len()..] == more && (!info.keeps_data || after[..moved.len()] == right.to_vec()) {
            true => Ok(()),
            false => Err(format!("{name}: the memory is not as it should be afterwards")),
        }
    };
    for opcode in [IoOpcode::WRITE, IoOpcode::READ, IoOpcode::COMPARE] {
        for more in [1, 512, 3 * info.lba_bytes as usize] {
            if supported(&info).contains(&opcode) {
                let (entry, mem) = good(&info, opcode);
                let moved = if opcode == IoOpcode::READ { vec![0; mem.len()] } else { mem.to_vec() };
                run(opcode, entry, &moved, vec![0xa5; more]).await?;
            }
        }
    }
    // The range after the end of the list is bad.
    let list = ranges(&[(info.blocks / 2, 1), (info.blocks, 1)]);
    match host.execute(SubmissionEntry::deallocate(info.nsid, 1), list).await?.status {
        status if status.is_success() => Ok(()),
        status => Err(format!("deallocation with more ranges than said: ended with {status}")),
    }
}

/// The last blocks can be read and written like all others.
async fn last_blocks(host: &Host) -> Result<(), String> {
    let info = host.info();
    for opcode in supported(&info) {
        let (mut entry, mem) = good(&info, opcode);
        if RUNS.contains(&opcode) {
            (entry.cdw10, entry.cdw11) = (((info.blocks - 1) as u32).into(), (((info.blocks - 1) >> 32) as u32).into());
        }
        let status = host.execute(entry, mem).await?.status.meaning();
        if status != Status::SUCCESS && (opcode, status) != (IoOpcode::COMPARE, Status::COMPARE_FAILURE) {
            return Err(format!("{opcode:?} of the last block: ended with {status}"));
        }
    }
    Ok(())
}

/// Data at both ends of the drive that must stay.
struct Guard<'a> {
    host: &'a Host,
    model: Model,
    ends: [Range<u64>; 2],
}

impl<'a> Guard<'a> {
    async fn new(host: &'a Host, seed: u64) -> Result<Guard<'a>, String> {
        let info = host.info();
        let many = u64::from(info.max_blocks.min(16));
        let mut model = Model::new(&info, Deallocation::OldOrZeros);
        let ends = [0..many, info.blocks - many..info.blocks];
        // Another seed, other data.
        (0..seed % 64).for_each(|_| drop(model.new_data(&(0..0))));
        for range in &ends {
            let (stamp, data) = model.new_data(range);
            model.write(range, stamp);
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, info.nsid, range.start, many as u32);
            let status = host.execute(entry, HostMem::from_bytes(&data)).await?.status;
            if !status.is_success() {
                return Err(format!("a plain write of {range:?} ended with {status}"));
            }
        }
        Ok(Guard { host, model, ends })
    }

    async fn check(&mut self) -> Result<(), String> {
        let info = self.host.info();
        for range in self.ends.iter().filter(|_| info.keeps_data) {
            let blocks = (range.end - range.start) as u32;
            let mem = HostMem::zeroed((blocks * info.lba_bytes) as usize);
            let entry = SubmissionEntry::blocks(IoOpcode::READ, info.nsid, range.start, blocks);
            let status = self.host.execute(entry, mem.clone()).await?.status;
            if !status.is_success() {
                return Err(format!("a plain read of {range:?} ended with {status}"));
            }
            self.model.check(range, &mem.to_vec())?;
        }
        Ok(())
    }
}
