//! Traces written in another format and read again: everything that the format expresses is preserved.

use nandscape_lab_trace::{Format, Options, Trace, convert};
use nandscape_lab_workload::Direction;
use proptest::prelude::*;

use crate::files::{SAMPLES, Seen, file, open, requests, sample};

/// The text of a trace in another format, and the notes.
fn written(trace: &Trace, to: Format) -> Result<(Vec<u8>, Vec<String>), String> {
    let mut text = Vec::new();
    convert(trace, to, &mut text).map(|notes| (text, notes)).map_err(|error| error.to_string())
}

/// Requests in whole units, with disks numbered in order of appearance.
fn rounded(requests: &[Seen], time_ns: u64, unit: u64) -> Vec<(u64, usize, Direction, u64, u64)> {
    let mut disks: Vec<&String> = Vec::new();
    requests
        .iter()
        .map(|(at, disk, way, offset, bytes)| {
            let number = disks.iter().position(|known| *known == disk).unwrap_or_else(|| {
                disks.push(disk);
                disks.len() - 1
            });
            let first = offset / unit * unit;
            let half = if time_ns == 1_000_000_000 { 0 } else { time_ns / 2 };
            ((at + half) / time_ns, number, *way, first, (offset + bytes).next_multiple_of(unit) - first)
        })
        .collect()
}

/// Units of time in nanoseconds and of space in bytes, from the tables of the formats.
const UNITS: [(Format, u64, u64); 11] = [
    (Format::Msr, 100, 1),
    (Format::Replay, 1_000, 1),
    (Format::Mqsim, 1, 512),
    (Format::Disksim, 1_000, 512),
    (Format::Alibaba, 1_000, 1),
    (Format::Tencent, 1_000_000_000, 512),
    (Format::Fiu, 1, 512),
    (Format::Spc, 1_000, 512),
    (Format::Blkparse, 1, 512),
    (Format::FioV2, 1_000, 1),
    (Format::FioV3, 1_000, 1),
];

/// A trace written in a format and read again is the trace, in the units of that format.
fn comes_back(trace: &Trace, to: Format) {
    let (text, _) = written(trace, to).unwrap();
    let (_folder, path) = file(&text);
    let again = Trace::open(Options { path, format: Some(to), ..Options::default() }).unwrap();
    let (_, time_ns, unit) = UNITS.into_iter().find(|(format, ..)| *format == to).unwrap();
    let (expected, seen) = (rounded(&requests(trace), time_ns, unit), rounded(&requests(&again), time_ns, unit));
    let first = expected[0].0;
    let expected: Vec<_> = expected
        .into_iter()
        .map(|mut request| {
            request.0 -= first;
            if to != Format::Blkparse && request.2 == Direction::Fua {
                request.2 = Direction::Write;
            }
            request
        })
        .collect();
    assert_eq!(seen, expected, "{to}\n{}", String::from_utf8_lossy(&text));
}

#[test]
fn samples_come_back_from_every_format_that_can_express_them() {
    let mut pairs = 0;
    for (_, name) in SAMPLES {
        let trace = open(sample(name)).unwrap();
        for to in Format::ALL {
            match written(&trace, to) {
                Ok(_) => comes_back(&trace, to),
                Err(problem) => {
                    assert!(
                        problem.contains("which the format") && problem.contains("there are blkparse, fio-v2, fio-v3")
                    );
                    continue;
                }
            }
            pairs += 1;
        }
    }
    // Three samples have trims and flushes, which three formats express.
    assert_eq!(pairs, 8 * 11 + 3 * 3);
}

#[test]
fn a_sample_written_in_its_own_format_is_itself() {
    for name in ["replay.trace", "alibaba.csv", "spc.trace", "mqsim.trace"] {
        let trace = open(sample(name)).unwrap();
        let (text, notes) = written(&trace, trace.format()).unwrap();
        assert_eq!(notes, [""; 0], "{name}");
        let (_folder, path) = file(&text);
        let again = Trace::open(Options { path, format: Some(trace.format()), ..Options::default() }).unwrap();
        assert_eq!(requests(&again), requests(&trace), "{name}");
    }
    let (text, _) = written(&open(sample("replay.trace")).unwrap(), Format::Replay).unwrap();
    assert_eq!(text, std::fs::read(sample("replay.trace")).unwrap());
}

/// A write with a flush before it is one line of blkparse; other formats lose the order.
#[test]
fn a_write_that_waits_for_its_flush_is_one_line() {
    let text = "   8,0  0        1     0.000000000     0  Q  FN [0]\n   8,0  0        2     0.000001000     0  Q FWF 8 + 8 [0]\n";
    let text = format!("{text}   8,0  0        3     0.000002000     0  Q  FN [0]\n");
    let (_folder, path) = file(&text);
    let trace = open(path).unwrap();
    let (again, _) = written(&trace, Format::Blkparse).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text);
    let (_, notes) = written(&trace, Format::FioV3).unwrap();
    assert!(notes[1].contains("fio-v3 has neither Force Unit Access, which 1 writes lose"), "{notes:?}");
}

#[test]
fn what_is_expressed_more_coarsely_is_noted() {
    let msr = open(sample("msr.csv")).unwrap();
    let (text, notes) = written(&msr, Format::Mqsim).unwrap();
    assert_eq!(text, b"0 0 13700410 48 1\n100 0 2573128 16 0\n1000000000 2 1 1 1\n");
    assert_eq!(notes, ["disks are numbered in order of appearance: the format mqsim needs numbers"; 0]);
    let (_, notes) = written(&msr, Format::Tencent).unwrap();
    assert_eq!(notes, ["1 of 3 times are rounded to the unit of the format tencent, 1s"]);
    let (_folder, path) = file("0,W,100,1,5\n");
    let odd = Trace::open(Options { path, format: Some(Format::Alibaba), ..Options::default() }).unwrap();
    let (text, notes) = written(&odd, Format::Mqsim).unwrap();
    assert_eq!(
        (text, notes),
        (b"0 0 0 1 0\n".to_vec(), vec!["1 of 1 requests are widened to whole sectors of 512 B".to_owned()])
    );
    let fio = open(sample("fio-v3.log")).unwrap();
    let problem = written(&fio, Format::Msr).unwrap_err();
    assert!(problem.contains("1 requests are trims, which the format msr cannot express"), "{problem}");
}

fn any_request(directions: &'static [Direction]) -> impl Strategy<Value = (u64, u32, Direction, u64, u64)> {
    let way = prop::sample::select(directions);
    (0u64..5_000_000, 0u32..3, way, 0u64..1 << 30, 1u64..2_000).prop_map(|(us, disk, way, sector, sectors)| match way {
        Direction::Flush => (us, disk, way, 0, 0),
        _ => (us, disk, way, sector * 512, sectors * 512),
    })
}

/// A trace of these requests, in fio's version 3, which can express all of them.
fn trace_of(requests: &[(u64, u32, Direction, u64, u64)]) -> (tempfile::TempDir, Trace) {
    let mut text = "fio version 3 iolog\n".to_owned();
    for (us, disk, way, offset, bytes) in requests {
        let word = if *way == Direction::Flush { "sync" } else { way.name() };
        text.push_str(&format!("{us} {disk} {word} {offset} {bytes}\n"));
    }
    let (folder, path) = file(text);
    (folder, open(path).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_trace_comes_back_from_every_format(
        requests in prop::collection::vec(any_request(&[Direction::Read, Direction::Write]), 1..40),
    ) {
        let (_folder, trace) = trace_of(&requests);
        Format::ALL.into_iter().for_each(|to| comes_back(&trace, to));
    }

    #[test]
    fn trims_and_flushes_come_back_from_those_that_express_them(
        requests in prop::collection::vec(any_request(&Direction::DISTINCT), 1..40),
    ) {
        let (_folder, trace) = trace_of(&requests);
        [Format::Blkparse, Format::FioV2, Format::FioV3].into_iter().for_each(|to| comes_back(&trace, to));
    }
}
