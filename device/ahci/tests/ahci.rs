//! Ports over drives of a fixed latency and over disks: slots, the shared uplink, and the checks that every drive must pass.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ahci::{Ahci, Config};
use nandscape_device_disk::{Disk, DiskSpec, Seek};
use nandscape_drive::conformance::{self, Subject};
use nandscape_drive::io::Sink;
use nandscape_drive::testing::{FakeDrive, INFO, Servers};
use nandscape_drive::{CommandRef, Completion, Drive, HostMem, Io, Token};
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// The time of each command in the drives.
const DRIVE: Span = Span::from_us(100);

/// The ends of commands, by tag, with the breakdowns of their layers.
struct Ended(Sim, RefCell<Vec<(u64, Time, Completion)>>);

impl Sink for Ended {
    fn complete(&self, tag: u64, completion: Completion) {
        self.1.borrow_mut().push((tag, self.0.now(), completion));
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

struct Rig {
    executor: Executor,
    ahci: Ahci,
    ended: Rc<Ended>,
}

/// A controller whose uplink takes 10 us for a command of 8 blocks, over drives that serve all commands at once.
fn rig(ports: usize, slots: u32) -> Rig {
    let executor = Executor::with_spurious_polls();
    let sim = executor.sim();
    let bytes = 8 * u64::from(INFO.lba_bytes);
    let config = Config { slots, uplink: Rate::new(bytes, Span::from_us(10)), ..Config::default() };
    let drive = |_| FakeDrive::new(&sim, INFO, Servers::Unlimited, DRIVE).connect() as Rc<dyn Drive>;
    let ahci = Ahci::new(&sim, config, (0..ports).map(drive).collect()).unwrap();
    Rig { executor, ahci, ended: Rc::new(Ended(sim, RefCell::default())) }
}

impl Rig {
    fn submit(&self, port: usize, tag: u64, opcode: IoOpcode) {
        let token = Token::new(self.ended.clone(), tag);
        let command = SubmissionEntry::blocks(opcode, 1, 0, 8);
        self.ahci.ports()[port].submit(Io { command, mem: HostMem::none(), token });
    }

    /// The end of each command in microseconds, in the order of tags.
    fn run(&mut self) -> Vec<u64> {
        self.executor.block_on(self.ended.0.sleep(Span::from_ms(10))).unwrap();
        let mut ended: Vec<(u64, u64)> =
            self.ended.1.borrow().iter().map(|(tag, at, _)| (*tag, at.since(Time::ZERO).ns() / 1_000)).collect();
        ended.sort_unstable();
        ended.into_iter().map(|(_, at)| at).collect()
    }
}

#[test]
fn reads_of_all_ports_cross_the_uplink_one_after_the_other() {
    let mut rig = rig(3, 32);
    (0..3).for_each(|port| rig.submit(port, port as u64, IoOpcode::READ));
    assert_eq!(rig.run(), [110, 120, 130]);
    assert_eq!(rig.ahci.counters().to_host, Span::from_us(30));
    for (_, at, completion) in rig.ended.1.borrow().iter() {
        let crossing: Span = completion.breakdown.causes().map(|(.., span)| span).sum();
        assert_eq!(crossing, at.since(Time::ZERO) - DRIVE);
        assert!(completion.breakdown.causes().all(|(layer, cause, _)| (layer, cause) == ("ahci", "uplink")));
    }
}

#[test]
fn the_data_of_writes_crosses_before_the_drive_has_them_and_does_not_wait_for_that_of_reads() {
    let mut rig = rig(2, 32);
    rig.submit(0, 0, IoOpcode::WRITE);
    rig.submit(1, 1, IoOpcode::WRITE);
    rig.submit(0, 2, IoOpcode::READ);
    rig.submit(0, 3, IoOpcode::FLUSH);
    assert_eq!(rig.run(), [110, 120, 110, 100]);
    assert_eq!(rig.ahci.counters().to_drives, Span::from_us(20));
}

#[test]
fn commands_beyond_the_slots_of_a_port_wait_in_line() {
    let mut rig = rig(2, 2);
    (0..4).for_each(|tag| rig.submit(0, tag, IoOpcode::FLUSH));
    rig.submit(1, 4, IoOpcode::FLUSH);
    assert_eq!(rig.run(), [100, 100, 200, 200, 100]);
    assert_eq!(rig.ahci.counters().waited, 2);
    let ended = rig.ended.1.borrow();
    let (_, _, last) = ended.iter().find(|(tag, ..)| *tag == 3).unwrap();
    assert_eq!(last.breakdown.causes().collect::<Vec<_>>(), [("ahci", "slot", DRIVE)]);
}

#[test]
fn a_command_in_line_can_be_cancelled() {
    let mut rig = rig(1, 1);
    (0..3).for_each(|tag| rig.submit(0, tag, IoOpcode::FLUSH));
    let of = |tag| CommandRef::new(&(rig.ended.clone() as Rc<dyn Sink>), tag);
    assert!(rig.ahci.ports()[0].cancel(of(1)));
    assert_eq!(rig.run(), [100, 0, 200]);
    assert_eq!(rig.ended.1.borrow()[0].2.status, Status::ABORT_REQUESTED);
}

#[test]
fn a_controller_without_drives_is_refused() {
    let sim = Executor::new().sim();
    assert!(Ahci::new(&sim, Config::default(), Vec::new()).err().unwrap().contains("1 to 32"));
}

#[test]
fn a_port_passes_the_checks_that_every_drive_must() {
    let us = Span::from_us;
    let seek = Seek { single: us(200), average: us(1_000), full: us(2_000) };
    let spec =
        DiskSpec { cylinders: 64, heads: 2, sectors: 64, read: seek, write: seek, ..DiskSpec::constellation_2() };
    for (slots, uplink) in [(32, "1.5GB/s"), (2, "10MB/s"), (1, "unlimited")] {
        let config = Config { slots, uplink: uplink.parse().unwrap(), ..Config::default() };
        let make = |sim: &Sim| {
            let disk = Disk::new(sim, &spec).expect("a possible disk");
            let ahci = Ahci::new(sim, config.clone(), vec![disk]).unwrap();
            Subject::new(ahci.ports()[0].clone())
        };
        conformance::all(&make, 1).unwrap_or_else(|what| panic!("{slots} {uplink}: {what}"));
    }
}
