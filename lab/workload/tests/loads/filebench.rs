//! The personalities.

use std::collections::BTreeSet;

use nandscape_lab_workload::{BUILTIN, Limit, Personality, Workload, load};
use nandscape_wire_nvme::IoOpcode;

use crate::drive::{Ran, SEED, near, own, run};

fn builtin(name: &str, requests: u64) -> Workload {
    Workload { limit: Limit::Requests(requests), ..load(name).unwrap() }
}

#[test]
fn every_personality_comes_with_it_and_runs_on_any_drive() {
    for (name, personality) in Personality::ALL {
        assert!(BUILTIN.iter().any(|builtin| builtin.name == name));
        assert_eq!(name.parse(), Ok(personality));
        for mib in [64, 1_000, 1 << 18] {
            let ran = run(&builtin(name, 20_000), mib);
            assert_eq!(ran.outcome.requests(), 20_000, "{name} on {mib} MiB");
            assert_eq!(ran.asked.len(), 20_000);
            assert!(ran.asked.iter().all(|asked| asked.offset % 4_096 == 0 && asked.bytes % 4_096 == 0));
            let shrunk = ran.outcome.notes.iter().any(|note| note.contains("the drive has no room for more"));
            // The videos are larger than 256 GiB, the file servers than 1,000 MiB, the rest, but for two, than 64 MiB.
            let fits = match name {
                "varmail" | "webserver" => true,
                "videoserver" => false,
                "fileserver" | "networkfs" => mib > 1_000,
                _ => mib > 64,
            };
            assert_eq!(shrunk, !fits, "{name} on {mib} MiB: {:?}", ran.outcome.notes);
        }
    }
}

#[test]
fn the_same_seed_asks_the_same() {
    for (name, _) in Personality::ALL {
        let workload = builtin(name, 5_000);
        assert_eq!(run(&workload, 256).asked, run(&workload, 256).asked, "{name}");
    }
}

/// Operations of a round, one to another, as filebench's workload files have them.
#[test]
fn rounds_have_the_operations_of_filebench() {
    let cases: [(&str, &[(&str, f64)]); 5] = [
        ("networkfs", &[("read_file", 9.0), ("create", 6.0), ("write_file", 6.0), ("delete", 6.0), ("append", 3.0)]),
        ("fileserver", &[("create", 1.0), ("write_file", 1.0), ("append", 1.0), ("read_file", 1.0), ("delete", 1.0)]),
        ("webserver", &[("read_file", 10.0), ("append", 1.0)]),
        ("varmail", &[("delete", 1.0), ("create", 1.0), ("append", 2.0), ("fsync", 2.0), ("read_file", 2.0)]),
        ("webproxy", &[("delete", 1.0), ("create", 1.0), ("append", 1.0), ("read_file", 5.0)]),
    ];
    for (name, operations) in cases {
        let ran = run(&builtin(name, 60_000), 4_096);
        let rounds = ran.operations("round");
        assert!(rounds > 500.0, "{name}: {rounds}");
        for (operation, times) in operations {
            // Threads end in the middle of a round.
            near(&format!("{name}: {operation}"), ran.operations(operation), rounds * times, 0.1);
        }
        assert_eq!(ran.outcome.operations.len(), operations.len() + 1, "{name}: {:?}", ran.outcome.operations.keys());
    }
}

/// With its files written first, nothing is read that was not written before: no file is read where it does not lie,
/// none beyond its end.
#[test]
fn nothing_is_read_that_was_not_written() {
    for (name, _) in Personality::ALL {
        for more in ["", "cache = '1MiB'\n", "journal = false\n"] {
            let text = format!("io_count = 20000\n[[filebench]]\npersonality = '{name}'\nfill = true\n{more}");
            let ran = run(&own(&text).unwrap(), 256);
            let mut written = BTreeSet::new();
            for asked in &ran.asked {
                match asked.opcode {
                    IoOpcode::WRITE => written.extend(asked.pages()),
                    IoOpcode::READ => assert!(asked.pages().all(|page| written.contains(&page)), "{name}: {asked:?}"),
                    _ => {}
                }
            }
            // Filling is outside the budget.
            assert!(ran.asked.len() > 20_000 && ran.outcome.requests() == 20_000, "{name}");
        }
    }
}

/// The mean of blocks that a file takes, from the gamma distribution's own formula: the sum over k of P(size > k blocks).
/// For shape 3/2 that is 1 - erf(sqrt y) + 2 sqrt(y / pi) e^-y, y = 3/2 k blocks / mean.
fn mean_blocks(mean: f64) -> f64 {
    let beyond = |k: u32| {
        let y = 1.5 * f64::from(k) * 4_096.0 / mean;
        1.0 - libm::erf(y.sqrt()) + 2.0 * (y / std::f64::consts::PI).sqrt() * libm::exp(-y)
    };
    (0..1_000).map(beyond).sum()
}

#[test]
fn files_have_their_mean_size() {
    for mean in [4_000.0, 16_384.0, 100_000.0] {
        let text = format!(
            "io_count = 40000\n[[filebench]]\npersonality = 'webserver'\nthreads = 1\nfiles = 100000\nmean_size = '{mean}'"
        );
        let ran = run(&own(&text).unwrap(), 64 << 10);
        // A file laid out in one piece is one request.
        let pages: u64 = ran.of(IoOpcode::READ).map(|asked| asked.bytes / 4_096).sum();
        // The log's last block is read before something is appended to it.
        let appends = ran.operations("append");
        near(
            &format!("blocks of {mean}"),
            (pages as f64 - appends) / ran.operations("read_file"),
            mean_blocks(mean),
            0.03,
        );
        assert_eq!(ran.most_outstanding, 1, "one thread, one request");
    }
}

#[test]
fn as_many_requests_as_threads_are_outstanding() {
    for threads in [1, 7, 100] {
        let text = format!("io_count = 5000\n[[filebench]]\npersonality = 'webproxy'\nthreads = {threads}");
        assert_eq!(run(&own(&text).unwrap(), 4_096).most_outstanding, threads);
    }
}

/// Ten rounds a second by default.
#[test]
fn networkfs_keeps_its_pace() {
    let ran = run(&builtin("networkfs", 100_000), 16 << 10);
    near("rounds a second", ran.operations("round") / ran.outcome.elapsed().as_s(), 10.0, 0.02);
    let text = "io_count = 100000\n[[filebench]]\npersonality = 'networkfs'\nrounds_per_s = 0\nthreads = 4";
    let fast = run(&own(text).unwrap(), 16 << 10);
    assert!(fast.outcome.elapsed().as_s() < 2.0 && fast.operations("round") > 500.0);
}

#[test]
fn videos_stream_at_their_rate_and_are_replaced() {
    let ran = run(&builtin("videoserver", 50_000), 16 << 10);
    let (read, elapsed) = (ran.outcome.tallies[0].bytes as f64, ran.outcome.elapsed().as_s());
    near("rate", read / elapsed / f64::from(1 << 20), 96.0, 0.01);
    assert!(ran.of(IoOpcode::READ).all(|asked| asked.bytes <= 256 << 10));
    let replaced = ran.operations("write_file");
    assert!((replaced - elapsed / 10.0).abs() <= 1.5, "{replaced} in {elapsed} s");
    let fast = own("io_count = 50000\n[[filebench]]\npersonality = 'videoserver'\nthreads = 4\nrate = '0'").unwrap();
    let ran = run(&fast, 16 << 10);
    // Four readers with nothing to hold them back: four requests each 10 us.
    near("without a rate", ran.outcome.elapsed().as_us(), 50_000.0 / 4.0 * 10.0, 0.05);
}

/// A round of a database writer is 100 pages to 1,000 posts of each of ten: a page written to a page read; a write of
/// the log to 3,200 of them.
#[test]
fn oltp_writes_a_page_to_each_one_read() {
    let ran = run(&builtin("oltp", 400_000), 4_096);
    let reads = ran.operations("read_part");
    near("pages", ran.operations("write_pages") * 100.0, reads, 0.1);
    near("log", ran.operations("write_log") * 3_200.0, reads, 0.1);
    let large = ran.of(IoOpcode::WRITE).filter(|asked| asked.bytes >= 128 << 10).count() as f64;
    near("large writes", large, ran.operations("write_log"), 0.05);
    // Without a volatile cache, or with another host in mind, there would be none.
    assert!(ran.of(IoOpcode::FLUSH).count() > 100);
}

/// Files are read in turn: a cache that holds all of them reads each once; a cache that holds a part always has
/// the wrong part.
#[test]
fn a_cache_keeps_reads_away() {
    let reads = |cache: &str| {
        let text =
            format!("io_count = 20000\n[[filebench]]\npersonality = 'webserver'\nthreads = 1\ncache = '{cache}'");
        let ran: Ran = run(&own(&text).unwrap(), 1_024);
        ran.of(IoOpcode::READ).count()
    };
    let (none, some, all) = (reads("0"), reads("4MiB"), reads("512MiB"));
    assert_eq!(all, 1_000, "seed {SEED}");
    assert!(none > 18_000 && some > 18_000, "seed {SEED}: {none} {some}");
}

#[test]
fn what_cannot_be_is_refused() {
    let of = |text: &str| own(&format!("[[filebench]]\n{text}"));
    for (text, problem) in [
        ("threads = 2", "missing field `personality`"),
        ("personality = 'mailserver'", "\"mailserver\" is not a personality: fileserver, webserver, varmail"),
        ("personality = 'oltp'\nrounds_per_s = 3", "rounds_per_s: the threads of oltp have no rounds"),
        ("personality = 'varmail'\nthreads = 0", "threads = 0 is out of range; from 1 to 65536 is valid"),
        ("personality = 'varmail'\nfiles = 1", "files = 1 is out of range"),
        ("personality = 'varmail'\nrate = '1MiB'", "rate: varmail has none; videoserver has"),
        ("personality = 'varmail'\ncache = 'much'", "cache: \"much\" is not a size"),
        ("personality = 'varmail'\nfile = 1", "unknown field `file`"),
    ] {
        let wrong = of(text).unwrap_err();
        assert!(wrong.contains(problem), "{text}: {wrong}");
    }
    let on = |text: &str, mib: u64, lba: u32| of(text).unwrap().check_on(mib << 20, lba).unwrap_err();
    let many = on("personality = 'varmail'\nfiles = 1000000", 64, 512);
    assert!(many.contains("varmail with 1000000 files of 16KiB in the mean does not fit size = 80%"), "{many}");
    let slow = on("personality = 'varmail'\nthink = '1000000s'", 256, 512);
    assert!(slow.contains("years of drive time; at most 300 are valid"), "{slow}");
    let large = on("personality = 'videoserver'\nmean_size = '1GiB'", 1_024, 512);
    assert!(large.contains("with 226 files of 1GiB in the mean does not fit"), "{large}");
    assert!(on("personality = 'fileserver'", 1, 512).contains("does not fit"));
    assert!(on("personality = 'oltp'", 1_024, 8_192).contains("blocks of 4KiB; the drive's logical block is 8192B"));
}
