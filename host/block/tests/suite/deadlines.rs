//! Reads with deadlines next to a neighbour that writes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_media::Priority;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_block::{BlockLayer, DeadlineGroup, Unchecked};
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

/// Runs reads with deadlines; returns the numbers of rejected, served and late ones.
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

/// How many of `count` concurrent reads were served and rejected; none was later than its deadline.
async fn burst(sim: &Sim, drive: &Rc<dyn Drive>, count: u64, deadline: u32) -> (u32, u32) {
    let ended = Rc::new(Cell::new((0, 0)));
    for number in 0..count {
        let (of, drive, ended) = (sim.clone(), drive.clone(), ended.clone());
        sim.spawn(async move {
            let (issuer, begun) = (Issuer::new(&of), of.now());
            let completion = issuer.execute(&*drive, read(number * 64, deadline), HostMem::zeroed(4_096)).await;
            let (served, busy) = ended.get();
            if completion.status.meaning() == BUSY {
                assert!(of.now() - begun <= Span::from_us(deadline.into()), "{}", of.now() - begun);
                ended.set((served, busy + 1));
            } else {
                assert!(completion.status.is_success());
                ended.set((served + 1, busy));
            }
        });
    }
    sim.sleep(Span::from_ms(50)).await;
    ended.get()
}

#[test]
fn what_waits_in_the_layer_is_known_before_a_read_is_let_in() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &[]);
            let (layer, _) = layer(&sim, &ssd, &["block.depth=1"], Priority::ReadsFirst);
            fill(&sim, &*queue(&sim, &ssd, 2), 4_096).await;
            let drive: Rc<dyn Drive> = layer.over(queue(&sim, &ssd, 1));
            // The service time of a read is measured.
            burst(&sim, &drive, 64, 100_000).await;
            let before = layer.counted();
            let (served, busy) = burst(&sim, &drive, 64, 1_000).await;
            assert!(served > 8 && busy > 8 && served + busy == 64, "{served} {busy}");
            let counted = layer.counted();
            let cancelled = counted.cancelled - before.cancelled;
            assert!(cancelled * 8 <= u64::from(busy), "most were rejected as they came: {cancelled} of {busy}");
            assert!(layer.addrcheck(0, 8, Span::from_us(300)).is_ok(), "nothing waits any more");
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
            fill(&sim, &*queue(&sim, &ssd, 2), 4_096).await;
            let drive: Rc<dyn Drive> = layer.over(queue(&sim, &ssd, 1));
            // The service time of writes is unknown yet, and these end only once they are on flash.
            for slba in [8_192, 8_448, 8_704, 8_960] {
                let (of, drive) = (sim.clone(), drive.clone());
                sim.spawn(async move {
                    let mut write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 256);
                    write.cdw12 = (write.cdw12.get() | 1 << 30).into();
                    Issuer::new(&of).execute(&*drive, write, HostMem::zeroed(256 * 512)).await;
                });
            }
            sim.sleep(Span::from_us(1)).await;
            let (served, busy) = burst(&sim, &drive, 4, 500).await;
            assert_eq!((served, busy, layer.counted().cancelled, layer.counted().rejected), (0, 4, 4, 0));
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
fn a_group_of_reads_ends_in_one_deadline_or_tells_which_was_rejected() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &["controller.priority=fifo"]);
            let (layer, _) = layer(&sim, &ssd, &[], Priority::Fifo);
            let drive = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 4_096).await;
            neighbour(&sim, layer.over(queue(&sim, &ssd, 2)));
            let (issuer, all) = (Issuer::new(&sim), Span::from_us(400));
            let (mut whole, mut rejected) = (0, 0);
            for round in 0..400u64 {
                sim.sleep(Span::from_us(150)).await;
                let (group, begun) = (DeadlineGroup::new(&sim, all), sim.now());
                let mut ended = Vec::new();
                for number in 0..3 {
                    let mut one = read((round * 3 + number) % 500 * 8, 0);
                    if !group.tag(&mut one) {
                        break;
                    }
                    let status = issuer.execute(&*drive, one, HostMem::zeroed(4_096)).await.status;
                    ended.push(status.meaning());
                    if ended.last() == Some(&BUSY) {
                        break;
                    }
                }
                match ended.last() {
                    Some(&BUSY) => {
                        assert!(sim.now() - begun < all + Span::from_us(20), "no later than what was left");
                        rejected += 1;
                    }
                    _ => whole += u32::from(ended.len() == 3 && sim.now() - begun <= all),
                }
            }
            assert!(whole > 40 && rejected > 40, "{whole} {rejected}");
        })
        .unwrap();
}

#[test]
fn where_nothing_is_predicted_addrcheck_says_that_it_does_not_know() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &[]);
            for predictor in ["block.predictor=told", "block.predictor=none"] {
                let layer = BlockLayer::new(&sim, config(&[predictor]), None);
                assert_eq!(layer.addrcheck(0, 8, Span::from_us(1)), Err(Unchecked::Unknown));
                assert_eq!(layer.addrcheck(0, 8, Span::ZERO), Ok(()), "any time is in time");
                assert!(layer.predict(0, 8).is_none());
            }
            let (layer, _) = layer(&sim, &ssd, &[], Priority::ReadsFirst);
            fill(&sim, &*layer.over(queue(&sim, &ssd, 1)), 256).await;
            assert!(
                matches!(layer.addrcheck(0, 8, Span::from_us(1)), Err(Unchecked::Busy(busy)) if !busy.latency.is_zero())
            );
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

/// Reads that wait in a layer without a predictor, above one that has one: what is left of their deadlines decides.
#[test]
fn a_read_keeps_its_due_time_while_it_waits_in_a_layer_above() {
    const DEADLINE: u32 = 300;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ended = executor.block_on(async {
        let ssd = ssd(&sim, &[]);
        let (low, _) = layer(&sim, &ssd, &[], Priority::Fifo);
        let top = BlockLayer::new(&sim, config(&["block.predictor=none", "block.depth=1"]), None);
        let drive = top.over(low.over(queue(&sim, &ssd, 1)));
        fill(&sim, &*drive, 4_096).await;
        let ended = Rc::new(RefCell::new(Vec::new()));
        for number in 0..32 {
            let (sim, drive, ended) = (sim.clone(), drive.clone(), ended.clone());
            sim.clone().spawn(async move {
                let (issuer, begun) = (Issuer::new(&sim), sim.now());
                let done = issuer.execute(&*drive, read(number * 8, DEADLINE), HostMem::zeroed(4_096)).await;
                ended.borrow_mut().push((done.status.meaning() == BUSY, sim.now() - begun));
            });
        }
        sim.sleep(Span::from_ms(50)).await;
        ended.take()
    });
    let ended = ended.unwrap();
    let (rejected, served): (Vec<_>, Vec<_>) = ended.iter().partition(|(is_rejected, _)| *is_rejected);
    assert_eq!(ended.len(), 32);
    assert!(!served.is_empty() && rejected.len() > 20, "{ended:?}");
    let longest = served.iter().map(|(_, took)| *took).max().unwrap();
    assert!(longest <= Span::from_us(u64::from(DEADLINE) + 20), "{longest}");
}
