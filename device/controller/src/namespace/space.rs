//! Allocation of the drive's sectors to namespaces, in granules of one size; the last granule also has the rest.

use super::layout::{Layout, Run};

/// See the file.
pub(super) struct Space {
    sectors: u64,
    granule: u64,
    taken: Vec<bool>,
}

impl Space {
    /// `sectors` sectors, all free.
    pub(super) fn new(sectors: u64, granule: u64) -> Space {
        let granules = (sectors / granule).max(1);
        Space { sectors, granule, taken: vec![false; granules as usize] }
    }

    fn run(&self, index: usize) -> Run {
        let start = index as u64 * self.granule;
        let end = if index + 1 == self.taken.len() { self.sectors } else { start + self.granule };
        Run { start, sectors: end - start }
    }

    /// Sectors that are free.
    pub(super) fn free(&self) -> u64 {
        let free = (0..self.taken.len()).filter(|index| !self.taken[*index]);
        free.map(|index| self.run(index).sectors).sum()
    }

    /// Takes at least `sectors` sectors: contiguous if a free run is long enough, or else the first free ones. `None` if too
    /// few are free.
    pub(super) fn take(&mut self, sectors: u64) -> Option<Layout> {
        let granules = self.row(sectors).or_else(|| self.first(sectors))?;
        granules.iter().for_each(|index| self.taken[*index] = true);
        Some(Layout::new(granules.into_iter().map(|index| self.run(index))))
    }

    fn row(&self, sectors: u64) -> Option<Vec<usize>> {
        (0..self.taken.len()).find_map(|start| {
            let row = (start..self.taken.len()).take_while(|index| !self.taken[*index]);
            self.enough(row, sectors)
        })
    }

    fn first(&self, sectors: u64) -> Option<Vec<usize>> {
        self.enough((0..self.taken.len()).filter(|index| !self.taken[*index]), sectors)
    }

    /// As many of these granules as hold `sectors` sectors.
    fn enough(&self, granules: impl Iterator<Item = usize>, sectors: u64) -> Option<Vec<usize>> {
        let (mut enough, mut found) = (Vec::new(), 0);
        for index in granules {
            enough.push(index);
            found += self.run(index).sectors;
            if found >= sectors {
                return Some(enough);
            }
        }
        None
    }

    /// Takes runs of free, whole granules. Returns whether they were free; if not, the space must not be used any more.
    pub(super) fn take_runs(&mut self, runs: &[Run]) -> bool {
        runs.iter().all(|run| self.take_run(*run))
    }

    fn take_run(&mut self, run: Run) -> bool {
        let first = (run.start / self.granule) as usize;
        let Some(end) = run.start.checked_add(run.sectors).filter(|end| *end <= self.sectors && *end > run.start)
        else {
            return false;
        };
        let granules: Vec<usize> = (first..self.taken.len()).take_while(|index| self.run(*index).start < end).collect();
        let last = granules.last().map(|index| self.run(*index));
        let is_whole = first * self.granule as usize == run.start as usize
            && last.is_some_and(|last| last.start + last.sectors == end);
        is_whole && granules.iter().all(|index| !std::mem::replace(&mut self.taken[*index], true))
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&mut self, layout: &Layout) {
        for run in layout.runs() {
            let end = run.start + run.sectors;
            for index in (run.start / self.granule) as usize..self.taken.len() {
                if self.run(index).start >= end {
                    break;
                }
                assert!(std::mem::replace(&mut self.taken[index], false), "granule {index} was not taken");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_comes_in_a_row_where_it_can() {
        let mut space = Space::new(1_050, 100);
        assert_eq!(space.free(), 1_050);
        let [a, b, c] = [150, 100, 300].map(|sectors| space.take(sectors).unwrap());
        assert_eq!((a.sectors(), b.start(), c.start()), (200, 200, 300));
        space.give_back(&b);
        assert_eq!(space.take(101).unwrap().start(), 600, "the first row is too short");
        let apart = space.take(300).unwrap();
        assert_eq!((apart.runs().count(), apart.start(), apart.sectors()), (2, 200, 350), "the last has the rest");
        assert!(space.take(1).is_none());
        space.give_back(&apart);
        assert_eq!((space.free(), space.take(351).is_none()), (350, true));
        let mut other = Space::new(1_050, 100);
        let run = |start, sectors| Run { start, sectors };
        assert!(other.take_runs(&[run(200, 100), run(800, 250)]));
        for wrong in [run(200, 100), run(350, 100), run(300, 150), run(900, 200), run(300, 0), run(u64::MAX, 9)] {
            assert!(!other.take_runs(&[wrong]), "{wrong:?}");
        }
        [a, c].iter().for_each(|layout| space.give_back(layout));
        assert_eq!(space.free(), 850);
        let tiny = Space::new(50, 100).take(50).unwrap();
        assert_eq!(tiny.sectors(), 50);
    }
}
