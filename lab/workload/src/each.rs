//! A word with separate values for reads and writes of one job, as in fio: `4k` for both, `4k,16k` for reads and for writes.

use std::fmt;
use std::str::FromStr;

use crate::words::Action;

/// A value of reads, and one of writes where that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct Each<T> {
    /// Of reads, or of all requests.
    pub reads: T,
    /// Of writes and deallocates, if they have their own.
    pub writes: Option<T>,
}

impl<T> Each<T> {
    /// The value of requests that do one thing. Mixed ones have that of reads.
    pub fn of(&self, action: Action) -> &T {
        match (action, &self.writes) {
            (Action::Write | Action::Trim, Some(writes)) => writes,
            _ => &self.reads,
        }
    }

    /// One value or two.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        [&self.reads].into_iter().chain(&self.writes)
    }
}

impl<T> From<T> for Each<T> {
    fn from(reads: T) -> Each<T> {
        Each { reads, writes: None }
    }
}

impl<T: FromStr> FromStr for Each<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Each<T>, T::Err> {
        Ok(match text.split_once(',') {
            None => text.parse::<T>()?.into(),
            Some((reads, writes)) => Each { reads: reads.trim().parse()?, writes: Some(writes.trim().parse()?) },
        })
    }
}

impl<T: fmt::Display> fmt::Display for Each<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reads)?;
        self.writes.iter().try_for_each(|writes| write!(f, ",{writes}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::BlockSizes;

    #[test]
    fn one_word_is_for_both_and_two_are_for_each() {
        let sizes = |text: &str| text.parse::<Each<BlockSizes>>();
        let both = sizes("4k").unwrap();
        assert_eq!((both.of(Action::Read).largest(), both.of(Action::Write).largest()), (4_096, 4_096));
        let each = sizes("4k, 8k/1:64k/1").unwrap();
        assert_eq!((each.of(Action::Read).largest(), each.of(Action::Trim).largest()), (4_096, 65_536));
        assert_eq!(each.to_string(), "4KiB,8KiB/1:64KiB/1");
        for wrong in ["4k,", ",4k", "4k,8k,16k"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }
}
