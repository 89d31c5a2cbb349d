//! Predictions against the model's own times, on loads without calibration; and the cost of a prediction.

use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::Priority;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_block::predictor::Predictor;
use nandscape_host_block::{Accuracy, Request};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{fill, layer, queue, read, seed, ssd};

/// A load of open arrivals: a share of writes, of some size, at a mean distance; reads have a deadline in
/// microseconds.
#[derive(Copy, Clone)]
struct Mix {
    writes: f64,
    blocks: u32,
    every: Span,
    deadline: u32,
}

async fn load(sim: &Sim, drive: Rc<dyn Drive>, mix: Mix, count: u32) {
    let mut rng = Seed::new(seed()).child("load").rng();
    let issuer = Rc::new(Issuer::new(sim));
    for _ in 0..count {
        sim.sleep(rng.exponential(mix.every.ns() as f64)).await;
        let places = 32_768 / u64::from(mix.blocks);
        let slba = rng.below(places) * u64::from(mix.blocks);
        let entry = match rng.chance(mix.writes) {
            true => SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, mix.blocks),
            false => read(slba & !7, mix.deadline),
        };
        let bytes = entry.blocks_in_a_row() as usize * 512;
        let (drive, issuer) = (drive.clone(), issuer.clone());
        sim.spawn(async move {
            issuer.execute(&*drive, entry, HostMem::zeroed(bytes)).await;
        });
    }
    sim.sleep(Span::from_ms(100)).await;
}

fn accuracy(settings: &[&str], changes: &[&str], priority: Priority, mix: Mix) -> Accuracy {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, changes);
            let (layer, _) = layer(&sim, &ssd, settings, priority);
            let drive = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 32_768).await;
            layer.count_anew();
            load(&sim, drive, mix, 6_000).await;
            layer.counted()
        })
        .unwrap()
}

fn describe(accuracy: &Accuracy) -> String {
    let Accuracy { compared, attached, false_positives, false_negatives, longer, shorter, .. } = accuracy;
    format!(
        "{compared} reads, {attached} late by prediction, {false_positives} false positives, {false_negatives} false negatives; \
         longer than said: {} (p50 {} p99 {}), shorter: {} (p50 {} p99 {})",
        longer.count(),
        longer.quantile(0.5),
        longer.quantile(0.99),
        shorter.count(),
        shorter.quantile(0.5),
        shorter.quantile(0.99)
    )
}

#[test]
fn predictions_are_right_on_several_loads_and_in_both_orders() {
    let loads = [
        Mix { writes: 0.0, blocks: 8, every: Span::from_us(30), deadline: 300 },
        Mix { writes: 0.2, blocks: 8, every: Span::from_us(100), deadline: 300 },
        Mix { writes: 0.1, blocks: 128, every: Span::from_us(600), deadline: 300 },
    ];
    let orders = [(&["controller.priority=fifo"][..], Priority::Fifo), (&[], Priority::ReadsFirst)];
    for (changes, priority) in orders {
        for mix in loads {
            let accuracy = accuracy(&["block.predict_only=true"], changes, priority, mix);
            let case = format!("seed {}, {priority:?}, {} writes of {}", seed(), mix.writes, mix.blocks);
            let is_right = accuracy.compared > 2_000 && accuracy.inaccuracy() < 0.005;
            assert!(is_right, "{case}: {}", describe(&accuracy));
            assert_eq!(accuracy.rejected, 0);
        }
    }
}

#[test]
fn what_waits_in_the_layer_is_part_of_what_is_predicted() {
    for (depth, us) in [("block.depth=1", 150), ("block.depth=4", 35)] {
        for scheduler in ["block.scheduler=noop", "block.scheduler=ssd"] {
            let mix = Mix { writes: 0.1, blocks: 8, every: Span::from_us(us), deadline: 300 };
            let settings = ["block.predict_only=true", depth, scheduler];
            let accuracy = accuracy(&settings, &[], Priority::ReadsFirst, mix);
            let case = format!("seed {}, {depth}, {scheduler}: {}", seed(), describe(&accuracy));
            let late = accuracy.false_negatives + accuracy.attached - accuracy.false_positives;
            assert!(late > 100, "reads wait in the layer: {case}");
            assert!(accuracy.inaccuracy() < 0.08, "{case}");
        }
    }
}

/// The vendor's sheet describes a new drive. This one was used and stored: its reads take retries, more for some
/// pages of a block than for others.
#[test]
fn a_drive_that_ages_is_predicted_better_where_its_reads_are_measured() {
    let aged = |resample: &str| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let ssd = ssd(&sim, &["wear.age=18months", "wear.shelf=3months"]);
                ssd.plant(Plant::Full, Seed::new(7), &mut |_| ());
                let settings = ["block.predict_only=true", resample];
                let (layer, _) = layer(&sim, &ssd, &settings, Priority::ReadsFirst);
                let drive = layer.over(queue(&sim, &ssd, 1));
                let mix = Mix { writes: 0.0, blocks: 8, every: Span::from_us(200), deadline: 150 };
                // The predictor learns from the first ones.
                load(&sim, drive.clone(), mix, 10_000).await;
                layer.count_anew();
                load(&sim, drive, mix, 6_000).await;
                layer.counted()
            })
            .unwrap()
    };
    let (with, without) = (aged("block.resample=true"), aged("block.resample=false"));
    let case = format!("seed {}: with {}; without {}", seed(), describe(&with), describe(&without));
    assert!(with.compared == without.compared && without.inaccuracy() > 0.1, "{case}");
    assert!(with.inaccuracy() * 2.0 < without.inaccuracy(), "{case}");
    let too_short = |accuracy: &Accuracy| accuracy.longer.quantile(0.5) * accuracy.longer.count();
    assert!(too_short(&with) * 2 < too_short(&without), "{case}");
}

#[test]
fn the_work_of_a_prediction_does_not_grow_with_what_is_under_way() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &[]);
            let (layer, mitt) = layer(&sim, &ssd, &[], Priority::ReadsFirst);
            let drive = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 4_096).await;
            let request = Request::of(&read(0, 100), None, sim.now());
            let work = || {
                let before = mitt.looks();
                mitt.predict(&request, sim.now());
                mitt.looks() - before
            };
            let idle = work();
            assert!(idle > 0);
            let issuer = Issuer::new(&sim);
            let mut under_way = Vec::new();
            for number in 0..4_096u64 {
                under_way.push(issuer.execute(&*drive, read(number % 512 * 8, 0), HostMem::zeroed(4_096)));
                assert_eq!(work(), idle);
            }
            for read in under_way {
                assert!(read.await.status.is_success());
            }
        })
        .unwrap();
}
