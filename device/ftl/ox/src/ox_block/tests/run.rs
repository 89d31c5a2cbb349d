//! A run that is cut, recovery, and the check.

use std::cell::RefCell;
use std::future::{Future as _, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_ftl_core::Ftl;
use nandscape_sim::{Executor, Seed, Sim, Span};

use super::case::Case;
use super::journal::Journal;
use super::kinds::Setup;
use super::lose::Lose;
use super::model::{Model, State, decode};
use super::rig::{Cut, Rig, units};
use super::{load, standstill};

/// The longest time that a run takes on the drive; sound ones end within seconds.
const LONGEST: Span = Span::from_ms(60_000);
/// The most polls of tasks of a run: a faulty drive may also continue forever at one instant.
const MOST_POLLS: u64 = 20_000_000;

/// The result of a run.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Outcome {
    /// Power cuts.
    pub(super) cuts: u32,
    pub(super) gc_blocks: u64,
    /// Flash has lost what the drive cannot do without, and the drive has reported it.
    pub(super) refused: bool,
}

/// A run under way.
struct Run<'a> {
    case: &'a Case,
    setup: Setup,
    rig: Rig,
    model: RefCell<Model>,
    /// Recoveries that were begun.
    recoveries: RefCell<usize>,
}

impl Case {
    /// Runs the case.
    ///
    /// # Errors
    /// The fault found after a cut, and how to reproduce it.
    pub(super) fn run(&self) -> Result<Outcome, String> {
        self.run_with(|_, _| None).map_err(|wrong| format!("{wrong}\n{}", super::replay::command(self)))
    }

    /// Runs the case with a journal, if `watch` gives one.
    ///
    /// # Errors
    /// The fault found after a cut.
    pub(super) fn run_with(&self, watch: impl FnOnce(&Sim, &Setup) -> Option<Rc<Journal>>) -> Result<Outcome, String> {
        // A panic of the FTL does not name its run.
        let run = catch_unwind(AssertUnwindSafe(|| self.run_once(watch)));
        run.unwrap_or_else(|_| Err("a panic, see above".to_owned()))
    }

    fn run_once(&self, watch: impl FnOnce(&Sim, &Setup) -> Option<Rc<Journal>>) -> Result<Outcome, String> {
        let mut executor = Executor::new();
        let (sim, setup) = (executor.sim(), self.setup());
        let journal = watch(&sim, &setup);
        let rig = Rig::new(&sim, &setup, self.seed, journal);
        for fault in &self.faults {
            rig.media.faults().add(fault.parse().map_err(|error| format!("{error}"))?);
        }
        let model = RefCell::new(Model::new(setup.config.logical_units, setup.config.transactions));
        let run = Run { case: self, setup, rig, model, recoveries: RefCell::new(0) };
        let ended = executor.block_on_within(run.bounded(&sim), MOST_POLLS);
        ended.unwrap_or_else(|unended| Err(unended.to_string()))
    }
}

impl Run<'_> {
    /// The rounds, or an error where they do not end: a mistake can keep a drive busy forever.
    async fn bounded(&self, sim: &Sim) -> Result<Outcome, String> {
        let (mut rounds, mut limit) = (pin!(self.rounds()), pin!(sim.sleep(LONGEST)));
        poll_fn(|context| match rounds.as_mut().poll(context) {
            Poll::Pending => limit.as_mut().poll(context).map(|()| {
                let how = standstill::describe(&self.rig);
                Err(format!("no end after {LONGEST:?} of the drive's time: {how}"))
            }),
            ended => ended,
        })
        .await
    }

    async fn rounds(&self) -> Result<Outcome, String> {
        let (case, rig) = (self.case, &self.rig);
        let mut outcome = Outcome::default();
        for round in 0..case.rounds {
            let seed = Seed::new(case.seed).nth(round);
            let mut ended = load::run(rig, &self.model, &case.load(&self.setup), seed).await;
            if case.lose != Lose::Nothing && ended.is_ok() {
                rig.media.cut_power(Span::from_us(1));
                ended = Err(Cut);
            }
            match ended {
                Ok(()) => rig.ftl.check().map_err(|wrong| format!("after load {round}: {wrong}"))?,
                Err(Cut) if self.recover(seed).await? => {}
                Err(Cut) => {
                    outcome.refused = true;
                    break;
                }
            }
        }
        Ok(Outcome { cuts: rig.media.power_cuts(), gc_blocks: rig.ftl.stats().gc_blocks, ..outcome })
    }

    /// Whether the drive is in service, and all that must hold does; if not, it may be out of service.
    async fn recover(&self, seed: Seed) -> Result<bool, String> {
        let (rig, lose) = (&self.rig, self.case.lose);
        let mut rng = seed.child("loss").rng();
        rig.note(|| format!("power cut {}, at step {}", rig.media.power_cuts(), self.model.borrow().steps()));
        let mut is_lost = false;
        let contents = loop {
            rig.media.power_returns().await;
            // A page of the log shows that it is missing by those after it, of which one more may not be lost.
            if !(is_lost && lose == Lose::Log) {
                is_lost |= lose.happen(rig, &mut rng);
            }
            if !self.recover_once().await {
                continue;
            }
            if rig.ftl.has_failed() {
                rig.note(|| "out of service".to_owned());
                return if is_lost && lose.may_refuse() { Ok(false) } else { Err("it is out of service".to_owned()) };
            }
            if is_lost && lose.must_refuse() {
                return Err("it is in service without its checkpoint".to_owned());
            }
            rig.ftl.check().map_err(|wrong| self.after(&wrong))?;
            if let Some(contents) = self.contents().await? {
                break contents;
            }
        };
        if self.setup.keeps {
            let mark = self.model.borrow().mark();
            self.model.borrow_mut().flushed(&mark);
        }
        self.model.borrow_mut().found(&contents).map_err(|wrong| self.after(&wrong))?;
        Ok(true)
    }

    /// One recovery, which may be cut. Returns whether it was not.
    async fn recover_once(&self) -> bool {
        let number = self.recoveries.replace_with(|number| *number + 1);
        if let Some(nth) = self.case.again.get(number) {
            let rule = format!("power_cut nth={nth} torn=any");
            self.rig.media.faults().add(rule.parse().expect("a rule"));
        }
        let has_recovered = self.rig.try_to_recover().await;
        self.rig.note(|| format!("recovery {number}: to its end {has_recovered}, {:?}", self.rig.ftl.recovered()));
        has_recovered
    }

    fn after(&self, wrong: &str) -> String {
        format!("after cut {}, {:?}: {wrong}", self.rig.media.power_cuts(), self.rig.ftl.recovered())
    }

    /// What all units hold; `None` if power is cut once more.
    async fn contents(&self) -> Result<Option<Vec<Option<State>>>, String> {
        let mut contents = Vec::new();
        for unit in 0..self.setup.config.logical_units {
            match self.rig.read(units(unit, 1)).await {
                Ok(Ok(bytes)) => contents.push(decode(unit, &bytes)),
                Ok(Err(error)) => return Err(self.after(&format!("unit {unit} cannot be read: {error:?}"))),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(contents))
    }
}
