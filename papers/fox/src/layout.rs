//! Nodes, rows and columns (Picoli 2019, 4.3.1). A node is a thread with its own parallel units. A row is the pages of
//! one block and page number on all units of the node. A column is a parallel unit.

use crate::mix::Mix;

/// A parallel unit.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Unit {
    /// Its channel.
    pub channel: u32,
    /// Its number on the channel.
    pub pu: u32,
}

/// A page of a node.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell {
    /// The parallel unit: a number in [`Node::units`].
    pub column: u32,
    /// The block, counted from the first one that the run uses on that unit.
    pub block: u32,
    /// The page in the block.
    pub page: u32,
}

impl Cell {
    /// The row, with `pages` pages a block.
    pub fn row(&self, pages: u32) -> u64 {
        u64::from(self.block) * u64::from(pages) + u64::from(self.page)
    }
}

/// A thread that submits one command at a time, and its parallel units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Nodes of the run.
    pub of: u32,
    /// Its parallel units: its columns.
    pub units: Vec<Unit>,
    /// Blocks that it uses of each unit.
    pub blocks: u32,
    /// Pages that it uses of each block.
    pub pages: u32,
    /// Pages of a command.
    pub vector: u32,
    /// Reads and writes.
    pub mix: Mix,
}

impl Node {
    /// Its pages.
    pub fn cells(&self) -> u64 {
        self.units.len() as u64 * u64::from(self.blocks) * u64::from(self.pages)
    }
}

/// The units of each node: channel by channel to one node after the other, as evenly as it goes. In a node, columns are the units
/// of different channels before others of the same.
pub(crate) fn spread(channels: u32, pus: u32, nodes: u32) -> Vec<Vec<Unit>> {
    let units: Vec<Unit> = (0..channels).flat_map(|channel| (0..pus).map(move |pu| Unit { channel, pu })).collect();
    let bound = |node: u32| (node as usize * units.len()) / nodes as usize;
    let of_node = |node: u32| {
        let mut own = units[bound(node)..bound(node + 1)].to_vec();
        own.sort_by_key(|unit| (unit.pu, unit.channel));
        own
    };
    (0..nodes).map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(channels: u32, pus: u32, nodes: u32) -> Vec<Vec<(u32, u32)>> {
        let pairs = |units: Vec<Unit>| units.iter().map(|unit| (unit.channel, unit.pu)).collect();
        spread(channels, pus, nodes).into_iter().map(pairs).collect()
    }

    #[test]
    fn each_unit_has_one_node() {
        assert_eq!(shown(2, 2, 1), [[(0, 0), (1, 0), (0, 1), (1, 1)]]);
        assert_eq!(shown(2, 2, 2), [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]);
        assert_eq!(shown(1, 3, 2), [vec![(0, 0)], vec![(0, 1), (0, 2)]]);
        for (channels, pus, nodes) in [(8, 4, 32), (16, 8, 5), (3, 7, 20), (1, 1, 1)] {
            let mut all = shown(channels, pus, nodes).concat();
            assert!(spread(channels, pus, nodes).iter().all(|units| !units.is_empty()));
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len() as u32, channels * pus);
        }
    }
}
