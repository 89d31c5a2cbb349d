//! A run that is cut, recovery, and the check.

use std::cell::RefCell;
use std::future::Future as _;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use crate::Ftl;
use nandscape_sim::{Executor, Seed, Sim, Span};

use super::load::{self, Load};
use super::model::Model;
use super::rig::{Cut, Rig, Setup, units};

/// The longest time that a run takes on the drive; sound ones end within seconds.
const LONGEST: Span = Span::from_ms(60_000);

/// A run, and where it is cut.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) setup: Setup,
    pub(super) load: Load,
    pub(super) seed: u64,
    /// Faults, as rules: power cuts among them.
    pub(super) faults: Vec<String>,
    /// How often the load runs after a power cut, each time with another seed.
    pub(super) rounds: u64,
    /// Which copies of fixed places are lost with power at the end of each load: the first ones, the second ones, or none.
    pub(super) lost: Option<bool>,
}

/// What a run was like.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Outcome {
    /// Power cuts.
    pub(super) cuts: u32,
    pub(super) gc_blocks: u64,
}

impl Case {
    /// Runs the case.
    ///
    /// # Errors
    /// What is wrong with what was found after a cut.
    pub(super) fn run(&self) -> Result<Outcome, String> {
        // A panic of the FTL does not say which run it was.
        let run = catch_unwind(AssertUnwindSafe(|| self.run_once()));
        run.unwrap_or_else(|_| Err("a panic, see above".to_owned()))
    }

    fn run_once(&self) -> Result<Outcome, String> {
        let mut executor = Executor::new();
        let (rig, sim) = (Rig::new(&executor, &self.setup, self.seed), executor.sim());
        for fault in &self.faults {
            rig.media.faults().add(fault.parse().expect("a rule"));
        }
        let ended = executor.block_on(self.bounded_rounds(&rig, &sim));
        ended.unwrap_or_else(|stalled| Err(format!("stalled: {stalled}")))
    }

    /// The rounds, or an error where they do not end: a drive can go on for ever with a mistake.
    async fn bounded_rounds(&self, rig: &Rig, sim: &Sim) -> Result<Outcome, String> {
        let (mut rounds, mut limit) = (pin!(self.rounds(rig)), pin!(sim.sleep(LONGEST)));
        poll_fn(|context| match rounds.as_mut().poll(context) {
            Poll::Pending => {
                limit.as_mut().poll(context).map(|()| Err(format!("no end after {LONGEST:?} of the drive's time")))
            }
            ended => ended,
        })
        .await
    }

    async fn rounds(&self, rig: &Rig) -> Result<Outcome, String> {
        let model = RefCell::new(Model::new(self.setup.config.logical_units, self.setup.config.transactions));
        for round in 0..self.rounds {
            let seed = Seed::new(self.seed).nth(round);
            let mut ended = load::run(rig, &model, &self.load, seed).await;
            if self.lost.is_some() && ended.is_ok() {
                // Not in the middle of a checkpoint: a copy that is being written is lost as well.
                rig.ftl.checkpoint().await;
                rig.media.cut_power(Span::from_us(1));
                ended = Err(Cut);
            }
            if ended.is_err() {
                self.recover(rig, &model).await?;
            }
        }
        Ok(Outcome { cuts: rig.media.power_cuts(), gc_blocks: rig.ftl.stats().gc_blocks })
    }

    async fn recover(&self, rig: &Rig, model: &RefCell<Model>) -> Result<(), String> {
        let contents = loop {
            if let Some(second) = self.lost {
                rig.media.power_returns().await;
                rig.lose_copies(second);
            }
            rig.recover().await;
            if rig.ftl.has_failed() {
                return Err("the tables cannot be read".to_owned());
            }
            let after = |wrong| format!("after cut {}, {:?}: {wrong}", rig.media.power_cuts(), rig.ftl.recovered());
            rig.ftl.check().map_err(after)?;
            if let Some(contents) = self.contents(rig).await? {
                break contents;
            }
        };
        if self.setup.keeps {
            let steps = model.borrow().steps();
            model.borrow_mut().flushed(steps.saturating_sub(1));
        }
        model.borrow_mut().found(&contents)
    }

    /// What all units hold; `None` if power is cut once more.
    async fn contents(&self, rig: &Rig) -> Result<Option<Vec<Vec<u8>>>, String> {
        let mut contents = Vec::new();
        for unit in 0..self.setup.config.logical_units {
            match rig.read(units(unit, 1)).await {
                Ok(Ok(bytes)) => contents.push(bytes),
                Ok(Err(error)) => return Err(format!("unit {unit} cannot be read: {error:?}")),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(contents))
    }
}
