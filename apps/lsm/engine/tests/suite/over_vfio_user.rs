//! To a drive of another process as a PCI function, with edits and reports in the driver's memory.

use std::rc::Rc;

use nandscape_apps_lsm_engine::RunStorage;
use nandscape_apps_store::Host;
use nandscape_host_driver::vfio_user::FunctionDrive;
use nandscape_sim::{Executor, Seed};
use nandscape_transport_vfio_user::DoorbellMode;

use crate::polled;
use crate::reference::{Map, operate};
use crate::rig::{live, open};

#[path = "../../../../../host/driver/tests/vfio_user/server.rs"]
#[allow(dead_code, reason = "the driver's own tests use more of it")]
mod server;

use server::Server;

const RUNS: &[&str] = &[
    "ftl.kind=lsm",
    "lba_size=4KiB",
    "buffer.mode=capacitor",
    "capacity=64MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.pages_per_block=32",
    "buffer.size=4MiB",
    "controller.queue_pairs=4",
];
const PAGES: &[&str] = &["capacity=64MiB", "controller.queue_pairs=4"];

#[test]
fn stores_of_both_forms_go_to_a_function() {
    for (form, changes) in live().into_iter().zip([RUNS, PAGES]) {
        let server = Server::of("default", changes, DoorbellMode::Buffered);
        let (mut map, mut rng) = (Map::new(), Seed::new(1).child("operations").rng());
        for opening in 0..2 {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let drives = FunctionDrive::connect_with_admin(&server.path(), &[(64, None)], true);
            let (admin, mut drives) = drives.expect("a function");
            let (admin, drive) = (Rc::new(admin), Rc::new(drives.remove(0)));
            [&admin, &drive].into_iter().for_each(|drive| polled::poll(&sim, drive, FunctionDrive::poll));
            let ran = executor.block_on(async {
                let is_known = RunStorage::is_known(&Host::free(&sim), &*admin).await.expect("it answers");
                assert_eq!(is_known, form.has_runs);
                let store = open(&sim, drive, &form).await.expect("a store");
                for number in 0..1_500 {
                    operate(&store, &mut map, &mut rng, opening * 10_000 + number).await;
                }
                let all = store.scan(&[], usize::MAX).await.expect("it answers");
                assert!(all.into_iter().eq(map.clone()), "{form:?}: the store is not the map");
                store.commit().await.expect("it answers");
                store.settle().await.expect("it answers");
            });
            ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
        }
    }
}
