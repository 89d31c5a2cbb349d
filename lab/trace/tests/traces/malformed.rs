//! Malformed files: each error names its line, and nothing panics.

use nandscape_lab_trace::Format;
use proptest::prelude::*;

use crate::files::{SAMPLES, open, problem, read, sample};

#[test]
fn a_malformed_line_is_told_with_its_place_and_what_would_be_valid() {
    let line = "128166372003061629,usr,0,Raed,7014609920,24576,41286";
    let good = "128166372003061629,usr,0,Read,7014609920,24576,41286\n";
    let said = problem(format!("{good}{line}\n{good}"), None);
    let begins = "t.trace: 1 of 3 lines are malformed in the format msr; --skip-bad leaves them out\n";
    assert!(said.contains(begins), "{said}");
    assert!(said.ends_with("t.trace:2: the type \"Raed\" is not Read or Write"), "{said}");
}

#[test]
fn the_first_few_are_told_and_all_counted() {
    let text = "419,W,8192,4096,1\n".repeat(50) + &"419,X,8192,4096,1\n".repeat(9);
    let said = problem(&text, None);
    assert!(said.contains("9 of 59 lines") && said.contains(":51: ") && said.contains(":55: "), "{said}");
    assert!(!said.contains(":56: ") && said.ends_with("\n  and 4 more"), "{said}");
    assert_eq!(read(&text, None, true).unwrap().len(), 50);
}

#[test]
fn another_format_than_was_said_is_found_after_a_while() {
    let text = "419,W,8192,4096,1\n".repeat(5_000);
    let said = problem(text, Some(Format::Msr));
    assert!(said.contains("none of the first 1000 lines has the format msr; is it another one?"), "{said}");
}

#[test]
fn every_field_of_every_format_is_checked() {
    for (format, lines) in [
        (
            Format::Msr,
            &[
                ("x,usr,0,Read,0,512,0", "the time \"x\" is not a time"),
                ("-5,usr,0,Read,0,512,0", "the time \"-5\" is not a time: a number, not negative"),
                ("1,usr,0,2,0,512,0", "the type \"2\" is not Read or Write"),
                ("1,usr,0,Read,-1,512,0", "the offset \"-1\" is not a whole number"),
                ("1,usr,0,Read,0,,0", "the size \"\" is not a whole number"),
                ("1,usr,0,Read,0,0,0", "the size is 0"),
                ("1,usr,0,Read,0,512", "the response time is missing; a line is Timestamp,Hostname"),
                ("1,usr,0,Read,0,512,0,0", "has more than 7 fields"),
                ("1,usr,0,Read,18446744073709551616,512,0", "the offset \"18446744073709551616\" is not below 2^64"),
                ("1,usr,0,Read,18446744073709551615,512,0", "byte 18446744073709551615 lies beyond 2^63"),
                ("1,usr,0,Read,0,99999999999999,0", "a request of 99999999999999 bytes is more than 1 TiB"),
                ("999999999999999999,usr,0,Read,0,512,0", "584 years"),
            ][..],
        ),
        (
            Format::Replay,
            &[
                ("0.0 0 0 512 2", "the type \"2\" is not 1 for a read or 0 for a write"),
                ("0.0 a 0 512 1", "the disk \"a\" is not a whole number"),
                ("0.0 0 0 512", "the type is missing; a line is time disk offset size type"),
                ("0.0 0 0.5 512 1", "the offset \"0.5\" is not a whole number"),
            ],
        ),
        (
            Format::Mqsim,
            &[
                ("0.5 0 0 8 1", "the time \"0.5\" is not a whole number"),
                ("0 0 99999999999999999 8 1", "the lba \"99999999999999999\" is not a number of sectors below 2^55"),
                ("0 0 0 8 R", "the type \"R\" is not 1 for a read or 0 for a write"),
            ],
        ),
        (Format::Disksim, &[("0.5 0 0 8 W", "the flags \"W\" is not a hexadecimal number")]),
        (
            Format::Alibaba,
            &[
                ("419,0,8192,4096,1", "the opcode"),
                ("419,W,8192,4096", "the time is missing"),
                ("419,W,8192,4096,nan", "the time \"nan\" is not a time"),
            ],
        ),
        (
            Format::Tencent,
            &[
                ("1538323200.5,0,8,0,1", "the time \"1538323200.5\" is not a whole number"),
                ("1538323200,0,8,R,1", "the type \"R\" is not 0 for a read or 1 for a write"),
                ("1538323200,0,8,0", "the volume is missing"),
            ],
        ),
        (
            Format::Fiu,
            &[
                ("1 2 p 0 8 X 6 0 0", "the type \"X\" is not R or W"),
                ("1 2 p 0 8", "the type is missing"),
                ("1 2 p 0 8 W 6", "the minor number is missing"),
                ("1 2 p 0 8 W 6 0 a b", "has more than one field behind the minor number"),
                ("1 2 p 0 8 W a 0 0", "the major number \"a\" is not a whole number"),
            ],
        ),
        (
            Format::Spc,
            &[("0,0,512,R", "the time is missing"), ("a,0,512,R,0.1", "the ASU \"a\" is not a whole number")],
        ),
        (
            Format::Blkparse,
            &[
                ("8,32 7 1 0.0 2923 Q", "the type is missing"),
                ("8,32 7 1 0.0 2923 Q X 8 + 8 [dd]", "the type \"X\" is not one with R, W, D, F or N"),
                ("8,32 7 1 zero 2923 Q R 8 + 8 [dd]", "the time \"zero\" is not a time"),
                ("8,32 7 1 0.0 2923 Q R -8 + 8 [dd]", "the sector \"-8\" is not a whole number"),
                ("sdc 7 1 0.0 2923 Q R 8 + 8 [dd]", "the device \"sdc\" is not two numbers such as 8,32"),
            ],
        ),
        (
            Format::FioV2,
            &[
                ("a erase 0 512", "the action \"erase\" is not add, open, close, read"),
                ("a read 0", "the length is missing"),
                ("a wait", "the wait is missing"),
                ("a wait -1", "the wait \"-1\" is not a whole number"),
                ("a wait 18446744073709551615", "exceeds 584 years"),
            ],
        ),
        (
            Format::FioV3,
            &[
                ("5 a wait 100", "the action \"wait\" is not"),
                ("a read 0 512", "the time \"a\" is not a time"),
                ("5 a read 0 512 7", "has too many fields"),
            ],
        ),
    ] {
        let good = std::fs::read_to_string(sample(SAMPLES.iter().find(|(of, _)| *of == format).unwrap().1)).unwrap();
        // After blkparse's summary, lines that are not events are not errors.
        let good = good.split("CPU").next().unwrap();
        let number = good.lines().count() + 1;
        for (line, part) in lines {
            let said = problem(format!("{good}{line}\n"), Some(format));
            let place = format!(":{number}: ");
            assert!(said.contains(&place) && said.contains(part), "{format}, {line}: {said}");
        }
    }
}

#[test]
fn a_log_of_fio_without_its_header_is_told_so() {
    let said = problem("a add\na read 0 512\n", Some(Format::FioV2));
    assert!(said.contains(":1: the first line \"a add\" is not the header, \"fio version 2 iolog\""), "{said}");
}

#[test]
fn nothing_is_told_so() {
    for text in ["", "\n\n", "# only a comment\n", "\u{feff}"] {
        assert!(problem(text, None).ends_with("t.trace: is empty"), "{text:?}");
        for (format, _) in SAMPLES {
            assert!(problem(text, Some(format)).contains("has no request"), "{format}, {text:?}");
        }
    }
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    assert!(problem(header, Some(Format::Msr)).contains("has no request; a line of the format msr is Timestamp"));
    assert!(problem(header, None).contains("none of the formats"));
    assert!(problem("fio version 3 iolog\n", None).contains("has no request"));
    assert!(problem("8,32 7 1 0.0 2923 D R 8 + 8 [dd]\n", None).contains("no request with action Q; --action D"));
}

#[test]
fn a_file_that_breaks_off_has_a_last_line_that_is_malformed_or_short() {
    for (format, name) in SAMPLES.into_iter().filter(|(format, _)| *format != Format::Blkparse) {
        let text = std::fs::read(sample(name)).unwrap();
        for end in 1..text.len() {
            // The rest is read or rejected, never a panic.
            let _ = read(&text[..end], Some(format), false);
            let _ = read(&text[..end], None, false);
        }
    }
}

#[test]
fn what_is_not_there_or_no_file_is_refused() {
    let said = |path: &str| open(path).unwrap_err().to_string();
    assert!(said("/nowhere/at.all").starts_with("/nowhere/at.all: cannot be opened: "));
    assert!(said(env!("CARGO_MANIFEST_DIR")).contains("directory"));
}

#[test]
fn lines_that_are_no_text_are_malformed_and_shown_as_far_as_they_can_be() {
    let mut text = b"419,W,8192,4096,1\n".to_vec();
    text.extend(b"419,\xff\x1b[31m,8192,4096,1\n");
    text.extend(b"\xff\xfe\xfd,W,8192,4096,1\n");
    let said = problem(&text, Some(Format::Alibaba));
    assert!(said.contains(":2: the opcode \"\u{fffd}\u{fffd}[31m\" is not R or W"), "{said}");
    // A disk may have any name.
    assert_eq!(read(&text, Some(Format::Alibaba), true).unwrap()[1].1, "\u{fffd}\u{fffd}\u{fffd}");
}

#[test]
fn a_line_too_long_is_told_so() {
    let said = problem(format!("419,W,8192,4096,1\n{}\n", "9".repeat(100_000)), None);
    assert!(said.ends_with("t.trace:2: is longer than 64 KiB"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes are read or rejected, in every format.
    #[test]
    fn nothing_panics_on_any_bytes(
        bytes in prop::collection::vec(prop::sample::select(b"0159.,- \n\r\tRWQD+[x]\xff#e".to_vec()), 0..200),
    ) {
        let _ = read(&bytes, None, false);
        for (format, name) in SAMPLES {
            let mut text = std::fs::read(sample(name)).unwrap();
            text.extend(&bytes);
            prop_assert!(!read(&text, Some(format), true).unwrap().is_empty());
        }
    }
}
