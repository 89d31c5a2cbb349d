//! The processors on which a thread may run.

/// Words of a set.
const WORDS: usize = 16;

/// A set of processors. A processor is a hardware thread of a core.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Affinity([u64; WORDS]);

impl Affinity {
    /// The most processors of a machine.
    pub const MOST: usize = 64 * WORDS;

    /// Every processor of any machine.
    pub const ALL: Affinity = Affinity([u64::MAX; WORDS]);

    /// One processor; no processor if the number is [`Affinity::MOST`] or more.
    pub const fn one(cpu: usize) -> Affinity {
        let mut words = [0; WORDS];
        if cpu < Affinity::MOST {
            words[cpu / 64] = 1 << (cpu % 64);
        }
        Affinity(words)
    }

    /// These processors, and another set's as well.
    pub fn and(self, other: Affinity) -> Affinity {
        Affinity(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Whether a processor is among them.
    #[inline]
    pub const fn has(&self, cpu: usize) -> bool {
        cpu < Affinity::MOST && self.0[cpu / 64] >> (cpu % 64) & 1 == 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The first processor of the set that a machine with `cpus` processors lacks; [`Affinity::ALL`] lacks none.
    pub(crate) fn missing(&self, cpus: usize) -> Option<usize> {
        if *self == Affinity::ALL {
            return None;
        }
        (cpus / 64..WORDS).find_map(|word| {
            let known = if word == cpus / 64 { (1 << (cpus % 64)) - 1 } else { 0 };
            let missing = self.0[word] & !known;
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        })
    }
}

impl FromIterator<usize> for Affinity {
    /// The set of the numbers, which are below [`Affinity::MOST`].
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Affinity {
        cpus.into_iter().fold(Affinity([0; WORDS]), |all, cpu| all.and(Affinity::one(cpu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let set: Affinity = [0, 3, 127].into_iter().collect();
        assert!(set.has(0) && set.has(3) && set.has(127) && !set.has(1) && !set.has(128) && !set.has(1 << 20));
        assert_eq!((set.missing(128), set.missing(4), Affinity::ALL.missing(1)), (None, Some(127), None));
        assert_eq!((set.missing(3), set.missing(1), set.missing(Affinity::MOST)), (Some(3), Some(3), None));
        assert!(Affinity::one(Affinity::MOST).is_empty() && !Affinity::ALL.is_empty());
    }
}
