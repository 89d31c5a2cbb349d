//! The control API over every way to a drive: a queue in this process, NVMe/TCP, and a PCI function. The drive is small, in steady state,
//! and without delays.
#![cfg(target_os = "linux")]

use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_host_control::{Control, Error};
use nandscape_host_driver::nvme_tcp::AdminQueue;
use nandscape_host_driver::vfio_user::FunctionDrive;
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, log};

#[path = "../../../host/driver/tests/vfio_user/server.rs"]
#[allow(dead_code, reason = "the driver's own tests use more of it")]
mod function;
#[path = "../../../host/driver/tests/shared/polled.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod polled;
#[path = "../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use server::{Server, SsdExport};

const SMALL: &[&str] =
    &["capacity=128MiB", "geometry.channels=2", "geometry.dies_per_channel=2", "controller.queue_pairs=8"];
const BYTES: u64 = 128 << 20;

fn ssd(sim: &Sim, name: &str) -> Ssd {
    let mut profile = Profile::load(name).unwrap();
    SMALL.iter().for_each(|change| profile.set(change).unwrap());
    let ssd = Ssd::new(sim, &profile.resolve().unwrap().without_delay(), StoreKind::None, Seed::new(1)).unwrap();
    if ssd.can_be_planted() {
        ssd.plant(Plant::Steady, Seed::new(2), &mut |_| ());
    }
    ssd
}

async fn write(sim: &Sim, drive: &dyn Drive) {
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, drive.info().nsid, 8, 8);
    let ended = Issuer::new(sim).execute(drive, entry, HostMem::zeroed(4_096)).await;
    assert_eq!(ended.status, Status::SUCCESS);
}

/// All of the API, on a drive with garbage if it is `worn`; of one with several FTLs on that of `io`.
async fn work(sim: &Sim, admin: Rc<dyn Drive>, io: &dyn Drive, worn: bool) {
    let control = Control::open(sim, admin, io.info().nsid).await.expect("a page-mapping drive");
    let space = control.space().await.unwrap();
    assert!(space.user_bytes == BYTES && space.device_bytes > BYTES, "{space:?}");
    assert_eq!(space.device_bytes, space.block_bytes * u64::from(space.blocks));
    assert_eq!((space.low, space.is_ready), (0, false));
    let invalid = Err(Error::Rejected(Status::INVALID_FIELD));
    assert_eq!(control.set_watermarks(space.high + 1, space.high).await, invalid);
    assert_eq!(control.set_watermarks(0, space.blocks + 1).await, invalid);

    let high = if worn { space.free + 4 } else { space.free };
    control.set_watermarks(1, high).await.unwrap();
    let run = control.run(Span::from_s(600)).await.unwrap();
    assert_eq!(run.is_accepted, worn);
    while control.space().await.unwrap().free < high {
        sim.sleep(Span::from_us(10)).await;
    }
    let ignored = control.run(Span::from_s(600)).await.unwrap();
    assert_eq!((ignored.is_accepted, ignored.free), (false, high), "it ends at the high watermark");

    while !control.is_ready_for_read().await.unwrap().is_ready {
        sim.sleep(Span::from_us(10)).await;
    }
    let space = control.space().await.unwrap();
    assert!(space.is_ready && !space.is_collecting && (space.low, space.high) == (1, high), "{space:?}");
    write(sim, io).await;
    assert!(!control.space().await.unwrap().is_ready, "a write ends it");
}

/// The scope of each order, as Commands Supported and Effects has it.
async fn scopes(sim: &Sim, admin: &dyn Drive) -> [u32; 3] {
    let (entry, mem) = (SubmissionEntry::get_log_page(log::COMMANDS_AND_EFFECTS, 0, 4_096), HostMem::zeroed(4_096));
    let ended = Issuer::new(sim).execute(admin, entry, mem.clone()).await;
    assert_eq!(ended.status, Status::SUCCESS);
    [0xc0, 0xc2, 0xc8].map(|opcode| {
        let mut effects = [0; 4];
        mem.read(4 * opcode, &mut effects);
        u32::from_le_bytes(effects) & !log::EFFECT_SUPPORTED
    })
}

#[test]
fn in_this_process() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = ssd(&sim, "default");
    let admin = QueueDrive::new(&sim, ssd.controller(), QueueId::ADMIN, 32).unwrap();
    let io = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 32).unwrap();
    executor.block_on(work(&sim, admin.clone(), &*io, true)).unwrap();
    assert_eq!(executor.block_on(scopes(&sim, &*admin)).unwrap(), [log::SCOPE_SUBSYSTEM; 3]);
    ssd.check().unwrap();
}

#[test]
fn over_nvme_tcp() {
    let server = Server::of(None, 1 << 30, |sim| SsdExport::of(sim, ssd(sim, "default")));
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = polled::connected(&sim, &server.address, &server.nqn);
    let admin = Rc::new(AdminQueue::of(&drive));
    executor.block_on(work(&sim, admin, &*drive, true)).unwrap();
}

/// The drive of this server is new.
#[test]
fn over_a_pci_function() {
    let server = function::Server::of("default", SMALL, DoorbellMode::Buffered);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = FunctionDrive::connect_with_admin(&server.path(), &[(8, None)], true);
    let (admin, mut drives) = drives.expect("a function");
    let (admin, drive) = (Rc::new(admin), Rc::new(drives.remove(0)));
    [&admin, &drive].into_iter().for_each(|drive| polled::poll(&sim, drive, FunctionDrive::poll));
    executor.block_on(work(&sim, admin.clone(), &*drive, false)).unwrap();
}

/// Orders to a drive with an FTL for each half of its channels reach that of the namespace, and no other.
#[test]
fn each_set_of_a_drive_takes_orders() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let halves = "version = 1\nbase = \"default\"\ncapacity = \"256MiB\"\n[geometry]\nchannels = 2\ndies_per_channel = 2\n\
                  [[ftl.parts]]\nname = \"even\"\nchannels = \"0\"\n[[ftl.parts]]\nname = \"odd\"\nchannels = \"1\"\n";
    let profile = Profile::parse("halves", halves).unwrap().resolve().unwrap().without_delay();
    let ssd = Ssd::new(&sim, &profile, StoreKind::None, Seed::new(1)).unwrap();
    ssd.plant(Plant::Steady, Seed::new(2), &mut |_| ());
    let admin = QueueDrive::new(&sim, ssd.controller(), QueueId::ADMIN, 32).unwrap();
    let work_on_both = async {
        let io = [1, 2]
            .map(|nsid| QueueDrive::of_namespace(&sim, ssd.controller(), nsid, QueueId(nsid as u16), 32).unwrap());
        let [even, odd] = [1, 2].map(|nsid| Control::open(&sim, admin.clone(), nsid));
        let (even, odd) = (even.await.unwrap(), odd.await.unwrap());
        let before = even.space().await.unwrap();
        work(&sim, admin.clone(), &*io[1], true).await;
        let after = even.space().await.unwrap();
        assert_eq!(after, before, "nothing has happened in the other half");
        let other = odd.space().await.unwrap();
        assert!((other.low, other.user_bytes) == (1, BYTES) && other.high != after.high, "{other:?} {after:?}");
        for nsid in [0, 3, u32::MAX] {
            let entry = SubmissionEntry { nsid: nsid.into(), ..SubmissionEntry::admin(AdminOpcode(0xc2)) };
            let ended = Issuer::new(&sim).execute(&*admin, entry, HostMem::zeroed(64)).await;
            assert_eq!(ended.status.meaning(), Status::INVALID_NAMESPACE, "namespace {nsid}");
        }
        assert_eq!(scopes(&sim, &*admin).await, [log::SCOPE_NVM_SET; 3]);
    };
    executor.block_on(work_on_both).unwrap();
    ssd.check().unwrap();
}

#[test]
fn drives_without_it_say_so_and_reject_its_commands() {
    for name in ["ox-block", "two-ftls", "ttflash"] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let mut profile = Profile::load(name).unwrap();
        profile.set("capacity=256MiB").unwrap();
        if name == "ttflash" {
            profile.set("ftl.over_provisioning=60%").unwrap();
        }
        let ssd = Ssd::new(&sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
        let admin = QueueDrive::new(&sim, ssd.controller(), QueueId::ADMIN, 32).unwrap();
        let work = async {
            let opened = Control::open(&sim, admin.clone(), 1).await.map(drop);
            assert_eq!(opened, Err(Error::Unsupported), "{name}");
            for opcode in [0xc0, 0xc2, 0xc8] {
                let entry = SubmissionEntry::admin(AdminOpcode(opcode));
                let ended = Issuer::new(&sim).execute(&*admin, entry, HostMem::zeroed(64)).await;
                assert_eq!(ended.status.meaning(), Status::INVALID_OPCODE, "{name}, {opcode:x}h");
            }
        };
        executor.block_on(work).unwrap();
    }
}
