//! The counts of commands and bytes: when a namespace has another format than when the host connected, for commands
//! that do not name a number of blocks, and without admin commands.

use nandscape_transport_reactor::handle::ExportFigures;
use nandscape_wire_nvme::io::CopyRange;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::host::Host;
use crate::server::Server;

/// Figures of the drive, once it has completed a number of commands.
fn figures(server: &Server, commands: u64) -> ExportFigures {
    let counted =
        |of: &ExportFigures| [&of.reads, &of.writes, &of.others].map(|tally| tally.latency.count()).iter().sum::<u64>();
    server.until(|figures| counted(&figures.exports[0]) == commands);
    server.handle.figures().unwrap().exports[0].clone()
}

/// Formats namespace 1 with an LBA format.
fn format(admin: &mut Host, index: u32) {
    let entry =
        SubmissionEntry { nsid: 1.into(), cdw10: index.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
    assert_eq!(admin.execute(entry).status(), Status::SUCCESS);
}

#[test]
fn bytes_are_those_of_the_format_that_the_namespace_has() {
    let server = Server::start();
    let (mut admin, mut queue) = Host::with_queue(&server);
    let write = |blocks| SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, blocks);
    assert_eq!(queue.capsule_command(write(2), &[1; 1_024]), Status::SUCCESS);
    assert_eq!(figures(&server, 1).writes.bytes, 1_024);
    // Blocks of 4 KiB.
    format(&mut admin, 1);
    assert_eq!(queue.capsule_command(write(2), &[1; 8_192]), Status::SUCCESS);
    let (status, _) = queue.read_command(SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 3), 3 * 4_096);
    assert_eq!(status, Status::SUCCESS);
    let counted = figures(&server, 3);
    assert_eq!((counted.writes.bytes, counted.reads.bytes), (1_024 + 8_192, 3 * 4_096));
    format(&mut admin, 0);
    // Its opcode is that of a read.
    let log = SubmissionEntry { cdw10: (2 | 127 << 16).into(), ..SubmissionEntry::admin(AdminOpcode::GET_LOG_PAGE) };
    assert_eq!(admin.read_command(log, 512).0, Status::SUCCESS);
    assert_eq!(queue.read(0, 8).0, Status::SUCCESS);
    assert_eq!(figures(&server, 4).reads.bytes, 3 * 4_096 + 4_096);
}

/// Dword 12 of Copy has the number of ranges, that of a reservation nothing.
#[test]
fn commands_without_a_number_of_blocks_count_no_bytes() {
    let server = Server::start();
    let (_admin, mut queue) = Host::with_queue(&server);
    let range = CopyRange { slba: 0.into(), nlb_z: 7.into(), ..CopyRange::default() };
    assert_eq!(queue.capsule_command(SubmissionEntry::copy(1, 100, 1, 0), range.as_bytes()), Status::SUCCESS);
    assert_eq!(queue.execute(SubmissionEntry::io(IoOpcode::FLUSH, 1)).status(), Status::SUCCESS);
    let register = SubmissionEntry::io(IoOpcode::RESERVATION_REGISTER, 1);
    assert_eq!(queue.capsule_command(register, &[0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]), Status::SUCCESS);
    let counted = figures(&server, 3);
    assert_eq!((counted.others.bytes, counted.writes.bytes, counted.reads.bytes), (0, 0, 0));
}
