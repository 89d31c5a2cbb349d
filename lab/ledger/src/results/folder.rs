//! The folder of results: `FOLDER/CLAIM/NNN-point.json`. Files are written atomically.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nandscape_lab_run::results::{self, Lock};

use super::stored::{Found, Inputs, Stored, seed_of};
use crate::experiment::{Effort, Experiment, Point};
use crate::figures::Results;

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// The results of a claim in a folder.
#[derive(Debug)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// Some of the points, or points of several runs.
    Part {
        /// The number of points that belong to the same run as most others.
        done: usize,
        /// The number of all points.
        of: usize,
    },
    /// All of them, of one run.
    Whole {
        /// What was measured, by run.
        results: Vec<Results>,
        /// The inputs of the first point; those of the others differ only in the point.
        inputs: Box<Inputs>,
        /// In real time: how many threads wanted to run in the minute before.
        load_before: Option<f64>,
    },
}

impl Folder {
    /// The folder at a path, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder and locks it for this run.
    ///
    /// # Errors
    /// When it cannot be created or written, or another run has locked it.
    pub fn lock(&self) -> anyhow::Result<Lock> {
        results::lock(&self.0).map_err(|error| anyhow::anyhow!("{}: {error}", self.0.display()))
    }

    /// The file of a point in run `run` of all points; the first run is 0.
    pub fn file(&self, experiment: &Experiment, number: usize, point: &Point, run: u32) -> PathBuf {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        let words: String = point.name.chars().map(plain).collect();
        let slug: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
        let run = if run == 0 { String::new() } else { format!(".{}", run + 1) };
        self.0.join(experiment.claim.id).join(format!("{number:03}-{}{run}.json", slug.join("-")))
    }

    /// Writes a point's file atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, file: &Path, stored: &Stored) -> anyhow::Result<()> {
        results::write_whole(file, &stored.to_json()).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Removes incomplete files of a killed run. Requires the lock.
    pub(crate) fn sweep(&self, experiment: &Experiment) {
        results::remove_unfinished(&self.0.join(experiment.claim.id));
    }

    /// The results of a claim, of any program and seed.
    pub fn held(&self, experiment: &Experiment) -> Held {
        let points = (experiment.points)();
        let first = self.run(experiment, &points, 0);
        // Points of another run of the same claim do not count.
        let alike = |one: &Stored, other: &Stored| {
            let (one, other) = (&one.inputs, &other.inputs);
            (one.seed, one.effort, &one.program, &one.machine)
                == (other.seed, other.effort, &other.program, &other.machine)
        };
        let most = first.iter().map(|one| first.iter().filter(|other| alike(one, other)).count()).max().unwrap_or(0);
        if most < points.len() || most == 0 {
            return if most == 0 { Held::Nothing } else { Held::Part { done: most, of: points.len() } };
        }
        let (inputs, load_before) = (Box::new(first[0].inputs.clone()), first[0].load_before);
        let mut runs = vec![first];
        for number in 1..experiment.repeats() {
            let due = Inputs { seed: seed_of(experiment, inputs.seed, number), ..(*inputs).clone() };
            let mut more = self.run(experiment, &points, number);
            more.retain(|stored| {
                let of = &stored.inputs;
                (of.seed, of.effort, &of.program, &of.machine) == (due.seed, due.effort, &due.program, &due.machine)
            });
            match more.len() {
                0 => break,
                done if done < points.len() => {
                    return Held::Part { done: runs.len() * points.len() + done, of: (runs.len() + 1) * points.len() };
                }
                _ => runs.push(more),
            }
        }
        let results = |run: Vec<Stored>| Results(run.into_iter().map(|one| (one.inputs.point, one.figures)).collect());
        Held::Whole { results: runs.into_iter().map(results).collect(), inputs, load_before }
    }

    /// The points of a run that exist.
    fn run(&self, experiment: &Experiment, points: &[Point], run: u32) -> Vec<Stored> {
        let mut found = Vec::new();
        for (number, point) in points.iter().enumerate() {
            let inputs = Inputs::new(experiment, point, 0, Effort::FULL);
            let stored = match Stored::find(&self.file(experiment, number, point, run), &inputs) {
                Found::Fits(stored) | Found::Other(stored, _) => stored,
                Found::Nothing | Found::Broken(_) => continue,
            };
            if (&stored.inputs.claim, &stored.inputs.point) == (&inputs.claim, &inputs.point) {
                found.push(stored);
            }
        }
        found
    }
}
