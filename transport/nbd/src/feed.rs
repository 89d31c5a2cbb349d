//! Requests without data, a part at a time: one of a few bytes may ask for zeroing or unmapping 4 GiB, and thousands of
//! them would keep the drive, and who shares it, busy for minutes. So many bytes of a client are in the drive; the rest
//! follows as those are done.

use std::collections::VecDeque;

use nandscape_sim::slots::Key;
use nandscape_wire_nbd::Request;

/// Bytes that one command without data affects at most.
pub(crate) const PART: u32 = 4 << 20;
/// Bytes that a client's commands without data in the drive may affect.
const MAX_AFFECTED: u64 = 32 << 20;

/// A client's requests without data.
#[derive(Default)]
pub(crate) struct Feed {
    /// Those that are not wholly in the drive, with what of them is not yet.
    waiting: VecDeque<(Key, Request)>,
    /// Bytes that commands in the drive affect.
    affected: u64,
}

impl Feed {
    /// One more.
    pub(crate) fn push(&mut self, key: Key, request: Request) {
        self.waiting.push_back((key, request));
    }

    /// The next part, if the drive may have one: whose it is, as a request of its own, and whether it is the last.
    pub(crate) fn next(&mut self) -> Option<(Key, Request, bool)> {
        if !self.has_next() {
            return None;
        }
        let (key, rest) = self.waiting.front_mut()?;
        let now = rest.len.get().min(PART);
        let (key, mut part) = (*key, *rest);
        part.len = now.into();
        rest.offset = (rest.offset.get() + u64::from(now)).into();
        rest.len = (rest.len.get() - now).into();
        let last = rest.len.get() == 0;
        if last {
            self.waiting.pop_front();
        }
        self.affected += u64::from(now);
        Some((key, part, last))
    }

    /// Whether there is a part that the drive may have.
    pub(crate) fn has_next(&self) -> bool {
        !self.waiting.is_empty() && self.affected + u64::from(PART) <= MAX_AFFECTED
    }

    /// A part of so many bytes is done.
    pub(crate) fn done(&mut self, bytes: u64) {
        self.affected -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::slots::Slots;
    use nandscape_wire_nbd::{REQUEST_MAGIC, command};

    use super::*;

    fn request(offset: u64, len: u32) -> Request {
        let (magic, kind) = (REQUEST_MAGIC.into(), command::TRIM.into());
        Request { magic, flags: 0.into(), kind, cookie: 0.into(), offset: offset.into(), len: len.into() }
    }

    /// Parts follow one another without gap or overlap, in order, and never more of them than may be.
    #[test]
    fn a_flood_is_fed_to_the_drive_as_it_is_done() {
        let mut keys = Slots::new();
        let mut feed = Feed::default();
        let requests = [(0, u32::MAX - 511), (1 << 40, 512), (1 << 41, PART), (1 << 42, PART + 512)];
        for (offset, len) in requests {
            feed.push(keys.insert(()), request(offset, len));
        }
        let (mut in_drive, mut seen) = (VecDeque::new(), Vec::<(u64, u64)>::new());
        loop {
            while let Some((_, part, last)) = feed.next() {
                let (offset, len) = (part.offset.get(), u64::from(part.len.get()));
                match seen.last_mut() {
                    Some((start, done)) if *start + *done == offset => *done += len,
                    _ => seen.push((offset, len)),
                }
                let ended = requests.iter().any(|(start, whole)| start + u64::from(*whole) == offset + len);
                assert_eq!(last, ended);
                in_drive.push_back(len);
            }
            assert!(in_drive.iter().sum::<u64>() <= MAX_AFFECTED);
            let Some(done) = in_drive.pop_front() else { break };
            feed.done(done);
        }
        assert_eq!(seen, requests.map(|(offset, len)| (offset, u64::from(len))));
        assert_eq!(feed.affected, 0);
    }
}
