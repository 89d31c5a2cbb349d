//! The processors that the process may use: their cores, their first-level caches, and the kernel that schedules them.

use std::collections::BTreeSet;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity};

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Processors {
    /// Their numbers, from the least.
    pub(crate) all: Vec<usize>,
    /// Cores, and the most hardware threads of one.
    pub(crate) cores: usize,
    pub(crate) threads: usize,
    /// A processor on another core than the first.
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
        Ok(Processors { cache_bytes: all.first().and_then(|cpu| first_level(*cpu)), ..Processors::of(all, &of) })
    }

    /// Processors, each with the name of its core.
    fn of(all: Vec<usize>, core_of: &[String]) -> Processors {
        let cores: BTreeSet<&String> = core_of.iter().collect();
        let threads = cores.iter().map(|core| core_of.iter().filter(|of| of == core).count()).max();
        let other = all.iter().zip(core_of).find(|(_, core)| **core != core_of[0]).map(|(cpu, _)| *cpu);
        // A model has one or two threads a core.
        Processors { cores: cores.len(), threads: threads.unwrap_or(1).clamp(1, 2), other, all, cache_bytes: None }
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
            Processors::of(all.to_vec(), &cores.iter().map(|core| (*core).to_owned()).collect::<Vec<_>>())
        };
        let two = of(&[0, 1, 2, 3], &["0,2", "1,3", "0,2", "1,3"]);
        assert_eq!((two.cores, two.threads, two.other), (2, 2, Some(1)));
        let one = of(&[4, 5], &["4-5", "4-5"]);
        assert_eq!((one.cores, one.threads, one.other, one.first()), (1, 2, None, 4));
        let eight = of(&[0], &["0"]);
        assert_eq!((eight.cores, eight.threads, eight.other), (1, 1, None));
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
