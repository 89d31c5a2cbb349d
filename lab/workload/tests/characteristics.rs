//! Generated loads have the characteristics of the tables: the tables are written down here a second time, as the papers
//! print them, and measured with code apart from the generator.

use nandscape_drive::DriveInfo;
use nandscape_lab_workload::{Direction, RequestSource, TimedRequest, Workload, load};
use nandscape_sim::Seed;

const COUNT: usize = 200_000;
const SEED: u64 = 11;

fn drive(gib: u64) -> DriveInfo {
    DriveInfo {
        nsid: 1,
        blocks: gib << 21,
        lba_bytes: 512,
        metadata_bytes: 0,
        max_blocks: 2_048,
        unit_bytes: 4_096,
        volatile_cache: false,
        keeps_data: false,
    }
}

/// The requests of the only job of a workload.
fn source(workload: &Workload, drive: &DriveInfo) -> Box<dyn RequestSource> {
    let source = workload.jobs[0].source.as_ref().expect("a job with a source");
    source.0.open(drive, 0, Seed::new(SEED)).expect("it fits the drive")
}

fn requests(name: &str) -> Vec<TimedRequest> {
    let mut source = source(&load(name).unwrap(), &drive(256));
    (0..COUNT).map(|_| source.next().unwrap().expect("requests without end")).collect()
}

fn mean(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let (count, sum) = numbers.fold((0.0, 0.0), |(count, sum), number| (count + 1.0, sum + number));
    (count, sum / count)
}

/// Within a share of what it should be.
fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let off = (measured / expected - 1.0).abs();
    assert!(off <= tolerance, "{what}, seed {SEED}: {measured} instead of {expected}, off by {:.2}%", off * 100.0);
}

/// Checks a share of `among` samples to within five standard deviations.
fn share(what: &str, measured: f64, expected: f64, among: f64) {
    let deviation = (expected * (1.0 - expected) / among).sqrt();
    let off = (measured - expected).abs();
    assert!(off <= 5.0 * deviation + 1e-9, "{what}, seed {SEED}: {measured} instead of {expected}");
}

fn sizes(requests: &[TimedRequest], direction: Direction) -> impl Iterator<Item = f64> {
    let of = requests.iter().filter(move |timed| timed.request.direction == direction);
    of.map(|timed| timed.request.bytes as f64)
}

/// Everything that a drive must be able to rely on.
fn check_requests(name: &str, requests: &[TimedRequest]) {
    let capacity = drive(256).bytes();
    for pair in requests.windows(2) {
        assert!(pair[0].at <= pair[1].at, "{name}: {pair:?}");
    }
    for timed in requests {
        let request = timed.request;
        assert!(request.offset + request.bytes <= capacity && request.bytes > 0, "{name}: {timed:?}");
        assert!(request.offset.is_multiple_of(4_096) && request.bytes.is_multiple_of(4_096), "{name}: {timed:?}");
    }
}

/// Li, Table 3.3: requests in thousands, percent of reads, mean KiB of reads and of writes, largest KiB, mean
/// microseconds between requests.
const TABLE_3_3: [(&str, u64, f64, f64, f64, f64, f64); 9] = [
    ("teafa-ast", 320, 18.0, 24.0, 20.0, 64.0, 1_417.0),
    ("teafa-bidx", 21, 36.0, 60.0, 104.0, 288.0, 6_974.0),
    ("teafa-bsel", 164, 4.0, 260.0, 78.0, 11_264.0, 21_951.0),
    ("teafa-cosm", 403, 8.0, 214.0, 91.0, 16_384.0, 8_936.0),
    ("teafa-dtrs", 147, 72.0, 42.0, 53.0, 64.0, 2_034.0),
    ("teafa-est", 71, 24.0, 15.0, 43.0, 1_024.0, 8_445.0),
    ("teafa-lmbe", 1_112, 89.0, 12.0, 191.0, 192.0, 539.0),
    ("teafa-msnfs", 487, 74.0, 8.0, 128.0, 128.0, 3_696.0),
    ("teafa-tpcc", 513, 64.0, 8.0, 137.0, 4_096.0, 721.0),
];

#[test]
fn loads_of_table_3_3_have_its_characteristics() {
    for (name, thousands, reads, read_kib, write_kib, max_kib, interval_us) in TABLE_3_3 {
        let limit = load(name).unwrap().limit;
        assert_eq!(limit, nandscape_lab_workload::Limit::Requests(thousands * 1_000), "{name}");
        let requests = requests(name);
        check_requests(name, &requests);
        let (read_count, read_mean) = mean(sizes(&requests, Direction::Read));
        let (_, write_mean) = mean(sizes(&requests, Direction::Write));
        share(&format!("{name}: reads"), read_count / COUNT as f64, reads / 100.0, COUNT as f64);
        // Long tails: a maximum of forty times the mean leaves a few percent, in few reads more.
        let tolerance = if max_kib > 1_000.0 { 0.06 } else { 0.015 };
        near(&format!("{name}: mean read"), read_mean / 1_024.0, read_kib, tolerance);
        near(&format!("{name}: mean write"), write_mean / 1_024.0, write_kib, tolerance);
        let max = requests.iter().map(|timed| timed.request.bytes).max().unwrap();
        assert!(max <= (max_kib * 1_024.0) as u64, "{name}: {max}");
        near(&format!("{name}: largest"), max as f64 / 1_024.0, max_kib, 0.03);
        let last = requests.last().unwrap().at.as_us();
        // 200,000 exponential gaps leave 0.22%, bursts of 32 six times as much.
        near(
            &format!("{name}: interval"),
            last / COUNT as f64,
            interval_us,
            if name == "teafa-bsel" { 0.07 } else { 0.012 },
        );
    }
}

/// FlashShare, Table 3: read ratio, KB a request, requests a million instructions, sequential ratio.
const TABLE_3: [(&str, f64, f64, f64, f64); 13] = [
    ("flashshare-bfs", 0.997, 238.0, 0.025, 0.70),
    ("flashshare-gpgnu", 1.000, 134.0, 1.985, 0.78),
    ("flashshare-gp", 0.995, 23.0, 0.417, 0.81),
    ("flashshare-gzip", 0.989, 150.0, 0.105, 0.66),
    ("flashshare-index", 0.998, 28.0, 0.205, 0.79),
    ("flashshare-kmn", 1.000, 122.0, 0.037, 0.82),
    ("flashshare-pr", 0.995, 30.0, 0.367, 0.71),
    ("flashshare-ungzip", 0.096, 580.0, 0.076, 0.79),
    ("flashshare-wcgnu", 1.000, 268.0, 0.170, 0.75),
    ("flashshare-wc", 0.999, 25.0, 0.548, 0.89),
    ("flashshare-ap", 0.999, 24.0, 0.666, 0.11),
    ("flashshare-au", 0.476, 27.0, 1.205, 0.13),
    ("flashshare-is", 0.990, 12.0, 5.761, 0.86),
];

#[test]
fn loads_of_flashshare_table_3_have_its_characteristics() {
    for (name, reads, kib, per_mega_instruction, sequential) in TABLE_3 {
        let requests = requests(name);
        check_requests(name, &requests);
        let read_count = sizes(&requests, Direction::Read).count() as f64;
        share(&format!("{name}: reads"), read_count / COUNT as f64, reads, COUNT as f64);
        let (_, size) = mean(requests.iter().map(|timed| timed.request.bytes as f64 / 1_024.0));
        near(&format!("{name}: mean size"), size, kib, 0.04);
        let follow = requests
            .windows(2)
            .filter(|pair| pair[0].request.offset + pair[0].request.bytes == pair[1].request.offset)
            .count() as f64;
        share(&format!("{name}: sequential"), follow / (COUNT - 1) as f64, sequential, (COUNT - 1) as f64);
        // 2,000 million instructions a second.
        let interval_us = 1e6 / (2_000.0 * per_mega_instruction);
        near(&format!("{name}: interval"), requests.last().unwrap().at.as_us() / COUNT as f64, interval_us, 0.012);
    }
}

fn own(text: &str) -> Result<Workload, String> {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), format!("version = 1\n[[characteristics]]\n{text}")).unwrap();
    load(file.path().to_str().unwrap()).map_err(|error| error.problem)
}

#[test]
fn own_characteristics_are_those_generated() {
    let workload =
        own("reads = '50%'\nsize = '8k'\nmax_size = '64k'\nalign = '512'\nsequential = '40%'\nfootprint = '1GiB'\n\
         distribution = 'zoned:90/10:10/90'\ninterval = '100us'\nburst_requests = 10\nburst_gap = '10us'");
    let mut source = source(&workload.unwrap(), &drive(256));
    let requests: Vec<TimedRequest> = (0..COUNT).map(|_| source.next().unwrap().unwrap()).collect();
    assert!(requests.iter().all(|timed| timed.request.offset + timed.request.bytes <= 1 << 30));
    let (_, size) = mean(requests.iter().map(|timed| timed.request.bytes as f64));
    near("mean size", size, 8_192.0, 0.02);
    // Jumps, six in ten requests, land in the first tenth of the gigabyte nine times in ten.
    let jumps =
        requests.windows(2).filter(|pair| pair[0].request.offset + pair[0].request.bytes != pair[1].request.offset);
    let (count, hot) = mean(jumps.map(|pair| f64::from(pair[1].request.offset < (1 << 30) / 10)));
    share("jumps", count / (COUNT - 1) as f64, 0.6, (COUNT - 1) as f64);
    near("hot", hot, 0.9, 0.01);
    // The squared coefficient of variation of nine gaps of 10 us and one of 910 us.
    let gaps: Vec<f64> = requests.windows(2).map(|pair| (pair[1].at - pair[0].at).as_us()).collect();
    let (_, gap) = mean(gaps.iter().copied());
    let (_, square) = mean(gaps.iter().map(|gap| gap * gap));
    near("mean gap", gap, 100.0, 0.03);
    let expected = 2.0 * (0.9 * 10.0 * 10.0 + 0.1 * 910.0 * 910.0) / (100.0 * 100.0) - 1.0;
    near("variation of gaps", square / (gap * gap) - 1.0, expected, 0.06);
}

#[test]
fn characteristics_that_cannot_be_are_refused() {
    for (text, problem) in [
        ("size = '8k'", "missing field `reads`"),
        ("reads = '50%'\nread_size = '8k'", "has no write_size"),
        ("reads = '150%'\nsize = '8k'", "reads = 1.5 is out of range"),
        ("reads = '1'\nsize = '8k'\nmax_size = '4k'", "a mean size of 8KiB is out of range"),
        ("reads = '1'\nsize = '8k'\nalign = '1000'", "align = 1000B is not a multiple of 512B"),
        ("reads = '1'\nsize = '8k'\nburst_requests = 3", "give both burst_requests and burst_gap, or neither"),
        ("reads = '1'\nsize = '8k'\nburst_requests = 3\nburst_gap = '1us'", "bursts need an interval"),
        ("reads = '1'\nsize = '8k'\nper_mega_instruction = 3", "give interval, or per_mega_instruction"),
        ("reads = '1'\nsize = '8k'\ninterval = '0ns'", "out of range"),
        ("reads = '1'\nsize = '8k'\nfoot = '1'", "unknown field `foot`"),
    ] {
        let wrong = own(text).unwrap_err();
        assert!(wrong.contains(problem), "{text}: {wrong}");
    }
    let small = own("reads = '1'\nsize = '8k'\nmax_size = '16M'\nfootprint = '1%'").unwrap();
    assert!(small.check_on(1 << 30, 512).unwrap_err().contains("has no room for the largest request, 16MiB"));
    assert!(small.check_on(64 << 30, 8_192).unwrap_err().contains("not a multiple of the drive's logical block"));
    assert_eq!(small.check_on(64 << 30, 512), Ok(()));
    let slow = own("reads = '1'\nsize = '8k'\ninterval = '1000000s'").unwrap().check_on(64 << 30, 512).unwrap_err();
    assert!(slow.contains("years of drive time; at most 300 are valid"), "{slow}");
}
