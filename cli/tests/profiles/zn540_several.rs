//! `wd-zn540` with several zones that are written side by side, against the plateau of pull request 205 of FEMU: 1.2 GB/s from 1 to
//! 14 open zones.

use crate::point::Figure::MBps;
use crate::point::Role::{Judged, Shown};
use crate::point::{Point, Role, Table};

const ONE: &str =
    "one write at a time does not reach the plateau. The drive, too, takes 16.3 us for it, which is 1005 MB/s.";

/// Rows of writes of a size, one at a time in each of these numbers of zones.
macro_rules! rows {
    ($($size:literal as $bs:literal, $count:literal: $($zones:literal $role:expr),*;)*) => {
        &[$($(row(
            concat!($size, " writes, zones: ", $zones),
            concat!("--rw write --bs ", $bs, " --iodepth ", $zones, " --max-open-zones ", $zones, " --io-count ", $count),
            $role,
        )),*),*]
    };
}

const fn row(what: &'static str, words: &'static str, role: Role) -> Point {
    Point { what, published: 1_200.0, figure: MBps, role, words }
}

pub(crate) const TABLE: Table = Table {
    name: "wd-zn540, several zones",
    drive: "wd-zn540",
    changes: "--set capacity=20GiB --zonemode zbd --precondition none",
    points: rows! {
        "16 KiB" as "16k", 20000: 1 Shown(ONE), 2 Judged, 3 Judged, 4 Judged, 6 Judged, 7 Judged, 8 Judged, 14 Judged;
        "128 KiB" as "128k", 10000: 1 Judged, 2 Judged, 3 Judged, 4 Judged, 6 Judged, 7 Judged, 8 Judged, 14 Judged;
        "1 MiB" as "1m", 1500: 1 Judged, 2 Judged, 3 Judged, 4 Judged, 6 Judged, 7 Judged, 8 Judged, 14 Judged;
    },
};
