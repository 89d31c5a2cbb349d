//! Sorts any number of requests in any order: sorted runs of fixed length in a temporary file, merged on reading. Equal
//! times keep their order. The file has no name, so it never stays behind.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex};

use nandscape_lab_workload::Direction;

use crate::record::Record;

/// Requests of a run.
const RUN: usize = 1 << 18;
/// Bytes of a request in the file.
const WIDTH: usize = 32;
/// Bytes buffered for all runs together during the merge.
const HELD: usize = 16 << 20;

/// Sorted runs in a temporary file.
#[derive(Debug)]
pub(crate) struct Runs {
    file: Mutex<File>,
    /// Requests of each run.
    lengths: Vec<usize>,
}

/// Takes requests in any order.
pub(crate) struct Sorter {
    file: File,
    lengths: Vec<usize>,
    run: Vec<Record>,
    /// Requests of a run.
    most: usize,
    latest: u64,
    late: u64,
}

impl Sorter {
    pub(crate) fn new() -> io::Result<Sorter> {
        Sorter::with_runs_of(RUN)
    }

    fn with_runs_of(most: usize) -> io::Result<Sorter> {
        let file = tempfile::tempfile()?;
        Ok(Sorter { file, lengths: Vec::new(), run: Vec::with_capacity(most), most, latest: 0, late: 0 })
    }

    pub(crate) fn put(&mut self, record: Record) -> io::Result<()> {
        self.late += u64::from(record.at < self.latest);
        self.latest = self.latest.max(record.at);
        self.run.push(record);
        if self.run.len() == self.most { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.run.sort_by_key(|record| record.at);
        let mut bytes = Vec::with_capacity(self.run.len() * WIDTH);
        self.run.iter().for_each(|record| bytes.extend_from_slice(&packed(record)));
        self.file.write_all(&bytes)?;
        self.lengths.push(self.run.len());
        self.run.clear();
        Ok(())
    }

    /// Requests that followed a later one.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    pub(crate) fn finish(mut self) -> io::Result<Runs> {
        if !self.run.is_empty() {
            self.write()?;
        }
        Ok(Runs { file: Mutex::new(self.file), lengths: self.lengths })
    }
}

/// The merged requests of some runs.
pub(crate) struct Merged {
    runs: Arc<Runs>,
    parts: Vec<Part>,
    /// The earliest of each run, with the run.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Requests of a run read at once.
    step: usize,
}

/// The read position of a run.
#[derive(Default)]
struct Part {
    /// The start of the unread rest in the file, in requests, and the end of the run.
    next: usize,
    end: usize,
    held: Vec<u8>,
    /// The position of the earliest request in the buffer.
    at: usize,
}

impl Runs {
    /// All requests from the earliest on.
    pub(crate) fn merged(self: &Arc<Runs>) -> io::Result<Merged> {
        let step = (HELD / WIDTH / self.lengths.len().max(1)).clamp(64, 1 << 14);
        let (mut parts, mut end) = (Vec::new(), 0);
        for length in &self.lengths {
            parts.push(Part { next: end, end: end + length, ..Part::default() });
            end += length;
        }
        let mut merged = Merged { runs: self.clone(), parts, heads: BinaryHeap::new(), step };
        for run in 0..merged.parts.len() {
            merged.advance(run)?;
        }
        Ok(merged)
    }

    fn read(&self, first: usize, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        file.seek(SeekFrom::Start((first * WIDTH) as u64))?;
        file.read_exact(bytes)
    }
}

impl Merged {
    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        let Some(Reverse((_, run))) = self.heads.pop() else { return Ok(None) };
        let part = &mut self.parts[run];
        let record = unpacked(&part.held[part.at..part.at + WIDTH]);
        part.at += WIDTH;
        self.advance(run)?;
        Ok(Some(record))
    }

    /// Puts the next request of a run into the heap.
    fn advance(&mut self, run: usize) -> io::Result<()> {
        let part = &mut self.parts[run];
        if part.at == part.held.len() {
            let count = self.step.min(part.end - part.next);
            part.held.resize(count * WIDTH, 0);
            self.runs.read(part.next, &mut part.held)?;
            part.next += count;
            part.at = 0;
        }
        if let Some(head) = part.held.get(part.at..part.at + WIDTH) {
            self.heads.push(Reverse((unpacked(head).at, run)));
        }
        Ok(())
    }
}

fn packed(record: &Record) -> [u8; WIDTH] {
    let mut bytes = [0; WIDTH];
    bytes[..8].copy_from_slice(&record.at.to_le_bytes());
    bytes[8..16].copy_from_slice(&record.offset.to_le_bytes());
    bytes[16..24].copy_from_slice(&record.bytes.to_le_bytes());
    bytes[24..28].copy_from_slice(&record.device.to_le_bytes());
    bytes[28] = record.direction as u8;
    bytes[29] = u8::from(record.after_flush);
    bytes
}

fn unpacked(bytes: &[u8]) -> Record {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    Record {
        at: number(0),
        offset: number(8),
        bytes: number(16),
        device: number(24) as u32,
        direction: Direction::ALL[usize::from(bytes[28])],
        after_flush: bytes[29] != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(at: u64, number: u64) -> Record {
        let direction = Direction::ALL[(number % 4) as usize];
        let after_flush = number.is_multiple_of(3);
        Record { at, device: (number % 7) as u32, direction, offset: number << 40, bytes: number, after_flush }
    }

    fn sorted(records: &[Record], run: usize) -> Vec<Record> {
        let mut sorter = Sorter::with_runs_of(run).unwrap();
        records.iter().for_each(|record| sorter.put(*record).unwrap());
        let runs = Arc::new(sorter.finish().unwrap());
        assert!(runs.lengths.len() <= records.len() / run + 1);
        let read = || {
            let mut merged = runs.merged().unwrap();
            let all: Vec<Record> = std::iter::from_fn(|| merged.next().unwrap()).collect();
            assert!(merged.parts.iter().all(|part| part.held.len() <= merged.step * WIDTH));
            all
        };
        let once = read();
        assert_eq!(once, read(), "a second reading is the first");
        once
    }

    proptest! {
        #[test]
        fn any_disorder_is_sorted_stably(times in prop::collection::vec(0u64..40, 0..400), run in 1usize..50) {
            let records: Vec<Record> = times.iter().zip(0..).map(|(at, number)| record(*at, number)).collect();
            let mut expected = records.clone();
            expected.sort_by_key(|record| record.at);
            prop_assert_eq!(sorted(&records, run), expected);
        }
    }

    #[test]
    fn two_readers_do_not_disturb_each_other() {
        let mut sorter = Sorter::with_runs_of(100).unwrap();
        (0..1_000u64).for_each(|number| sorter.put(record(1_000 - number, number)).unwrap());
        assert_eq!(sorter.late(), 999);
        let runs = Arc::new(sorter.finish().unwrap());
        let (mut one, mut other) = (runs.merged().unwrap(), runs.merged().unwrap());
        for at in 1..=1_000 {
            assert_eq!(one.next().unwrap().unwrap().at, at);
            if at % 2 == 0 {
                assert_eq!(other.next().unwrap().unwrap().at, at / 2);
            }
        }
    }
}
