//! GC-tolerant flush (Li 3.3.5): full stripes to planes that do not collect, then full stripes with one collecting
//! plane, then partial stripes in the same two steps. Stripes that more than one collection would hold up come last.
//! Pages on flash leave the buffer, while the page of the collecting plane waits in it.

use super::{FlushCandidate, FlushPolicy};

/// See the file.
pub struct GcTolerant;

impl FlushPolicy for GcTolerant {
    fn rank(&self, candidate: &FlushCandidate) -> u32 {
        match (candidate.is_full, candidate.collecting) {
            (true, 0) => 0,
            (true, 1) => 1,
            (false, 0) => 2,
            (false, 1) => 3,
            _ => 4,
        }
    }

    fn reads_around(&self) -> bool {
        true
    }

    fn frees_pages(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_paper() {
        let rank = |is_full, collecting| GcTolerant.rank(&FlushCandidate { is_full, collecting });
        let order = [rank(true, 0), rank(true, 1), rank(false, 0), rank(false, 1), rank(true, 2)];
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
        assert_eq!(rank(true, 2), rank(false, 3));
    }
}
