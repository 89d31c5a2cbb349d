//! Power cuts at any time, of the drive alone and of host and drive, under several writers.
//!
//! `lab/crash` has the writers, the check and the loop over the cuts; this file has the tree in its three forms, and
//! a drive that tears writes.

use std::cell::{Cell, RefCell};

use nandscape_apps_llama_engine::Change;
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_lab_crash::{Cut, Draw, Failure, Gate, Keyed, Lie, Lives, Map, Point, Store, Writers, each, explore};
use nandscape_sim::{Executor, Seed, Span};

use crate::rig::{Form, Rig, Tree, VALUE, key, open, value};

const DRAW: Draw = Draw { keys: 1_000, value: VALUE, key, content: value };
const WRITERS: u64 = 3;

/// A tree, as writers use it.
struct Kept(Tree);

impl Store for Kept {
    async fn prepare(&self, keys: &[&[u8]]) -> Result<(), String> {
        for key in keys {
            self.0.get(key).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn apply(&self, changes: Vec<nandscape_lab_crash::Change>) -> Result<(), String> {
        let change = |(key, value)| match value {
            Some(value) => Change::Put(key, value),
            None => Change::Delete(key),
        };
        let changes: Vec<Change> = changes.into_iter().map(change).collect();
        self.0.apply(&changes).await.map(drop).map_err(|error| error.to_string())
    }

    async fn commit(&self) -> Result<(), String> {
        self.0.commit().await.map_err(|error| error.to_string())
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        self.0.get(key).await.map_err(|error| error.to_string())
    }

    async fn scan(&self) -> Result<Map, String> {
        Ok(self.0.scan(&[], usize::MAX).await.map_err(|error| error.to_string())?.into_iter().collect())
    }
}

/// The next host starts when the drive has started and no command of the last host is under way.
const LIVES: Lives =
    Lives { lives: 4, blinks: 4, blink_within: Span::from_ms(60), within: Span::from_ms(120), off: Span::from_ms(500) };

/// Several lives of a host on one drive; how many segments were cleaned.
fn live(mut form: Form, seed: Seed, lie: Option<Lie>) -> Result<u64, Failure> {
    // A change of three keys fits.
    form.tree.memory = form.tree.memory.max(140 * form.page_bytes());
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (rig, writers, cleaned) = (Rig::new(&sim, form).lying(lie), Writers::new(&sim, DRAW), Cell::new(0));
    let open = async || rig.open().await.map(Kept).map_err(|error| error.to_string());
    let cut = |store: &Kept, what| {
        if what == Cut::All {
            cleaned.set(cleaned.get() + store.0.stats().store.cleaned);
            rig.kill();
        }
        rig.ssd.media().cut_power(Span::from_us(50));
    };
    let subject = Keyed { writers: writers.clone(), count: WRITERS, seed, open, cut };
    let ran = executor.block_on(async {
        let explored = explore(&sim, &subject, LIVES.points(seed.child("lives").rng())).await?;
        rig.ssd.check().expect("sound");
        assert_eq!(explored.restarts, LIVES.lives);
        Ok(cleaned.get())
    });
    ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"))
}

fn sound(form: Form, seed: Seed) -> u64 {
    live(form, seed, None).unwrap_or_else(|failure| panic!("{form:?}: {failure}"))
}

#[test]
fn a_log_has_after_a_crash_what_was_acknowledged_and_whole_changes() {
    let mut cleaned = 0;
    each(100, |seed| cleaned += sound(Form::log(&mut seed.child("form").rng()), seed));
    assert!(cleaned > 0, "nothing was cleaned before a crash");
}

#[test]
fn pages_of_the_drive_have_after_a_crash_what_was_acknowledged_and_whole_changes() {
    each(100, |seed| {
        sound(Form::eleos(&mut seed.child("form").rng()), seed);
    });
}

#[test]
fn chains_of_the_drive_have_after_a_crash_what_was_acknowledged_and_whole_changes() {
    each(100, |seed| {
        sound(Form::chains(&mut seed.child("form").rng()), seed);
    });
}

/// A drive that serves one command at a time. Each crash tears the write in service into blocks, half of which are
/// stored.
#[test]
fn a_log_has_whole_changes_when_writes_are_torn_into_blocks() {
    each(60, |seed| {
        let mut form = Form::log(&mut seed.child("form").rng());
        form.tree.memory = form.tree.memory.max(140 * form.log.page_bytes as usize);
        form.log.trim = false;
        let mut executor = Executor::new();
        let sim = executor.sim();
        let (disk, rng) = (Disk::new(8 << 20), RefCell::new(seed.rng()));
        let paths = RefCell::new(None);
        let open_torn = async || {
            let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
            let gate = Gate::new(drive.clone());
            paths.replace(Some((drive, gate.clone())));
            open(&sim, gate, &form).await.map(Kept).map_err(|error| error.to_string())
        };
        let cut = |_: &Kept, _| {
            let Some((drive, gate)) = paths.take() else { return };
            gate.kill();
            drive.tear(&mut rng.borrow_mut());
        };
        let points = (0..6).map(|life| {
            rng.replace(seed.nth(life).child("tear").rng());
            let after = Span::from_us(rng.borrow_mut().below(300_000));
            Point::new(after, Cut::All, Span::ZERO)
        });
        let writers = Writers::new(&sim, DRAW);
        let subject = Keyed { writers: writers.clone(), count: WRITERS, seed, open: open_torn, cut };
        let ran = executor.block_on(explore(&sim, &subject, points));
        let explored = ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
        assert_eq!(explored.unwrap_or_else(|failure| panic!("{form:?}: {failure}")).restarts, 6);
    });
}

/// Deliberate mistakes of the drive, on the first seeds of the campaigns above.
#[test]
fn a_drive_that_lies_is_noticed() {
    for lie in [Lie::Durable, Lie::Dropped { nth: 40 }] {
        let noticed = (1..=8).map(Seed::new).find_map(|seed| {
            let form = Form { changes: &["buffer.mode=volatile"], ..Form::log(&mut seed.child("form").rng()) };
            live(form, seed, Some(lie)).err()
        });
        assert!(noticed.is_some(), "{lie:?} is not noticed");
    }
}
