//! NUMA nodes of the processors that the process may use, and how much farther another node is, as the kernel reports both.

use std::ops::RangeInclusive;

/// Where the kernel reports them.
pub(crate) const FOLDER: &str = "/sys/devices/system/node";

/// A node with a processor of the process.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    /// Its processors.
    cpus: Vec<usize>,
    /// Its distances to these nodes, in their order; `None` if the kernel reports none.
    distances: Option<Vec<f64>>,
}

impl Node {
    /// One with these processors, for tests.
    #[cfg(test)]
    pub(crate) fn of_processors(cpus: &[usize]) -> Node {
        Node { cpus: cpus.to_vec(), distances: None }
    }

    /// One with these distances, for tests.
    #[cfg(test)]
    pub(crate) fn with_distances(distances: &[f64]) -> Node {
        Node { cpus: Vec::new(), distances: Some(distances.to_vec()) }
    }

    /// Whether a processor is on it.
    pub(crate) fn has(&self, cpu: usize) -> bool {
        self.cpus.contains(&cpu)
    }
}

/// The nodes of these processors, from the least number; none if the kernel has no nodes.
pub(crate) fn look(cpus: &[usize]) -> Vec<Node> {
    of(cpus, &|name| std::fs::read_to_string(format!("{FOLDER}/{name}")).ok())
}

/// The same, given the files of the folder.
fn of(cpus: &[usize], read: &dyn Fn(&str) -> Option<String>) -> Vec<Node> {
    let online: Vec<usize> = read("online").map_or_else(Vec::new, |text| list(&text));
    let all = online.iter().map(|number| (*number, read(&format!("node{number}/cpulist")).map(|text| list(&text))));
    let own = |listed: Option<Vec<usize>>| -> Vec<usize> {
        listed.unwrap_or_default().into_iter().filter(|cpu| cpus.contains(cpu)).collect()
    };
    // A table of distances has a column for each node, also for those that are left out here.
    let used: Vec<(usize, usize, Vec<usize>)> =
        all.enumerate().map(|(column, (number, listed))| (column, number, own(listed))).collect();
    let used: Vec<_> = used.into_iter().filter(|(_, _, cpus)| !cpus.is_empty()).collect();
    let distances = |number: usize| -> Option<Vec<f64>> {
        let text = read(&format!("node{number}/distance"))?;
        let row: Vec<f64> = text.split_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
        used.iter().map(|(column, ..)| row.get(*column).copied()).collect()
    };
    used.iter().map(|(_, number, cpus)| Node { cpus: cpus.clone(), distances: distances(*number) }).collect()
}

/// What another node is away, by what the own one is: the mean over all pairs of nodes, to a hundredth.
pub(crate) fn distance(nodes: &[Node]) -> Option<f64> {
    let mut factors = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let row = node.distances.as_ref()?;
        let own = row.get(at).copied().filter(|own| *own > 0.0)?;
        factors.extend(row.iter().enumerate().filter(|(to, _)| *to != at).map(|(_, other)| other / own));
    }
    let mean = factors.iter().sum::<f64>() / factors.len() as f64;
    mean.is_finite().then(|| (mean * 100.0).round() / 100.0)
}

/// A list of the kernel, such as `0-3,8`.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| -> Option<RangeInclusive<usize>> {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse().ok()?..=to.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(files: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| files.iter().find(|(of, _)| *of == name).map(|(_, text)| format!("{text}\n"))
    }

    /// Two sockets, and a node of memory between them in the table.
    const TWO: [(&str, &str); 7] = [
        ("online", "0-2"),
        ("node0/cpulist", "0-3,8"),
        ("node1/cpulist", ""),
        ("node2/cpulist", "4-7"),
        ("node0/distance", "10 17 21"),
        ("node1/distance", "17 10 28"),
        ("node2/distance", "21 28 10"),
    ];

    #[test]
    fn nodes_are_those_of_the_processors_with_their_columns() {
        let nodes = of(&[0, 1, 4, 8], &read(&TWO));
        let cpus: Vec<&[usize]> = nodes.iter().map(|node| &node.cpus[..]).collect();
        assert_eq!((cpus, distance(&nodes)), (vec![&[0, 1, 8][..], &[4]], Some(2.1)));
        assert!(nodes[0].has(8) && !nodes[0].has(4) && !nodes[1].has(5));
        let one = of(&[5, 6], &read(&TWO));
        assert_eq!((one.len(), distance(&one)), (1, None), "a distance is one between two nodes");
    }

    #[test]
    fn what_the_kernel_does_not_report_is_left_open() {
        assert_eq!(of(&[0], &read(&[])), []);
        assert_eq!(list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!((list(""), list("x-3"), list("3-1")), (vec![], vec![], vec![]));
        for table in ["", "10", "10 x", "0 0"] {
            let files = [
                ("online", "0-1"),
                ("node0/cpulist", "0"),
                ("node1/cpulist", "1"),
                ("node0/distance", table),
                ("node1/distance", "21 10"),
            ];
            let nodes = of(&[0, 1], &read(&files));
            assert_eq!((nodes.len(), distance(&nodes)), (2, None), "{table:?}");
        }
    }

    /// Nodes that are not equally far: the mean.
    #[test]
    fn the_distance_is_the_mean_over_pairs() {
        let three = [[10.0, 16.0, 32.0], [16.0, 10.0, 32.0], [32.0, 32.0, 10.0]].map(|row| Node::with_distances(&row));
        assert_eq!(distance(&three), Some(2.67));
    }
}
