//! The built-in open-channel drives against the tables from which they are derived (Picoli 2019, 4.4 and 4.6): one
//! parallel unit, and one channel. Figures that were not used for the derivation are within 15%.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_host_open_channel::{Geometry, Means, OpenChannel, Place};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::open_channel::{self as oc, GEOMETRY};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::FromBytes as _;

/// Pages that each thread writes and reads.
const PAGES: u32 = 256;

/// Has a host work on a drive with fewer blocks, over its admin queue and one for commands.
fn on<T>(profile: &str, changes: &[&str], work: impl AsyncFnOnce(Sim, (Rc<QueueDrive>, Rc<QueueDrive>)) -> T) -> T {
    let mut profile = Profile::load(profile).expect("a built-in profile");
    profile.set("geometry.blocks_per_plane=32").expect("a valid change");
    profile.set_all(changes).expect("valid changes");
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ran = async {
        let ssd = Ssd::new(&sim, &profile.resolve().expect("valid"), StoreKind::None, Seed::new(1)).expect("memory");
        let queue = |id| QueueDrive::new(&sim, ssd.controller(), id, 64).expect("a free queue pair");
        work(sim.clone(), (queue(QueueId::ADMIN), queue(QueueId(1)))).await
    };
    executor.block_on(ran).expect("it ends")
}

/// MB/s of writes and of reads of pages of 32 KiB, by one thread on each of the parallel units.
fn measured(profile: &str, units: &[(u32, u32)]) -> [f64; 2] {
    on(profile, &[], async |sim, (admin, drive)| {
        let host = OpenChannel::open(&sim, admin, drive.clone(), Means::Rows).await.expect("an open-channel drive");
        let mut rates = [0.0; 2];
        for (rate, opcode) in rates.iter_mut().zip([IoOpcode::WRITE, IoOpcode::READ]) {
            let begun = sim.now();
            pages(&sim, &drive, (host.geometry(), opcode), units).await;
            let bytes = f64::from(PAGES) * units.len() as f64 * 32_768.0;
            *rate = bytes / ((sim.now() - begun).ns() as f64 / 1e9) / 1e6;
        }
        rates
    })
}

/// One command a thread at a time.
async fn pages(sim: &Sim, drive: &Rc<QueueDrive>, (geometry, opcode): (&Geometry, IoOpcode), units: &[(u32, u32)]) {
    let blocks = geometry.ws_min;
    assert_eq!(blocks, 8, "a page of 32 KiB");
    let left = Rc::new(std::cell::Cell::new(units.len()));
    for (group, pu) in units.iter().copied() {
        let (drive, geometry, left, issuer) = (drive.clone(), *geometry, left.clone(), Issuer::new(sim));
        sim.spawn(async move {
            for page in 0..PAGES {
                let place = Place { group, pu, chunk: 1, sector: page * blocks };
                let entry = SubmissionEntry::blocks(opcode, drive.info().nsid, geometry.address(place), blocks);
                assert!(issuer.execute(&*drive, entry, HostMem::none()).await.status.is_success());
            }
            left.set(left.get() - 1);
        });
    }
    while left.get() > 0 {
        sim.sleep(nandscape_sim::Span::from_us(1)).await;
    }
}

fn within(what: &str, measured: f64, published: f64, share: f64) {
    assert!((measured / published - 1.0).abs() < share, "{what}: {measured:.2} MB/s, published {published:.2}");
}

#[test]
fn one_unit_and_one_channel_are_as_fast_as_measured() {
    let one = measured("dfc-mlc", &[(0, 0)]);
    within("dfc-mlc, one unit, writes", one[0], 16.81, 0.03);
    within("dfc-mlc, one unit, reads", one[1], 37.09, 0.03);
    let four = measured("dfc-mlc", &[(0, 0), (0, 1), (0, 2), (0, 3)]);
    within("dfc-mlc, four units of a channel, reads", four[1], 49.73, 0.03);
    within("dfc-mlc, four units of a channel, writes", four[0], 37.85, 0.15);
    let one = measured("cnex-westlake", &[(0, 0)]);
    within("cnex-westlake, one unit, writes", one[0], 17.81, 0.03);
    within("cnex-westlake, one unit, reads", one[1], 156.30, 0.03);
    let units: Vec<(u32, u32)> = (0..16).map(|group| (group, 0)).collect();
    let sixteen = measured("cnex-westlake", &units);
    within("cnex-westlake, a unit of each of 16 channels, writes", sixteen[0], 301.16, 0.15);
    within("cnex-westlake, a unit of each of 16 channels, reads", sixteen[1], 2_368.59, 0.15);
    let four = measured("cnex-westlake", &[(0, 0), (0, 1), (0, 2), (0, 3)]);
    within("cnex-westlake, four units of a channel, writes", four[0], 71.10, 0.15);
    within("cnex-westlake, four units of a channel, reads", four[1], 302.65, 0.15);
}

/// The time of resetting a full chunk, and the maximum that the drive reports.
fn reset_and_most(changes: &[&str]) -> (u64, u64) {
    on("dfc-mlc", &[&["geometry.pages_per_block=8"], changes].concat(), async |sim, (admin, drive)| {
        let entry = SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(GEOMETRY) };
        let mem = HostMem::zeroed(size_of::<oc::Geometry>());
        assert!(Issuer::new(&sim).execute(&*admin, entry, mem.clone()).await.status.is_success());
        let most = oc::Geometry::read_from_bytes(&mem.to_vec()).expect("it has the size").times[5].get();
        let host = OpenChannel::open(&sim, admin, drive, Means::Vector).await.expect("an open-channel drive");
        let geometry = *host.geometry();
        let first = geometry.address(Place { group: 0, pu: 0, chunk: 1, sector: 0 });
        for page in (first..first + u64::from(geometry.sectors)).step_by(geometry.ws_min as usize) {
            let addresses: Vec<u64> = (page..page + u64::from(geometry.ws_min)).collect();
            host.write(&addresses, &vec![0; addresses.len() * host.block_bytes()]).await.expect("a write");
        }
        host.flush().await.expect("a flush");
        let begun = sim.now();
        host.reset(&[first]).await.expect("a reset");
        ((sim.now() - begun).ns(), most.into())
    })
}

/// The planes of a parallel unit are erased at once, so a reset takes one erase and the controller's time for a
/// command.
#[test]
fn a_reset_takes_as_long_as_the_drive_says() {
    for (changes, erase_ms) in [(&[][..], 6), (&["wear.erase_growth=50%", "wear.cycles=3000"], 9)] {
        let (took, most) = reset_and_most(changes);
        assert_eq!(most, erase_ms * 1_000_000);
        assert!((most..most + 200_000).contains(&took), "{took} ns, the flash alone at most {most}");
    }
}
