//! Copy and Write Uncorrectable: the data read afterwards, and every limit.

use crate::common::{BLOCKS, Drive, config, host, read, with, write};
use nandscape_device_controller::ControllerConfig;
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::Sim;
use nandscape_wire_nvme::io::{CopyRange, LongCopyRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

fn range(slba: u64, blocks: u16) -> CopyRange {
    CopyRange { slba: slba.into(), nlb_z: (blocks - 1).into(), ..CopyRange::default() }
}

/// Copies ranges of (first block, blocks) to `to`.
async fn copy(io: &Host, to: u64, ranges: &[(u64, u16)]) -> Status {
    let list: Vec<CopyRange> = ranges.iter().map(|(slba, blocks)| range(*slba, *blocks)).collect();
    let entry = SubmissionEntry::copy(1, to, ranges.len() as u32, 0);
    io.execute(entry, HostMem::from_bytes(list.as_bytes())).await.unwrap().status
}

/// Fills block `slba` with `value`.
async fn fill(io: &Host, slba: u64, value: u8) {
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 1);
    assert!(io.execute(entry, HostMem::from_bytes(&[value; 512])).await.unwrap().status.is_success());
}

/// The first byte of each block, or the status of the read.
async fn values(io: &Host, slba: u64, blocks: u32) -> Result<Vec<u8>, Status> {
    let mem = HostMem::zeroed(blocks as usize * 512);
    match io.execute(read(slba, blocks), mem.clone()).await.unwrap().status {
        Status::SUCCESS => Ok(mem.to_vec().chunks(512).map(|block| block[0]).collect()),
        status => Err(status.meaning()),
    }
}

#[test]
fn several_ranges_come_one_after_the_other() {
    with(config(), async |sim, drive| {
        let io = host(sim, drive, QueueId(1));
        for block in 0..20 {
            fill(&io, block, block as u8 + 1).await;
        }
        assert_eq!(copy(&io, 100, &[(5, 3), (0, 1), (30, 2), (18, 2)]).await, Status::SUCCESS);
        assert_eq!(values(&io, 99, 10).await, Ok(vec![0, 6, 7, 8, 1, 0, 0, 19, 20, 0]));
        // Overlapping: the earlier data of the source.
        assert_eq!(copy(&io, 1, &[(0, 6)]).await, Status::SUCCESS);
        assert_eq!(values(&io, 0, 8).await, Ok(vec![1, 1, 2, 3, 4, 5, 6, 8]));
        let long = LongCopyRange { slba: 7.into(), nlb_z: 0.into(), ..LongCopyRange::default() };
        let entry = SubmissionEntry::copy(1, 200, 1, 1);
        let ended = io.execute(entry, HostMem::from_bytes(long.as_bytes())).await.unwrap();
        assert_eq!((ended.status, values(&io, 200, 1).await), (Status::SUCCESS, Ok(vec![8])));
    });
}

#[test]
fn each_limit_of_copy_has_its_status() {
    with(config(), async |sim, drive| {
        let io = host(sim, drive, QueueId(1));
        let too_much = Status::COMMAND_SIZE_LIMIT_EXCEEDED.final_().with_more();
        assert_eq!(copy(&io, 0, &[(0, 256); 8]).await, Status::SUCCESS, "the most of a range, and in all");
        assert_eq!(copy(&io, 0, &[(0, 257)]).await, too_much, "a range");
        assert_eq!(copy(&io, 0, &[(0, 228); 9]).await, too_much, "all ranges together");
        assert_eq!(copy(&io, 0, &[(0, 1); 129]).await, too_much, "the number of ranges");
        let beyond = Status::LBA_OUT_OF_RANGE.final_().with_more();
        assert_eq!(copy(&io, 0, &[(0, 1), (BLOCKS, 1)]).await, beyond);
        assert_eq!(copy(&io, BLOCKS - 1, &[(0, 2)]).await, beyond);
        let entry = SubmissionEntry::copy(1, 0, 1, 2);
        let ended = io.execute(entry, HostMem::zeroed(64)).await.unwrap().status;
        assert_eq!(ended.meaning(), Status::INVALID_FIELD, "a format that is not offered");
    });
}

#[test]
fn blocks_written_uncorrectable_fail_until_they_are_rewritten() {
    with(config(), async |sim, drive| {
        let io = host(sim, drive, QueueId(1));
        let (entry, mem) = write(0, 32);
        assert!(io.execute(entry, mem).await.unwrap().status.is_success());
        let bad = SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, 5, 6);
        assert_eq!(io.execute(bad, HostMem::none()).await.unwrap().status, Status::SUCCESS);
        assert_eq!(values(&io, 5, 1).await, Err(Status::UNRECOVERED_READ_ERROR));
        assert_eq!(values(&io, 0, 5).await, Ok(vec![7; 5]));
        assert_eq!(values(&io, 11, 5).await, Ok(vec![7; 5]));
        assert_eq!(copy(&io, 40, &[(0, 5), (4, 3)]).await.meaning(), Status::UNRECOVERED_READ_ERROR);
        assert_eq!(values(&io, 40, 5).await, Ok(vec![0; 5]), "nothing of it is written");
        fill(&io, 6, 9).await;
        assert_eq!(values(&io, 6, 1).await, Ok(vec![9]));
        assert_eq!(values(&io, 6, 2).await, Err(Status::UNRECOVERED_READ_ERROR));
        let zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 5, 6);
        assert!(io.execute(zeroes, HostMem::none()).await.unwrap().status.is_success());
        assert_eq!(values(&io, 4, 8).await, Ok(vec![7, 0, 0, 0, 0, 0, 0, 7]));
        let beyond = SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, BLOCKS, 1);
        let ended = io.execute(beyond, HostMem::none()).await.unwrap().status;
        assert_eq!(ended.meaning(), Status::LBA_OUT_OF_RANGE);
    });
}

/// Copies that together exceed the controller's memory wait for each other, and the memory stays bounded.
#[test]
fn many_copies_share_the_memory_of_the_controller() {
    // 8 MiB each: the first half of the drive to the second.
    let list: Vec<CopyRange> = (0..8).map(|number| range(number * 2_048, 2_048)).collect();
    let copies = async |sim: &Sim, drive: &Drive, copies: u64| {
        let io = host(sim, drive, QueueId(1));
        for part in 0..8 {
            let (entry, mem) = write(part * 2_048, 2_048);
            assert!(io.execute(entry, mem).await.unwrap().status.is_success());
        }
        for block in 0..8 {
            fill(&io, block, block as u8 + 1).await;
        }
        for _ in 0..copies {
            io.submit(SubmissionEntry::copy(1, BLOCKS / 2, 8, 0), HostMem::from_bytes(list.as_bytes()));
        }
        for _ in 0..copies {
            assert!(io.next().await.unwrap().completion.status.is_success());
        }
        assert_eq!(values(&io, BLOCKS / 2, 8).await, Ok(vec![1, 2, 3, 4, 5, 6, 7, 8]));
    };
    let config = || ControllerConfig { max_transfer: 1 << 20, ..config() };
    let peak = |count| {
        let run = || with(config(), async |sim, drive| copies(sim, drive, count).await);
        allocation_counter::measure(run).bytes_max
    };
    let (two, twenty) = (peak(2), peak(20));
    // The flash fills meanwhile, with 32 MiB at most.
    assert!(two > 16 << 20 && twenty < two + (40 << 20), "{two} and {twenty} bytes");
}

/// The limits in Identify are the ones enforced.
#[test]
fn identify_tells_the_limits() {
    use nandscape_wire_nvme::identify::{Controller, Namespace, cns};
    use zerocopy::FromBytes;
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let identify = async |cns, nsid| {
            let mem = HostMem::zeroed(4_096);
            let ended = admin.execute(SubmissionEntry::identify(cns, nsid), mem.clone()).await.unwrap();
            assert!(ended.status.is_success());
            mem.to_vec()
        };
        let namespace = Namespace::read_from_bytes(&identify(cns::NAMESPACE, 1).await).unwrap();
        assert_eq!((namespace.mssrl.get(), namespace.mcl.get(), namespace.msrc_z), (256, 2_048, 127));
        let controller = Controller::read_from_bytes(&identify(cns::CONTROLLER, 0).await).unwrap();
        assert_eq!(controller.copy_formats.get(), 0b11);
    });
}
