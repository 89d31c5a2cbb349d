//! `samsung-970pro`, against the sums of NVMeVirt's steps and Samsung's specification.

use crate::point::Figure::{Kiops, MBps, Us};
use crate::point::Role::{Judged, Missed, Sum};
use crate::point::{Point, Table};

pub(crate) const TABLE: Table = Table {
    drive: "samsung-970pro",
    changes: "--set capacity=4GiB",
    points: &[
        Point {
            what: "NVMeVirt: 4 KiB read, half LSB and half MSB, 21.5 + 35.76 + 4.86 + 1.15",
            published: 63.27,
            figure: Us("read/mean"),
            role: Sum,
            words: "--rw randread --iodepth 1 --io-count 20000",
        },
        Point {
            what: "NVMeVirt: 4 KiB read of an LSB page",
            published: 57.27,
            figure: Us("read/p50"),
            role: Sum,
            words: "--rw randread --iodepth 1 --io-count 20000",
        },
        Point {
            what: "NVMeVirt: 4 KiB read of an MSB page",
            published: 69.27,
            figure: Us("read/p99"),
            role: Sum,
            words: "--rw randread --iodepth 1 --io-count 20000",
        },
        Point {
            what: "NVMeVirt: 32 KiB programs on 16 LUNs, 16 x 32 KiB in 39 + 185 us",
            published: 2_340.0,
            figure: MBps,
            role: Sum,
            words: "--rw write --bs 128k --iodepth 32 --io-count 20000 --precondition none",
        },
        Point {
            what: "stated: sequential read",
            published: 3_500.0,
            figure: MBps,
            role: Judged,
            words: "--rw read --bs 128k --iodepth 32 --io-count 20000",
        },
        Point {
            what: "stated: sequential write",
            published: 2_300.0,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 128k --iodepth 32 --io-count 20000 --precondition none",
        },
        Point {
            what: "stated: 4 KiB random reads (4 threads at depth 32)",
            published: 370.0,
            figure: Kiops,
            role: Judged,
            words: "--rw randread --numjobs 4 --iodepth 32 --io-count 100000",
        },
        Point {
            what: "stated: 4 KiB random writes (4 threads at depth 32)",
            published: 500.0,
            figure: Kiops,
            role: Missed(
                "the flash saturates: its dies are always busy programming or loading, as in sequential writes, and \
                 572 K times 4 KiB are the same 2.34 GB/s. The drive is 13% slower at small writes; a firmware that \
                 handles one command at a time would explain that. Here firmware time delays each command, but \
                 occupies nothing. `controller.processors` would; the sources give no time for it.",
            ),
            words: "--rw randwrite --numjobs 4 --iodepth 32 --io-count 100000 --precondition none",
        },
        Point {
            what: "NVMeVirt: 4 KiB write, 4 + 0.46 + 1.15",
            published: 5.61,
            figure: Us("write/mean"),
            role: Missed(
                "NVMeVirt has a separate firmware time for writes; here all commands have the same, which is that of \
                 reads. The model lacks a key for the firmware time of writes.",
            ),
            words: "--rw randwrite --iodepth 1 --io-count 20000 --precondition none",
        },
        Point {
            what: "NVMeVirt: 16 KiB read, 21.5 + 35.76 + 4.86 + 4 x 1.15",
            published: 66.73,
            figure: Us("read/mean"),
            role: Missed(
                "NVMeVirt places consecutive 4 KiB pieces on four channels, which transfer in parallel; here one page \
                 holds them and transfers all 16 KiB. The model lacks a key that distributes the pieces of a page over \
                 several dies.",
            ),
            words: "--rw randread --bs 16k --iodepth 1 --io-count 20000",
        },
    ],
};
