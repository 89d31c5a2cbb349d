//! Isolation: each node only reads or only writes, round-robin on its own parallel units, so that reads never wait for writes
//! (Picoli 2019, 4.3.1). As many nodes read as the mix has reads.

use super::{along, round_robin};
use crate::engine::{Command, Engine};
use crate::layout::Node;
use crate::mix::{Kind, Mix};

/// See the file.
pub(crate) struct Isolation;

/// The role of a node: the writers are spread evenly, the first node is one of them.
fn kind(node: &Node) -> Kind {
    let (writes, all) = (node.mix.count(Kind::Write), node.mix.kinds().len());
    let writers = |nodes: u32| (nodes as usize * writes).div_ceil(all);
    if writers(node.number + 1) > writers(node.number) { Kind::Write } else { Kind::Read }
}

impl Engine for Isolation {
    fn name(&self) -> &'static str {
        "isolation"
    }

    fn about(&self) -> &'static str {
        "threads that only read and threads that only write, on different parallel units"
    }

    fn commands(&self, node: Node) -> Box<dyn Iterator<Item = Command>> {
        let mix = Mix::only(kind(&node));
        along(Node { mix, ..node }, &round_robin::ORDER)
    }

    fn begins_written(&self, node: &Node) -> bool {
        kind(node) == Kind::Read
    }

    fn check(&self, nodes: &[Node]) -> Result<(), String> {
        let Some(first) = nodes.first() else { return Ok(()) };
        let (mix, threads) = (&first.mix, nodes.len());
        let step = mix.fewest_that_share();
        match threads.is_multiple_of(step) {
            true => Ok(()),
            false => Err(format!(
                "isolation with mix {mix}: as many threads read as the mix has reads, which {threads} threads cannot; give a multiple of {step}"
            )),
        }
    }
}
