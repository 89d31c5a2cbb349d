//! A run of experiments: existing points are kept, the rest is measured, and each point is written as it ends. Points
//! in simulated time run in parallel; those in real time run afterwards, one at a time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Result;

use crate::experiment::{Clock, Effort, Experiment, Point, Run, Varied};
use crate::figures::{Figures, Results};
use crate::machine;
use crate::outcome::Outcome;
use crate::pool;
use crate::results::{Folder, Found, Inputs, Stored, seed_of};
use crate::verdict::Verdict;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Session {
    /// The folder of results.
    pub folder: Folder,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How long to measure.
    pub effort: Effort,
    /// Threads for points in simulated time.
    pub jobs: usize,
    /// Whether existing points are measured again.
    pub fresh: bool,
    /// A cost at another value, if one is varied. Its results go to a separate folder.
    pub varied: Option<Varied>,
}

/// Reports of a run's progress, called on the thread that started it.
pub trait Watch {
    /// A note for the user.
    fn note(&mut self, _text: &str) {}
    /// The number of points to measure.
    fn begun(&mut self, _points: usize) {}
    /// A point has been measured and written. After a break no further point starts.
    fn measured(&mut self, _claim: &str, _point: &str) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// A share of a point in real time is done.
    fn share(&self, _claim: &str, _share: f64) {}
    /// A claim is decided. Those in real time come last.
    fn decided(&mut self, _outcome: &Outcome) {}
}

impl Watch for () {}

/// An experiment in progress.
struct Work {
    experiment: &'static Experiment,
    /// Its points, run by run, with the figures of existing ones.
    points: Vec<Slot>,
    /// The runs of all points.
    runs: u32,
    failed: Vec<String>,
    decided: bool,
}

struct Slot {
    point: Point,
    /// Its number among the points of its run.
    number: usize,
    inputs: Inputs,
    file: PathBuf,
    stored: Option<Stored>,
}

impl Session {
    /// Runs experiments. Returns the outcome of each, in the order given; nothing if the run was interrupted.
    ///
    /// # Errors
    /// When results cannot be written. A point that fails is not an error of the run: its claim has failed.
    pub fn run(&self, experiments: &[&'static Experiment], watch: &mut dyn Watch) -> Result<Option<Vec<Outcome>>> {
        let _lock = self.folder.lock()?;
        let mut works: Vec<Work> = experiments.iter().map(|experiment| self.look(experiment, watch)).collect();
        self.lend(&mut works)?;
        watch.begun(works.iter().map(|work| work.left().count()).sum());
        let mut outcomes: Vec<Option<Outcome>> = works.iter().map(|_| None).collect();
        self.decide(&mut works, &mut outcomes, watch);
        let ended = match self.run_virtual(&mut works, &mut outcomes, watch)? {
            ControlFlow::Continue(()) => self.run_wall(&mut works, &mut outcomes, watch)?,
            ControlFlow::Break(()) => ControlFlow::Break(()),
        };
        Ok(if ended.is_break() { None } else { outcomes.into_iter().collect() })
    }

    /// Finds the existing points of an experiment, and reports invalid files.
    fn look(&self, experiment: &'static Experiment, watch: &mut dyn Watch) -> Work {
        self.folder.sweep(experiment);
        let id = experiment.claim.id;
        let mut others: Vec<(String, usize)> = Vec::new();
        let mut points = Vec::new();
        let runs = if self.effort.is_repeated { experiment.repeats() } else { 1 };
        let marked = |point: Point| match &self.varied {
            Some(varied) => point.with("varied", varied),
            None => point,
        };
        let all = |run| {
            (experiment.points)().into_iter().enumerate().map(move |(number, point)| (run, number, marked(point)))
        };
        for (run, number, point) in (0..runs).flat_map(all) {
            let inputs = Inputs::new(experiment, &point, seed_of(experiment, self.seed, run), self.effort);
            let file = self.folder.file(experiment, number, &point, run);
            let stored = match Stored::find(&file, &inputs) {
                _ if self.fresh => None,
                Found::Fits(stored) => Some(stored),
                Found::Nothing => None,
                Found::Broken(wrong) => {
                    watch.note(&format!(
                        "{}: this result {wrong}; its point is measured again, and the file replaced",
                        file.display()
                    ));
                    None
                }
                Found::Other(_, difference) => {
                    match others.iter_mut().find(|(other, _)| *other == difference) {
                        Some((_, count)) => *count += 1,
                        None => others.push((difference, 1)),
                    }
                    None
                }
            };
            points.push(Slot { point, number, inputs, file, stored });
        }
        let of = points.len();
        for (difference, count) in others {
            watch.note(&format!("{id}: {count} of {of} points: {difference}; measured again"));
        }
        match points.iter().filter(|slot| slot.stored.is_some()).count() {
            0 => {}
            done => watch.note(&format!(
                "{id}: {done} of {of} points exist already, in {}; --fresh measures them again",
                self.folder.path().join(id).display()
            )),
        }
        Work { experiment, points, runs, failed: Vec::new(), decided: false }
    }

    /// Gives points the results of other claims with the same measurement.
    fn lend(&self, works: &mut [Work]) -> Result<()> {
        let mut existing: BTreeMap<(String, u64), Figures> = BTreeMap::new();
        for slot in works.iter().flat_map(|work| &work.points) {
            if let (Some(key), Some(stored)) = (slot.shared(), &slot.stored) {
                existing.insert(key, stored.figures.clone());
            }
        }
        for slot in works.iter_mut().flat_map(|work| &mut work.points).filter(|slot| slot.stored.is_none()) {
            if let Some(figures) = slot.shared().and_then(|key| existing.get(&key)) {
                slot.keep(&self.folder, None, figures.clone())?;
            }
        }
        Ok(())
    }

    /// Judges experiments that have all their points, or cannot have them.
    fn decide(&self, works: &mut [Work], outcomes: &mut [Option<Outcome>], watch: &mut dyn Watch) {
        for (work, outcome) in works.iter_mut().zip(outcomes) {
            if work.decided {
                continue;
            }
            if let Some(decided) = work.outcome() {
                work.decided = true;
                watch.decided(outcome.insert(decided));
            }
        }
    }

    fn run_virtual(
        &self,
        works: &mut [Work],
        outcomes: &mut [Option<Outcome>],
        watch: &mut dyn Watch,
    ) -> Result<ControlFlow<()>> {
        let tasks = tasks(works);
        let mut wrong = None;
        let ended = pool::run(
            self.jobs,
            &tasks,
            |task| {
                self.measure(task.experiment, (task.point, task.seed), &|_| ()).map_err(|error| format!("{error:#}"))
            },
            |task, figures| {
                let mut ended = ControlFlow::Continue(());
                for (number, place) in &tasks[task].places {
                    match self.keep(&mut works[*number], *place, None, figures.clone(), watch) {
                        Ok(ControlFlow::Continue(())) => {}
                        Ok(ControlFlow::Break(())) => ended = ControlFlow::Break(()),
                        Err(error) => {
                            wrong = Some(error);
                            ended = ControlFlow::Break(());
                        }
                    }
                }
                self.decide(works, outcomes, watch);
                ended
            },
        );
        match wrong {
            Some(error) => Err(error),
            None => Ok(ended),
        }
    }

    fn run_wall(
        &self,
        works: &mut [Work],
        outcomes: &mut [Option<Outcome>],
        watch: &mut dyn Watch,
    ) -> Result<ControlFlow<()>> {
        for number in 0..works.len() {
            let left: Vec<usize> = if works[number].decided { Vec::new() } else { works[number].left().collect() };
            for place in left {
                let experiment = works[number].experiment;
                let load_before = machine::load_average();
                let slot = &works[number].points[place];
                let of = (slot.number, slot.inputs.seed);
                let figures = self
                    .measure(experiment, of, &|share| watch.share(experiment.claim.id, share))
                    .map_err(|error| format!("{error:#}"));
                let ended = self.keep(&mut works[number], place, load_before, figures, watch)?;
                self.decide(works, outcomes, watch);
                if ended.is_break() {
                    return Ok(ended);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Each thread creates its own points: a measurement depends only on the point's position, or its shared name, and the seed.
    fn measure(
        &self,
        experiment: &Experiment,
        (number, seed): (usize, u64),
        progress: &dyn Fn(f64),
    ) -> Result<Figures> {
        let point = &(experiment.points)()[number];
        let seed = experiment.seed_of(seed, number, point.shared.as_deref());
        let run = Run { seed, effort: self.effort, progress, varied: self.varied.as_ref() };
        let figures = (point.measure)(&run)?;
        figures.check()?;
        Ok(figures)
    }

    /// Writes a measured point.
    fn keep(
        &self,
        work: &mut Work,
        place: usize,
        load_before: Option<f64>,
        figures: Result<Figures, String>,
        watch: &mut dyn Watch,
    ) -> Result<ControlFlow<()>> {
        let slot = &mut work.points[place];
        match figures {
            Ok(figures) => slot.keep(&self.folder, load_before, figures)?,
            Err(error) => work.failed.push(format!("{}: {error}", slot.point.name)),
        }
        Ok(watch.measured(work.experiment.claim.id, &work.points[place].point.name))
    }
}

/// A measurement to be made.
struct Task {
    experiment: &'static Experiment,
    /// Its number among the points of a run of the experiment.
    point: usize,
    seed: u64,
    /// The points that take its figures, by the experiment's place among those that run and the point's among all its runs.
    places: Vec<(usize, usize)>,
}

/// The measurements in simulated time that are left, each once.
fn tasks(works: &[Work]) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut shared: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for (number, work) in works.iter().enumerate().filter(|(_, work)| work.experiment.clock == Clock::Virtual) {
        for place in work.left() {
            let slot = &work.points[place];
            let task = match slot.shared() {
                Some(key) => *shared.entry(key).or_insert(tasks.len()),
                None => tasks.len(),
            };
            match tasks.get_mut(task) {
                Some(task) => task.places.push((number, place)),
                None => tasks.push(Task {
                    experiment: work.experiment,
                    point: slot.number,
                    seed: slot.inputs.seed,
                    places: vec![(number, place)],
                }),
            }
        }
    }
    tasks
}

impl Slot {
    /// What measurements of other claims have in common with its own if they are the same.
    fn shared(&self) -> Option<(String, u64)> {
        self.point.shared.clone().map(|name| (name, self.inputs.seed))
    }

    /// Writes its figures.
    fn keep(&mut self, folder: &Folder, load_before: Option<f64>, figures: Figures) -> Result<()> {
        let stored = Stored::new(self.inputs.clone(), load_before, figures);
        folder.write(&self.file, &stored)?;
        self.stored = Some(stored);
        Ok(())
    }
}

impl Work {
    /// The places of points that are to be measured.
    fn left(&self) -> impl Iterator<Item = usize> {
        let can = self.experiment.lacks().is_none();
        self.points.iter().enumerate().filter(move |(_, slot)| can && slot.stored.is_none()).map(|(number, _)| number)
    }

    /// Its outcome, if everything that can be measured has been.
    fn outcome(&self) -> Option<Outcome> {
        let (experiment, measured) = (self.experiment, self.points.iter().filter(|slot| slot.stored.is_some()).count());
        if measured + self.failed.len() < self.points.len() {
            let lack = experiment.lacks()?;
            return Some(Outcome::without(experiment, Verdict::NotMeasured, lack));
        }
        if !self.failed.is_empty() {
            return Some(Outcome::without(experiment, Verdict::Failed, self.failed.join("; ")));
        }
        let stored: Vec<&Stored> = self.points.iter().filter_map(|slot| slot.stored.as_ref()).collect();
        let first = stored.first()?;
        let of = |stored: &&Stored| (stored.inputs.point.clone(), stored.figures.clone());
        let runs = stored.chunks(self.points.len() / self.runs as usize);
        let results = runs.map(|run| Results(run.iter().map(of).collect())).collect();
        Some(Outcome::judged(experiment, results, first.inputs.clone(), first.load_before))
    }
}
