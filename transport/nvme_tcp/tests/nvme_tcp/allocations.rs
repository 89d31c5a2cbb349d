//! The target and the controller behind it allocate nothing for a command: runs of different lengths allocate as often. The
//! drive does nothing, so that only they are counted.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nandscape_device_controller::{Forward, NvmSubsystem, NvmeController, Offers};
use nandscape_drive::testing::INFO;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, Names, Subsystem};
use nandscape_sim::Sim;
use nandscape_transport_reactor::Export;
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::host::{Host, Pdu};
use crate::server::Server;

/// Commands of the shorter run, and how many more the longer one has.
const SHORT: u64 = 2_000;
const MORE: u64 = 8_000;

/// A drive that does nothing at once.
struct Null;

impl Drive for Null {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn submit(&self, io: Io) {
        io.token.complete(Completion::of(Status::SUCCESS));
    }
}

/// It behind a controller.
struct NullExport(Rc<NvmeController<Forward>>);

impl Export for NullExport {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(Rc::new(Null))
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.0.subsystem().clone())
    }
}

fn null(sim: &Sim) -> Rc<NullExport> {
    let (text, config) = (|text: &str| text.to_owned(), Forward::config(&INFO).unwrap());
    let names =
        Names { nqn: text("nqn.2026-11.org.nandscape:null"), serial: text("N"), model: text("N"), firmware: text("1") };
    let set = Forward::new(sim, Rc::new(Null), Offers::default());
    Rc::new(NullExport(NvmSubsystem::new(sim, set, config, names, Forward::arbiter).in_process()))
}

/// Allocations of the reactor's thread while `load` runs on a queue for so many commands.
fn allocations(commands: u64, load: impl FnOnce(&mut Host, u64)) -> u64 {
    let count = Arc::<AtomicU64>::default();
    let counted = count.clone();
    let server = Server::run_by(None, 1 << 30, null, move |reactor| {
        let mut figures = None;
        let info = allocation_counter::measure(|| figures = Some(reactor.run().unwrap().1));
        counted.store(info.count_total, Ordering::SeqCst);
        figures.expect("it has run")
    });
    let admin = Host::admin(&server, Digests::default());
    let mut queue = admin.queue(&server, 1, Digests::default());
    load(&mut queue, commands);
    drop((queue, admin));
    server.stop();
    count.load(Ordering::SeqCst)
}

/// Fewer than one for a hundred commands: figures and tables grow now and then.
fn allocates_nothing(name: &str, load: impl Fn(&mut Host, u64)) {
    let (short, long) = (allocations(SHORT, &load), allocations(SHORT + MORE, &load));
    let more = long.saturating_sub(short);
    assert!(more < MORE / 100, "{name}: {MORE} commands more make {more} allocations more ({short}, then {long})");
}

#[test]
fn commands_of_the_usual_size_allocate_nothing() {
    allocates_nothing("reads, one at a time", |queue, commands| {
        for round in 0..commands {
            assert_eq!(queue.read(round % 1_000 * 8, 8).0, Status::SUCCESS);
        }
    });
    allocates_nothing("reads, 32 at a time", |queue, commands| {
        for _ in 0..commands / 32 {
            for cid in 0..32u16 {
                let read = SubmissionEntry::blocks(IoOpcode::READ, 1, u64::from(cid) * 8, 8);
                let read = SubmissionEntry { cid: cid.into(), ..read.with_sgl(SglDescriptor::transport(4_096)) };
                queue.send_capsule(read, &[]);
            }
            let mut ended = 0;
            while ended < 32 {
                match queue.receive() {
                    Pdu::Response(entry) => ended += u32::from(entry.status() == Status::SUCCESS),
                    Pdu::Data(..) => {}
                    other => panic!("{other:?} was not to come"),
                }
            }
        }
    });
    allocates_nothing("writes in capsules", |queue, commands| {
        for round in 0..commands {
            assert_eq!(queue.write_in_capsule(round % 8 * 8, &[round as u8; 4_096]), Status::SUCCESS);
        }
    });
    allocates_nothing("writes by transfers", |queue, commands| {
        for round in 0..commands {
            assert_eq!(queue.write(round % 8 * 8, &[round as u8; 4_096], 4_096), Status::SUCCESS);
        }
    });
}
