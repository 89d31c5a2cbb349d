//! The levels: the runs, and the choice of runs for the next merge (leveled compaction).
//!
//! Runs of level 0 are whole memtables, which overlap; the newest is the first. Runs of the other levels do not
//! overlap, and are in the order of their keys. Each level may have `ratio` times the bytes of the one above it.

use std::rc::Rc;

use crate::record::Bytes;
use crate::run::Run;

/// The most levels, the first one included.
pub(crate) const LEVELS: usize = 8;

/// When levels are too large.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LevelConfig {
    /// Runs of level 0 at which they are merged into level 1.
    pub trigger: usize,
    /// Bytes of level 1.
    pub base: u64,
    /// Bytes of a level for each byte of the one above it.
    pub ratio: u64,
    /// Total bytes by which levels may be too large before changes wait for merges.
    pub debt: u64,
}

/// See the file.
#[derive(Clone, Default)]
pub(crate) struct Levels {
    pub(crate) runs: [Vec<Rc<Run>>; LEVELS],
}

/// Runs to merge.
pub(crate) struct Job {
    /// The level that is too large.
    pub(crate) from: usize,
    /// Its runs, the newest first.
    pub(crate) upper: Vec<Rc<Run>>,
    /// Runs of the next level that overlap them.
    pub(crate) lower: Vec<Rc<Run>>,
    /// Whether deletions have to be kept, since older records of their keys may be further below.
    pub(crate) keeps_deletions: bool,
}

impl Job {
    /// Whether the run can move to the next level unchanged.
    pub(crate) fn is_move(&self) -> bool {
        self.upper.len() == 1 && self.lower.is_empty()
    }
}

impl Levels {
    /// Bytes of a level.
    pub(crate) fn bytes(&self, level: usize) -> u64 {
        self.runs[level].iter().map(|run| run.bytes()).sum()
    }

    /// Bytes of levels beyond their limits.
    pub(crate) fn debt(&self, config: &LevelConfig) -> u64 {
        let targets = std::iter::successors(Some(config.base), |target| Some(target.saturating_mul(config.ratio)));
        (1..LEVELS - 1).zip(targets).map(|(level, target)| self.bytes(level).saturating_sub(target)).sum()
    }

    /// All runs, level by level.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Rc<Run>> {
        self.runs.iter().flatten()
    }

    /// Runs that may have a key, the newest first.
    pub(crate) fn may_have<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a Rc<Run>> {
        let below = self.runs[1..].iter().filter_map(move |runs| {
            let at = runs.partition_point(|run| &*run.last < key);
            runs.get(at)
        });
        self.runs[0].iter().chain(below)
    }

    /// The next merge, if any: of runs of the level that is fullest for its limit. `turn` has the key at which each
    /// level continues.
    pub(crate) fn pick(&self, config: &LevelConfig, turn: &mut [Option<Bytes>; LEVELS]) -> Option<Job> {
        // The newest runs may not survive a crash, so they wait.
        let first: Vec<Rc<Run>> = self.runs[0].iter().filter(|run| run.is_committed.get()).cloned().collect();
        let mut fullest = (first.len() >= config.trigger).then(|| (0, first.len() as f64 / config.trigger as f64));
        let mut target = config.base;
        for level in 1..LEVELS - 1 {
            let score = self.bytes(level) as f64 / target as f64;
            if score > 1.0 && fullest.is_none_or(|(_, other)| score > other) {
                fullest = Some((level, score));
            }
            target = target.saturating_mul(config.ratio);
        }
        let (level, _) = fullest?;
        if level == 0 {
            return Some(self.job(0, first));
        }
        let runs = &self.runs[level];
        let next = turn[level].as_ref().map_or(0, |key| runs.partition_point(|run| run.first() <= key));
        let run = runs.get(next).or(runs.first())?.clone();
        turn[level] = Some(run.first().clone());
        Some(self.job(level, vec![run]))
    }

    fn job(&self, from: usize, upper: Vec<Rc<Run>>) -> Job {
        let first = upper.iter().map(|run| run.first().clone()).min().expect("a run");
        let last = upper.iter().map(|run| run.last.clone()).max().expect("a run");
        let overlapping = |runs: &[Rc<Run>], first: &[u8], last: &[u8]| -> Vec<Rc<Run>> {
            runs.iter().filter(|run| run.overlaps(first, last)).cloned().collect()
        };
        let lower = overlapping(&self.runs[from + 1], &first, &last);
        let first = lower.iter().map(|run| run.first().clone()).chain([first]).min().expect("a key");
        let last = lower.iter().map(|run| run.last.clone()).chain([last]).max().expect("a key");
        let is_below = self.runs[from + 2..].iter().flatten().any(|run| run.overlaps(&first, &last));
        Job { from, upper, lower, keeps_deletions: is_below }
    }

    /// The levels after a merge.
    pub(crate) fn merged(&self, job: &Job, made: &[Rc<Run>]) -> Levels {
        let mut levels = self.clone();
        let is_gone = |run: &Rc<Run>| job.upper.iter().chain(&job.lower).any(|gone| gone.id == run.id);
        levels.runs[job.from].retain(|run| !is_gone(run));
        let to = &mut levels.runs[job.from + 1];
        to.retain(|run| !is_gone(run));
        to.extend(made.iter().cloned());
        to.sort_by(|one, other| one.first().cmp(other.first()));
        levels
    }

    /// Whether runs overlap that must not, and the level.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (runs, level) in self.runs.iter().zip(0..).skip(1) {
            if let Some(pair) = runs.windows(2).find(|pair| pair[0].last >= *pair[1].first()) {
                return Err(format!("runs {} and {} of level {level} overlap", pair[0].id, pair[1].id));
            }
        }
        Ok(())
    }
}
