//! YCSB's core workloads.

use std::collections::BTreeSet;

use nandscape_lab_workload::{Limit, Mix, Workload, load};
use nandscape_wire_nvme::IoOpcode;

use crate::drive::{Ran, SEED, near, own, run};

fn builtin(name: &str, requests: u64) -> Workload {
    Workload { limit: Limit::Requests(requests), ..load(name).unwrap() }
}

/// Pearson's chi-square of the operations against the proportions that YCSB's workload files give: below 15.1, which one
/// degree of freedom exceeds in one of ten thousand runs.
#[test]
fn operations_have_the_proportions_of_ycsb() {
    let cases: [(&str, &[(&str, f64)]); 6] = [
        ("ycsb-a", &[("read", 50.0), ("update", 50.0)]),
        ("ycsb-b", &[("read", 95.0), ("update", 5.0)]),
        ("ycsb-c", &[("read", 100.0)]),
        ("ycsb-d", &[("read", 95.0), ("insert", 5.0)]),
        ("ycsb-e", &[("scan", 95.0), ("insert", 5.0)]),
        ("ycsb-f", &[("read", 50.0), ("read_modify_write", 50.0)]),
    ];
    for (name, proportions) in cases {
        let ran = run(&builtin(name, 50_000), 1_024);
        let all: f64 = ran.outcome.operations.values().map(|taken| taken.count() as f64).sum();
        assert!(all > 20_000.0, "{name}: {all}");
        let square: f64 = proportions
            .iter()
            .map(|(operation, percent)| {
                let (seen, expected) = (ran.operations(operation), all * percent / 100.0);
                (seen - expected) * (seen - expected) / expected
            })
            .sum();
        assert!(square < 15.1, "{name}, seed {SEED}: {square}");
        assert_eq!(ran.outcome.operations.len(), proportions.len(), "{name}");
        assert_eq!(ran.most_outstanding, 16, "{name}: 16 clients, one request each");
    }
    assert!(Mix::CORE.iter().all(|(name, _, _)| load(&format!("ycsb-{name}")).is_ok()));
}

/// A read is a page; an update and a read-modify-write a page read and a page written.
#[test]
fn operations_ask_for_pages() {
    for (name, changes) in [("ycsb-a", "update"), ("ycsb-f", "read_modify_write")] {
        let ran = run(&builtin(name, 50_000), 1_024);
        assert!(ran.asked.iter().all(|asked| asked.bytes == 4_096 && asked.offset % 4_096 == 0), "{name}");
        let (reads, writes) = (ran.of(IoOpcode::READ).count() as f64, ran.of(IoOpcode::WRITE).count() as f64);
        // Some are on their way at the end.
        assert!((writes - ran.operations(changes)).abs() <= 16.0, "{name}");
        assert!((reads - ran.operations(changes) - ran.operations("read")).abs() <= 32.0, "{name}");
    }
}

/// A scan of n records at a load factor of 0.8 goes over 1 + (n - 1) / 0.8 places; those, begun anywhere in a page of
/// four, lie in 1 + (places - 1) / 4 pages. n has a mean of 50.5.
#[test]
fn scans_read_the_pages_of_their_records() {
    let ran = run(&builtin("ycsb-e", 50_000), 1_024);
    let pages: Vec<f64> =
        ran.of(IoOpcode::READ).map(|asked| asked.bytes as f64 / 4_096.0).filter(|n| *n > 1.0).collect();
    // Scans of a few records have one page, as inserts have: of 100 lengths, those up to 3 may.
    let mean = pages.iter().sum::<f64>() / pages.len() as f64;
    let single = ran.of(IoOpcode::READ).filter(|asked| asked.bytes == 4_096).count() as f64 - ran.operations("insert");
    let all = (mean * pages.len() as f64 + single) / (pages.len() as f64 + single);
    near("pages of a scan", all, 1.0 + 49.5 / 0.8 / 4.0, 0.02);
}

/// The load phase writes each record once and ends; a page is read only before an insert into it.
#[test]
fn the_load_phase_writes_every_record_and_ends() {
    let text = "[[ycsb]]\nworkload = 'a'\nphase = 'load'\nrecords = 20000\nthreads = 3\nname = 'l'";
    let ran = run(&own(text).unwrap(), 256);
    assert_eq!(ran.operations("insert"), 20_000.0);
    assert_eq!(ran.of(IoOpcode::WRITE).count(), 20_000);
    let mut written = BTreeSet::new();
    for asked in &ran.asked {
        match asked.opcode {
            IoOpcode::WRITE => written.extend(asked.pages()),
            // Three clients: what one reads another may still be writing.
            _ => assert!(asked.pages().end <= 25_000 / 4 + 1),
        }
    }
    // 25,000 places in 6,250 pages; a page of four is empty at 0.8 in one of 625.
    near("pages", written.len() as f64, 6_250.0 * (1.0 - 0.2f64.powi(4)), 0.002);
    let reads = ran.of(IoOpcode::READ).count();
    // All but the first record of each page.
    assert!((reads as i64 - (20_000 - written.len() as i64)).abs() < 10, "{reads}");
}

/// As inserts continue, the table fills up, and then the oldest records make room.
#[test]
fn a_full_table_goes_on() {
    let text =
        "io_count = 60000\n[[ycsb]]\nread = 20\ninsert = 80\ndistribution = 'latest'\nrecords = 1000\nname = 'f'";
    let ran = run(&own(text).unwrap(), 64);
    assert!(ran.operations("insert") > 5_000.0);
    let end = ran.asked.iter().map(|asked| asked.pages().end).max();
    assert_eq!(end, Some(1_250u64.div_ceil(4)));
}

#[test]
fn flushes_come_where_they_are_asked_for_and_a_cache_keeps_reads_away() {
    let of = |more: &str| {
        let text = format!("io_count = 20000\n[[ycsb]]\nworkload = 'A'\nrecords = 10000\n{more}");
        run(&own(&text).unwrap(), 256)
    };
    let (plain, sync, some, all) = (of(""), of("sync = true"), of("cache = '4MiB'"), of("cache = '16MiB'"));
    assert_eq!(plain.of(IoOpcode::FLUSH).count(), 0);
    let (flushes, writes) = (sync.of(IoOpcode::FLUSH).count() as i64, sync.of(IoOpcode::WRITE).count() as i64);
    assert!((flushes - writes).abs() <= 16, "{flushes} {writes}");
    let reads = |ran: &Ran| ran.of(IoOpcode::READ).count();
    assert!(reads(&plain) > 13_000 && reads(&some) < 12_000, "seed {SEED}: {} {}", reads(&plain), reads(&some));
    // Each page is read once; two clients may miss it at the same time.
    let pages: BTreeSet<u64> = all.of(IoOpcode::READ).flat_map(|asked| asked.pages()).collect();
    assert!(pages.len() > 2_500 && reads(&all) < pages.len() + pages.len() / 20, "seed {SEED}: {}", reads(&all));
}

#[test]
fn the_same_seed_asks_the_same_and_any_drive_will_do() {
    for (name, _, _) in Mix::CORE {
        let workload = builtin(&format!("ycsb-{name}"), 3_000);
        assert_eq!(run(&workload, 64).asked, run(&workload, 64).asked, "{name}");
        assert_eq!(run(&workload, 4 << 20).asked.len(), 3_000, "{name}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let of = |text: &str| own(&format!("[[ycsb]]\n{text}"));
    for (text, problem) in [
        ("workload = 'g'", "\"g\" is not a core workload: a, b, c, d, e or f"),
        ("workload = 'a'\nread = 20", "not both"),
        ("read = 20", "sum to 20 percent, not to 100"),
        ("workload = 'a'\nphase = 'warm'", "\"warm\" is not a phase: load or run"),
        ("workload = 'a'\ndistribution = 'zipf'", "\"zipf\" is not a distribution: uniform, zipfian or latest"),
        ("workload = 'a'\nload_factor = '0'", "load_factor = 0 is out of range"),
        ("workload = 'a'\npage_size = '1000'", "page_size = 1000B is not a multiple of 512B"),
        ("workload = 'a'\nthread = 1", "unknown field `thread`"),
    ] {
        let wrong = of(text).unwrap_err();
        assert!(wrong.contains(problem), "{text}: {wrong}");
    }
    let on = |text: &str, mib: u64, lba: u32| of(text).unwrap().check_on(mib << 20, lba).unwrap_err();
    let many = on("workload = 'a'\nrecords = 1000000", 64, 512);
    assert!(
        many.contains("1000000 records of 1KiB need 1250000 slots, and size = 50% of a drive of 64MiB has 32768"),
        "{many}"
    );
    assert!(on("workload = 'a'\npage_size = '2k'", 64, 4_096).contains("not a multiple of the drive's logical block"));
    let cached = on("workload = 'c'\ncache = '64MiB'", 64, 512);
    assert!(cached.contains("cache = 64MiB holds the whole table, 32MiB: nothing would reach the drive"), "{cached}");
    assert!(on("workload = 'a'\nsize = '0'", 64, 512).contains("has no room for a record"));
    assert!(on("workload = 'a'\nsize = '1GiB'", 64, 512).contains("size = 1GiB is more than the drive has, 64MiB"));
}
