//! CPU time of a process, its group and its descendants, from `/proc`.
//!
//! Left out: descendants whose parents have ended and that left the group; systems without `/proc`, where the time is zero.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::unistd::Pid;

/// A tick of `/proc`: USER_HZ is 100 on every Linux that cargo runs on.
const TICK: Duration = Duration::from_millis(10);

/// What one process has used.
struct Usage {
    parent: i32,
    group: i32,
    /// Ticks of the process and of its ended children.
    ticks: u64,
}

/// The CPU time used by the processes of a group and by all their descendants.
pub(super) fn cpu_time(group: Pid) -> Duration {
    let processes = processes();
    let ticks: u64 =
        processes.iter().filter(|(pid, _)| belongs(&processes, **pid, group)).map(|(_, it)| it.ticks).sum();
    TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
}

fn processes() -> BTreeMap<i32, Usage> {
    let Ok(folders) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = folders.filter_map(|folder| folder.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| Some((pid, usage(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect()
}

/// A process belongs to the group if it is a member, or if an ancestor is.
fn belongs(processes: &BTreeMap<i32, Usage>, pid: i32, group: Pid) -> bool {
    let mut next = Some(pid);
    // Processes end while the table is read, so the chain can be broken, but no chain is longer than the table.
    for _ in 0..=processes.len() {
        match next.and_then(|pid| processes.get(&pid)) {
            Some(usage) if usage.group == group.as_raw() => return true,
            Some(usage) => next = Some(usage.parent),
            None => return false,
        }
    }
    false
}

/// Reads a line of `/proc/PID/stat` (proc_pid_stat(5)). The name, in parentheses, may contain anything.
fn usage(stat: &str) -> Option<Usage> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Counted from the state, field 3 of the manual page: utime, stime, cutime and cstime are fields 14 to 17.
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    Some(Usage { parent: fields.get(1)?.parse().ok()?, group: fields.get(2)?.parse().ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_includes_that_of_its_ended_children() {
        let stat = "7 (a) b) S 3 5 5 0 -1 4194560 100 0 0 0 10 20 300 4000 20 0 1 0 55 1 1\n";
        let usage = usage(stat).unwrap();
        assert_eq!((usage.parent, usage.group, usage.ticks), (3, 5, 4_330));
    }

    #[test]
    fn descendants_belong_to_the_group_of_an_ancestor() {
        let of = |parent, group| Usage { parent, group, ticks: 1 };
        let processes =
            BTreeMap::from([(1, of(0, 1)), (5, of(1, 5)), (6, of(5, 6)), (7, of(6, 6)), (8, of(9, 9)), (9, of(8, 9))]);
        let members: Vec<i32> =
            processes.keys().copied().filter(|pid| belongs(&processes, *pid, Pid::from_raw(5))).collect();
        assert_eq!(members, [5, 6, 7], "8 and 9 name each other as parents");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_time() {
        let begun = cpu_time(nix::unistd::getpgrp());
        let used = (0..).map(|_| cpu_time(nix::unistd::getpgrp())).find(|now| *now > begun);
        assert!(used.is_some());
    }
}
