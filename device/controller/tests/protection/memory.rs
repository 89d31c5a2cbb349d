//! Controller memory in use by many concurrent commands.

use nandscape_device_controller::ControllerConfig;
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueDrive, QueueId};
use nandscape_wire_nvme::io::CopyRange;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, SubmissionEntry};
use zerocopy::IntoBytes as _;

use crate::common::{BLOCKS, config, with};

const MIB: u64 = 1 << 20;
/// Maximum of commands in work.
const MANY: u64 = 60;
/// PRINFO: the controller acts; the guard is checked.
const ACTS: u32 = 8;
const GUARD: u32 = 4;

/// The most memory in use while `count` commands over `blocks` blocks are in work, which a Format NVM may precede.
fn peak(count: u64, format: Option<u32>, opcode: IoOpcode, blocks: u32, prinfo: u32) -> u64 {
    let config = ControllerConfig { max_transfer: 4 << 20, ..config() };
    let run = || {
        with(config, async |sim, drive| {
            let queue = |id| Host::new(sim, QueueDrive::new(sim, drive.clone(), QueueId(id), 64).unwrap());
            let io = queue(1);
            if let Some(cdw10) = format {
                let entry = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
                let entry = SubmissionEntry { nsid: 1.into(), cdw10: cdw10.into(), ..entry };
                assert!(queue(0).execute(entry, HostMem::none()).await.unwrap().status.is_success());
            }
            let all = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 0, BLOCKS as u32);
            assert!(io.execute(all, HostMem::none()).await.unwrap().status.is_success());
            let range = CopyRange { nlb_z: (blocks as u16 - 1).into(), ..CopyRange::default() };
            let (mem, entry) = match opcode {
                IoOpcode::COPY => (HostMem::from_bytes(range.as_bytes()), SubmissionEntry::copy(1, BLOCKS / 2, 1, 0)),
                IoOpcode::COMPARE => {
                    (HostMem::zeroed(blocks as usize * 512), SubmissionEntry::blocks(opcode, 1, 0, blocks))
                }
                _ => (HostMem::none(), SubmissionEntry::blocks(opcode, 1, 0, blocks)),
            };
            let cdw12 = entry.cdw12.get() | prinfo << 26;
            for _ in 0..count {
                io.submit(SubmissionEntry { cdw12: cdw12.into(), ..entry }, mem.clone());
            }
            for _ in 0..count {
                let ended = io.next().await.unwrap().completion.status;
                assert!(ended.is_success(), "{opcode:?}: {ended}");
            }
        });
    };
    allocation_counter::measure(run).bytes_max
}

/// Blocks of 512 bytes with 8 of metadata, which is protection information of type 1.
const PROTECTED: u32 = 2 | 1 << 4 | 1 << 5;

/// Metadata of all blocks would be 1 MiB a command. Flash that the commands overwrite is kept until it is erased.
#[test]
fn zeros_that_wait_for_room_hold_no_metadata() {
    for prinfo in [0, ACTS] {
        let [few, many] =
            [2, MANY].map(|count| peak(count, Some(PROTECTED), IoOpcode::WRITE_ZEROES, BLOCKS as u32, prinfo));
        assert!(many < few + 4 * MIB, "PRINFO {prinfo}: {few} and {many} bytes");
    }
}

/// A copy holds the data of one source in addition to the blocks to write.
#[test]
fn copies_share_memory_for_what_they_read_and_write() {
    const WITH_METADATA: u32 = 2 | 1 << 4;
    // 4 MiB each, twice; copies have 16 MiB together, and the flash grows meanwhile.
    let blocks = (4 << 20) / 512;
    let [one, many] = [1, MANY].map(|count| peak(count, Some(WITH_METADATA), IoOpcode::COPY, blocks, 0));
    assert!(one > 8 * MIB && many < one + 20 * MIB, "{one} and {many} bytes");
}

#[test]
fn commands_share_the_memory_in_which_they_hold_data() {
    // 4 MiB each; with 8 bytes of metadata it is a sixteenth more.
    let blocks = (4 << 20) / 512;
    for (format, opcode, blocks) in
        [(None, IoOpcode::COMPARE, blocks), (Some(PROTECTED), IoOpcode::VERIFY, BLOCKS as u32)]
    {
        let [few, many] =
            [4, MANY].map(|count| peak(count, format, opcode, blocks, if format.is_some() { GUARD } else { 0 }));
        assert!(many > few + 32 * MIB && many < few + 64 * MIB, "{opcode:?}: {few} and {many} bytes");
    }
}
