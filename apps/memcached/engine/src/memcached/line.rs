//! A command line in words.

use crate::item::MOST_KEY;

/// See the file.
pub(crate) struct Line<'a> {
    words: Vec<&'a [u8]>,
    part: Part,
}

/// What a line is of a longer one, which is served in parts.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Part {
    /// Its beginning was served before.
    pub(crate) follows: bool,
    /// More of it comes.
    pub(crate) continues: bool,
}

/// A number in a word.
pub(crate) fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The most bytes of data that a command may announce, as in memcached: a line's end behind them still makes an `i32`.
const MOST_DATA: u64 = i32::MAX as u64 - 2;

/// The length of a command's data; `None` if the word is no number, or above [`MOST_DATA`].
pub(crate) fn data_len(word: &[u8]) -> Option<u64> {
    number(word).filter(|len| *len <= MOST_DATA)
}

/// Whether a word can be a key in text. memcached takes any byte that ends neither a word nor its own strings.
pub(crate) fn is_key(word: &[u8]) -> bool {
    !word.is_empty() && word.len() <= MOST_KEY && !word.contains(&0)
}

impl<'a> Line<'a> {
    pub(crate) fn of(line: &'a [u8], part: Part) -> Line<'a> {
        Line { words: line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect(), part }
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// The first word.
    pub(crate) fn command(&self) -> &'a [u8] {
        self.words.first().copied().unwrap_or_default()
    }

    /// The words after it.
    pub(crate) fn words(&self) -> &[&'a [u8]] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The first `WORDS` words after the command. One further word is ignored, as in memcached: "noreply".
    pub(crate) fn exactly<const WORDS: usize>(&self) -> Option<&[&'a [u8]; WORDS]> {
        self.words().first_chunk().filter(|_| self.words().len() <= WORDS + 1)
    }

    /// The words after the command, without a last "noreply"; whether it was there.
    pub(crate) fn arguments(&self) -> (&[&'a [u8]], bool) {
        match self.words().split_last() {
            Some((&last, rest)) if last == b"noreply" => (rest, true),
            _ => (self.words(), false),
        }
    }
}
