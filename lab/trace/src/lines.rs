//! Lines of a stream of bytes, in a buffer of fixed size. A line too long for any format is skipped in pieces.

use std::io;

use crate::input::Bytes;

/// Bytes held at a time.
const BUFFER: usize = 256 << 10;
/// The longest line; a longer one is cut.
const LONGEST: usize = 64 << 10;

/// Reads lines.
pub(crate) struct Lines {
    input: Bytes,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    ended: bool,
    /// Lines read.
    number: u64,
}

/// One line, without its end.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    TooLong,
}

impl Lines {
    pub(crate) fn new(input: Bytes) -> Lines {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Lines { input, buffer, start: 0, end: 0, ended: false, number: 0 }
    }

    /// Lines read so far.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// As many whole lines as fit, without consuming them.
    pub(crate) fn prefix(&mut self) -> io::Result<&[u8]> {
        while !self.ended && self.end < self.buffer.len() {
            self.fill()?;
        }
        let held = &self.buffer[..self.end];
        match self.ended {
            true => Ok(held),
            false => Ok(&held[..memchr::memrchr(b'\n', held).map_or(held.len(), |last| last + 1)]),
        }
    }

    /// The next line.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let (start, end) = (self.start, self.start + searched + found);
                self.start = end + 1;
                return Ok(Some(self.line(start, end)));
            }
            searched = self.end - self.start;
            if self.ended {
                let (start, end) = (self.start, self.end);
                self.start = end;
                return Ok((start < end).then(|| self.line(start, end)));
            }
            if searched > LONGEST {
                return self.pass_over();
            }
            self.fill()?;
        }
    }

    fn line(&mut self, start: usize, end: usize) -> Line<'_> {
        self.number += 1;
        let text = &self.buffer[start..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > LONGEST { Line::TooLong } else { Line::Text(text) }
    }

    /// Drops buffered bytes until the end of a line.
    fn pass_over(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            (self.start, self.end) = (0, 0);
            self.fill()?;
            let found = memchr::memchr(b'\n', &self.buffer[..self.end]);
            if found.is_some() || self.ended {
                self.start = found.map_or(self.end, |at| at + 1);
                self.number += 1;
                return Ok(Some(Line::TooLong));
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(read) => {
                    self.end += read;
                    self.ended = read == 0;
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};

    fn lines(text: Vec<u8>) -> Vec<Result<Vec<u8>, ()>> {
        let mut lines = Lines::new(Box::new(Cursor::new(text)));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                Line::Text(text) => Ok(text.to_vec()),
                Line::TooLong => Err(()),
            });
        }
        assert_eq!(lines.number(), all.len() as u64);
        all
    }

    #[test]
    fn lines_end_with_or_without_carriage_return_and_the_last_with_nothing() {
        let text = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(lines(b"a\r\n\nb\nc".to_vec()), [text("a"), text(""), text("b"), text("c")]);
        assert_eq!(lines(Vec::new()), []);
        assert_eq!(lines(b"\n".to_vec()), [text("")]);
    }

    #[test]
    fn long_lines_are_passed_over_and_the_next_one_is_whole() {
        for long in [LONGEST, LONGEST + 1, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER] {
            let mut text = b"first\n".to_vec();
            text.extend(std::iter::repeat_n(b'x', long));
            text.extend(b"\nlast\n");
            let all = lines(text);
            assert_eq!((all.len(), all[1].is_ok(), &all[2]), (3, long <= LONGEST, &Ok(b"last".to_vec())), "{long}");
        }
    }

    #[test]
    fn lines_across_the_buffer_are_whole() {
        let text: Vec<u8> = (0..200_000u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let all = lines(text);
        assert!((0..200_000u32).zip(&all).all(|(n, line)| line.as_deref() == Ok(n.to_string().as_bytes())));
        assert_eq!(all.len(), 200_000);
    }

    #[test]
    fn a_prefix_is_of_whole_lines_and_takes_nothing() {
        let text: Vec<u8> = (0..100_000u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let mut lines = Lines::new(Box::new(Cursor::new(text)));
        let prefix = lines.prefix().unwrap();
        assert!(prefix.len() > BUFFER - 10 && prefix.ends_with(b"\n"));
        assert_eq!(lines.next().unwrap(), Some(Line::Text(b"0")));
    }

    /// Gives one byte at a time, and an endless line.
    struct Endless(u64);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += buffer.len() as u64;
            buffer.fill(b'x');
            Ok(if self.0 > 64 << 20 { 0 } else { buffer.len() })
        }
    }

    #[test]
    fn an_endless_line_takes_no_more_than_the_buffer() {
        let mut lines = Lines::new(Box::new(Endless(0)));
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong));
        assert_eq!(lines.buffer.len(), BUFFER);
        assert_eq!(lines.next().unwrap(), None);
    }
}
