//! Fused operations over messages (Base 3.4.2): two consecutive capsules of a connection. Their data may arrive
//! later, and in any order; both commands are sent to the drive, one right after the other, when the data of both has
//! arrived.
//!
//! A single half never reaches the drive. A first half waits for the next capsule.

use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND};
use nandscape_wire_nvme::{Status, SubmissionEntry};

/// One command of an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Half {
    /// Its capsule has not arrived.
    Expected,
    /// The capsule does not exist.
    Missing,
    /// The command was refused.
    Failed,
    /// The command of this number, whose data is still to arrive.
    Coming(u16),
    /// The command of this number, whose data has arrived.
    Whole(u16),
}

/// The fate of the commands of an operation, by their numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Both are sent to the drive, in this order.
    Submit([u16; 2]),
    /// This command fails.
    Refuse(u16, Status),
}

/// The operations of a queue of which no command was submitted or refused.
#[derive(Default, Debug)]
pub(crate) struct Fused {
    /// Only the last one may expect its second half.
    pairs: Vec<[Half; 2]>,
}

/// Whether an entry is half of a fused operation. The reserved value is none: the drive has the status for it.
#[inline]
pub(crate) fn is_half(entry: &SubmissionEntry) -> bool {
    matches!(entry.flags & FLAGS_FUSED, FLAGS_FUSED_FIRST | FLAGS_FUSED_SECOND)
}

impl Fused {
    /// Whether the next capsule matters to a first half.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.pairs.last(), Some([_, Half::Expected]))
    }

    /// A capsule has arrived. If it does not complete a first half before it, that half is single.
    pub(crate) fn capsule(&mut self, entry: &SubmissionEntry) -> Option<Outcome> {
        if !self.is_open() || entry.flags & FLAGS_FUSED == FLAGS_FUSED_SECOND {
            return None;
        }
        let last = self.pairs.len() - 1;
        self.pairs[last][1] = Half::Missing;
        self.resolve(last)
    }

    /// The capsule is a half: its number, or `None` if it was rejected.
    pub(crate) fn came(&mut self, entry: &SubmissionEntry, number: Option<u16>) -> Option<Outcome> {
        let half = number.map_or(Half::Failed, Half::Coming);
        match (entry.flags & FLAGS_FUSED == FLAGS_FUSED_FIRST, self.is_open()) {
            (true, _) => self.pairs.push([half, Half::Expected]),
            (false, false) => self.pairs.push([Half::Missing, half]),
            (false, true) => self.pairs.last_mut().expect("it is open")[1] = half,
        }
        self.resolve(self.pairs.len() - 1)
    }

    /// All data of a half has arrived, and its digests were right or wrong. A half with a wrong digest is refused
    /// elsewhere.
    pub(crate) fn has_data(&mut self, number: u16, intact: bool) -> Option<Outcome> {
        let place = |pair: &[Half; 2]| pair.iter().position(|half| *half == Half::Coming(number));
        let (index, half) = self.pairs.iter().zip(0..).find_map(|(pair, index)| Some((index, place(pair)?)))?;
        self.pairs[index][half] = if intact { Half::Whole(number) } else { Half::Failed };
        self.resolve(index)
    }

    fn resolve(&mut self, index: usize) -> Option<Outcome> {
        let outcome = match self.pairs[index] {
            [Half::Whole(first), Half::Whole(second)] => Some(Outcome::Submit([first, second])),
            [Half::Whole(number), Half::Missing] | [Half::Missing, Half::Whole(number)] => {
                Some(Outcome::Refuse(number, Status::FUSED_MISSING))
            }
            [Half::Whole(number), Half::Failed] | [Half::Failed, Half::Whole(number)] => {
                Some(Outcome::Refuse(number, Status::FUSED_FAILED))
            }
            [Half::Missing | Half::Failed, Half::Missing | Half::Failed] => None,
            _ => return None,
        };
        self.pairs.remove(index);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(flags: u8) -> SubmissionEntry {
        SubmissionEntry { flags, ..SubmissionEntry::default() }
    }

    #[test]
    fn data_comes_in_any_order() {
        for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] {
            let mut fused = Fused::default();
            for number in 1..=4 {
                let half = entry(if number % 2 == 1 { FLAGS_FUSED_FIRST } else { FLAGS_FUSED_SECOND });
                assert_eq!(fused.capsule(&half).or(fused.came(&half, Some(number))), None);
            }
            let outcomes = order.map(|number| fused.has_data(number, true));
            let mut pairs: Vec<_> = outcomes.into_iter().flatten().collect();
            pairs.sort_by_key(|outcome| matches!(outcome, Outcome::Submit([3, 4])));
            assert_eq!(pairs, [Outcome::Submit([1, 2]), Outcome::Submit([3, 4])]);
            assert!(fused.pairs.is_empty());
        }
    }

    #[test]
    fn a_half_alone_is_missing_the_other() {
        let mut fused = Fused::default();
        let (first, second) = (entry(FLAGS_FUSED_FIRST), entry(FLAGS_FUSED_SECOND));
        assert_eq!((fused.came(&first, Some(1)), fused.has_data(1, true)), (None, None));
        let alone = |number| Some(Outcome::Refuse(number, Status::FUSED_MISSING));
        assert_eq!(fused.capsule(&entry(0)), alone(1));
        assert_eq!((fused.came(&second, Some(2)), fused.has_data(2, true)), (None, alone(2)));
        // A first half after a first half; its data is still to arrive.
        assert_eq!((fused.came(&first, Some(3)), fused.capsule(&first)), (None, None));
        assert_eq!((fused.came(&first, Some(4)), fused.has_data(3, true)), (None, alone(3)));
        assert_eq!(
            (fused.came(&second, None), fused.has_data(4, true)).1,
            Some(Outcome::Refuse(4, Status::FUSED_FAILED))
        );
        assert!(fused.pairs.is_empty());
    }
}
