//! `info` against traces with figures computed by hand.

use nandscape_lab_trace::{Format, Info, Options, Trace, describe};

use crate::files::{file, open, sample};

fn of(text: &str) -> Info {
    let (_folder, path) = file(text);
    let trace = Trace::open(Options { path, format: Some(Format::Alibaba), ..Options::default() }).unwrap();
    describe(&trace).unwrap()
}

#[test]
fn the_figures_of_a_trace_made_by_hand() {
    // Two disks; reads of 8 KiB in sequence on the first, writes of 1 KiB into one page on the second.
    let info =
        of("1,R,0,8192,0\n2,W,4096,1024,500000\n1,R,8192,8192,1000000\n2,W,5120,1024,1500000\n1,R,4096,8192,2000000\n");
    let (reads, writes) = (&info.by["read"], &info.by["write"]);
    assert_eq!((info.all.requests, reads.requests, writes.requests), (5, 3, 2));
    assert_eq!((info.all.bytes, reads.bytes, writes.bytes), (26_624, 24_576, 2_048));
    assert_eq!((info.duration_s, info.disks, info.span_bytes), (2.0, 2, 16_384 + 6_144));
    assert_eq!((reads.share, info.all.rate_mean), (0.6, Some(2.5)));
    // Seconds begin with the first request: two, two, one.
    assert_eq!((info.all.rate_peak, reads.rate_peak, info.all.bytes_peak), (2, 1, 9_216));
    // The first two reads touch pages 0 to 3; the third 1 and 2 again. The writes are in one page.
    assert_eq!((reads.footprint_bytes, writes.footprint_bytes, info.all.footprint_bytes), (16_384, 4_096, 20_480));
    assert_eq!((reads.sequential, writes.sequential, info.all.sequential), (1.0 / 3.0, 0.5, 0.4));
    let gaps = info.all.gap_us.unwrap();
    assert_eq!((gaps.mean, gaps.min, gaps.max, info.all.gap_variation), (500_000.0, 500_000.0, 500_000.0, Some(0.0)));
    let sizes = info.all.size_bytes.unwrap();
    assert_eq!((sizes.mean, sizes.min, sizes.p50, sizes.p99, sizes.max), (5_324.8, 1_024.0, 8_192.0, 8_192.0, 8_192.0));
    assert_eq!(info.all.frequent_sizes, [(8_192, 3), (1_024, 2)]);
    assert_eq!(
        info.busiest_disks.iter().map(|disk| (&*disk.disk, disk.requests)).collect::<Vec<_>>(),
        [("1", 3), ("2", 2)]
    );
}

#[test]
fn one_request_has_no_rate_and_no_gaps() {
    let info = of("1,R,0,8192,7\n");
    assert_eq!((info.duration_s, info.all.rate_mean, info.all.gap_variation), (0.0, None, None));
    assert!(info.all.gap_us.is_none() && !info.by.contains_key("write"));
}

/// Gaps of 1 us and of 9 us in turn: mean 5, deviation 4.
#[test]
fn the_variation_of_gaps_is_their_deviation_over_their_mean() {
    let text: String = (0..2_001u64).map(|n| format!("1,R,0,4096,{}\n", n / 2 * 10 + n % 2)).collect();
    let info = of(&text);
    assert!((info.all.gap_variation.unwrap() - 0.8).abs() < 1e-9);
    assert_eq!(info.all.gap_us.unwrap().mean, 5.0);
}

#[test]
fn flushes_have_no_size_and_no_place() {
    let info = describe(&open(sample("fio-v2.log")).unwrap()).unwrap();
    let flushes = &info.by["flush"];
    assert_eq!((flushes.requests, flushes.bytes, flushes.footprint_bytes), (2, 0, 0));
    assert!(flushes.size_bytes.is_none() && flushes.frequent_sizes.is_empty());
    assert_eq!(info.all.size_bytes.unwrap().min, 4_096.0, "of those that have a size");
    assert_eq!(info.by["trim"].footprint_bytes, 1 << 20);
}
