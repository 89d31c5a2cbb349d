//! The processors that the process may use: their cores, nodes and first-level caches, and the kernel that schedules them.

use std::collections::BTreeSet;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::nodes::{self, Node};

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Processors {
    /// Their numbers, from the least.
    pub(crate) all: Vec<usize>,
    /// Cores, and the most hardware threads of one.
    pub(crate) cores: usize,
    pub(crate) threads: usize,
    /// The NUMA nodes of the processors; none if the kernel has none. And the cores on each.
    pub(crate) nodes: Vec<Node>,
    pub(crate) cores_of_nodes: Vec<usize>,
    /// A processor on another core than the first, of the same node if one exists.
    pub(crate) other: Option<usize>,
    /// Bytes of the first-level data cache of the first, if the system reports it.
    pub(crate) cache_bytes: Option<usize>,
}

impl Processors {
    /// Those of this process.
    pub(crate) fn look() -> io::Result<Processors> {
        let set = sched_getaffinity(None)?;
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
        let core_of = |cpu: &usize| file(*cpu, "topology/thread_siblings_list").unwrap_or_else(|| cpu.to_string());
        let of: Vec<String> = all.iter().map(core_of).collect();
        let (nodes, cache_bytes) = (nodes::look(&all), all.first().and_then(|cpu| first_level(*cpu)));
        Ok(Processors { cache_bytes, ..Processors::of(all, &of, nodes) })
    }

    /// Processors, each with the name of its core.
    fn of(all: Vec<usize>, core_of: &[String], nodes: Vec<Node>) -> Processors {
        let cores_of = |of_node: &dyn Fn(usize) -> bool| -> BTreeSet<&String> {
            all.iter().zip(core_of).filter(|(cpu, _)| of_node(**cpu)).map(|(_, core)| core).collect()
        };
        let (cores, first) = (cores_of(&|_| true), all.first().copied());
        let cores_of_nodes = nodes.iter().map(|node| cores_of(&|cpu| node.has(cpu)).len()).collect();
        let threads = cores.iter().map(|core| core_of.iter().filter(|of| of == core).count()).max();
        let is_far =
            |cpu: &usize| nodes.iter().any(|node| node.has(*cpu) != first.is_some_and(|first| node.has(first)));
        let others = all.iter().zip(core_of).filter(|(_, core)| **core != core_of[0]).map(|(cpu, _)| *cpu);
        let other = others.min_by_key(is_far);
        // A model has one or two threads a core.
        let (cores, threads) = (cores.len(), threads.unwrap_or(1).clamp(1, 2));
        Processors { cores, threads, cores_of_nodes, other, all, nodes, cache_bytes: None }
    }

    /// The first.
    pub(crate) fn first(&self) -> usize {
        self.all[0]
    }
}

/// A line of what the system reports of a processor.
fn file(cpu: usize, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/{name}")).ok()?;
    Some(text.trim().to_owned())
}

/// The caches that are looked at.
const CACHES: usize = 8;

fn first_level(cpu: usize) -> Option<usize> {
    let of = |index: usize, name: &str| file(cpu, &format!("cache/index{index}/{name}"));
    let is_it =
        |index: &usize| of(*index, "level").as_deref() == Some("1") && of(*index, "type").as_deref() == Some("Data");
    let size = of((0..CACHES).find(is_it)?, "size")?;
    size.strip_suffix('K')?.parse::<usize>().ok().map(|kib| kib << 10)
}

/// The release of the kernel, such as `6.12.1`.
pub(crate) fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
}

/// Whether a kernel of this release schedules by EEVDF: Linux since 6.6.
pub(crate) fn is_eevdf(release: &str) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (6, 6)
}

/// The model of the processors.
pub(crate) fn model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    line.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_core_are_told_by_its_name() {
        let of = |all: &[usize], cores: &[&str]| {
            Processors::of(all.to_vec(), &cores.iter().map(|core| (*core).to_owned()).collect::<Vec<_>>(), Vec::new())
        };
        let two = of(&[0, 1, 2, 3], &["0,2", "1,3", "0,2", "1,3"]);
        assert_eq!((two.cores, two.threads, two.other), (2, 2, Some(1)));
        let one = of(&[4, 5], &["4-5", "4-5"]);
        assert_eq!((one.cores, one.threads, one.other, one.first()), (1, 2, None, 4));
        let eight = of(&[0], &["0"]);
        assert_eq!((eight.cores, eight.threads, eight.other), (1, 1, None));
        assert!(eight.cores_of_nodes.is_empty());
    }

    /// Processors of two nodes in turn, two of each core: the other core is one of the same node.
    #[test]
    fn the_cores_of_nodes_are_counted_and_the_other_core_is_near() {
        let node = |cpus: &[usize]| Node::of_processors(cpus);
        let cores: Vec<String> = ["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"].map(str::to_owned).into();
        let processors = Processors::of((0..8).collect(), &cores, vec![node(&[0, 2, 4, 6]), node(&[1, 3, 5, 7])]);
        assert_eq!((processors.cores_of_nodes, processors.other), (vec![2, 2], Some(2)));
        let apart = Processors::of(vec![0, 1], &cores[..2], vec![node(&[0]), node(&[1])]);
        assert_eq!((apart.cores_of_nodes, apart.other), (vec![1, 1], Some(1)), "no core is near");
    }

    #[test]
    fn this_machine_has_processors() {
        let here = Processors::look().unwrap();
        assert!(!here.all.is_empty() && here.cores * here.threads >= here.all.len().min(2) / 2, "{here:?}");
        assert!(here.other.is_none_or(|other| here.all.contains(&other) && other != here.first()), "{here:?}");
        assert!(!model().is_empty());
    }

    #[test]
    fn the_release_names_the_scheduler() {
        for (release, is) in
            [("6.6.0", true), ("6.18.44-fc", true), ("7.0", true), ("6.5.13", false), ("5.15", false), ("?", false)]
        {
            assert_eq!(is_eevdf(release), is, "{release}");
        }
    }
}
