//! Over NVMe/TCP to a drive that runs in real time, with power cuts by its fault plan. The store continues, and is
//! recovered over another connection.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Ssd;
use nandscape_drive::{HostMem, Issuer};
use nandscape_host_driver::nvme_tcp::{AdminQueue, NvmeTcp};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::log::{SMART, Smart};
use zerocopy::FromBytes;

use crate::polled;
use crate::reference::{Map, operate};
use crate::rig::{Form, live, open, resolved};

#[path = "../../../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use server::{Server, SsdExport};

/// Power cuts, and operations of the flash between them.
const CUTS: u64 = 30;
const BETWEEN: u64 = 300;

fn export(sim: &Sim, form: &Form) -> Rc<SsdExport> {
    let ssd = Ssd::new(sim, &resolved(form), StoreKind::Ram, Seed::new(1)).expect("memory");
    for cut in 1..=CUTS {
        let rule = format!("power_cut nth={} off=1ms", cut * BETWEEN);
        ssd.media().faults().add(rule.parse().expect("a rule"));
    }
    SsdExport::of(sim, ssd)
}

/// The power cuts of a drive so far.
async fn power_cuts(issuer: &Issuer, drive: &Rc<NvmeTcp>) -> u64 {
    let mem = HostMem::zeroed(size_of::<Smart>());
    let entry = SubmissionEntry::get_log_page(SMART, u32::MAX, mem.len() as u32);
    let told = issuer.execute(&AdminQueue::of(drive), entry, mem.clone()).await;
    assert!(told.status.is_success(), "{told:?}");
    Smart::read_from_bytes(&mem.to_vec()).expect("memory of its size").unsafe_shutdowns.low.get()
}

fn runs_over_the_network(form: Form) {
    let server = Server::of(None, 1 << 30, move |sim| export(sim, &form));
    let (mut map, mut rng) = (Map::new(), Seed::new(1).child("operations").rng());
    let mut cuts = 0;
    for opening in 0..3 {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let (drive, issuer) = (polled::connected(&sim, &server.address, &server.nqn), Issuer::new(&sim));
        let ran = executor.block_on(async {
            let store = open(&sim, drive.clone(), &form).await.expect("a store");
            for number in 0..1_500 {
                operate(&store, &mut map, &mut rng, opening * 10_000 + number).await;
            }
            store.commit().await.expect("a drive that goes on");
            let all = store.scan(&[], usize::MAX).await.expect("a drive that goes on");
            assert!(all.into_iter().eq(map.clone()), "{form:?}: the store is not the map");
            store.settle().await.expect("a drive that goes on");
            assert!(store.stats().merges > 0 || opening == 0);
            power_cuts(&issuer, &drive).await
        });
        cuts = ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
    }
    assert!(cuts >= 3, "{form:?}: only {cuts} power cuts");
}

#[test]
fn a_store_on_runs_goes_over_the_network() {
    runs_over_the_network(live()[0]);
}

#[test]
fn a_store_on_a_conventional_drive_goes_over_the_network() {
    runs_over_the_network(live()[1]);
}
