//! Which submission queues have entries to fetch, and sets of queues to choose among them.

use nandscape_drive::QueueId;

/// Queues with entries to fetch: a bit each.
pub struct Waiting {
    words: Vec<u64>,
    count: u32,
}

impl Waiting {
    pub(super) fn none(queues: usize) -> Waiting {
        Waiting { words: vec![0; queues.div_ceil(64)], count: 0 }
    }

    #[inline]
    pub(super) fn set(&mut self, id: QueueId, waits: bool) {
        let (word, bit) = (&mut self.words[usize::from(id.0) / 64], 1 << (id.0 % 64));
        if (*word & bit != 0) != waits {
            *word ^= bit;
            self.count = if waits { self.count + 1 } else { self.count - 1 };
        }
    }

    /// Whether no queue has entries.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a queue has entries to fetch.
    pub fn contains(&self, id: QueueId) -> bool {
        self.words[usize::from(id.0) / 64] & 1 << (id.0 % 64) != 0
    }

    /// The first queue from `from` on, in ascending order.
    pub fn first_from(&self, from: u16) -> Option<QueueId> {
        let start = usize::from(from) / 64;
        let word = |index: usize| self.words[index] & if index == start { u64::MAX << (from % 64) } else { u64::MAX };
        let index = (start..self.words.len()).find(|index| word(*index) != 0)?;
        Some(QueueId(index as u16 * 64 + word(index).trailing_zeros() as u16))
    }

    /// All of them, in ascending order, those from `from` on before the others.
    pub fn all_from(&self, from: u16) -> impl Iterator<Item = QueueId> {
        let after = |id: Option<QueueId>| id.and_then(|id| self.first_from(id.0 + 1));
        let upper = std::iter::successors(self.first_from(from), move |id| after(Some(*id)));
        let lower = std::iter::successors(self.first_from(0), move |id| after(Some(*id)));
        upper.chain(lower.take_while(move |id| id.0 < from))
    }

    /// Whether one of a class has entries to fetch.
    pub(crate) fn has_of(&self, class: &QueueSet) -> bool {
        self.words.iter().zip(&class.words).any(|(word, class)| word & class != 0)
    }

    /// As [`Waiting::first_from`], among the queues of a class.
    pub(crate) fn first_of(&self, class: &QueueSet, from: u16) -> Option<QueueId> {
        let start = usize::from(from) / 64;
        let words = self.words.iter().zip(&class.words).map(|(word, class)| word & class).enumerate().skip(start);
        let mut rest =
            words.map(|(index, word)| (index, if index == start { word & u64::MAX << (from % 64) } else { word }));
        let (index, word) = rest.find(|(_, word)| *word != 0)?;
        Some(QueueId(index as u16 * 64 + word.trailing_zeros() as u16))
    }
}

/// The queues of a priority class: a bit each.
#[derive(Default)]
pub(crate) struct QueueSet {
    words: Vec<u64>,
}

impl QueueSet {
    pub(crate) fn insert(&mut self, id: QueueId) {
        let word = usize::from(id.0) / 64;
        self.words.resize(self.words.len().max(word + 1), 0);
        self.words[word] |= 1 << (id.0 % 64);
    }

    pub(crate) fn remove(&mut self, id: QueueId) {
        if let Some(word) = self.words.get_mut(usize::from(id.0) / 64) {
            *word &= !(1 << (id.0 % 64));
        }
    }

    pub(crate) fn contains(&self, id: QueueId) -> bool {
        self.words.get(usize::from(id.0) / 64).is_some_and(|word| word & 1 << (id.0 % 64) != 0)
    }
}
