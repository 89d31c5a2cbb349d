//! Commands that keep the drive at work for long. The controller fetches as many as a guest has put. They are spread
//! over turns, in each of which the clients of other drives are served.

use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::host::{BASE, HALF, Host, PAGE};
use crate::long::{self, COMMANDS, Long};
use crate::server::Server;

/// A page in the second half of the memory, and one for a list of pages.
const DATA: u64 = HALF;
const LIST: u64 = HALF + PAGE;

/// Executes the commands, all at once.
fn execute(host: &mut Host, name: &str, entry: SubmissionEntry) {
    (0..COMMANDS).for_each(|cid| host.put(1, cid, entry));
    host.ring(1);
    for _ in 0..COMMANDS {
        assert_eq!(host.wait(1).status(), Status::SUCCESS, "{name}");
    }
}

#[test]
fn long_commands_take_a_bounded_part_of_each_turn() {
    for mode in [DoorbellMode::Mapped, DoorbellMode::Trapped] {
        let server = Server::run_by(1, mode, Long::new, |reactor| reactor.run().unwrap().1);
        let mut host = Host::start(&server.path(0));
        for (name, entry, data) in long::commands() {
            host.memory.write((DATA - BASE) as usize, &data).unwrap();
            execute(&mut host, name, SubmissionEntry { prp1: DATA.into(), ..entry });
            long::check(name, &server.handle.figures().unwrap());
        }
        server.stop();
    }
}

/// A Compare of 1 MiB with the same page of zeros again and again.
#[test]
fn compares_take_a_bounded_part_of_each_turn() {
    let server = Server::run_by(1, DoorbellMode::Mapped, Long::new, |reactor| reactor.run().unwrap().1);
    let mut host = Host::start(&server.path(0));
    host.memory.write((DATA - BASE) as usize, &[0; PAGE as usize]).unwrap();
    for at in 0..255 {
        host.memory.write((LIST - BASE + at * 8) as usize, &DATA.to_le_bytes()).unwrap();
    }
    let entry = SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 0, 2_048);
    execute(&mut host, "Compare", SubmissionEntry { prp1: DATA.into(), prp2: LIST.into(), ..entry });
    long::check("Compare", &server.handle.figures().unwrap());
    server.stop();
}
