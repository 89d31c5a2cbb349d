//! `sm843t`, against Samsung's figures of reads and a test of its predecessor.

use crate::point::Figure::{Kiops, MBps};
use crate::point::Role::{Fitted, Missed};
use crate::point::{Point, Table};

pub(crate) const TABLE: Table = Table {
    drive: "sm843t",
    changes: "--set capacity=16GiB",
    points: &[
        Point {
            what: "stated: 4 KiB random reads at depth 32",
            published: 98.0,
            figure: Kiops,
            role: Fitted,
            words: "--rw randread --iodepth 32 --io-count 50000",
        },
        Point {
            what: "stated: sequential read",
            published: 530.0,
            figure: MBps,
            role: Fitted,
            words: "--rw read --bs 128k --iodepth 32 --io-count 20000",
        },
        Point {
            what: "the predecessor SM843: 4 KiB random writes, steady",
            published: 13.0,
            figure: Kiops,
            role: Missed(
                "with a write amplification of 3.9, 72,000 writes a second program 1.1 of 2.6 GB/s. The drive's firmware keeps to a lower, even \
                 rate: stated at 11,500, the SM843 wrote 13,000 with little deviation from second to second (TheSSDReview). The rule of the \
                 firmware is unknown.",
            ),
            words: "--rw randwrite --iodepth 32 --io-count 100000 --precondition steady",
        },
    ],
};
