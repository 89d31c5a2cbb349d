//! The windows of members that are real drives: the values that each has been given.

use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_layers_array::{Array, Member};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::vendor::{WINDOWS, Windows};
use zerocopy::{FromBytes, IntoBytes};

use crate::rig::{config, queue, shape, ssd};

async fn windows(sim: &Sim, admin: &dyn Drive) -> Windows {
    let mem = HostMem::zeroed(size_of::<Windows>());
    let ended = Issuer::new(sim).execute(admin, SubmissionEntry::get_features(WINDOWS), mem.clone()).await;
    assert!(ended.status.is_success());
    Windows::read_from_bytes(&mem.to_vec()).expect("the feature's bytes")
}

#[test]
fn dynamic_windows_of_a_quiet_array_grow_by_ten_milliseconds_each_fifty() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..4).map(|number| ssd(&sim, &[], number)).collect();
    let admins: Vec<Rc<dyn Drive>> = ssds.iter().map(|ssd| queue(&sim, ssd, 0)).collect();
    let member = |(ssd, admin): (&Rc<Ssd>, &Rc<dyn Drive>)| {
        let io = queue(&sim, ssd, 1);
        Member { reads: Some(queue(&sim, ssd, 2)), io, admin: Some(admin.clone()) }
    };
    let members = ssds.iter().zip(&admins).map(member).collect();
    let settings = config(&["array.technique=teafa", "array.windows=dynamic"]);
    let array = Array::new(&sim, shape("raid5:4"), settings, members).expect("a possible array");
    executor
        .block_on(async {
            for grown in 0..5 {
                sim.sleep(Span::from_ms(25)).await;
                assert_eq!(array.window(), Some(Span::from_ms(500 + grown * 10)));
                assert_eq!(windows(&sim, &*admins[3]).await.length.get(), (500 + grown * 10) * 1_000_000);
                sim.sleep(Span::from_ms(27)).await;
            }
        })
        .unwrap();
}

#[test]
fn a_spare_takes_over_the_windows_of_the_member_in_whose_place_it_is() {
    for technique in ["teafa", "harmonia"] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssds: Vec<Rc<Ssd>> = (0..5).map(|number| ssd(&sim, &[], number)).collect();
        let admins: Vec<Rc<dyn Drive>> = ssds.iter().map(|ssd| queue(&sim, ssd, 0)).collect();
        let member = |(ssd, admin): (&Rc<Ssd>, &Rc<dyn Drive>)| Member {
            io: queue(&sim, ssd, 1),
            reads: None,
            admin: Some(admin.clone()),
        };
        let members = ssds.iter().zip(&admins).map(member).collect();
        let settings = [&*format!("array.technique={technique}"), "array.window=20ms"];
        let array = Array::new(&sim, shape("raid5:4"), config(&settings), members).expect("a possible array");
        executor
            .block_on(async {
                sim.sleep(Span::from_ms(10)).await;
                for (number, admin) in admins.iter().enumerate() {
                    let told = windows(&sim, &**admin).await;
                    let position = if technique == "teafa" { number as u16 } else { 0 };
                    let expected = if number < 4 { (4, position, 20_000_000) } else { (0, 0, 0) };
                    assert_eq!((told.width.get(), told.position.get()), (expected.0, expected.1), "drive {number}");
                    assert!(number == 4 || told.length.get() == expected.2);
                }
                array.fail_member(2);
                sim.sleep(Span::from_ms(10)).await;
                let told = windows(&sim, &*admins[4]).await;
                let position = if technique == "teafa" { 2 } else { 0 };
                assert_eq!((told.width.get(), told.position.get(), told.length.get()), (4, position, 20_000_000));
            })
            .unwrap();
    }
}

#[test]
fn a_drive_that_was_away_gets_its_windows_again_and_an_array_that_ends_takes_them_with_it() {
    for windows_mode in ["static", "dynamic"] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssds: Vec<Rc<Ssd>> = (0..4).map(|number| ssd(&sim, &[], number)).collect();
        let admins: Vec<Rc<dyn Drive>> = ssds.iter().map(|ssd| queue(&sim, ssd, 0)).collect();
        let members = || {
            let member = |(ssd, admin): (&Rc<Ssd>, &Rc<dyn Drive>)| Member {
                io: queue(&sim, ssd, 1),
                reads: None,
                admin: Some(admin.clone()),
            };
            ssds.iter().zip(&admins).map(member).collect()
        };
        let settings = ["array.technique=teafa", &*format!("array.windows={windows_mode}"), "array.window=20ms"];
        let array = Array::new(&sim, shape("raid5:4"), config(&settings), members()).expect("a possible array");
        let widths = async || {
            let mut widths = Vec::new();
            for admin in &admins {
                widths.push(windows(&sim, &**admin).await.width.get());
            }
            widths
        };
        let forget = async |drive: usize| {
            let none = HostMem::from_bytes(Windows::none().as_bytes());
            Issuer::new(&sim).execute(&*admins[drive], SubmissionEntry::set_features(WINDOWS, 0), none).await
        };
        executor
            .block_on(async {
                sim.sleep(Span::from_ms(10)).await;
                let before = windows(&sim, &*admins[2]).await;
                assert!(forget(2).await.status.is_success());
                assert_eq!(widths().await, [4, 4, 0, 4]);
                array.drive_was_away(2);
                sim.sleep(Span::from_ms(10)).await;
                assert_eq!(windows(&sim, &*admins[2]).await, before, "the same turn of the same schedule");
                array.shut_down().await;
                array.end_windows(&[0, 1, 2, 3]).await;
                sim.sleep(Span::from_ms(200)).await;
                assert_eq!(widths().await, [0; 4]);
                drop(array);
                // One that was killed leaves them, and the next array ends them.
                let killed =
                    Array::new(&sim, shape("raid5:4"), config(&settings), members()).expect("a possible array");
                sim.sleep(Span::from_ms(10)).await;
                assert_eq!(widths().await, [4; 4]);
                drop(killed);
                let base = Array::new(&sim, shape("raid5:4"), config(&[]), members()).expect("a possible array");
                base.end_windows(&[0, 1, 2, 3]).await;
                assert_eq!(widths().await, [0; 4]);
            })
            .unwrap();
    }
}
