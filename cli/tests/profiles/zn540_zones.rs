//! `wd-zn540`, the drive with its zones, against fio's measurements of writes, appends, resets and finishes.

use crate::point::Figure::{Kiops, MBps, Ms, Us};
use crate::point::Role::{Fitted, Judged, Missed, Shown};
use crate::point::{Point, Table};

const BEHIND: &str = "the finish comes right behind the last write, and its strip waits for the program before it on the same die, which \
    the buffer has only just begun. After a pause it takes 2.57 ms, which another test demands.";
const USED: &str = "one of six points that four times were fitted to: those of a program, of an erase, of a reset, and of a reset's \
    work on each unit.";

pub(crate) const TABLE: Table = Table {
    drive: "wd-zn540",
    changes: "--set capacity=20GiB --zonemode zbd --precondition none",
    points: &[
        Point {
            what: "4 KiB writes, depth 1, mean",
            published: 11.4,
            figure: Us("write/mean"),
            role: Fitted,
            words: "--rw write --iodepth 1 --io-count 20000",
        },
        Point {
            what: "16 KiB writes, depth 1, mean",
            published: 16.3,
            figure: Us("write/mean"),
            role: Judged,
            words: "--rw write --bs 16k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "64 KiB writes, depth 1, mean",
            published: 53.2,
            figure: Us("write/mean"),
            role: Judged,
            words: "--rw write --bs 64k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "128 KiB writes, depth 1, mean",
            published: 106.6,
            figure: Us("write/mean"),
            role: Judged,
            words: "--rw write --bs 128k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "4 KiB appends, depth 1, mean",
            published: 14.8,
            figure: Us("write/mean"),
            role: Fitted,
            words: "--rw write --zone-append --iodepth 1 --io-count 20000",
        },
        Point {
            what: "16 KiB appends, depth 1, mean",
            published: 20.1,
            figure: Us("write/mean"),
            role: Judged,
            words: "--rw write --zone-append --bs 16k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "64 KiB appends, depth 1, mean",
            published: 53.1,
            figure: Us("write/mean"),
            role: Judged,
            words: "--rw write --zone-append --bs 64k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "128 KiB appends, depth 1, mean",
            published: 106.7,
            figure: Us("write/mean"),
            role: Judged,
            words: "--rw write --zone-append --bs 128k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "4 KiB appends to one zone, depth 4",
            published: 132.0,
            figure: Kiops,
            role: Judged,
            words: "--rw write --zone-append --iodepth 4 --io-count 50000",
        },
        Point {
            what: "writes, the plateau",
            published: 1_200.0,
            figure: MBps,
            role: Shown(USED),
            words: "--rw write --bs 128k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "writes in 4 zones, the plateau",
            published: 1_200.0,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 128k --iodepth 4 --max-open-zones 4 --io-count 20000",
        },
        Point {
            what: "writes in 8 zones, the plateau",
            published: 1_200.0,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 128k --iodepth 8 --max-open-zones 8 --io-count 20000",
        },
        Point {
            what: "writes in 14 zones, the plateau",
            published: 1_200.0,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 128k --iodepth 14 --max-open-zones 14 --io-count 20000",
        },
        Point {
            what: "reset of a zone with one block",
            published: 1.7,
            figure: Ms("reset/mean"),
            role: Shown(USED),
            words: "--rw write --zone-fill 4KiB --size 16GiB --iodepth 1 --io-count 200",
        },
        Point {
            what: "reset, an eighth written",
            published: 6.05,
            figure: Ms("reset/mean"),
            role: Shown(USED),
            words: "--rw write --bs 128k --zone-fill 12.5% --size 16GiB --iodepth 1 --io-count 16000",
        },
        Point {
            what: "reset, half written",
            published: 11.3,
            figure: Ms("reset/mean"),
            role: Shown(USED),
            words: "--rw write --bs 128k --zone-fill 50% --size 4GiB --iodepth 1 --io-count 20000",
        },
        Point {
            what: "reset, all written",
            published: 15.8,
            figure: Ms("reset/mean"),
            role: Shown(USED),
            words: "--rw write --bs 128k --size 4GiB --iodepth 1 --io-count 30000",
        },
        Point {
            what: "finish of a zone with one block",
            published: 907.0,
            figure: Ms("finish/mean"),
            role: Shown(USED),
            words: "--rw write --zone-fill 4KiB --zone-finish --iodepth 1 --io-count 20",
        },
        Point {
            what: "finish, a quarter written",
            published: 681.0,
            figure: Ms("finish/mean"),
            role: Judged,
            words: "--rw write --bs 128k --zone-fill 25% --zone-finish --iodepth 1 --io-count 10000",
        },
        Point {
            what: "finish, all but one block written",
            published: 2.6,
            figure: Ms("finish/mean"),
            role: Missed(BEHIND),
            words: "--rw write --bs 128k --zone-fill 1102844KiB --zone-finish --iodepth 1 --io-count 20000",
        },
    ],
};
