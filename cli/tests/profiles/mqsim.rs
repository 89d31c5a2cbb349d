//! `mqsim-mlc`, against the sums of MQSim's steps. MQSim itself publishes no figures of its default drive.

use crate::point::Figure::{MBps, Us};
use crate::point::Role::{Judged, Shown, Sum};
use crate::point::{Point, Table};

pub(crate) const TABLE: Table = Table {
    drive: "mqsim-mlc",
    changes: "--set capacity=8GiB --set buffer.size=16MiB",
    points: &[
        Point {
            what: "8 KiB read: 0.29 (command) + 75 + 24.58 (data) + 2.05 (PCIe)",
            published: 101.91,
            figure: Us("read/mean"),
            role: Sum,
            words: "--rw randread --bs 8k --iodepth 1 --io-count 20000",
        },
        Point {
            what: "8 KiB write to the flash: 2.05 + 0.36 + 24.58 + 750",
            published: 776.98,
            figure: Us("write/mean"),
            role: Sum,
            words: "--rw write --bs 8k --iodepth 1 --io-count 5000 --precondition none --set buffer.mode=through",
        },
        Point {
            what: "reads in order, two planes a command: 8 x 16 x 8 KiB in 0.96 + 75 + 16 x 24.58 us",
            published: 2_235.0,
            figure: MBps,
            role: Judged,
            words: "--rw read --bs 128k --iodepth 64 --io-count 20000",
        },
        Point {
            what: "writes in order, dies on their own: 64 x 2 x 8 KiB in 1.18 + 2 x 24.58 + 750 us",
            published: 1_310.0,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 128k --iodepth 64 --io-count 20000 --precondition none",
        },
        Point {
            what: "writes in order, dies of a chip together: 32 x 4 x 8 KiB in 2 x 1.18 + 4 x 24.58 + 750 us",
            published: 1_233.0,
            figure: MBps,
            role: Judged,
            words: "--rw write --bs 128k --iodepth 64 --io-count 20000 --precondition none",
        },
        Point {
            what: "writes in order, one die of a chip at a time: 32 x 2 x 8 KiB in 1.18 + 2 x 24.58 + 750 us",
            published: 655.1,
            figure: MBps,
            role: Shown(
                "the behaviour of MQSim's sources since `issue_command_to_chip` (c9d0f6f): the function returns after \
                 the first die, and a chip that is not idle accepts no more commands. MQSim's settings have two dies a \
                 chip, and so has the profile.",
            ),
            words: "--rw write --bs 128k --iodepth 64 --io-count 20000 --precondition none",
        },
    ],
};
