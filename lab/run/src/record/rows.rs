//! The drive of an operation of the flash, and the range of its logical blocks where ranges have their own planes.
//!
//! Left out: transfers on the channels. Operations are those of the arrays.

use nandscape_device_media::PlaneId;
use nandscape_device_ssd::Ssd;
use nandscape_sim::trace::Event;
use serde::Serialize;

/// A drive, or the planes of one that belong to a range.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// The drive.
    pub drive: usize,
    /// The range; `None` is all of the drive.
    pub range: Option<u8>,
}

/// All of several drives.
pub(super) struct Rows {
    rows: Vec<Row>,
    /// By row: arrays that work independently. Where planes of a die share one, each is a part of it.
    arrays: Vec<f64>,
    /// By the number of its track, the row of a plane.
    of_track: Vec<Option<u32>>,
}

impl Rows {
    pub(super) fn new<'a>(ssds: impl Iterator<Item = &'a Ssd>) -> Rows {
        let mut rows = Rows { rows: Vec::new(), arrays: Vec::new(), of_track: Vec::new() };
        for (drive, ssd) in ssds.enumerate() {
            rows.add(drive, ssd);
        }
        rows
    }

    fn add(&mut self, drive: usize, ssd: &Ssd) {
        let first = self.rows.len();
        for part in ssd.parts() {
            let media = part.media();
            let planes_per_die = media.geometry().counts().planes_per_die;
            let share = f64::from(media.arrays_per_die()) / f64::from(planes_per_die);
            for (track, plane) in media.plane_tracks().iter().zip(0..) {
                let row = self.row_of(first, Row { drive, range: part.range_of(PlaneId(plane)) });
                self.arrays[row] += share;
                self.of_track.resize(self.of_track.len().max(track.index() + 1), None);
                self.of_track[track.index()] = Some(row as u32);
            }
        }
        // Planes of ranges follow the order of their numbers, which may differ from the order of ranges.
        self.sort_from(first);
    }

    fn row_of(&mut self, first: usize, row: Row) -> usize {
        let known = self.rows[first..].iter().position(|of| *of == row);
        known.map_or_else(
            || {
                self.rows.push(row);
                self.arrays.push(0.0);
                self.rows.len() - 1
            },
            |at| first + at,
        )
    }

    fn sort_from(&mut self, first: usize) {
        let mut order: Vec<usize> = (first..self.rows.len()).collect();
        order.sort_by_key(|at| self.rows[*at].range);
        let (rows, arrays): (Vec<Row>, Vec<f64>) = order.iter().map(|at| (self.rows[*at], self.arrays[*at])).unzip();
        self.rows.splice(first.., rows);
        self.arrays.splice(first.., arrays);
        for row in self.of_track.iter_mut().flatten().filter(|row| **row as usize >= first) {
            let place = order.iter().position(|at| *at == *row as usize).expect("each row has a place");
            *row = (first + place) as u32;
        }
    }

    /// Each row.
    pub(super) fn all(&self) -> &[Row] {
        &self.rows
    }

    /// Arrays that work independently, by row.
    pub(super) fn arrays(&self) -> &[f64] {
        &self.arrays
    }

    /// The same by drive.
    pub(super) fn arrays_of_drives(&self) -> Vec<f64> {
        let mut drives = Vec::new();
        for (row, arrays) in self.rows.iter().zip(&self.arrays) {
            drives.resize(row.drive + 1, 0.0);
            drives[row.drive] += arrays;
        }
        drives
    }

    /// The row of the plane that an event is of.
    pub(super) fn of(&self, event: &Event) -> Option<usize> {
        self.of_track.get(event.track.index())?.map(|row| row as usize)
    }
}
