//! `wd-zn540-block`, against fio's measurements of the drive.

use crate::point::Figure::{Kiops, MBps, Us};
use crate::point::Role::{Fitted, Judged, Missed, Shown};
use crate::point::{Point, Table};

const ONE_TIME: &str = "here, as in NVMeVirt, pages of all types have the same read time, so all reads at depth 1 are \
    equal. The drive's p99 and p99.9 are 9 and 10 us above its mean and 1 us apart, which suggests several read times, \
    such as those of page types; none are published.";
const ONE_FIRMWARE: &str = "`controller.firmware_time` applies to all commands, and was fitted to reads. The firmware of \
    writes has keys for zones only, which are those of wd-zn540.";
const CAP: &str = "here, as in NVMeVirt, the limit is the buffer of a zone: ten word lines of 208 us (channel) + 561 \
    us each. The real drive has zones and a different FTL, so its writes are not judged.";

pub(crate) const TABLE: Table = Table {
    drive: "wd-zn540-block",
    changes: "--set capacity=20GiB",
    points: &[
        Point {
            what: "4 KiB random reads, depth 1, mean",
            published: 72.6,
            figure: Us("read/mean"),
            role: Fitted,
            words: "--rw randread --iodepth 1 --io-count 20000",
        },
        Point {
            what: "4 KiB, depth 128, the plateau",
            published: 424.0,
            figure: Kiops,
            role: Fitted,
            words: "--rw randread --iodepth 128 --io-count 200000",
        },
        Point {
            what: "4 KiB, depth 128, mean",
            published: 301.0,
            figure: Us("read/mean"),
            role: Shown("the plateau once more, by Little's law: 128 over 424 K/s."),
            words: "--rw randread --iodepth 128 --io-count 200000",
        },
        Point {
            what: "4 KiB, depth 2, mean",
            published: 73.8,
            figure: Us("read/mean"),
            role: Judged,
            words: "--rw randread --iodepth 2 --io-count 50000",
        },
        Point {
            what: "4 KiB, depth 8, mean",
            published: 80.8,
            figure: Us("read/mean"),
            role: Judged,
            words: "--rw randread --iodepth 8 --io-count 50000",
        },
        Point {
            what: "4 KiB, depth 32, mean",
            published: 116.0,
            figure: Us("read/mean"),
            role: Judged,
            words: "--rw randread --iodepth 32 --io-count 50000",
        },
        Point {
            what: "8 KiB, depth 1, mean",
            published: 84.2,
            figure: Us("read/mean"),
            role: Judged,
            words: "--rw randread --bs 8k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "16 KiB, depth 1, mean",
            published: 101.6,
            figure: Us("read/mean"),
            role: Judged,
            words: "--rw randread --bs 16k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "4 KiB, depth 1, p99",
            published: 81.4,
            figure: Us("read/p99"),
            role: Missed(ONE_TIME),
            words: "--rw randread --iodepth 1 --io-count 20000",
        },
        Point {
            what: "4 KiB, depth 1, p99.9",
            published: 82.4,
            figure: Us("read/p99_9"),
            role: Missed(ONE_TIME),
            words: "--rw randread --iodepth 1 --io-count 20000",
        },
        Point {
            what: "16 KiB, the plateau",
            published: 2_630.0,
            figure: MBps,
            role: Missed(
                "here the link saturates (busy 100%; channels 85%, dies 35%), at the 3050 MiB/s that NVMeVirt gives \
                 it; the drive stops at four fifths of that. Its dies are not the limit, as they are at 4 KiB, and its \
                 channels seem no slower than NVMeVirt's: from 8 to 16 KiB at depth 1 each 4 KiB take 8.7 us, which is \
                 450 MiB/s. So some other part limits the total to 2.63 GB/s, and no published figure identifies it.",
            ),
            words: "--rw randread --bs 16k --iodepth 128 --io-count 50000",
        },
        Point {
            what: "16 KiB, depth 32, against that plateau",
            published: 2_630.0,
            figure: MBps,
            role: Shown(
                "the depth at which the plateau was measured is not published. Here the link is not full yet at 32.",
            ),
            words: "--rw randread --bs 16k --iodepth 32 --io-count 50000",
        },
        Point {
            what: "4 KiB writes in order, depth 1, mean",
            published: 11.4,
            figure: Us("write/mean"),
            role: Shown(ONE_FIRMWARE),
            words: "--rw write --iodepth 1 --io-count 20000",
        },
        Point {
            what: "16 KiB writes in order, depth 1, mean",
            published: 16.3,
            figure: Us("write/mean"),
            role: Shown(ONE_FIRMWARE),
            words: "--rw write --bs 16k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "64 KiB writes in order, depth 1, mean",
            published: 53.2,
            figure: Us("write/mean"),
            role: Shown(CAP),
            words: "--rw write --bs 64k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "128 KiB writes in order, depth 1, mean",
            published: 106.6,
            figure: Us("write/mean"),
            role: Shown(CAP),
            words: "--rw write --bs 128k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "writes in order, the plateau",
            published: 1_200.0,
            figure: MBps,
            role: Shown(CAP),
            words: "--rw write --bs 64k --iodepth 16 --io-count 20000",
        },
    ],
};
