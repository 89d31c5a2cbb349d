//! Reads with deadlines beside a neighbour that writes.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_media::Priority;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_block::{BlockLayer, DeadlineGroup};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{config, fill, layer, queue, read, seed, ssd};

/// Writes of 64 KiB, with pauses.
fn neighbour(sim: &Sim, drive: Rc<dyn Drive>) {
    let mut rng = Seed::new(seed()).child("neighbour").rng();
    let of = sim.clone();
    sim.spawn(async move {
        let issuer = Issuer::new(&of);
        for _ in 0..4_000 {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 32_768 + rng.below(128) * 128, 128);
            issuer.execute(&*drive, write, HostMem::zeroed(64 << 10)).await;
            of.sleep(Span::from_us(rng.below(3_000))).await;
        }
    });
}

/// Reads with deadlines: rejected and served ones, and those that were served too late.
fn run(settings: &[&str], changes: &[&str], priority: Priority, deadline: u32) -> (u32, u32, u32) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, changes);
            let (layer, _) = layer(&sim, &ssd, settings, priority);
            let drive = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 16_384).await;
            neighbour(&sim, layer.over(queue(&sim, &ssd, 2)));
            let (issuer, mut rng) = (Issuer::new(&sim), Seed::new(seed()).child("reads").rng());
            let (mut rejected, mut served, mut late) = (0, 0, 0);
            for _ in 0..2_000 {
                sim.sleep(Span::from_us(100 + rng.below(200))).await;
                let (mem, begun) = (HostMem::zeroed(4_096), sim.now());
                let ended = issuer.execute(&*drive, read(rng.below(2_047) * 8, deadline), mem.clone()).await;
                let took = sim.now() - begun;
                assert_eq!(ended.breakdown.total(), took);
                match ended.status.meaning() {
                    BUSY => {
                        assert!(took == Span::from_us(5) && ended.dw0 > 0, "{took} {}", ended.dw0);
                        rejected += 1;
                    }
                    _ => {
                        assert!(ended.status.is_success() && mem.to_vec() == [9; 4_096]);
                        served += 1;
                        late += u32::from(took > Span::from_us(deadline.into()));
                    }
                }
            }
            (rejected, served, late)
        })
        .unwrap()
}

#[test]
fn reads_that_would_be_late_are_rejected_and_the_others_are_in_time() {
    let (rejected, served, late) = run(&[], &["controller.priority=fifo"], Priority::Fifo, 300);
    assert!(rejected > 300 && served > 300 && late * 50 < served, "{rejected} {served} {late}");
    let (rejected, served, late) = run(&[], &[], Priority::ReadsFirst, 300);
    assert!(rejected > 100 && served > 300 && late * 50 < served, "{rejected} {served} {late}");
}

#[test]
fn long_deadlines_reject_nothing_and_short_ones_all() {
    assert_eq!(run(&[], &[], Priority::ReadsFirst, 3_000_000).0, 0);
    assert_eq!(run(&[], &[], Priority::ReadsFirst, 1).1, 0);
    assert_eq!(run(&["block.hop=100ms"], &[], Priority::ReadsFirst, 1).0, 0, "a hop costs more");
}

#[test]
fn a_striped_read_is_rejected_whole_and_nothing_of_it_reaches_the_flash() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &["controller.priority=fifo"]);
            let (layer, _) = layer(&sim, &ssd, &[], Priority::Fifo);
            let drive = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 4_096).await;
            neighbour(&sim, layer.over(queue(&sim, &ssd, 2)));
            sim.sleep(Span::from_ms(3)).await;
            let issuer = Issuer::new(&sim);
            let mut rejected = 0;
            for _ in 0..200 {
                sim.sleep(Span::from_us(150)).await;
                let one_is_busy = (0..16).any(|page| layer.addrcheck(page * 8, 8, Span::from_us(300)).is_err());
                let mut wide = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 128);
                wide.cdw3 = 300.into();
                let reads = ssd.op_counts().reads;
                let ended = issuer.execute(&*drive, wide, HostMem::zeroed(64 << 10)).await;
                if ended.status.meaning() == BUSY {
                    assert_eq!(ssd.op_counts().reads, reads);
                    rejected += 1;
                } else {
                    assert!(!one_is_busy, "one of its pages is behind a program");
                }
            }
            assert!(rejected > 20, "{rejected} of 200");
        })
        .unwrap();
}

#[test]
fn what_waits_in_the_layer_is_rejected_when_its_deadline_is_overtaken() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &[]);
            let (layer, _) = layer(&sim, &ssd, &["block.depth=1"], Priority::ReadsFirst);
            let drive = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 4_096).await;
            // The predictor knows chips, and not that one command at a time is at the drive.
            let ended = Rc::new(Cell::new((0, 0)));
            for number in 0..64 {
                let (of, drive, ended) = (sim.clone(), drive.clone(), ended.clone());
                sim.spawn(async move {
                    let issuer = Issuer::new(&of);
                    let begun = of.now();
                    let read = read(number * 64, 1_000);
                    let completion = issuer.execute(&*drive, read, HostMem::zeroed(4_096)).await;
                    let (served, busy) = ended.get();
                    if completion.status.meaning() == BUSY {
                        assert!(of.now() - begun <= Span::from_us(1_000), "{}", of.now() - begun);
                        ended.set((served, busy + 1));
                    } else {
                        assert!(completion.status.is_success());
                        ended.set((served + 1, busy));
                    }
                });
            }
            sim.sleep(Span::from_ms(50)).await;
            let (served, busy) = ended.get();
            assert!(served > 8 && busy > 8 && served + busy == 64, "{served} {busy}");
            assert!(layer.counted().cancelled > 0);
            let alone = Issuer::new(&sim).execute(&*drive, read(0, 1_000), HostMem::zeroed(4_096)).await;
            assert!(alone.status.is_success(), "the layer goes on");
        })
        .unwrap();
}

#[test]
fn a_group_has_one_deadline() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let group = DeadlineGroup::new(&sim, Span::from_us(250));
            let mut one = read(0, 0);
            assert!(group.tag(&mut one) && one.cdw3.get() == 250);
            sim.sleep(Span::from_us(200)).await;
            assert!(group.tag(&mut one) && one.cdw3.get() == 50);
            sim.sleep(Span::from_us(200)).await;
            assert!(!group.tag(&mut one) && one.cdw3.get() == 0, "nothing is left");
            let none = DeadlineGroup::new(&sim, Span::ZERO);
            assert!(none.tag(&mut one) && one.cdw3.get() == 0);
            let longest = DeadlineGroup::new(&sim, Span::MAX);
            assert!(longest.tag(&mut one) && one.cdw3.get() == u32::MAX);
        })
        .unwrap();
}

#[test]
fn a_drive_that_tells_its_own_work_is_asked_first() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &["controller.priority=fifo"]);
            let layer = BlockLayer::new(&sim, config(&["block.predictor=told"]), None);
            let drive = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 4_096).await;
            neighbour(&sim, layer.over(queue(&sim, &ssd, 2)));
            let (issuer, mut rejected, mut served) = (Issuer::new(&sim), 0, 0);
            for number in 0..2_000u64 {
                sim.sleep(Span::from_us(300)).await;
                let deadline = [1, 200, 1_000, 50_000][number as usize % 4];
                let (mem, begun) = (HostMem::zeroed(4_096), sim.now());
                let ended = issuer.execute(&*drive, read(number % 56 * 8, deadline), mem.clone()).await;
                assert_eq!(ended.breakdown.total(), sim.now() - begun);
                if ended.status.meaning() == BUSY {
                    assert!(ended.dw0 > deadline && sim.now() - begun < Span::from_us(20));
                    rejected += 1;
                } else {
                    assert!(ended.status.is_success() && mem.to_vec() == [9; 4_096]);
                    served += 1;
                }
            }
            assert!(rejected > 200 && served > 200, "{rejected} {served}");
            assert_eq!(layer.counted().rejected, rejected);
        })
        .unwrap();
}
