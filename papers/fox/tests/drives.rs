//! Runs on simulated drives: throughput by hand, the same figures again, blocks that were used before, and plans that
//! do not fit.

use std::rc::Rc;

use nandscape_device_ssd::{Profile, Resolved};
use nandscape_papers_fox::{
    Benchmark, Choice, Engines, Mix, Outcome, Plan, Report, RunError, Unit, Wanted, WearPlan, render, run, simulated,
    tables, wear,
};
use nandscape_sim::Seed;

fn card(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("dfc-mlc").expect("a built-in profile");
    profile.set("geometry.blocks_per_plane=32").expect("a valid change");
    changes.iter().for_each(|change| profile.set(change).expect("a valid change"));
    profile.resolve().expect("valid")
}

fn plan((channels, pus, threads): (u32, u32, u32), mix: &str) -> Plan {
    let mix: Mix = mix.parse().expect("a mix");
    Plan { channels, pus, threads, blocks: 2, first_block: 3, pages: 32, vector: 1, mix }
}

/// Runs plans one after the other on one drive.
fn outcomes(engine: &str, plans: &[Plan]) -> Result<Vec<Outcome>, RunError> {
    let engine = Engines::built_in().find(engine).expect("an engine");
    let ran = simulated(&card(&[]), Seed::new(1), async |at| {
        let mut outcomes = Vec::new();
        for plan in plans {
            outcomes.push(run(&at.sim, &at.host, plan, &engine).await?);
        }
        Ok(outcomes)
    });
    ran.expect("an open-channel drive")
}

fn report(engine: &str, plan: Plan) -> Report {
    let outcome = outcomes(engine, std::slice::from_ref(&plan)).expect("it fits").remove(0);
    let wanted = Wanted { group: "group".to_owned(), name: "run".to_owned(), engine: engine.to_owned(), plan };
    outcome.report(&wanted)
}

#[test]
fn reads_take_what_the_profile_says() {
    // 56 us of the firmware, 169 us of the array, and 658 us of the channel for 32 KiB.
    let alone = report("round-robin", plan((1, 1, 1), "RRRR"));
    let read = alone.read.as_ref().expect("reads");
    assert!((880.0..887.0).contains(&read.mean_us.unwrap()), "{read:?}");
    assert_eq!((read.count, read.failed, alone.write.is_none()), (64, 0, true));
    // The channel is full with two units, and two channels are twice as fast.
    let four = report("round-robin", plan((1, 4, 4), "RRRR")).mb_s.unwrap();
    let two_channels = report("round-robin", plan((2, 4, 8), "RRRR")).mb_s.unwrap();
    assert!((48.0..50.0).contains(&four) && (1.95..2.01).contains(&(two_channels / four)), "{four}, {two_channels}");
    // A thread continues when its page is in registers, from channel to channel; a vector over channels keeps all units
    // at work.
    let one = report("round-robin", plan((8, 1, 1), "WWWW")).mb_s.unwrap();
    let vector = report("round-robin", Plan { vector: 8, ..plan((8, 1, 1), "WWWW") }).mb_s.unwrap();
    assert!((44.0..47.0).contains(&one) && vector > 2.7 * one, "{one}, {vector}");
}

#[test]
fn all_pages_are_used_and_blocks_of_an_earlier_run_are_erased() {
    let wide = plan((2, 2, 2), "WWWR");
    let short = Plan { pages: 12, ..wide.clone() };
    let all = outcomes("sequential", &[wide.clone(), short, wide.clone(), plan((2, 2, 2), "RRRR")]).expect("it fits");
    let count = |outcome: &Outcome| outcome.samples.len();
    // Two nodes, each with two blocks of two units: 128 writes have 42 reads, 48 have 16.
    assert_eq!(all.iter().map(count).collect::<Vec<_>>(), [2 * (128 + 42), 2 * (48 + 16), 2 * (128 + 42), 256]);
    assert!(all.iter().flat_map(|outcome| &outcome.samples).all(|sample| !sample.failed));
    assert_eq!(outcomes("sequential", std::slice::from_ref(&wide)), outcomes("sequential", &[wide]));
}

#[test]
fn isolated_reads_never_wait() {
    let read = |plan| report("isolation", plan).read.expect("reads").max_us.unwrap();
    assert_eq!(read(plan((8, 1, 8), "WRWR")), read(plan((8, 1, 8), "RRRR")));
}

#[test]
fn benchmarks_have_the_runs_of_their_tables() {
    let choice = Choice { blocks: Some(1), pages: Some(16), first_block: 0 };
    let ran = simulated(&card(&[]), Seed::new(1), async |at| {
        let mut reports = Vec::new();
        for benchmark in Benchmark::ALL {
            for wanted in benchmark.runs(at.host.geometry(), &choice) {
                let engine = Engines::built_in().find(&wanted.engine).expect("an engine");
                let outcome = run(&at.sim, &at.host, &wanted.plan, &engine).await.expect("it fits");
                reports.push(outcome.report(&wanted));
            }
        }
        reports
    });
    let mut reports = ran.expect("an open-channel drive");
    nandscape_papers_fox::scale(&mut reports);
    assert_eq!(reports.len(), 5 + 2 + 2 * 6 + 2 * (4 + 4 + 4 + 1));
    let text = render(&reports);
    assert!(text.contains("PU 3") && text.contains("channel 7"), "{text}");
    let (mut runs, mut units) = (Vec::new(), Vec::new());
    tables::runs(&reports, &mut runs).expect("memory");
    tables::units(&reports, &mut units).expect("memory");
    let lines = |table: Vec<u8>| String::from_utf8(table).expect("text").lines().count();
    assert_eq!(lines(runs), reports.len() + 1);
    assert_eq!(lines(units), 1 + reports.iter().map(|report| (report.channels * report.pus) as usize).sum::<usize>());
}

#[test]
fn a_block_is_worn_until_its_erases_fail() {
    let plan = WearPlan { unit: Unit { channel: 1, pu: 2 }, block: 7, cycles: 400, every: 50, pages: 8 };
    let worn = |changes: &[&str], plan: &WearPlan| {
        let card = card(&[&["geometry.pages_per_block=8", "wear.rber=tlc-72-layers"], changes].concat());
        let ran = simulated(&card, Seed::new(1), async |at| wear(&at.sim, &at.host, plan, &|_| true).await);
        ran.expect("an open-channel drive")
    };
    let healthy = worn(&["wear.erase_growth=50%"], &plan).expect("it fits");
    let erase: Vec<f64> = healthy.points.iter().map(|point| point.erase_us.unwrap()).collect();
    assert!(healthy.points.len() == 8 && erase.is_sorted() && erase[7] > erase[0], "{erase:?}");
    assert_eq!((healthy.first_failed_read, healthy.ended), (None, None));
    let failing = ["timing.rated_erases=100", "wear.erase_failures=99%", "wear.failure_shape=3"];
    let ended = worn(&failing, &plan).expect("it fits");
    let told = ended.ended.expect("99% fail within 100 erases");
    assert!(told.starts_with("erase ") && ended.points.last().unwrap().erases < 400, "{told}");
    let failing = ["wear.rber=none", "timing.rated_erases=100", "wear.program_failures=99%"];
    let ended = worn(&failing, &plan).expect("it fits");
    let told = ended.ended.expect("99% fail within 100 erases");
    let last = ended.points.last().unwrap();
    assert_eq!((last.failed_writes, ended.first_failed_write), (1, Some(last.erases - 1)));
    assert!(told.starts_with(&format!("erase {} failed after the write of page ", last.erases)), "{told}");
    let each = worn(&failing, &WearPlan { every: 1, ..plan }).expect("it fits");
    let erases: Vec<u64> = each.points.iter().map(|point| point.erases).collect();
    assert!(erases.iter().copied().eq(1..=last.erases), "one row a cycle, the failed one too: {erases:?}");
    let card = card(&["geometry.pages_per_block=8"]);
    let stopped = simulated(&card, Seed::new(1), async |at| wear(&at.sim, &at.host, &plan, &|share| share < 0.3).await);
    let stopped = stopped.expect("an open-channel drive").expect("it fits");
    let erases: Vec<u64> = stopped.points.iter().map(|point| point.erases).collect();
    assert!(stopped.interrupted && erases == [50, 100, 120], "what was measured until then: {erases:?}");
    assert_eq!(stopped.ended.as_deref(), Some("interrupted after 120 of 400 cycles"));
    let missing = worn(&[], &WearPlan { block: 32, ..plan }).expect_err("there is none");
    assert_eq!(missing.to_string(), "block 32: there are 32 in this drive; give 0 to 31");
}

#[test]
fn what_does_not_fit_is_told() {
    for (plan, told) in [
        (plan((9, 1, 1), "W"), "9 channels: there are 8"),
        (Plan { blocks: 30, ..plan((1, 1, 1), "W") }, "30 blocks: there are 29 of them from block 3 on; give 1 to 29"),
        (Plan { pages: 513, ..plan((1, 1, 1), "W") }, "give 1 to 512"),
        (Plan { vector: 0, ..plan((1, 1, 1), "W") }, "0 pages of a command"),
        (plan((2, 1, 3), "W"), "3 threads: there are 2 parallel units; no unit has two threads"),
    ] {
        let error = outcomes("round-robin", &[plan]).expect_err(told).to_string();
        assert!(error.contains(told), "{error}");
    }
    let default = Profile::load("default").unwrap().resolve().unwrap();
    let none = simulated(&default, Seed::new(1), async |at| Rc::strong_count(&at.host)).unwrap_err();
    assert!(none.contains("it is no open-channel drive") && none.contains("dfc-mlc"), "{none}");
}
