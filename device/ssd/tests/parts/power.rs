//! A power cut reaches every FTL, and each recovers independently.

use std::rc::Rc;

use nandscape_drive::conformance::{Ask, Damaged, Host};
use nandscape_sim::{Executor, Span};

use crate::rig::{DIES, THREE, TWO, queue, read, resolved, ssd, write};

#[test]
fn power_cuts_lose_nothing_of_any_part() {
    let faults = "faults=['power_cut every=97 count=6', 'power_cut program channel=2 probability=1% count=3']";
    for mode in ["capacitor", "volatile", "through"] {
        for (parts, nsid, order) in [
            (TWO, 1, "free"),
            (TWO, 2, "free"),
            (DIES, 1, "free"),
            (DIES, 2, "free"),
            (DIES, 1, "rows"),
            (DIES, 2, "rows"),
        ] {
            let mut executor = Executor::new();
            let (mode, order) = (format!("buffer.mode={mode}"), format!("timing.interleaving={order}"));
            let (sim, profile) = (executor.sim(), resolved(parts, &[faults, &mode, &order]));
            let ssd = ssd(&sim, &profile);
            let counted = ssd.clone();
            let mut host = Damaged::new(&sim, queue(&sim, &ssd, nsid, 1), move || counted.media().power_cuts(), 7);
            let ended = executor.block_on(async {
                for _ in 0..40 {
                    host.round(&Ask::ALL).await?;
                }
                host.read_all().await
            });
            ended.unwrap().unwrap_or_else(|what| panic!("namespace {nsid}, {mode}: {what}"));
            ssd.check().unwrap();
            assert!(ssd.media().power_cuts() >= 3, "namespace {nsid}, {mode}");
            for part in ssd.parts() {
                assert_eq!(part.media().power_cuts(), ssd.media().power_cuts(), "{}", part.name());
            }
        }
    }
}

/// Both FTLs are being written at the power cut, and both are read afterwards.
#[test]
fn every_part_recovers_from_the_same_cut() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(THREE, &[]));
    let ssd = ssd(&sim, &profile);
    let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
    let cutter: Rc<_> = ssd.clone();
    let done = executor.block_on(async {
        for round in 0..5 {
            for nsid in 1..=3 {
                for block in 0..20 {
                    write(&host, nsid, block * 8, nsid as u8 + round * 3).await.unwrap();
                }
            }
            cutter.media().cut_power(Span::from_us(50));
            for nsid in 1..=3 {
                for block in 0..20 {
                    assert_eq!(read(&host, nsid, block * 8).await, Ok(nsid as u8 + round * 3), "{nsid} {round}");
                }
            }
        }
    });
    done.unwrap();
    assert_eq!(ssd.parts()[1].stats().upkeep.recovered.count, 5, "OX-Block has recovered each time");
    ssd.check().unwrap();
}

/// A rule that names a channel strikes the part that owns it.
#[test]
fn faults_strike_the_channel_of_the_drive() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(TWO, &["faults=['fail program channel=3 nth=1']"]));
    let ssd = ssd(&sim, &profile);
    let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
    let done = executor.block_on(async {
        for nsid in 1..=2 {
            for block in 0..400 {
                write(&host, nsid, block * 8 % host.info().blocks, 1).await.unwrap();
            }
        }
    });
    done.unwrap();
    let retired: Vec<u64> = ssd.parts().iter().map(|part| part.stats().retired_blocks).collect();
    assert_eq!((retired[0], ssd.media().faults().counts()[0].struck), (0, 1));
}
