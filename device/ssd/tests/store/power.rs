//! A simulated power cut, with rebuilt tables: the drive keeps what its mode promises, and reading the out-of-band areas
//! takes time.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Ssd;
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::host::{each_seed, small, verify, work};
use crate::model::Model;

#[test]
fn rebuilt_tables_hold_what_each_mode_promises() {
    for mode in ["capacitor", "volatile", "register", "through"] {
        each_seed(15, |seed| {
            let profile = small(mode, &["ftl.tables=rebuilt"]);
            let is_durable = ["capacitor", "through"].contains(&mode);
            let mut rng = Seed::new(seed).child(mode).rng();
            let mut executor = Executor::new();
            let sim = executor.sim();
            let ssd = Rc::new(Ssd::new(&sim, &profile, StoreKind::Ram, Seed::new(1)).unwrap());
            let mut model = Model::new(profile.capacity() as usize / 512);
            for _ in 0..3 {
                work(&mut executor, &ssd, &mut model, &mut rng, (40, is_durable));
                ssd.media().cut_power(Span::from_ms(1));
                verify(&mut executor, &ssd, &mut model).map_err(|what| format!("{mode}: {what}"))?;
            }
            Ok(())
        });
    }
}

/// One plane: each page that was programmed is read, after power has returned and blocks were checked.
#[test]
fn rebuilding_takes_the_time_of_reading_the_areas() {
    let first_read = |tables: &str| {
        let one_plane = ["geometry.channels=1", tables, "ftl.restart_time=0us", "timing.read=50us"];
        let profile = small("through", &one_plane);
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Rc::new(Ssd::new(&sim, &profile, StoreKind::Ram, Seed::new(1)).unwrap());
        let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 8).unwrap();
        let issuer = Issuer::new(&sim);
        let spent = executor.block_on(async {
            for page in 0..10 {
                let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, page * 32, 32);
                let done = issuer.execute(&*drive, write, HostMem::zeroed(32 * 512)).await;
                assert_eq!(done.status, Status::SUCCESS);
            }
            ssd.media().cut_power(Span::from_ms(1));
            let begun = sim.now();
            let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8);
            assert_eq!(issuer.execute(&*drive, read, HostMem::zeroed(4_096)).await.status, Status::SUCCESS);
            sim.now() - begun
        });
        spent.unwrap()
    };
    let (saved, rebuilt) = (first_read("ftl.tables=saved"), first_read("ftl.tables=rebuilt"));
    let more = rebuilt.ns() - saved.ns();
    assert!((10 * 50_000..20 * 60_000).contains(&more), "{more} ns more");
}
