//! Lives of a drive, one after the other on the same file. Each is killed at some write of the file, or stops in an orderly
//! way.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed, `NANDSCAPE_TEST_KILLS` another number of runs of each mode.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_device_media::durable::MemoryFile;
use nandscape_sim::{Executor, Rng, Seed, Span};

use super::drive::{Drive, Failed, Mode, SECTORS, UNIT_SECTORS, create};
use super::model::{Content, Model};

/// Runs that have found a mistake: a slot whose unit was deallocated, under way when a snapshot began, had its lost
/// sectors reappear.
const FOUND: [(Mode, u64); 1] = [(Mode::Capacitor, 1_145)];
const LIVES: u32 = 5;
const STEPS: u32 = 250;
/// The most writes of the file before a kill.
const WRITES: u64 = 1_500;
/// The most polls of tasks of a life.
const MOST_POLLS: u64 = 5_000_000;

pub(super) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

/// Runs a drive in a mode. Returns the number of kills.
///
/// # Errors
/// The fault after a start.
pub(super) fn run(mode: Mode, seed: u64) -> Result<u32, String> {
    // A panic of the FTL does not name its run.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut rng = Seed::new(seed).child("kill").rng();
        let (mut backing, mut model, mut kills) = (create(mode), Model::new(SECTORS as usize), 0);
        for life in 0..LIVES {
            let killed = live(&backing, mode, &mut model, &mut rng).map_err(|wrong| format!("life {life}: {wrong}"))?;
            kills += u32::from(killed);
            backing = Arc::new(backing.survivor());
        }
        Ok(kills)
    }));
    let ended = ended.unwrap_or_else(|_| Err("a panic, see above".to_owned()));
    ended.map_err(|wrong| format!("{mode:?}, NANDSCAPE_TEST_SEED={seed}: {wrong}"))
}

/// A start, the check, and work until a kill or an orderly stop. Returns whether it was a kill.
fn live(backing: &Arc<MemoryFile>, mode: Mode, model: &mut Model, rng: &mut Rng) -> Result<bool, String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = Drive::open(&sim, backing, mode)?;
    let is_killed = rng.below(5) > 0;
    let work = async {
        drive.ftl.check()?;
        for sector in 0..SECTORS {
            model.found(sector as usize, drive.read(sector).await?)?;
        }
        if is_killed {
            backing.cut_off_after(rng.below(WRITES));
        }
        for _ in 0..STEPS {
            if step(&drive, mode, model, rng).await.is_err() {
                return if is_killed { Ok(()) } else { Err("a command has failed".to_owned()) };
            }
            sim.sleep(Span::from_us(rng.below(400))).await;
        }
        if is_killed {
            return Ok(());
        }
        drive.flush().await.map_err(|Failed| "it cannot be flushed")?;
        model.flushed();
        // Commands under way end.
        sim.sleep(Span::from_ms(100)).await;
        drive.ftl.check()?;
        drive.ftl.save().map_err(|error| error.to_string())
    };
    executor.block_on_within(work, MOST_POLLS).map_err(|unended| unended.to_string())??;
    Ok(is_killed)
}

/// A command drawn at random, and the sectors that it may change.
async fn step(drive: &Drive, mode: Mode, model: &mut Model, rng: &mut Rng) -> Result<(), Failed> {
    // Most access a quarter of the drive, so that units are written and deallocated again and again.
    let span = if rng.chance(0.7) { SECTORS / 4 } else { SECTORS };
    let most = if rng.chance(0.2) { 60 } else { 12 };
    let sectors = 1 + rng.below(most) as u32;
    let start = rng.below(u64::from(span - sectors)) as u32;
    let kind = rng.below(16);
    let (start, sectors) = match kind {
        1 => (start / UNIT_SECTORS * UNIT_SECTORS, sectors.next_multiple_of(UNIT_SECTORS)),
        // Whole units and parts of them are written equally often.
        _ if rng.chance(0.5) => (start / UNIT_SECTORS * UNIT_SECTORS, sectors.next_multiple_of(UNIT_SECTORS)),
        _ => (start, sectors),
    };
    let extent = Extent { start: start.into(), sectors };
    let range = start as usize..(start + sectors) as usize;
    let (ended, content) = match kind {
        0 => {
            drive.flush().await?;
            model.flushed();
            return Ok(());
        }
        1 => (drive.deallocate(extent).await, Content::Zeros),
        2 => (drive.spoil(extent).await, Content::Spoiled),
        _ => {
            let number = 1 + rng.below(1 << 31) as u32;
            (drive.write(extent, number).await, Content::Data(number))
        }
    };
    match ended {
        Ok(()) => model.done(range, content, mode.is_durable() || matches!(kind, 1 | 2)),
        Err(Failed) => model.may(range, content),
    }
    ended
}

#[test]
fn seeds_that_have_found_a_mistake_find_none() {
    for (mode, seed) in FOUND {
        run(mode, seed).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

#[test]
fn a_kill_at_any_write_keeps_what_each_mode_promises() {
    let runs = number("NANDSCAPE_TEST_KILLS").unwrap_or(20);
    let first = number("NANDSCAPE_TEST_SEED").unwrap_or(1);
    for mode in Mode::ALL {
        let kills: u32 =
            (first..first + runs).map(|seed| run(mode, seed).unwrap_or_else(|wrong| panic!("{wrong}"))).sum();
        println!("{mode:?}: {kills} kills in {runs} runs, nothing lost");
        assert!(kills > 0, "{mode:?}: no run was killed");
    }
}
