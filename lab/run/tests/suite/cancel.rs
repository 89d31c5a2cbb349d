//! Waiting commands are cancelled by the host that submitted them: each completes once, and the others complete as usual.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_lab_run::{Precondition, Rig, RigDrive, Wanted};
use nandscape_sim::{Seed, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

fn rig(command_slots: u32) -> Rig {
    let mut profile = Profile::load("default").unwrap();
    profile.set_all(["capacity=64MiB".to_owned(), format!("controller.command_slots={command_slots}")]).unwrap();
    let drive = RigDrive {
        name: "drive".to_owned(),
        profile: profile.resolve().unwrap(),
        store: StoreKind::None,
        precondition: Precondition::Full,
        seed: Seed::new(1),
    };
    Rig::build(vec![drive], Wanted::default(), &()).unwrap()
}

/// Issues four reads through a queue of `entries` entries, and cancels the last of them twice after 20 us.
fn cancel_the_last(entries: u32, command_slots: u32) -> (Vec<Status>, [bool; 2], [Span; 2]) {
    let mut rig = rig(command_slots);
    let (drive, sim) = (rig.connect(0, entries).unwrap(), rig.sim().clone());
    let nsid = drive.info().nsid;
    rig.run(async {
        let issuer = Rc::new(Issuer::new(&sim));
        let read = |place: u64| {
            let command = SubmissionEntry::blocks(IoOpcode::READ, nsid, place * 8, 8);
            issuer.execute(&*drive, command, HostMem::none())
        };
        let reads: Vec<_> = (0..4).map(read).collect();
        sim.sleep(Span::from_us(20)).await;
        let cancelled = [reads[3].cancel(&*drive), reads[3].cancel(&*drive)];
        let mut reads = reads.into_iter().rev();
        let last = reads.next().unwrap().await.status;
        let cancelled_at = sim.now();
        let mut statuses = vec![last];
        for read in reads {
            statuses.push(read.await.status);
        }
        (statuses, cancelled, [cancelled_at, sim.now()].map(|at| at.since(nandscape_sim::Time::ZERO)))
    })
    .unwrap()
}

const CANCELLED: [Status; 4] = [Status::ABORT_REQUESTED, Status::SUCCESS, Status::SUCCESS, Status::SUCCESS];

#[test]
fn what_waits_in_the_host_is_cancelled_at_once() {
    let (statuses, cancelled, [cancelled_at, ended]) = cancel_the_last(2, 64);
    assert_eq!((statuses, cancelled), (CANCELLED.to_vec(), [true, false]));
    assert_eq!(cancelled_at, Span::from_us(20));
    assert!(ended > Span::from_us(100), "one after the other: {ended}");
}

/// With a single command slot, three of them wait in the submission queue. The identifier that was aborted, twice asked, is
/// as good as any other afterwards.
#[test]
fn what_the_controller_has_not_fetched_is_aborted() {
    let (statuses, cancelled, [_, ended]) = cancel_the_last(8, 1);
    assert_eq!((statuses, cancelled), (CANCELLED.to_vec(), [true, false]));
    assert!(ended > Span::from_us(100), "one after the other: {ended}");
}

#[test]
fn what_the_flash_works_on_is_not() {
    let (statuses, cancelled, _) = cancel_the_last(8, 64);
    assert_eq!((statuses, cancelled), (vec![Status::SUCCESS; 4], [false, false]));
}
