//! The engines of FOX, a file each, and their common part: commands along an order of pages.

pub(crate) mod isolation;
pub(crate) mod round_robin;
pub(crate) mod sequential;

use crate::engine::Command;
use crate::layout::{Cell, Node};
use crate::mix::Kind;

/// An order of a node's pages.
struct Order {
    /// The page with a number.
    cell: fn(&Node, u64) -> Cell,
    /// The first page to which reads of a mix return, when so many are written.
    back_to: fn(&Node, u64) -> u64,
}

/// Commands of a mix: each takes the next pages of the order. Reads of a mix take written pages: after the last written
/// page they return. The run ends when all pages are written, or for reads only when all are read.
fn along(node: Node, order: &'static Order) -> Box<dyn Iterator<Item = Command>> {
    let (all, most) = (node.cells(), u64::from(node.vector));
    let has_writes = node.mix.has(Kind::Write);
    let (mut written, mut read) = (if has_writes { 0 } else { all }, 0);
    let pattern = node.mix.kinds().to_vec();
    let mut place = 0;
    let mut next_kind = move |written: u64| {
        loop {
            let kind = pattern[place % pattern.len()];
            place += 1;
            // Nothing can be read before something is written.
            if kind == Kind::Write || written > 0 {
                return kind;
            }
        }
    };
    Box::new(std::iter::from_fn(move || {
        let kind = next_kind(written);
        let from = match kind {
            Kind::Write => written,
            Kind::Read if has_writes => {
                let back = (order.back_to)(&node, written);
                if read >= written || read < back { back } else { read }
            }
            Kind::Read => read,
        };
        let end = (from + most).min(if kind == Kind::Write { all } else { written });
        if from == end {
            return None;
        }
        match kind {
            Kind::Write => written = end,
            Kind::Read => read = end,
        }
        Some(Command { kind, cells: (from..end).map(|number| (order.cell)(&node, number)).collect() })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engines;
    use crate::layout::spread;

    fn node(units: u32, blocks: u32, pages: u32, mix: &str) -> Node {
        let units = spread(1, units, 1).remove(0);
        Node { number: 0, of: 1, units, blocks, pages, vector: 1, mix: mix.parse().unwrap() }
    }

    fn commands(engine: &str, node: Node) -> Vec<Command> {
        Engines::built_in().find(engine).unwrap().commands(node).collect()
    }

    /// Table 4.3: the numbers of each row's pages on four columns.
    const TABLE: [(&str, [[u64; 4]; 6]); 2] = [
        (
            "sequential",
            [[1, 7, 13, 19], [2, 8, 14, 20], [3, 9, 15, 21], [4, 10, 16, 22], [5, 11, 17, 23], [6, 12, 18, 24]],
        ),
        (
            "round-robin",
            [[1, 2, 3, 4], [9, 10, 11, 12], [17, 18, 19, 20], [5, 6, 7, 8], [13, 14, 15, 16], [21, 22, 23, 24]],
        ),
    ];

    #[test]
    fn the_orders_are_those_of_table_4_3() {
        for (engine, table) in TABLE {
            for mix in ["WWWW", "RRRR"] {
                let mut seen = [[0; 4]; 6];
                for (command, number) in commands(engine, node(4, 2, 3, mix)).iter().zip(1..) {
                    let [cell] = command.cells[..] else { panic!("a page a command") };
                    seen[cell.row(3) as usize][cell.column as usize] = number;
                }
                assert_eq!(seen, table, "{engine}, {mix}");
            }
        }
    }

    #[test]
    fn reads_of_a_mix_are_of_written_pages_near_the_last() {
        for engine in ["sequential", "round-robin"] {
            for mix in ["WWWR", "WRWR", "WRRR", "RW"] {
                let (mut written, mut kinds) = (Vec::new(), String::new());
                for command in commands(engine, node(3, 4, 5, mix)) {
                    match command.kind {
                        Kind::Write => written.extend(command.cells),
                        Kind::Read => assert!(written.contains(&command.cells[0]), "{engine}, {mix}"),
                    }
                    kinds.push(if command.kind == Kind::Write { 'W' } else { 'R' });
                }
                assert_eq!(written.len(), 60);
                let expected = if mix == "RW" { "WRWR" } else { mix };
                assert!(kinds.starts_with(expected) && kinds.ends_with(&expected[1..]), "{kinds}");
            }
        }
        let read = |engine, mix| {
            let reads = commands(engine, node(2, 2, 4, mix)).into_iter().filter(|command| command.kind == Kind::Read);
            reads.map(|read| (read.cells[0].column, read.cells[0].block, read.cells[0].page)).collect::<Vec<_>>()
        };
        assert_eq!(
            read("sequential", "WRRR")[..7],
            [(0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 1), (0, 0, 2)]
        );
        assert_eq!(read("sequential", "WRWR")[..5], [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 0)]);
    }

    #[test]
    fn a_command_takes_pages_of_the_order_together() {
        let with_three = Node { vector: 3, ..node(2, 2, 2, "WWWW") };
        let commands = commands("round-robin", with_three);
        assert_eq!(commands.iter().map(|command| command.cells.len()).collect::<Vec<_>>(), [3, 3, 2]);
    }

    #[test]
    fn isolated_nodes_have_one_kind() {
        let isolation = Engines::built_in().find("isolation").unwrap();
        let nodes = |mix: &str, of: u32| -> Vec<Node> {
            (0..of).map(|number| Node { number, of, ..node(1, 1, 2, mix) }).collect()
        };
        for (mix, kinds) in [("WRWR", "WRWRWRWR"), ("WWWR", "WWWRWWWR"), ("WRRR", "WRRRWRRR"), ("RRRR", "RRRRRRRR")] {
            let nodes = nodes(mix, 8);
            isolation.check(&nodes).unwrap();
            let of_node = |node: &Node| {
                let commands: Vec<Command> = isolation.commands(node.clone()).collect();
                assert!(commands.iter().all(|command| command.kind == commands[0].kind));
                assert_eq!(isolation.begins_written(node), commands[0].kind == Kind::Read);
                if commands[0].kind == Kind::Write { 'W' } else { 'R' }
            };
            assert_eq!(nodes.iter().map(of_node).collect::<String>(), kinds);
        }
        let error = isolation.check(&nodes("WWWR", 3)).unwrap_err();
        assert!(error.contains("3 threads cannot; give a multiple of 4"), "{error}");
    }
}
