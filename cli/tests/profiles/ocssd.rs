//! `femu-ocssd`, against the table it is made from, FEMU's figure of the drive, and OX's measurements of one.

use crate::point::Figure::{MBps, Us};
use crate::point::Role::{Judged, Missed, Sum};
use crate::point::{Point, Table};

const READ_OF_A_UNIT: &str = "32 KiB take 210 us on the drive and 176 us here, 56 + 2 x 60. Table 5.2 has no values \
    for link, firmware and host, so they take no time here. The channel is not the reason: four units on one reach \
    302.65 MB/s, 54 us a page.";

pub(crate) const TABLE: Table = Table {
    drive: "femu-ocssd",
    changes: "--set capacity=4GiB",
    points: &[
        Point {
            what: "table 5.2: read, 260 lower and 252 upper pages of 512, 48 or 64 + 60",
            published: 115.88,
            figure: Us("read/mean"),
            role: Sum,
            words: "--rw randread --bs 16k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "table 5.2: read of an upper page",
            published: 124.0,
            figure: Us("read/p99"),
            role: Sum,
            words: "--rw randread --bs 16k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "table 5.2: write of an upper page, 60 + 2400",
            published: 2_460.0,
            figure: Us("write/p99"),
            role: Sum,
            words: "--rw write --bs 16k --iodepth 1 --io-count 10000 --precondition none --set buffer.mode=through",
        },
        Point {
            what: "Fig. 5.7: 16 threads, 16 channels with 1 plane, below 130 us",
            published: 130.0,
            figure: Us("read/mean"),
            role: Judged,
            words: "--rw randread --bs 16k --iodepth 16 --io-count 20000 --set geometry.channels=16 \
                    --set geometry.dies_per_channel=1 --set geometry.planes_per_die=1",
        },
        Point {
            what: "Fig. 5.7: 16 threads, 1 channel with 1 plane, above 1550 us",
            published: 1_550.0,
            figure: Us("read/mean"),
            role: Missed(
                "16 pages over a channel at 60 us a page are 960 us (channel busy 97%), and no order of 48 or 64 and \
                 60 us on double registers gives more than 64 us a page. The figure needs 97 us, which contradicts \
                 table 5.2.",
            ),
            words: "--rw randread --bs 16k --iodepth 16 --io-count 20000 --set geometry.channels=1 \
                    --set geometry.dies_per_channel=1 --set geometry.planes_per_die=1",
        },
        Point {
            what: "OX, table 4.6: writes, 1 unit",
            published: 17.81,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 32k --iodepth 1 --io-count 10000 --precondition none --set buffer.mode=through \
                    --set geometry.channels=1 --set geometry.dies_per_channel=1",
        },
        Point {
            what: "OX, table 4.6: writes, 4 units of a channel",
            published: 71.10,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 32k --iodepth 4 --io-count 10000 --precondition none --set buffer.mode=through \
                    --set geometry.channels=1 --set geometry.dies_per_channel=4 --set ftl.allocation=plane_channel_die",
        },
        Point {
            what: "OX, table 4.7: writes, 16 channels with 1 unit",
            published: 301.16,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 32k --iodepth 16 --io-count 10000 --precondition none --set buffer.mode=through \
                    --set geometry.channels=16 --set geometry.dies_per_channel=1 --set ftl.allocation=plane_channel_die",
        },
        Point {
            what: "OX, table 4.6: reads, 1 unit",
            published: 156.30,
            figure: MBps,
            role: Missed(READ_OF_A_UNIT),
            words: "--rw read --bs 32k --iodepth 1 --io-count 10000 --set geometry.channels=1 \
                    --set geometry.dies_per_channel=1",
        },
        Point {
            what: "OX, table 4.6: reads, 4 units of a channel",
            published: 302.65,
            figure: MBps,
            role: Judged,
            words: "--rw read --bs 32k --iodepth 4 --io-count 10000 --set geometry.channels=1 \
                    --set geometry.dies_per_channel=4 --set ftl.allocation=plane_channel_die",
        },
        Point {
            what: "OX, table 4.7: reads, 16 channels with 1 unit",
            published: 2_368.59,
            figure: MBps,
            role: Missed(READ_OF_A_UNIT),
            words: "--rw read --bs 32k --iodepth 16 --io-count 10000 --set geometry.channels=16 \
                    --set geometry.dies_per_channel=1 --set ftl.allocation=plane_channel_die",
        },
    ],
};
