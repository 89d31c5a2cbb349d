//! Jobs that pause, with fio's words: `thinktime`, `thinktime_blocks`, `thinktime_blocks_type`, `thinktime_spin`.
//!
//! After so many requests a job waits until all of its requests have completed, and then for the think time. The host's processor
//! is not modelled, so that spinning and sleeping are the same.
//!
//! Left out: fio's `thinktime_iotime`.

use std::cell::Cell;
use std::str::FromStr;

use nandscape_sim::Span;

use crate::spec::JobSpec;
use crate::words::WordError;

/// The pauses of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Think {
    /// How long it pauses.
    pub time: Span,
    /// Requests between two pauses.
    pub blocks: u32,
    /// Which of them count.
    pub counts: Counts,
}

/// Which requests bring the next pause nearer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Those that complete.
    Completed,
    /// Those that are issued.
    Issued,
}

/// The words of a job about pauses, as given.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ThinkWords {
    /// `thinktime`.
    pub time: Option<Pause>,
    /// `thinktime_blocks`.
    pub blocks: Option<u32>,
    /// `thinktime_blocks_type`: `complete` or `issue`.
    pub counts: Option<String>,
    /// `thinktime_spin`: the part of the time in which fio keeps a processor busy.
    pub spin: Option<Pause>,
}

/// A time in fio's words: a number alone is of microseconds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pause(pub Span);

impl FromStr for Pause {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Pause, WordError> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let with_unit = if is_number { format!("{text}us") } else { text.to_owned() };
        let wrong = || WordError::new(text, "a time such as \"200us\" (ns, us, ms, s; a number alone is microseconds)");
        with_unit.parse().map(Pause).map_err(|_| wrong())
    }
}

impl ThinkWords {
    /// What they mean.
    ///
    /// # Errors
    /// The word that is not valid, and what would be.
    pub fn think(&self) -> Result<Option<Think>, String> {
        let counts = match self.counts.as_deref() {
            None | Some("complete") => Counts::Completed,
            Some("issue") => Counts::Issued,
            Some(other) => {
                return Err(format!("thinktime_blocks_type = {other} is not known; complete and issue are valid"));
            }
        };
        let time = self.time.map_or(Span::ZERO, |Pause(time)| time);
        let spin = self.spin.map_or(Span::ZERO, |Pause(spin)| spin);
        if time.is_zero() {
            let of_pauses = [
                ("thinktime_blocks", self.blocks.is_some()),
                ("thinktime_blocks_type", self.counts.is_some()),
                ("thinktime_spin", self.spin.is_some()),
            ];
            return match of_pauses.iter().find(|(_, is_given)| *is_given && self.time.is_none()) {
                Some((word, _)) => Err(format!("{word} is for jobs that pause: thinktime = 200us")),
                None => Ok(None),
            };
        }
        match self.blocks {
            Some(0) => Err("thinktime_blocks = 0 is out of range; from 1 on is valid".to_owned()),
            blocks => Ok(Some(Think { time: time.max(spin), blocks: blocks.unwrap_or(1), counts })),
        }
    }
}

impl Think {
    /// The words as a line has them.
    pub fn describe(&self) -> String {
        let counts = if self.counts == Counts::Issued { " thinktime_blocks_type=issue" } else { "" };
        format!(" thinktime={} thinktime_blocks={}{counts}", self.time, self.blocks)
    }

    /// Checks the words of a job against each other.
    pub(crate) fn check(&self, job: &JobSpec) -> Result<(), String> {
        if job.rate.is_some() || job.zoned.is_some() || job.source.is_some() {
            let problem = "thinktime is for closed loops of drawn requests, without rate_iops and zonemode";
            return Err(problem.to_owned());
        }
        Ok(())
    }
}

/// The pauses of a running job.
pub(crate) struct Thinking {
    pub(crate) think: Think,
    /// Requests since the last pause.
    counted: Cell<u64>,
    /// Slots that wait for the end of the pause.
    parked: Cell<u32>,
    is_pausing: Cell<bool>,
}

impl Thinking {
    pub(crate) fn new(think: Think) -> Thinking {
        Thinking { think, counted: Cell::new(0), parked: Cell::new(0), is_pausing: Cell::new(false) }
    }

    /// A request was issued or has completed.
    pub(crate) fn count(&self, what: Counts) {
        self.counted.set(self.counted.get() + u64::from(what == self.think.counts));
    }

    /// Whether no further request is to be issued before the pause.
    pub(crate) fn is_due(&self) -> bool {
        self.counted.get() >= self.think.blocks.into()
    }

    /// A slot waits. Whether the pause begins with it; `in_flight` requests have not completed.
    pub(crate) fn park(&self, in_flight: usize) -> bool {
        self.parked.set(self.parked.get() + 1);
        in_flight == 0 && !self.is_pausing.replace(true)
    }

    /// The pause is over: the number of slots that waited.
    pub(crate) fn resume(&self) -> u32 {
        self.counted.set(0);
        self.is_pausing.set(false);
        self.parked.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_meaning_or_valid_values() {
        let words = |time: Option<&str>, blocks, counts: Option<&str>, spin: Option<&str>| {
            let [time, spin] = [time, spin].map(|text| text.map(|text| text.parse::<Pause>().unwrap()));
            ThinkWords { time, blocks, counts: counts.map(str::to_owned), spin }.think()
        };
        assert_eq!(words(None, None, None, None), Ok(None));
        assert_eq!(words(Some("0"), Some(4), None, None), Ok(None), "as in fio");
        let think = words(Some("200"), Some(4), Some("issue"), Some("50us")).unwrap().unwrap();
        assert_eq!(think.describe(), " thinktime=200us thinktime_blocks=4 thinktime_blocks_type=issue");
        for (wrong, problem) in [
            (words(None, Some(1), None, None), "thinktime_blocks is for jobs that pause"),
            (words(Some("1ms"), Some(0), None, None), "from 1 on is valid"),
            (words(Some("1ms"), None, Some("half"), None), "complete and issue are valid"),
        ] {
            assert!(wrong.as_ref().unwrap_err().contains(problem), "{wrong:?}");
        }
        assert!("5x".parse::<Pause>().is_err() && "".parse::<Pause>().is_err());
    }
}
