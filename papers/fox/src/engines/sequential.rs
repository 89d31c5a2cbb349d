//! Sequential: all pages of a block, all blocks of a parallel unit, then the next unit (Picoli 2019, table 4.3, S).

use super::{Order, along};
use crate::engine::{Command, Engine};
use crate::layout::{Cell, Node};

/// See the file. Reads of a mix stay in the block that is being written.
pub(crate) struct Sequential;

fn cell(node: &Node, number: u64) -> Cell {
    let (pages, blocks) = (u64::from(node.pages), u64::from(node.blocks));
    Cell {
        page: (number % pages) as u32,
        block: (number / pages % blocks) as u32,
        column: (number / pages / blocks) as u32,
    }
}

fn back_to(node: &Node, written: u64) -> u64 {
    let pages = u64::from(node.pages);
    (written - 1) / pages * pages
}

static ORDER: Order = Order { cell, back_to };

impl Engine for Sequential {
    fn name(&self) -> &'static str {
        "sequential"
    }

    fn about(&self) -> &'static str {
        "page after page, block after block, one parallel unit after the other"
    }

    fn commands(&self, node: Node) -> Box<dyn Iterator<Item = Command>> {
        along(node, &ORDER)
    }
}
