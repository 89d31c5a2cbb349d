//! A run of a sweep: points whose files exist are read, the others are measured, and each is written as it ends.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::error::SweepError;
use crate::folder::Folder;
use crate::plan::Plan;
use crate::point::Inputs;
use crate::runner::{Event, Runner};
use crate::stored::Stored;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Session {
    /// The folder of its files.
    pub folder: Folder,
    /// Whether existing points are measured again.
    pub fresh: bool,
}

/// The points of a sweep when its measurements begin.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Begun {
    /// All points.
    pub of: usize,
    /// Measurements to be made.
    pub left: usize,
    /// Points with a result of an earlier run.
    pub kept: usize,
    /// Those of them whose requests failed.
    pub kept_failed: usize,
    /// Points whose drive is impossible.
    pub impossible: usize,
}

impl Begun {
    fn of(states: &[State], left: usize) -> Begun {
        let count = |is: fn(&State) -> bool| states.iter().filter(|state| is(state)).count();
        Begun {
            of: states.len(),
            left,
            kept: count(|state| matches!(state, State::Done(_))),
            kept_failed: count(|state| matches!(state, State::Done(stored) if stored.problem.is_some())),
            impossible: count(|state| matches!(state, State::Failed(_))),
        }
    }

    /// Points that share a measurement with another, as their keys lead to the same inputs.
    pub fn alike(&self) -> usize {
        self.of - self.left - self.kept - self.impossible
    }
}

/// Notified of the progress of a run, on the thread that started it.
pub trait Watch {
    /// A note for the user.
    fn note(&mut self, _text: &str) {}
    /// The measurements begin.
    fn begun(&mut self, _begun: Begun) {}
    /// This many of the points to be measured are done, with fractions for points in progress.
    fn share(&mut self, _done: f64) {}
    /// A point is measured and its file written, or why not.
    fn measured(&mut self, _label: &str, _problem: Option<&str>) {}
}

impl Watch for () {}

/// What became of a point.
#[derive(Clone, PartialEq, Debug)]
pub enum State {
    /// It is measured.
    Done(Box<Stored>),
    /// It cannot be measured, and why.
    Failed(String),
    /// The run ended before.
    Missing,
}

impl State {
    /// Why the point counts as failed.
    pub fn problem(&self) -> Option<&str> {
        match self {
            State::Done(stored) => stored.problem.as_deref(),
            State::Failed(why) => Some(why),
            State::Missing => None,
        }
    }

    /// Its report.
    pub fn report(&self) -> Option<&serde_json::Value> {
        match self {
            State::Done(stored) => Some(&stored.report),
            _ => None,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was planned.
    pub plan: Plan,
    /// What became of each point, in the order of the plan.
    pub states: Vec<State>,
}

impl Outcome {
    /// Points that are not measured because the run ended before.
    pub fn missing(&self) -> usize {
        self.states.iter().filter(|state| **state == State::Missing).count()
    }

    /// Points that failed, with the reasons.
    pub fn failed(&self) -> impl Iterator<Item = (usize, &str)> {
        self.states.iter().enumerate().filter_map(|(at, state)| Some((at, state.problem()?)))
    }
}

impl Session {
    /// Runs a sweep.
    ///
    /// # Errors
    /// When the folder cannot be used, or the runner cannot continue. A point that fails is not an error of the run.
    pub fn run(&self, plan: Plan, runner: &mut dyn Runner, watch: &mut dyn Watch) -> Result<Outcome, SweepError> {
        let _lock = self.folder.lock()?;
        runner.share_states_in(&self.folder.states());
        let states = plan.points.iter().map(|point| match &point.inputs {
            Ok(inputs) => self.kept(inputs, watch),
            Err(why) => State::Failed(why.clone()),
        });
        let mut states: Vec<State> = states.collect();
        warn_of_impossible(&plan, watch);
        let tasks = tasks(&plan, &states);
        watch.begun(Begun::of(&states, tasks.len()));
        self.measure(&plan, tasks, &mut states, runner, watch)?;
        let outcome = Outcome { plan, states };
        if outcome.missing() == 0 {
            self.folder.remove_states();
        }
        Ok(outcome)
    }

    fn kept(&self, inputs: &Inputs, watch: &mut dyn Watch) -> State {
        if self.fresh {
            return State::Missing;
        }
        let file = self.folder.file(inputs);
        match Stored::find(&file, inputs) {
            Ok(Some(stored)) => State::Done(Box::new(stored)),
            Ok(None) => State::Missing,
            Err(wrong) => {
                watch.note(&format!(
                    "{}: this result {wrong}; its point is measured again, and the file replaced",
                    file.display()
                ));
                State::Missing
            }
        }
    }

    fn measure(
        &self,
        plan: &Plan,
        tasks: Vec<Task>,
        states: &mut [State],
        runner: &mut dyn Runner,
        watch: &mut dyn Watch,
    ) -> Result<(), SweepError> {
        let mut shares = vec![0.0; tasks.len()];
        let mut wrong = None;
        let inputs = tasks.iter().map(|task| task.inputs.clone()).collect();
        let ended = runner.run(inputs, &mut |event| {
            match event {
                Event::Stop => return ControlFlow::Break(()),
                // A point that starts again keeps the share that it has shown.
                Event::Share { task, share } => shares[task] = share.max(shares[task]),
                Event::Done { task, result } => {
                    shares[task] = 1.0;
                    let written = result.as_ref().as_ref().map_or(Ok(()), |stored| self.folder.write(stored));
                    let state = match *result {
                        Ok(stored) => State::Done(Box::new(stored)),
                        Err(why) => State::Failed(why),
                    };
                    let points = &tasks[task].points;
                    watch.measured(&plan.sweep.label(&plan.points[points[0]].choices), state.problem());
                    points.iter().for_each(|point| states[*point] = state.clone());
                    if let Err(error) = written {
                        wrong = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            watch.share(shares.iter().sum());
            ControlFlow::Continue(())
        });
        match (wrong, ended) {
            (Some(error), _) => Err(error),
            (None, Err(problem)) => Err(SweepError::new(&plan.sweep.name, problem)),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// The points without a drive that are named one by one.
const NAMED: usize = 5;

/// Names points without a drive before the first measurement, which may take hours.
fn warn_of_impossible(plan: &Plan, watch: &mut dyn Watch) {
    let impossible =
        plan.points.iter().filter_map(|point| Some((point.choices.as_slice(), point.inputs.as_ref().err()?)));
    // All seeds of a point fail alike.
    let by_choices: BTreeMap<&[usize], &String> = impossible.collect();
    for (choices, why) in by_choices.iter().take(NAMED) {
        let label = plan.sweep.label(choices);
        watch.note(&format!("{label}: {why}; this combination is not measured, the others are"));
    }
    if by_choices.len() > NAMED {
        watch.note(&format!(
            "combinations that are not measured either, as their drive is impossible: {}; sweep.csv has the problem of each",
            by_choices.len() - NAMED
        ));
    }
}

/// A measurement, which may be that of several points: different parameters can lead to the same inputs.
struct Task {
    inputs: Inputs,
    points: Vec<usize>,
}

/// The points that are to be measured, each measurement once.
fn tasks(plan: &Plan, states: &[State]) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (at, point) in plan.points.iter().enumerate().filter(|(at, _)| states[*at] == State::Missing) {
        let Ok(inputs) = &point.inputs else { continue };
        let task = *known.entry(inputs.digest()).or_insert_with(|| {
            tasks.push(Task { inputs: inputs.clone(), points: Vec::new() });
            tasks.len() - 1
        });
        tasks[task].points.push(at);
    }
    tasks
}
