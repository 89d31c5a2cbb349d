//! How a host runs the threads of a job, with fio's words: `nice`, `cpus_allowed` and `cpumask`, `cpus_allowed_policy`. Runs without a
//! simulated host have no such threads.
//!
//! Left out: memory by NUMA node (`numa_mem_policy`), processors by node (`numa_cpu_nodes`), real-time threads.

use crate::spec::{JobSpec, Workload};

/// The most processors of a host.
const MOST: usize = 1_024;

/// See the file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scheduling {
    /// The nice value of its threads, -20 to 19.
    pub nice: i8,
    /// The processors that they may use, in order; empty is all.
    pub cpus: Vec<usize>,
    /// Whether each of the job's `numjobs` has one of these processors, in turn.
    pub split: bool,
}

impl Scheduling {
    /// That of one of the job's `numjobs`.
    pub fn of_clone(&self, number: usize) -> Scheduling {
        match self.split && !self.cpus.is_empty() {
            true => Scheduling { cpus: vec![self.cpus[number % self.cpus.len()]], ..self.clone() },
            false => self.clone(),
        }
    }

    /// In words, after a space; empty for the default.
    pub fn describe(&self) -> String {
        let nice = if self.nice == 0 { String::new() } else { format!(" nice={}", self.nice) };
        let runs = self.cpus.chunk_by(|one, next| one + 1 == *next).map(|run| match run {
            [only] => only.to_string(),
            run => format!("{}-{}", run[0], run[run.len() - 1]),
        });
        let cpus = runs.collect::<Vec<_>>().join(",");
        let cpus = if cpus.is_empty() { cpus } else { format!(" cpus_allowed={cpus}") };
        nice + &cpus + if self.split { " cpus_allowed_policy=split" } else { "" }
    }
}

impl Workload {
    /// The words that have an effect on simulated hosts only, if a job has some: for a run without one.
    pub fn note_on_threads(&self) -> Option<String> {
        let has = |of: fn(&Scheduling) -> bool| self.jobs.iter().any(|job: &JobSpec| of(&job.scheduling));
        let (nice, cpus) = (has(|one| one.nice != 0), has(|one| !one.cpus.is_empty()));
        let words = match (nice, cpus) {
            (false, false) => return None,
            (true, false) => "nice has",
            (false, true) => "the choice of processors has",
            (true, true) => "nice and the choice of processors have",
        };
        Some(format!("{words} no effect: simulated threads are those of nandscape sim --host"))
    }
}

/// fio's words.
#[derive(Clone, Default, Debug)]
pub struct SchedulingWords {
    /// `nice`.
    pub nice: Option<i64>,
    /// `cpus_allowed`: `0-3,6`.
    pub cpus: Option<String>,
    /// `cpumask`: a bit for each processor.
    pub mask: Option<String>,
    /// `cpus_allowed_policy`: `shared` or `split`.
    pub policy: Option<String>,
}

impl SchedulingWords {
    /// What they mean together.
    ///
    /// # Errors
    /// Which of them is not valid, and what would be.
    pub fn scheduling(&self) -> Result<Scheduling, String> {
        let nice = self.nice.unwrap_or(0);
        let nice = i8::try_from(nice).ok().filter(|nice| (-20..20).contains(nice));
        let nice = nice.ok_or_else(|| {
            format!("nice = {} is out of range; from -20 to 19 is valid", self.nice.unwrap_or_default())
        })?;
        let split = match self.policy.as_deref() {
            None | Some("shared") => false,
            Some("split") => true,
            Some(other) => {
                return Err(format!("cpus_allowed_policy = \"{other}\" is not known; shared or split is valid"));
            }
        };
        let cpus = match (&self.cpus, &self.mask) {
            (Some(_), Some(_)) => return Err("cpus_allowed and cpumask are two words for one; give one".to_owned()),
            (Some(text), None) => set(text).ok_or_else(|| {
                format!("cpus_allowed = \"{text}\" is not a set of processors from 0 to {}, such as 0-3,6", MOST - 1)
            })?,
            (None, Some(text)) => mask(text).ok_or_else(|| {
                format!("cpumask = \"{text}\" is not a mask with a bit for each processor, such as 15 or 0xf")
            })?,
            (None, None) => Vec::new(),
        };
        Ok(Scheduling { nice, cpus, split })
    }

    /// The same of all words of a job.
    ///
    /// # Errors
    /// As [`SchedulingWords::scheduling`], and when no processors are named that `split` could share out.
    pub fn of_job(&self) -> Result<Scheduling, String> {
        let scheduling = self.scheduling()?;
        match scheduling.split && scheduling.cpus.is_empty() {
            true => {
                Err("cpus_allowed_policy = \"split\" needs the processors to share out; cpus_allowed, such as 0-3, is \
                 valid next to it"
                    .to_owned())
            }
            false => Ok(scheduling),
        }
    }
}

/// The processors of a text such as `0-3,6`.
fn set(text: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number < MOST);
    let mut cpus = std::collections::BTreeSet::new();
    for part in text.split([',', ':']) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return None;
        }
        cpus.extend(from..=to);
    }
    Some(cpus.into_iter().collect())
}

/// The processors of a mask.
fn mask(text: &str) -> Option<Vec<usize>> {
    let mask = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let mask = mask.ok().filter(|mask| *mask > 0)?;
    Some((0..64).filter(|cpu| mask >> cpu & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nice: i64, cpus: &str, policy: &str) -> Result<Scheduling, String> {
        let (cpus, policy) = (Some(cpus.to_owned()), Some(policy.to_owned()));
        SchedulingWords { nice: Some(nice), cpus, mask: None, policy }.scheduling()
    }

    #[test]
    fn words_are_a_weight_and_processors() {
        let split = of(-5, "6,0-2", "split").unwrap();
        assert_eq!((split.nice, &split.cpus[..], split.split), (-5, &[0, 1, 2, 6][..], true));
        assert_eq!(split.describe(), " nice=-5 cpus_allowed=0-2,6 cpus_allowed_policy=split");
        assert_eq!([split.of_clone(0).cpus, split.of_clone(3).cpus, split.of_clone(4).cpus], [[0], [6], [0]]);
        let shared = of(0, "1:3", "shared").unwrap();
        assert_eq!((shared.of_clone(1), shared.describe().as_str()), (shared.clone(), " cpus_allowed=1,3"));
        let masked = |text: &str| SchedulingWords { mask: Some(text.to_owned()), ..SchedulingWords::default() };
        assert_eq!(masked("0xa").scheduling().unwrap().cpus, [1, 3]);
        assert_eq!(masked("6").scheduling().unwrap().cpus, [1, 2]);
        assert_eq!(SchedulingWords::default().scheduling().unwrap(), Scheduling::default());
    }

    #[test]
    fn words_that_mean_nothing_are_refused_with_what_is_valid() {
        for (problem, wrong) in [
            (of(20, "0", "shared"), "nice = 20 is out of range; from -20 to 19"),
            (of(-21, "0", "shared"), "from -20 to 19"),
            (of(1 << 40, "0", "shared"), "from -20 to 19"),
            (of(0, "3-1", "shared"), "cpus_allowed = \"3-1\" is not a set of processors from 0 to 1023, such as 0-3,6"),
            (of(0, "1024", "shared"), "from 0 to 1023"),
            (of(0, "", "shared"), "such as 0-3,6"),
            (of(0, "0", "spread"), "shared or split is valid"),
        ] {
            let problem = problem.unwrap_err();
            assert!(problem.contains(wrong), "{problem}");
        }
        let both =
            SchedulingWords { cpus: Some("1".to_owned()), mask: Some("2".to_owned()), ..SchedulingWords::default() };
        assert!(both.scheduling().unwrap_err().contains("give one"));
        let split = SchedulingWords { policy: Some("split".to_owned()), ..SchedulingWords::default() };
        assert!(split.scheduling().is_ok() && split.of_job().unwrap_err().contains("cpus_allowed, such as 0-3"));
        for mask in ["0", "0xg", "-1"] {
            let words = SchedulingWords { mask: Some(mask.to_owned()), ..SchedulingWords::default() };
            assert!(words.scheduling().unwrap_err().contains("15 or 0xf"), "{mask}");
        }
    }
}
