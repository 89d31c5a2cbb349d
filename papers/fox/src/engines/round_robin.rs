//! Round-robin: one row after the other, over all parallel units of the node; rows of the same page of all blocks before rows of
//! the next page (Picoli 2019, table 4.3, R; table 4.1 nests the loops of blocks and pages the other way).

use super::{Order, along};
use crate::engine::{Command, Engine};
use crate::layout::{Cell, Node};

/// See the file. Reads of a mix stay in as many pages as the node's units have in one block each.
pub(crate) struct RoundRobin;

fn cell(node: &Node, number: u64) -> Cell {
    let (columns, blocks) = (node.units.len() as u64, u64::from(node.blocks));
    Cell {
        column: (number % columns) as u32,
        block: (number / columns % blocks) as u32,
        page: (number / columns / blocks) as u32,
    }
}

fn back_to(node: &Node, written: u64) -> u64 {
    written.saturating_sub(node.units.len() as u64 * u64::from(node.pages))
}

pub(super) static ORDER: Order = Order { cell, back_to };

impl Engine for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn about(&self) -> &'static str {
        "one page of each parallel unit in turn"
    }

    fn commands(&self, node: Node) -> Box<dyn Iterator<Item = Command>> {
        along(node, &ORDER)
    }
}
