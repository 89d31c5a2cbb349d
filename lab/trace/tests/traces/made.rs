//! The trace of docs/samples: it is synthetic, made by the rules below. Its file holds the output of this program.
//!
//! Half a minute of three disks of one server, in the format of MSR Cambridge. Disk 0 is a log: writes of 4 to 32 KiB, one after
//! the other, in groups. Disk 1 is a database: reads and writes of 8 KiB at addresses with few frequent ones, in quiet and busy
//! seconds in turn. Disk 2 is a backup: reads of 256 KiB, one after the other, from second 12 to second 20. Times of day and response
//! times have no meaning.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use nandscape_sim::{Rng, Seed};

/// Ticks of 100 ns a second, and those at the first line: a day in 2007, as in the traces that have this format.
const SECOND: u64 = 10_000_000;
const BEGIN: u64 = 128_166_372_000_000_000;

/// A line: tick, disk, whether it reads, address and size in bytes.
type Line = (u64, u32, bool, u64, u64);

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples/server.csv.gz")
}

fn text() -> String {
    let seed = Seed::new(1).child("docs/samples");
    let mut lines = [log(seed.child("log").rng()), database(seed.child("database").rng()), backup()].concat();
    lines.sort_unstable();
    let line = |(tick, disk, reads, address, size): &Line| {
        let (word, taken) = (if *reads { "Read" } else { "Write" }, size / 16 + 500);
        format!("{},server,{disk},{word},{address},{size},{taken}\n", BEGIN + tick)
    };
    "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n".to_owned()
        + &lines.iter().map(line).collect::<String>()
}

/// Groups of 1 to 6 writes, every 30 ms on average.
fn log(mut rng: Rng) -> Vec<Line> {
    let (mut lines, mut tick, mut address) = (Vec::new(), 0, 0);
    loop {
        tick += rng.exponential(30e6).ns() / 100;
        for _ in 0..=rng.below(6) {
            tick += 200 + rng.below(1_000);
            if tick >= 30 * SECOND {
                return lines;
            }
            let size = 4096 << rng.below(4);
            lines.push((tick, 0, false, address, size));
            address += size;
        }
    }
}

/// 60 requests a second, 300 in every third second; an address is a product of three draws, so that low ones are frequent.
fn database(mut rng: Rng) -> Vec<Line> {
    let (mut lines, mut tick) = (Vec::new(), 0);
    const PAGES: u64 = 1 << 20;
    loop {
        let busy = tick / SECOND % 3 == 2;
        tick += rng.exponential(if busy { 3.3e6 } else { 16.7e6 }).ns() / 100;
        if tick >= 30 * SECOND {
            return lines;
        }
        let page = rng.below(PAGES) * rng.below(PAGES) / PAGES * rng.below(PAGES) / PAGES;
        lines.push((tick, 1, rng.chance(0.7), page * 8192, 8192));
    }
}

/// 64 MB a second.
fn backup() -> Vec<Line> {
    const SIZE: u64 = 256 << 10;
    (0..8 * 244).map(|number| (12 * SECOND + number * SECOND / 244, 2, true, number * SIZE, SIZE)).collect()
}

#[test]
fn the_sample_is_what_is_made() {
    let mut kept = String::new();
    let packed = std::fs::File::open(file()).expect("the sample");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut kept).expect("text");
    assert_eq!(kept.lines().count(), text().lines().count());
    for (number, (kept, made)) in kept.lines().zip(text().lines()).enumerate() {
        assert_eq!(
            kept,
            made,
            "line {}; `cargo test -p nandscape-lab-trace -- --ignored writes_the_sample` makes it anew",
            number + 1
        );
    }
}

#[test]
#[ignore = "it writes the sample"]
fn writes_the_sample() {
    let packed = std::fs::File::create(file()).expect("a place");
    let mut packer = flate2::write::GzEncoder::new(packed, flate2::Compression::best());
    packer.write_all(text().as_bytes()).and_then(|()| packer.finish().map(drop)).expect("room");
}
