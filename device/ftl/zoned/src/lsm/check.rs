//! The invariants: pieces of runs follow each other, lie where their zones were written, and are what is live there.

use super::table::{LOST, Piece, Table, Use};
use crate::zone::ZoneFtl;
use crate::zone::table::ZoneState;

impl Table {
    pub(super) fn check(&self, zones: &ZoneFtl) -> Result<(), String> {
        let mut live = vec![0; self.zones.len()];
        let mut pieces: Vec<(Piece, usize)> = Vec::new();
        for (run, number) in self.runs.iter().zip(0..) {
            let Some(run) = run else { continue };
            let mut at = 0;
            for piece in &run.pieces {
                if piece.at != at || piece.units == 0 {
                    return Err(format!(
                        "run {number} has a piece of {} units at {}, after {at}",
                        piece.units, piece.at
                    ));
                }
                at += piece.units;
                if piece.zone == LOST {
                    continue;
                }
                live[piece.zone as usize] += piece.units;
                pieces.push((*piece, number));
            }
            if at != run.units {
                return Err(format!("run {number} has {} units, and pieces of {at}", run.units));
            }
        }
        pieces.sort_by_key(|(piece, _)| (piece.zone, piece.first));
        for pair in pieces.windows(2) {
            let ((one, run), (other, next)) = (pair[0], pair[1]);
            if one.zone == other.zone && one.first + one.units > other.first {
                return Err(format!("runs {run} and {next} overlap in zone {}", one.zone));
            }
        }
        for (piece, run) in &pieces {
            if piece.first + piece.units > zones.zone(piece.zone).written {
                return Err(format!("run {run} has data of zone {} that was not written", piece.zone));
            }
        }
        for ((of, live), zone) in self.zones.iter().zip(&live).zip(0..) {
            let is_empty = zones.zone(zone).state == ZoneState::Empty;
            let is_listed = self.empty.contains(&zone);
            if of.live != *live || (of.used == Use::Empty) != is_listed || is_listed && (!is_empty || *live > 0) {
                return Err(format!("zone {zone} is {of:?}, and {live} units of runs lie there"));
            }
        }
        Ok(())
    }
}
