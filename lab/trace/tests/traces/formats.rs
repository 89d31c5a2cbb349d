//! A hand-written sample of each format, with its expected requests. The samples contain the pitfalls: units, the flag
//! of reads, optional columns, lines without requests.

use nandscape_lab_trace::{Action, Options, Selection, Trace};
use nandscape_lab_workload::Direction::{self, Flush, Fua, Read, Trim, Write};
use nandscape_sim::Span;

use crate::files::{file, open, requests, sample};

fn holds(name: &str, expected: &[(u64, &str, Direction, u64, u64)]) {
    let seen = requests(&open(sample(name)).expect("a trace"));
    let seen: Vec<_> =
        seen.iter().map(|(at, disk, way, offset, bytes)| (*at, &**disk, *way, *offset, *bytes)).collect();
    assert_eq!(seen, expected, "{name}");
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

#[test]
fn msr_has_ticks_of_100_ns_and_bytes() {
    holds(
        "msr.csv",
        &[
            (0, "usr.0", Read, 7_014_609_920, 24_576),
            (100, "usr.0", Write, 1_317_441_536, 8_192),
            (S, "src1.2", Read, 512, 512),
        ],
    );
}

#[test]
fn replay_has_milliseconds_and_bytes_and_1_is_a_read() {
    holds(
        "replay.trace",
        &[
            (0, "0", Write, 3_242_508_288, 4_096),
            (22_810_000, "0", Read, 2_205_343_744, 65_536),
            (45_304_000, "1", Write, 11_403_917_312, 512),
        ],
    );
}

#[test]
fn mqsim_has_nanoseconds_and_sectors_and_1_is_a_read() {
    holds(
        "mqsim.trace",
        &[(0, "0", Read, 51_200, 4_096), (1_500, "1", Write, 67_072, 1_536), (4 * S - 1_000, "0", Write, 3_584, 512)],
    );
}

#[test]
fn disksim_has_milliseconds_and_sectors_and_the_lowest_bit_is_a_read() {
    holds(
        "disksim.trace",
        &[(0, "0", Read, 51_200, 4_096), (500_000, "0", Write, 67_072, 1_536), (S + 250_000, "1", Read, 3_584, 512)],
    );
}

#[test]
fn alibaba_has_microseconds_and_bytes() {
    holds(
        "alibaba.csv",
        &[
            (0, "419", Write, 8_792_731_648, 16_384),
            (1_000, "725", Read, 59_110_326_272, 8_192),
            (S, "419", Read, 512, 512),
        ],
    );
}

#[test]
fn tencent_has_seconds_that_are_spread_and_sectors_and_1_is_a_write() {
    holds(
        "tencent.csv",
        &[
            (0, "1063", Read, 12_910_952 * 512, 65_536),
            (S / 3, "1063", Write, 6_265_688 * 512, 4_096),
            (2 * S / 3, "1072", Write, 0, 512),
            (2 * S, "1072", Read, 8_192, 512),
        ],
    );
}

#[test]
fn fiu_has_nanoseconds_and_sectors_and_names_with_blanks() {
    holds(
        "fiu.trace",
        &[
            (0, "6,0", Write, 904_265_560 * 512, 4_096),
            (1_000, "6,0", Read, 32_768, 8_192),
            (2_000, "8,1", Write, 4_096, 4_096),
        ],
    );
}

#[test]
fn spc_has_seconds_blocks_and_sizes_in_bytes() {
    holds(
        "spc.trace",
        &[
            (0, "0", Write, 20_941_264 * 512, 8_192),
            (2_335_000, "0", Write, 20_939_840 * 512, 8_192),
            (460_026_000, "1", Read, 3_436_288 * 512, 15_872),
        ],
    );
}

#[test]
fn blkparse_keeps_what_was_queued() {
    holds(
        "blkparse.txt",
        &[
            (0, "8,32", Read, 272_208 * 512, 1_024),
            (500 * MS, "8,32", Write, 4_096, 8_192),
            (500 * MS + 1_000, "8,32", Flush, 0, 0),
            (500 * MS + 1_000, "8,32", Fua, 12_288, 4_096),
            (600 * MS, "8,32", Flush, 0, 0),
            (700 * MS, "8,32", Trim, 0, 1 << 20),
            (800 * MS, "8,48", Read, 0, 4_096),
        ],
    );
}

#[test]
fn blkparse_keeps_what_was_issued_if_asked() {
    let path = sample("blkparse.txt");
    let trace = Trace::open(Options { path, action: Action::Issued, ..Options::default() }).expect("a trace");
    assert_eq!(requests(&trace), [(0, "8,32".to_owned(), Read, 272_208 * 512, 1_024)]);
}

/// F before the operation is a flush that the operation waits for, F after it is Force Unit Access.
#[test]
fn the_flushes_and_forced_writes_of_blkparse_are_requests() {
    let line = |(number, kind): (usize, &str)| format!("  8,0 0 {number} 0.00000{number}000 9 Q {kind} [log]\n");
    let kinds = ["FWFS 24 + 8", "FWS 32 + 8", "WFS 40 + 8", "WS 48 + 8", "FN", "F", "FWS", "FF 0 + 0"];
    let (_folder, path) = file(kinds.into_iter().enumerate().map(line).collect::<String>());
    let trace = open(path).expect("a trace");
    let seen: Vec<_> = trace.records().expect("it is there").map(|record| record.expect("it can be read")).collect();
    let ways: Vec<_> = seen.iter().map(|record| (record.at / 1_000, record.direction, record.after_flush)).collect();
    let pair = |at, write| [(at, Flush, false), (at, write, true)];
    let rest = [
        (2, Fua, false),
        (3, Write, false),
        (4, Flush, false),
        (5, Flush, false),
        (6, Flush, false),
        (7, Flush, false),
    ];
    assert_eq!(ways, [&pair(0, Fua)[..], &pair(1, Write), &rest].concat());
    let note = "flushes before writes of the trace: 2, each a separate request that the write waits for; writes with Force Unit Access: 2";
    assert_eq!(trace.notes(), [note]);
}

#[test]
fn fio_2_has_waits_in_microseconds_after_the_one_before() {
    holds(
        "fio-v2.log",
        &[
            (0, "/dev/sdb", Write, 4_096, 8_192),
            (100_000, "/dev/sdb", Read, 0, 4_096),
            (350_000, "/srv/log", Flush, 0, 0),
            (350_000, "/srv/log", Flush, 0, 0),
            (350_000, "/dev/sdb", Trim, 1 << 20, 1 << 20),
        ],
    );
}

#[test]
fn fio_3_has_times_in_microseconds() {
    holds(
        "fio-v3.log",
        &[
            (0, "a.0.0", Read, 61_440, 4_096),
            (17_000, "a.0.0", Write, 774_144, 4_096),
            (100_048_000, "b.0.0", Trim, 0, 65_536),
            (200_054_000, "a.0.0", Flush, 0, 0),
        ],
    );
}

#[test]
fn disks_and_hosts_are_selected() {
    let open = |name: &str, disks: &[&str], hosts: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection { disks: names(disks), hosts: names(hosts) };
        Trace::open(Options { path: sample(name), selection, ..Options::default() })
    };
    let places = |trace: Trace| requests(&trace).iter().map(|request| (request.0, request.3)).collect::<Vec<_>>();
    assert_eq!(places(open("msr.csv", &[], &["src1"]).unwrap()), [(0, 512)]);
    assert_eq!(places(open("msr.csv", &["0"], &["usr"]).unwrap()), [(0, 7_014_609_920), (100, 1_317_441_536)]);
    // Only requests of the selected disk are spread.
    assert_eq!(places(open("tencent.csv", &["1063"], &[]).unwrap()), [(0, 12_910_952 * 512), (S / 2, 6_265_688 * 512)]);
    assert_eq!(places(open("blkparse.txt", &["8,48"], &[]).unwrap()), [(0, 0)]);
    assert_eq!(places(open("fio-v3.log", &["b.0.0"], &[]).unwrap()), [(0, 0)]);
    let problem = |name, disks: &[&str], hosts: &[&str]| open(name, disks, hosts).unwrap_err().to_string();
    assert!(problem("msr.csv", &["7"], &[]).ends_with("msr.csv: has no disk 7; there are 0, 2"));
    assert!(problem("msr.csv", &["0", "7"], &[]).contains("has no disk 7"));
    assert!(problem("msr.csv", &[], &["web"]).ends_with("has no host web; there are src1, usr"));
    assert!(problem("msr.csv", &["2"], &["usr"]).ends_with("has no request in the selection"));
    assert!(problem("alibaba.csv", &[], &["web"]).contains("has no hosts: the format alibaba does not name them"));
}

#[test]
fn windows_and_limits_are_kept_to() {
    let places = |from: u64, until: Option<u64>, limit: Option<u64>| {
        let (from, until) = (Span::from_ns(from), until.map(Span::from_ns));
        let trace = Trace::open(Options { path: sample("replay.trace"), from, until, limit, ..Options::default() });
        let trace = trace.unwrap();
        let seen: Vec<_> = requests(&trace).iter().map(|request| (request.0, request.4)).collect();
        assert_eq!(trace.totals().requests(), seen.len() as u64);
        seen
    };
    assert_eq!(places(0, None, Some(2)), [(0, 4_096), (22_810_000, 65_536)]);
    assert_eq!(places(0, Some(22_810_000), None), [(0, 4_096)]);
    // Times count from the start of the window.
    assert_eq!(places(20_000_000, None, None), [(2_810_000, 65_536), (25_304_000, 512)]);
    assert_eq!(places(20_000_000, Some(30_000_000), Some(9)), [(2_810_000, 65_536)]);
    let none = Options { path: sample("replay.trace"), from: Span::from_s(9), ..Options::default() };
    assert!(Trace::open(none).unwrap_err().to_string().contains("has no request in the selection"));
}
