//! The settings of the layer, and the keys by which users give them.

use nandscape_sim::Span;

use crate::layer::LAYER;
use crate::scheduler::SchedulerKind;

/// How the layer finds out how long a read will take.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum PredictorKind {
    /// It does not, and deadlines are passed on to the drive.
    None,
    /// The drive reports how long its internal work delays a read (fast-fail), and nothing else.
    Told,
    /// [`MittSsd`](crate::predictor::MittSsd).
    #[default]
    Ssd,
    /// [`MittNoop`](crate::predictor::MittNoop).
    NoopDisk,
    /// [`MittCfq`](crate::predictor::MittCfq).
    CfqDisk,
    /// [`MittSmr`](crate::predictor::MittSmr).
    SmrDisk,
}

impl PredictorKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, PredictorKind); 6] = [
        ("none", PredictorKind::None),
        ("told", PredictorKind::Told),
        ("ssd", PredictorKind::Ssd),
        ("noop-disk", PredictorKind::NoopDisk),
        ("cfq-disk", PredictorKind::CfqDisk),
        ("smr-disk", PredictorKind::SmrDisk),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        PredictorKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The choice of the next command for the drive.
    pub scheduler: SchedulerKind,
    /// How long reads take.
    pub predictor: PredictorKind,
    /// The deadline of reads that carry none; zero is none.
    pub deadline: Span,
    /// The cost of asking another replica: a read is rejected if it is predicted to miss its deadline by more than
    /// this (T_hop).
    pub hop: Span,
    /// Commands at the drive at a time; 0 is no limit.
    pub depth: u32,
    /// Whether predictions are only attached to reads, which are all served.
    pub predict_only: bool,
    /// Whether the predictor distinguishes page types by their program times.
    pub page_types: bool,
    /// Whether the predictor has an account of channels.
    pub channels: bool,
    /// Whether the predictor continues to measure the times of operations.
    pub resample: bool,
    /// How long it takes to reject a read.
    pub reject: Span,
    /// Whether the next free time of a disk is corrected as commands end.
    pub correct: bool,
    /// The time of a turn of the scheduler `cfq` at priority 4.
    pub slice: Span,
    /// Its name as a layer in breakdowns.
    pub layer: &'static str,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            scheduler: SchedulerKind::Noop,
            predictor: PredictorKind::Ssd,
            deadline: Span::ZERO,
            hop: Span::ZERO,
            depth: 0,
            predict_only: false,
            page_types: true,
            channels: true,
            resample: true,
            // Of the 5 us at most that a system call and its EBUSY take (Li 3.1.3).
            reject: Span::from_us(5),
            correct: true,
            // Linux: slice_sync of CFQ.
            slice: Span::from_ms(100),
            layer: LAYER,
        }
    }
}

/// Why a setting is not valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    key: String,
    problem: String,
}

impl Config {
    /// The keys, with a line on each.
    pub const KEYS: [(&str, &str); 12] = [
        ("block.scheduler", "which command goes to the drive next: noop, ssd or cfq"),
        ("block.predictor", "how long reads take: none, told, ssd, noop-disk, cfq-disk or smr-disk"),
        ("block.deadline", "the deadline of reads that carry none, such as 2ms; 0 is none"),
        ("block.hop", "by how much a read may be late before it is rejected, such as 300us"),
        ("block.depth", "commands at the drive at a time; 0 is no limit"),
        ("block.predict_only", "attach predictions to reads and serve them all the same: true or false"),
        ("block.page_types", "tell page types apart by their time to program: true or false"),
        ("block.channels", "have an account of channels: true or false"),
        ("block.resample", "measure how long operations take as they end: true or false"),
        ("block.reject", "how long it takes to reject a read, such as 5us"),
        ("block.correct", "correct the next free time of a disk as commands end: true or false"),
        ("block.slice", "the time of a turn of the scheduler cfq at priority 4, such as 100ms"),
    ];

    /// Whether a change names a key of the block layer.
    pub fn is_key(change: &str) -> bool {
        change.trim_start().starts_with("block.")
    }

    /// Changes a setting: `block.deadline=2ms`.
    ///
    /// # Errors
    /// The fault, and what would be valid.
    pub fn set(&mut self, change: &str) -> Result<(), ConfigError> {
        let bad = |key: &str, problem: String| ConfigError { key: key.to_owned(), problem };
        let Some((key, value)) = change.split_once('=') else {
            return Err(bad(change, "the value is missing; KEY=VALUE is valid".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |valid: &str| bad(key, format!("{value:?} is not valid; {valid}"));
        let time = || span(value).ok_or_else(|| wrong("a time such as 300us is, and 0"));
        let yes = || value.parse().map_err(|_| wrong("true and false are"));
        match key {
            "block.scheduler" => {
                let valid = format!("{}; noop is the scheduler none of Linux", names(&SchedulerKind::ALL));
                self.scheduler = named(&SchedulerKind::ALL, value).ok_or_else(|| wrong(&valid))?;
            }
            "block.predictor" => {
                self.predictor = named(&PredictorKind::ALL, value).ok_or_else(|| wrong(&names(&PredictorKind::ALL)))?;
            }
            "block.deadline" => self.deadline = time()?,
            "block.hop" => self.hop = time()?,
            "block.depth" => self.depth = value.parse().map_err(|_| wrong("a number of commands is, and 0"))?,
            "block.predict_only" => self.predict_only = yes()?,
            "block.page_types" => self.page_types = yes()?,
            "block.channels" => self.channels = yes()?,
            "block.resample" => self.resample = yes()?,
            "block.reject" => self.reject = time()?,
            "block.correct" => self.correct = yes()?,
            "block.slice" => {
                let slice = span(value).filter(|slice| *slice >= SHORTEST_SLICE);
                self.slice = slice.ok_or_else(|| wrong("a time from 1us to an hour, such as 100ms, is"))?;
            }
            _ => {
                let all: Vec<&str> = Config::KEYS.iter().map(|(key, _)| *key).collect();
                return Err(bad(key, format!("there is no such key; valid are {}", all.join(", "))));
            }
        }
        Ok(())
    }

    /// The settings with their values, by key.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("scheduler", self.scheduler.name().to_owned()),
            ("predictor", self.predictor.name().to_owned()),
            ("deadline", self.deadline.to_string()),
            ("hop", self.hop.to_string()),
            ("depth", self.depth.to_string()),
            ("predict_only", self.predict_only.to_string()),
            ("page_types", self.page_types.to_string()),
            ("channels", self.channels.to_string()),
            ("resample", self.resample.to_string()),
            ("reject", self.reject.to_string()),
            ("correct", self.correct.to_string()),
            ("slice", self.slice.to_string()),
        ]
    }

    /// Checks that the settings are compatible.
    ///
    /// # Errors
    /// The incompatible setting, and what would be valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        let bad = |key: &str, problem: String| Err(ConfigError { key: key.to_owned(), problem });
        let scheduler = match self.predictor {
            PredictorKind::NoopDisk | PredictorKind::SmrDisk => SchedulerKind::Noop,
            PredictorKind::CfqDisk => SchedulerKind::Cfq,
            PredictorKind::None | PredictorKind::Told | PredictorKind::Ssd => self.scheduler,
        };
        if scheduler != self.scheduler {
            let (predictor, is, valid) = (self.predictor.name(), self.scheduler.name(), scheduler.name());
            let problem = format!(
                "{predictor} knows the order of block.scheduler={valid}, which is valid with it, and {is} is set"
            );
            return bad("block.predictor", problem);
        }
        if self.scheduler != SchedulerKind::Noop && self.depth == 0 {
            let name = self.scheduler.name();
            return bad(
                "block.scheduler",
                format!(
                    "{name} has nothing to put in order where all goes to the drive at once; block.depth=1 and more are valid with it"
                ),
            );
        }
        Ok(())
    }

    /// The deadline of reads that carry none.
    pub fn default_deadline(&self) -> Option<Span> {
        Some(self.deadline).filter(|deadline| !deadline.is_zero())
    }
}

/// The shortest turn.
const SHORTEST_SLICE: Span = Span::from_us(1);

/// A time of at most an hour: longer times are no useful deadlines.
fn span(value: &str) -> Option<Span> {
    let span = if value == "0" { Some(Span::ZERO) } else { value.parse().ok() };
    span.filter(|span| *span <= Span::from_s(3_600))
}

fn named<T: Copy>(all: &[(&str, T)], value: &str) -> Option<T> {
    all.iter().find(|(name, _)| *name == value).map(|(_, value)| *value)
}

fn names<T>(all: &[(&str, T)]) -> String {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    format!("valid are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_errors_say_what_is_valid() {
        let mut config = Config::default();
        for change in ["block.scheduler=ssd", "block.deadline=2ms", "block.depth=8", "block.predict_only=true"] {
            config.set(change).unwrap();
        }
        assert_eq!((config.scheduler, config.default_deadline()), (SchedulerKind::Ssd, Some(Span::from_ms(2))));
        assert_eq!((config.depth, config.predict_only), (8, true));
        let mut again = Config::default();
        config.settings().iter().for_each(|(key, value)| again.set(&format!("block.{key}={value}")).unwrap());
        assert_eq!(again, config);
        assert_eq!(config.settings().len(), Config::KEYS.len());
        for (change, problem) in [
            ("block.scheduler=mq-deadline", "valid are noop, ssd, cfq; noop is the scheduler none of Linux"),
            ("block.predictor=x", "valid are none, told, ssd, noop-disk, cfq-disk, smr-disk"),
            ("block.slice=0", "from 1us to an hour"),
            ("block.deadline=soon", "a time such as"),
            ("block.deadline=999999h", "a time such as"),
            ("block.depth=-1", "a number of commands"),
            ("block.predict_only=1", "true and false"),
            ("block.size=3", "valid are block.scheduler"),
            ("block.hop", "KEY=VALUE"),
        ] {
            let error = config.clone().set(change).unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("block."), "{error}");
        }
        for (changes, problem) in [
            (&["block.scheduler=cfq"][..], "block.depth=1"),
            (&["block.scheduler=ssd"], "block.depth=1"),
            (&["block.predictor=noop-disk", "block.scheduler=ssd"], "block.scheduler=noop"),
            (&["block.predictor=cfq-disk", "block.depth=1"], "block.scheduler=cfq"),
        ] {
            let mut config = Config::default();
            changes.iter().for_each(|change| config.set(change).unwrap());
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("block."), "{error}");
        }
        assert_eq!(Config::default().check(), Ok(()));
        assert!(Config::KEYS.iter().all(|(key, _)| Config::is_key(key)) && !Config::is_key("ftl.gc=1"));
    }
}
