//! What was measured, key by key, and what a program without privileges cannot measure.

use std::io;

use nandscape_sim::Span;

use crate::processors::{self, Processors};
use crate::samples::Samples;
use crate::{calls, interrupts, memory, nodes, threads};

/// A key of a host, and what this machine has to say on it.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The key without `host.`.
    pub key: &'static str,
    /// The value, or why there is none.
    pub found: Result<Measured, String>,
}

/// A value of this machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// As a host's setting is given: `1200ns`.
    pub value: String,
    /// Samples and their spread; empty for what is not a time.
    pub spread: String,
    /// The method.
    pub how: String,
}

/// What is measured, one after the other, as progress names it.
pub const MEASUREMENTS: [&str; 10] = [
    "processors",
    "system call",
    "lock",
    "switch, wake-up",
    "slice",
    "timer",
    "cold cache",
    "cache line",
    "interrupt",
    "idle processor",
];

/// Costs that a program without privileges does not see, and why.
const HIDDEN: [(&str, &str); 12] = [
    ("share", "it depends on what the two threads of a core compute"),
    ("tick", "slices are measured as they end"),
    ("cold_core", "how much data of an I/O another core has depends on code of the kernel"),
    ("interrupt", "no device interrupts on demand of a program"),
    ("softirq", "a program does not see it apart from its interrupt"),
    ("submit", "code of the kernel's block layer, which a program does not see apart"),
    ("midlayer", "code of the kernel's SCSI layers, which a program does not see apart"),
    ("driver", "code of a driver, which a program does not see apart"),
    ("handler", "code of a driver, which a program does not see apart"),
    ("complete", "code of the kernel's block layer, which a program does not see apart"),
    ("poll", "it is a cache line that a device has written"),
    ("ring_entry", "the kernel's part is not seen apart from the system call"),
];

/// Why a key that needs two cores has no value.
const ONE_CORE: &str = "this process may use one core only";

/// Measures this machine, with `rounds` samples a figure or fewer. `progress` is told of each of [`MEASUREMENTS`] when it begins.
///
/// # Errors
/// Why the system refuses what a measurement needs.
pub fn measure(rounds: usize, progress: &dyn Fn(&str, usize)) -> io::Result<Vec<Finding>> {
    let begin = |index: usize| progress(MEASUREMENTS[index], index);
    begin(0);
    let here = Processors::look()?;
    let cpu = here.first();
    let mut findings = of_processors(&here);
    findings.extend(of_nodes(&here));
    begin(1);
    let how = "a read() of one byte of /dev/zero";
    findings.push(cost("syscall", &calls::system_call(cpu, rounds)?, how));
    begin(2);
    findings.push(cost("lock", &calls::lock(cpu, rounds)?, "an atomic exchange and a store, in its own cache"));
    begin(3);
    findings.extend(of_switches(cpu, rounds)?);
    begin(4);
    findings.push(of_slices(cpu, rounds)?);
    begin(5);
    let how = "the time that a thread loses to the end of a timer for which no thread waits";
    findings.push(cost("timer", &interrupts::timer(cpu, rounds)?, how));
    begin(6);
    findings.push(match here.cache_bytes {
        None => hidden("cold_cache", "the system does not report the first-level cache"),
        Some(bytes) => {
            let how = format!(
                "twice a walk in random order through {} KiB, half of the first-level cache, after one through {} KiB, less one that \
                 finds its data there",
                bytes >> 11,
                (memory::OTHERS * bytes) >> 10
            );
            cost("cold_cache", &memory::cold_cache(cpu, bytes, rounds)?, &how)
        }
    });
    let other = here.other.map(|other| (cpu, other));
    begin(7);
    findings.push(match other {
        None => hidden("lock_transfer", ONE_CORE),
        Some(cpus) => {
            let how = "half a round trip of a cache line that two cores write in turn";
            cost("lock_transfer", &memory::line_transfer(cpus, rounds)?, how)
        }
    });
    begin(8);
    findings.push(of_interrupts(other, rounds)?);
    begin(9);
    findings.push(of_idle(other, rounds)?);
    findings.extend(HIDDEN.map(|(key, why)| hidden(key, why)));
    Ok(without_short_slice(findings))
}

fn hidden(key: &'static str, why: &str) -> Finding {
    Finding { key, found: Err(why.to_owned()) }
}

fn known(key: &'static str, value: impl ToString, how: &str) -> Finding {
    Finding { key, found: Ok(Measured { value: value.to_string(), spread: String::new(), how: how.to_owned() }) }
}

/// Costs above this are other work: no switch, interrupt or system call takes that long.
const MOST_NS: f64 = 100_000.0;
/// The same for leaving a power state. The deepest ones take almost a millisecond.
const MOST_IDLE_NS: f64 = 1_000_000.0;
/// The same for a turn of a thread. The longest slices are those of a tick of 100 Hz, several of them.
const MOST_TURN_NS: f64 = 100_000_000.0;

/// Why a value has no meaning.
fn other_work(key: &'static str, samples: &Samples, how: &str) -> Finding {
    let median = Span::from_ns(samples.median() as u64);
    Finding {
        key,
        found: Err(format!("the median is {median}, which is the time of other work on this machine ({how})")),
    }
}

/// A cost, unless its samples are within the noise of what was subtracted.
fn cost(key: &'static str, samples: &Samples, how: &str) -> Finding {
    let median = samples.median();
    if median > MOST_NS {
        return other_work(key, samples, how);
    }
    if median < 0.5 {
        let why =
            format!("the measured difference is {median:.1} ns, less than other work on this machine adds ({how})");
        return Finding { key, found: Err(why) };
    }
    span(key, samples, how)
}

fn span(key: &'static str, samples: &Samples, how: &str) -> Finding {
    let ns = |share: f64| Span::from_ns(samples.at(share).max(0.0).round() as u64);
    let spread =
        format!("median of {} samples, 10th and 90th percentiles {} and {}", samples.count(), ns(0.1), ns(0.9));
    Finding { key, found: Ok(Measured { value: ns(0.5).to_string(), spread, how: how.to_owned() }) }
}

fn of_processors(here: &Processors) -> Vec<Finding> {
    let kernel = processors::kernel();
    let sched = if processors::is_eevdf(&kernel) { "eevdf" } else { "cfs" };
    let how = "the processors that this process may use, by the topology that the kernel reports";
    vec![
        known("cores", here.cores, how),
        known("threads", here.threads, how),
        known("speed", 1, "the costs were measured on these cores"),
        known("sched", sched, &format!("the kernel's release, {kernel}; EEVDF since 6.6")),
    ]
}

/// The nodes of a model have equal parts of the cores.
fn of_nodes(here: &Processors) -> [Finding; 2] {
    let by = format!("by {}", nodes::FOLDER);
    let one = |why: &str| [known("nodes", 1, why), hidden("distance", &format!("{why}, so no node is farther"))];
    match &here.cores_of_nodes[..] {
        [] => one(&format!("the kernel reports no NUMA node in {}", nodes::FOLDER)),
        [_] => one(&format!("the processors that this process may use are on one NUMA node, {by}")),
        [first, others @ ..] if others.iter().all(|cores| cores == first) => {
            let how = format!("the NUMA nodes of the processors that this process may use, {by}");
            let distance = match nodes::distance(&here.nodes) {
                None => hidden("distance", &format!("{} has no table of distances", nodes::FOLDER)),
                Some(mean) => known("distance", mean, "the kernel's table of distances: another node by the own one"),
            };
            [known("nodes", here.cores_of_nodes.len(), &how), distance]
        }
        uneven => {
            let cores: Vec<String> = uneven.iter().map(usize::to_string).collect();
            one(&format!(
                "the NUMA nodes have {} of the cores that this process may use, {by}; a simulated host divides them evenly and has one node here",
                cores.join(", ")
            ))
        }
    }
}

fn of_switches(cpu: usize, rounds: usize) -> io::Result<[Finding; 2]> {
    let alone = threads::give_way_alone(cpu, rounds)?.median();
    let Some(switch) = threads::switch(cpu, rounds, alone)? else {
        let why = "a thread that gives way to another keeps its processor";
        return Ok([hidden("switch", why), hidden("wake", "the time of a switch, which is part of it, is not known")]);
    };
    let how = "two threads of a processor that give way to each other (sched_yield), less giving way, a switch that the system counts";
    let found = cost("switch", &switch, how);
    let pair = calls::write_and_read(cpu, rounds)?;
    let Some(wake) = threads::wake(cpu, rounds, pair.median() + switch.median())? else {
        return Ok([found, hidden("wake", "other threads ran on the processor all the time")]);
    };
    let how =
        "round trips between two threads of a processor over pipes, less writes, reads and switches, by the wake-ups";
    Ok([found, cost("wake", &wake, how)])
}

/// Turns that are waited for at most: each takes milliseconds.
const TURNS: usize = 50;

fn of_slices(cpu: usize, rounds: usize) -> io::Result<Finding> {
    let is_eevdf = processors::is_eevdf(&processors::kernel());
    let key = if is_eevdf { "slice" } else { "latency" };
    Ok(match threads::turn(cpu, rounds.min(TURNS))? {
        None => hidden(key, "no other thread took the processor within a second"),
        Some(turns) if turns.median() > MOST_TURN_NS => other_work(key, &turns, "a turn of a thread"),
        Some(turns) if is_eevdf => {
            span(key, &turns, "how long a thread runs until another that never sleeps takes its processor")
        }
        Some(turns) => {
            let how = "twice the time that a thread runs until another that never sleeps takes its processor";
            span(key, &turns.adjusted(2.0, 0.0), how)
        }
    })
}

fn of_interrupts(other: Option<(usize, usize)>, rounds: usize) -> io::Result<Finding> {
    let Some(cpus) = other else { return Ok(hidden("ipi", ONE_CORE)) };
    Ok(match interrupts::from_other(cpus, rounds)? {
        None => hidden("ipi", "the kernel does not offer membarrier()"),
        Some(samples) => cost("ipi", &samples, "the time that a thread loses to a membarrier() of another core"),
    })
}

fn of_idle(other: Option<(usize, usize)>, rounds: usize) -> io::Result<Finding> {
    let Some(cpus) = other else { return Ok(hidden("idle_exit", ONE_CORE)) };
    let awake = threads::across(cpus, rounds, false)?;
    let idle = threads::across(cpus, rounds, true)?;
    let how = format!(
        "from the write of another core until the woken thread runs on an idle one, {}, less the same on one that is awake, {}",
        Span::from_ns(idle.median() as u64),
        Span::from_ns(awake.median() as u64)
    );
    let samples = idle.adjusted(1.0, awake.median());
    Ok(if samples.median() > MOST_IDLE_NS {
        other_work("idle_exit", &samples, &how)
    } else {
        span("idle_exit", &samples, &how)
    })
}

/// Drops a slice that ends before a thread has begun its work: other work has cut the turns short.
fn without_short_slice(mut findings: Vec<Finding>) -> Vec<Finding> {
    let of = |key: &str| -> Span {
        let found = findings.iter().find(|finding| finding.key == key).and_then(|finding| finding.found.as_ref().ok());
        found.and_then(|measured| measured.value.parse().ok()).unwrap_or(Span::ZERO)
    };
    let costs = of("switch") + of("idle_exit") + of("cold_cache");
    let (slice, least) = (of("slice"), costs * 2);
    if let Some(finding) = findings.iter_mut().find(|finding| finding.key == "slice" && finding.found.is_ok())
        && slice <= least
    {
        finding.found = Err(format!(
            "a turn of {slice} is hardly longer than a switch with cold caches: other work has cut it short"
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_with_equal_parts_of_the_cores_are_those_of_the_profile() {
        let here = Processors::look().unwrap();
        let of = |cores: &[usize], nodes: Vec<nodes::Node>| {
            let [nodes, distance] = of_nodes(&Processors { cores_of_nodes: cores.to_vec(), nodes, ..here.clone() });
            (nodes.found.unwrap(), distance.found)
        };
        for (cores, part) in
            [(&[][..], "no NUMA node"), (&[2], "on one NUMA node"), (&[3, 1], "have 3, 1 of the cores")]
        {
            let (nodes, distance) = of(cores, Vec::new());
            assert!(nodes.value == "1" && nodes.how.contains(part), "{nodes:?}");
            assert!(distance.unwrap_err().contains(part));
        }
        let node = |distances: [f64; 2]| nodes::Node::with_distances(&distances);
        let (nodes, distance) = of(&[4, 4], vec![node([10.0, 21.0]), node([21.0, 10.0])]);
        assert_eq!((nodes.value, distance.unwrap().value), ("2".to_owned(), "2.1".to_owned()));
        let (nodes, distance) = of(&[4, 4], Vec::new());
        assert!(nodes.value == "2" && distance.unwrap_err().contains("no table of distances"));
    }

    #[test]
    fn what_other_work_has_measured_is_no_value() {
        let of = |ns: f64| cost("switch", &Samples::new(vec![ns]), "a method").found;
        assert_eq!(of(1_200.0).unwrap().value, "1200ns");
        assert!(of(-3.0).unwrap_err().contains("the measured difference is -3.0 ns"));
        assert!(of(3e6).unwrap_err().contains("the median is 3ms, which is the time of other work"));
        let slice = |ns: u64| {
            let known = |key, ns| Finding { key, found: cost("lock", &Samples::new(vec![ns]), "").found };
            let turn = span("slice", &Samples::new(vec![ns as f64]), "a method");
            let findings = without_short_slice(vec![known("switch", 90_000.0), turn, known("idle_exit", 60_000.0)]);
            findings.into_iter().find(|finding| finding.key == "slice").unwrap().found
        };
        assert_eq!(slice(3_000_000).unwrap().value, "3ms");
        assert!(slice(300_000).unwrap_err().contains("other work has cut it short"));
    }
}
