//! The state of a drive at the start, in words, and whether the workload keeps it.

use nandscape_drive::Precondition;
use nandscape_lab_workload::{Action, Distribution, JobSpec, Share, Tally, Workload};
use nandscape_sim::units::Bytes;

/// The state, and how it came about.
pub(crate) fn in_words(precondition: Precondition, unit_bytes: u64) -> String {
    match precondition {
        Precondition::None => "new, nothing written".to_owned(),
        Precondition::Full => "every logical block written once".to_owned(),
        Precondition::Steady => {
            format!("steady state of uniform random {} overwrites of the whole drive", Bytes(unit_bytes))
        }
        Precondition::Load => "write amplification stands still under a load".to_owned(),
    }
}

/// The warning where the steady state at the start is not that of the workload.
pub(crate) fn note(precondition: Precondition, unit_bytes: u64, workload: &Workload) -> Option<String> {
    if precondition != Precondition::Steady {
        return None;
    }
    let job = workload.jobs.iter().filter_map(|job| Some((&job.name, differs(job, unit_bytes)?)));
    let load = workload.loads.iter().map(|load| (&load.name, "it writes files or records".to_owned()));
    let (name, why) = job.chain(load).next()?;
    Some(format!(
        "the drive starts in the {}; the steady state of {name} may differ ({why}), so that write amplification drifts \
         towards it during the run",
        in_words(precondition, unit_bytes)
    ))
}

/// The share of read data from which reads of unwritten units cause a note.
const NOTICED: f64 = 0.1;

/// The note where reads met much that was never written: such reads take no flash, and their latency is not that of the drive.
pub(crate) fn unwritten_note(is_new: bool, unit_bytes: u64, units: u64, reads: &Tally) -> Option<String> {
    // A read of a part of a unit counts a unit, too.
    let all = reads.bytes.div_ceil(unit_bytes).max(reads.latency.count());
    let share = units as f64 / all.max(1) as f64;
    if share < NOTICED {
        return None;
    }
    let percent = (share * 100.0).min(100.0);
    let cure = match is_new {
        true => "; --precondition full writes all of the drive before the run",
        false => "",
    };
    Some(format!(
        "{percent:.0}% of what was read was never written, or was deallocated: such reads take no flash, and their latency is that of \
         firmware and link{cure}"
    ))
}

/// The difference of a job from uniform random overwrites of single mapping units; `None` if it has none or only reads.
fn differs(job: &JobSpec, unit_bytes: u64) -> Option<String> {
    let JobSpec { rw, bs, size, distribution, source, .. } = job;
    if let Some(source) = source {
        return Some(source.0.describe());
    }
    // Of a mix, writes decide.
    let (bs, distribution) = (bs.of(Action::Write), distribution.of(Action::Write));
    match rw.action {
        Action::Read => None,
        Action::Trim => Some(format!("rw={rw}")),
        Action::Write | Action::Mixed if !rw.random => Some(format!("rw={rw}")),
        _ if bs.sizes().iter().any(|(bytes, _)| *bytes != unit_bytes) => Some(format!("bs={bs}")),
        _ if *distribution != Distribution::Uniform => Some(format!("random_distribution={distribution}")),
        _ if *size != Share::Of(1.0) => Some(format!("size={size}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rw: &str, bs: &str, size: &str, distribution: &str) -> Option<String> {
        let (rw, bs, size) = (rw.parse().unwrap(), bs.parse().unwrap(), size.parse().unwrap());
        let job = JobSpec { rw, bs, size, distribution: distribution.parse().unwrap(), ..JobSpec::default() };
        note(Precondition::Steady, 4_096, &Workload::of(job))
    }

    #[test]
    fn only_uniform_unit_sized_overwrites_are_at_home_in_the_steady_state() {
        for rw in ["randwrite", "randrw"] {
            assert_eq!(told(rw, "4k", "100%", "uniform"), None);
        }
        for rw in ["read", "randread"] {
            assert_eq!(told(rw, "64k", "10%", "uniform"), None, "reads change nothing");
        }
        let of = |rw: &str, bs: &str, size: &str, distribution: &str, why: &str| {
            let note = told(rw, bs, size, distribution).unwrap();
            assert!(note.contains("uniform random 4KiB overwrites") && note.contains(&format!("({why})")), "{note}");
        };
        of("randwrite", "4k", "100%", "zipf:0.9", "random_distribution=zipf:0.9");
        of("randrw", "8k", "100%", "uniform", "bs=8KiB");
        of("randrw", "4k", "50%", "uniform", "size=50%");
        of("write", "4k", "100%", "uniform", "rw=write");
        let job = Workload::of(JobSpec { rw: "write".parse().unwrap(), ..JobSpec::default() });
        assert_eq!(note(Precondition::Full, 4_096, &job), None);
    }
}
