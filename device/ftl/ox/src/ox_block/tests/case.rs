//! A run that is cut, as a line of text: `KIND seed=N steps=N rounds=N [depth=N] [trims] [lose=WHAT]
//! [again=N,N]; FAULT; FAULT`.
//!
//! The same line is the same run, event by event.

use std::fmt;
use std::str::FromStr;

use super::kinds::{KINDS, LINES, MORE, Setup};
use super::load::Load;
use super::lose::Lose;

/// A run, and where it is cut.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Case {
    /// The kind of drive.
    pub(super) kind: &'static str,
    pub(super) seed: u64,
    /// Commands of a load.
    pub(super) steps: u32,
    /// Loads, each with another seed. After a power cut the next begins.
    pub(super) rounds: u64,
    /// Concurrent commands.
    pub(super) depth: u32,
    /// Whether loads deallocate units.
    pub(super) trims: bool,
    /// What flash loses after each power cut.
    pub(super) lose: Lose,
    /// The operations of the first, the second, ... recovery at which power is cut again, counted from its start.
    pub(super) again: Vec<u64>,
    /// Faults, as rules: power cuts among them.
    pub(super) faults: Vec<String>,
}

impl Case {
    /// A run of two short loads, without faults.
    pub(super) fn new(kind: &'static str, seed: u64) -> Case {
        // A power cut undoes deallocations where there is no log.
        let trims = !["transactions", "appended"].contains(&kind) && !LINES.contains(&kind);
        let (lose, again, faults) = (Lose::Nothing, Vec::new(), Vec::new());
        Case { kind, seed, steps: 60, rounds: 2, depth: 1, trims, lose, again, faults }
    }

    pub(super) fn setup(&self) -> Setup {
        Setup::of(self.kind).expect("the kind is one of those that there are")
    }

    pub(super) fn load(&self, setup: &Setup) -> Load {
        let (span, forced) = (setup.config.logical_units, setup.config.waits_for_log);
        Load { steps: self.steps, depth: self.depth, span, most: 6, deallocates: self.trims, forced }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { kind, seed, steps, rounds, depth, trims, lose, again, faults } = self;
        write!(f, "{kind} seed={seed} steps={steps} rounds={rounds}")?;
        if *depth != 1 {
            write!(f, " depth={depth}")?;
        }
        if *trims {
            f.write_str(" trims")?;
        }
        if *lose != Lose::Nothing {
            write!(f, " lose={}", lose.name())?;
        }
        if !again.is_empty() {
            let numbers: Vec<String> = again.iter().map(u64::to_string).collect();
            write!(f, " again={}", numbers.join(","))?;
        }
        faults.iter().try_for_each(|fault| write!(f, "; {fault}"))
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Case, String> {
        let mut parts = text.split(';').map(str::trim);
        let mut words = parts.next().unwrap_or_default().split_whitespace();
        let kind = words.next().unwrap_or_default();
        let kind = KINDS.into_iter().chain(MORE).chain(LINES).find(|known| *known == kind);
        let kind = kind.ok_or_else(|| format!("case {text:?}: it begins with one of {}", KINDS.join(", ")))?;
        let mut case = Case { trims: false, faults: parts.map(str::to_owned).collect(), ..Case::new(kind, 1) };
        for word in words {
            case.set(word).ok_or_else(|| format!("case {text:?}: {word:?} is no word of a case"))?;
        }
        Ok(case)
    }
}

impl Case {
    fn set(&mut self, word: &str) -> Option<()> {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "seed" => self.seed = value.parse().ok()?,
            "steps" => self.steps = value.parse().ok()?,
            "rounds" => self.rounds = value.parse().ok()?,
            "depth" => self.depth = value.parse().ok().filter(|depth| *depth > 0)?,
            "trims" => self.trims = true,
            "lose" => self.lose = Lose::named(value)?,
            "again" => self.again = value.split(',').map(str::parse).collect::<Result<_, _>>().ok()?,
            _ => return None,
        }
        Some(())
    }
}

#[test]
fn a_case_is_read_as_it_was_written() {
    let text = "paged seed=7 steps=300 rounds=4 depth=4 trims lose=first again=3,120; power_cut nth=812 torn=any; fail program count=2";
    let case: Case = text.parse().unwrap();
    assert_eq!(case.to_string(), text);
    assert_eq!((case.kind, case.seed, case.again.len(), case.faults.len()), ("paged", 7, 2, 2));
    assert_eq!(Case::new("tiny", 3).to_string().parse(), Ok(Case::new("tiny", 3)));
    for (wrong, why) in [("", "begins with one of plain"), ("plain sed=3", "\"sed=3\" is no word")] {
        let error = wrong.parse::<Case>().unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
