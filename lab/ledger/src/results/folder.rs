//! The folder of results: `FOLDER/CLAIM/NNN-point.json`. Files are written atomically.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::stored::{Found, Inputs, Stored};
use crate::experiment::{Effort, Experiment, Point};
use crate::figures::Results;

/// The suffix of files until they are complete.
const UNFINISHED: &str = ".unfinished-";

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Locks a folder for one run at a time, until dropped or the process ends.
pub struct Lock(#[expect(dead_code, reason = "held, not looked at")] File);

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
        /// What was measured.
        results: Results,
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
        let shown = self.0.display();
        fs::create_dir_all(&self.0).with_context(|| format!("cannot make the folder {shown}"))?;
        let file = File::create(self.0.join(".lock")).with_context(|| format!("cannot write to {shown}"))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(fs::TryLockError::WouldBlock) => {
                bail!("another run is using {shown}; wait for it, or use another folder")
            }
            Err(fs::TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot take {shown}")),
        }
    }

    /// The file of a point.
    pub fn file(&self, experiment: &Experiment, number: usize, point: &Point) -> PathBuf {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        let words: String = point.name.chars().map(plain).collect();
        let slug: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
        self.0.join(experiment.claim.id).join(format!("{number:03}-{}.json", slug.join("-")))
    }

    /// Writes a point's file atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, file: &Path, stored: &Stored) -> anyhow::Result<()> {
        let write = || -> std::io::Result<()> {
            let folder = file.parent().unwrap_or(&self.0);
            fs::create_dir_all(folder)?;
            let mut unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
            unfinished.write_all(stored.to_json().as_bytes())?;
            unfinished.as_file().sync_all()?;
            unfinished.persist(file)?;
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", file.display()))
    }

    /// Removes incomplete files of a killed run. Requires the lock.
    pub(crate) fn sweep(&self, experiment: &Experiment) {
        let Ok(entries) = fs::read_dir(self.0.join(experiment.claim.id)) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                // A file that cannot be removed does no harm.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// The results of a claim, of any run.
    pub fn held(&self, experiment: &Experiment) -> Held {
        let points = (experiment.points)();
        let mut found: Vec<Stored> = Vec::new();
        for (number, point) in points.iter().enumerate() {
            let inputs = Inputs::new(experiment, point, 0, Effort::FULL);
            let stored = match Stored::find(&self.file(experiment, number, point), &inputs) {
                Found::Fits(stored) | Found::Other(stored, _) => stored,
                Found::Nothing | Found::Broken(_) => continue,
            };
            if (&stored.inputs.claim, &stored.inputs.point) == (&inputs.claim, &inputs.point) {
                found.push(stored);
            }
        }
        // Points of another run of the same claim do not count.
        let alike = |one: &Stored, other: &Stored| {
            let (one, other) = (&one.inputs, &other.inputs);
            (one.seed, one.effort, &one.program, &one.machine)
                == (other.seed, other.effort, &other.program, &other.machine)
        };
        let most = found.iter().map(|one| found.iter().filter(|other| alike(one, other)).count()).max().unwrap_or(0);
        match (most, points.len()) {
            (0, _) => Held::Nothing,
            (done, of) if done < of => Held::Part { done, of },
            _ => {
                let (inputs, load_before) = (Box::new(found[0].inputs.clone()), found[0].load_before);
                let results = found.into_iter().map(|stored| (stored.inputs.point, stored.figures)).collect();
                Held::Whole { results: Results(results), inputs, load_before }
            }
        }
    }
}
