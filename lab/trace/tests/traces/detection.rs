//! Detection of a file's format.

use nandscape_lab_trace::{Format, Options, Trace};

use crate::files::{SAMPLES, open, problem, read, sample};

#[test]
fn every_sample_is_recognised() {
    for (format, name) in SAMPLES {
        match open(sample(name)) {
            Ok(trace) => assert_eq!(trace.format(), format, "{name}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn headers_comments_and_malformed_lines_are_no_hindrance() {
    for (format, name) in SAMPLES {
        let text = std::fs::read_to_string(sample(name)).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let odd = format!("{first}\r\n\n# a comment\r\n{}", rest.replace('\n', "\r\n"));
        assert_eq!(read(&odd, None, false).unwrap(), read(&text, Some(format), false).unwrap(), "{name}");
        let mark = format!("\u{feff}{text}torn, li");
        assert_eq!(read(mark, None, true).unwrap(), read(&text, Some(format), false).unwrap(), "{name}");
    }
}

/// Lines whose numbers fit more than one of the three formats of five numbers.
#[test]
fn what_may_be_more_than_one_format_is_asked_for() {
    // Fractions: milliseconds. Multiples of 512 that would be 2 MiB as sectors: bytes or sectors.
    let said = problem("0.5 0 8192 4096 1\n1.5 0 4096 4096 0\n", None);
    for part in ["t.trace: has five numbers a line", "--format replay: ", "--format disksim: ", "milliseconds"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("--format mqsim"), "{said}");
    // Whole times: milliseconds or nanoseconds.
    let said = problem("1 0 8192 4096 1\n2 0 4096 4096 0\n", None);
    assert!(said.contains("--format replay: ") && said.contains("--format mqsim: "), "{said}");
    // Bytes, except for one line that is malformed or in another unit.
    let mut text = "1.5 0 8192 65536 1\n".repeat(99);
    text.push_str("2.5 0 8191 65536 1\n");
    assert!(problem(&text, None).contains("say which"), "a doubtful line");
}

#[test]
fn what_cannot_be_tells_the_three_apart() {
    let format = |text: &str| {
        let (_folder, path) = crate::files::file(text);
        open(path).map(|trace| trace.format()).map_err(|error| error.to_string())
    };
    assert_eq!(format("0.5 0 8192 65536 1\n"), Ok(Format::Replay), "32 MiB is no request");
    assert_eq!(format("5 0 8192 65536 1\n"), Ok(Format::Replay), "nor with whole times");
    let sizes = "0.5 0 8192 1536 1\n0.6 0 512 24576 1\n0.7 0 0 3584 0\n";
    assert_eq!(format(sizes), Ok(Format::Replay), "nobody asks for 768 KiB, 12 MiB and 1.75 MiB in turn");
    assert!(format(&sizes.replace("3584", "4096")).is_err(), "two such sizes may be chance");
    assert_eq!(format("0.5 0 8191 7 1\n"), Ok(Format::Disksim), "no byte begins there");
    assert_eq!(format("5 0 8191 7 1\n"), Ok(Format::Mqsim), "nor here, and DiskSim has fractions");
}

/// Where the unit of time is wrong by a thousand or a million, the error requests the unit.
#[test]
fn a_guess_that_makes_a_trace_absurd_is_no_guess() {
    let lines = |line: &dyn Fn(u64) -> String| (0..200).map(line).collect::<String>();
    let of = |text: String| {
        let (_folder, path) = crate::files::file(text);
        open(path).map(|trace| trace.format()).map_err(|error| error.to_string())
    };
    // Seconds: gaps of 1 ms are read as 1 us.
    let seconds = |n: u64| format!("{}.{:03} 0 {} 9 1\n", 242 + (500 + n) / 1_000, (500 + n) % 1_000, n * 9);
    let said = of(lines(&seconds)).unwrap_err();
    for part in [
        "only disksim fits, but its first 200 requests would be 199 us at 1000000 requests a second, 4.63 GB/s",
        "\n  --format disksim: 199 us at 1000000 requests a second",
        "\n  --format replay: 199 us at",
        "times in seconds: 199 ms at 1000 requests a second, 4.63 MB/s; replay it with --format disksim --time-scale 0.001",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // A named format is used as named.
    assert_eq!(read(lines(&seconds), Some(Format::Disksim), false).unwrap().len(), 200);
    // The same in milliseconds.
    assert_eq!(of(lines(&|n| format!("{}.5 0 {} 9 1\n", 242 + n, n * 9))), Ok(Format::Disksim));
    // Microseconds are read as nanoseconds: 100 million a second, and a million.
    assert!(of(lines(&|n| format!("{} 0 {} 9 1\n", n * 10, n * 9))).unwrap_err().contains("only mqsim fits"));
    let micros = of((1..=50).map(|n| format!("{} 0 {} 8 1\n", 242_000_000 + n * 1_000, n * 64 - 63)).collect());
    let part = "times in microseconds: 49.0 ms at 1000 requests a second, 4.18 MB/s; replay it with --format mqsim --time-scale 0.001";
    assert!(micros.as_ref().unwrap_err().contains(part), "{micros:?}");
    assert_eq!(of(lines(&|n| format!("{} 0 {} 9 1\n", n * 10_000, n * 9))), Ok(Format::Mqsim));
    // Nanoseconds are read as milliseconds: a request in three hours.
    let slow = of(lines(&|n| format!("{} 0 {} 40960 1\n", n * 10_000_000, n * 40_960)));
    assert!(
        slow.as_ref().unwrap_err().contains("only replay fits") && slow.unwrap_err().contains(" h at 1.0e-4 requests")
    );
    // Too few to judge, and all at once.
    assert_eq!(of("0.5 0 8191 7 1\n0.500001 0 8191 7 1\n".to_owned()), Ok(Format::Disksim));
    assert_eq!(of("0.5 0 8191 7 1\n".repeat(99)), Ok(Format::Disksim));
}

/// Fewer requests a second may be of a fast drive, or of a slow one in microseconds.
#[test]
fn a_guess_of_nanoseconds_is_noted_where_it_may_be_wrong() {
    let notes = |gap: u64, format: Option<Format>| {
        let text: String = (0..50).map(|n| format!("{} 0 {} 8 1\n", n * gap, n * 64 + 1)).collect();
        let (_folder, path) = crate::files::file(text);
        Trace::open(Options { path, format, ..Options::default() }).expect("a trace").notes()
    };
    let note = "the times of the trace were guessed to be nanoseconds: 50000 requests a second for 980 us; --format mqsim confirms \
                that, and --time-scale 0.001 replays microseconds";
    assert_eq!(notes(20_000, None), [note]);
    assert_eq!(notes(20_000, Some(Format::Mqsim)), [""; 0]);
    assert_eq!(notes(1_000_000, None), [""; 0]);
}

#[test]
fn what_is_no_trace_is_refused_with_the_formats_there_are() {
    for text in ["hello\nworld\n", "1,2\n3,4\n", "{\"a\": 1}\n", "1 2 3\n", "1,2,3,4,5,6,7,8\n"] {
        let said = problem(text, None);
        assert!(
            said.contains("none of the formats msr, replay, mqsim") && said.contains("--format"),
            "{text:?}: {said}"
        );
    }
    assert!(problem("fio version 1 iolog\n", None).contains("other than 2 and 3"));
    assert!(problem(b"\x7fELF\x02\x01\x01\0\0\0", None).contains("none of the formats"));
    let said = problem("x".repeat(1 << 20), None);
    assert!(said.len() < 400, "{said}");
}
