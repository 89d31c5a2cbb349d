//! A zone gets new contents, and a crash comes at each command of that: afterwards it has the former ones or the new ones, whole. Mistakes are
//! noticed: without the contents that are written aside some crash loses both, and a drive rejects what is appended behind torn blocks.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_apps_store::{Host, StoreError};
use nandscape_drive::Drive;
use nandscape_lab_crash::{Commands, Gate};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::Status;

use crate::drives::{Given, Member};
use crate::error::EngineError;
use crate::policy::Need;
use crate::zones::OWN;

const SIZE: usize = 64 << 10;
const ZONE: u64 = (OWN * SIZE) as u64;
const BLOCK: usize = 4_096;

async fn member(sim: &Sim, drive: Rc<dyn Drive>) -> Member {
    let given = Given { io: drive.clone(), admin: Some(drive) };
    Member::new(&Host::free(sim), 0, Some(given), (Need::Zones, Span::from_ms(10_000)))
        .await
        .expect("a drive with zones")
}

/// Runs work at a drive until a number of commands have been given, and tears what is under way. Whether the work has ended before.
fn until(disk: &Rc<Disk>, command: u64, work: impl AsyncFn(&Member) + 'static) -> bool {
    let mut executor = Executor::new();
    let (sim, is_done) = (executor.sim(), Rc::<Cell<bool>>::default());
    let commands = Commands::new(&sim);
    let drive = QueueingDrive::new(&sim, disk, Times::FLASH);
    let counting = Gate::counting(drive.clone(), &Rc::default(), &commands);
    let ran = executor.block_on(async {
        let (clock, done) = (sim.clone(), is_done.clone());
        sim.spawn(async move {
            work(&member(&clock, counting).await).await;
            done.set(true);
        });
        while commands.sent() < command && !is_done.get() {
            sim.sleep(Span::from_us(20)).await;
        }
    });
    drive.tear(&mut Seed::new(command).rng());
    ran.unwrap();
    is_done.get()
}

/// What the zone has.
fn contents(disk: &Rc<Disk>) -> Vec<u8> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = QueueingDrive::new(&sim, disk, Times::FLASH);
    let read = executor.block_on(async {
        let member = member(&sim, drive).await;
        member.read_background(ZONE, 4 * BLOCK).await.expect("a drive that serves")
    });
    read.unwrap()
}

fn blocks(bytes: [u8; 4]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [*byte; BLOCK]).collect()
}

/// A disk with a record of a store, and three blocks in the zone.
fn written() -> Rc<Disk> {
    let disk = Disk::with_zones(6 * SIZE, (SIZE, SIZE));
    let is_done = until(&disk, u64::MAX, async |member: &Member| {
        member.write_record(&[5; 64]).await.unwrap();
        member.write_in_order(ZONE, &blocks([1, 2, 3, 0])[..3 * BLOCK]).await.unwrap();
    });
    assert!(is_done);
    disk
}

/// The second block gets other bytes, and what is behind it stays. The contents after a crash at each command; `spoil` comes before they are
/// looked at.
fn crashes(spoil: impl Fn(&Disk)) -> Vec<Vec<u8>> {
    let (mut found, mut is_done) = (Vec::new(), false);
    while !is_done {
        let disk = written();
        is_done = until(&disk, found.len() as u64 + 1, async |member: &Member| {
            member.rewrite_at(ZONE + BLOCK as u64, &[7; BLOCK], ZONE + 3 * BLOCK as u64).await.unwrap();
        });
        spoil(&disk);
        found.push(contents(&disk));
    }
    found
}

#[test]
fn a_crash_at_any_command_leaves_the_former_contents_or_the_new_ones() {
    let (before, after) = (blocks([1, 2, 3, 0]), blocks([1, 7, 3, 0]));
    let found = crashes(|_| ());
    assert!(found.len() > 10 && found.iter().all(|found| *found == before || *found == after));
    assert_eq!([found.first(), found.last()], [Some(&before), Some(&after)]);
    let lost = crashes(|disk| (0..SIZE).step_by(BLOCK).for_each(|at| disk.spoil(2 * SIZE + at)));
    assert!(lost.iter().any(|lost| *lost != before && *lost != after), "the mistake is noticed");
}

#[test]
fn an_append_behind_what_a_crash_tore_is_rejected() {
    let disk = written();
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ran = executor.block_on(async {
        let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
        let [knowing, other] = [member(&sim, drive.clone()).await, member(&sim, drive).await];
        // The mistake: an engine that continues where the last whole chunk ends, and does not look where the zone is written next.
        other.write_in_order(ZONE + 3 * BLOCK as u64, &[9; BLOCK]).await.unwrap();
        let rejected = EngineError::Drive { drive: 0, error: StoreError::Drive(Status::ZONE_INVALID_WRITE) };
        assert_eq!(knowing.write_in_order(ZONE + 3 * BLOCK as u64, &[8; BLOCK]).await, Err(rejected.clone()));
        assert_eq!(other.write_in_order(ZONE + 3 * BLOCK as u64, &[8; BLOCK]).await, Err(rejected));
    });
    ran.unwrap();
}
