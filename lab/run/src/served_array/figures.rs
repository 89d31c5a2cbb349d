//! What every served array reports alike, whether it keeps records or is a layer of a [chain](crate::LiveSpec): its members' figures,
//! their events in words, the faults of its drives, and whether it is lost.

use nandscape_lab_workload::Direction;
use nandscape_layers_array::{Array, News, ScrubReport};
use nandscape_transport_reactor::FaultCount;

use crate::tap::Tail;

/// Percentiles of the reads of a drive, by the name of the counter; 1 is the longest.
const TAIL: [(&str, f64); 4] = [
    ("array_member_read_p50_us", 0.5),
    ("array_member_read_p99_us", 0.99),
    ("array_member_read_p99_9_us", 0.999),
    ("array_member_read_max_us", 1.0),
];

/// What an array has counted of a drive, by the names of metrics.
pub(crate) fn of_drive(array: &Array, number: usize) -> Vec<(&'static str, f64)> {
    let mut counters = vec![("array_spare", f64::from(u8::from(array.spares().contains(&number))))];
    if let Some(member) = array.member_of(number).map(|member| array.stats().members[member]) {
        counters.extend([
            ("array_member_reads_total", member.reads as f64),
            ("array_member_writes_total", member.writes as f64),
            ("array_member_busy_reads_total", member.busy as f64),
            ("array_member_errors_total", member.errors as f64),
        ]);
    }
    counters
}

/// The latencies of an array's reads of a drive, by the names of metrics.
pub(crate) fn of_reads(tail: &Tail) -> Vec<(&'static str, f64)> {
    tail.with(Direction::Read, |reads| match reads.count() {
        0 => Vec::new(),
        _ => TAIL.map(|(name, quantile)| (name, reads.quantile(quantile).as_us())).to_vec(),
    })
}

/// Fault rules of a drive, with its name.
pub(crate) fn named(name: &str, faults: Vec<FaultCount>) -> impl Iterator<Item = FaultCount> {
    faults.into_iter().map(move |count| FaultCount { rule: format!("{name}={}", count.rule), ..count })
}

/// Why an array takes no writes, if it takes none.
pub(crate) fn lost(array: &Array) -> Option<String> {
    array.is_lost().then(|| format!("more members have failed than {} tolerates", array.shape()))
}

/// Calls `line` with a line of text for each event of the members from now on. The drives have these names.
pub(crate) fn on_event(array: &Array, names: Vec<String>, line: impl Fn(&str) + 'static) {
    let shape = array.shape();
    array.listen(move |news| {
        let of = |drive: usize| names.get(drive).map_or("?", String::as_str);
        line(&match news {
            News::Failed { member, drive } => {
                format!("member {member}, {}, has failed: the array continues without it", of(drive))
            }
            News::Lost => {
                format!("more members have failed than {shape} tolerates: reads of what they held and all writes fail")
            }
            News::Rebuilding { member, drive } => format!("member {member} is being rebuilt on {}", of(drive)),
            News::Rebuilt { member, drive } => format!("member {member} is rebuilt on {}", of(drive)),
            News::Scrubbed(ScrubReport { stripes, mismatches, unreadable, skipped }) => format!(
                "a scrub has ended: {stripes} stripes, {mismatches} of them with parity or copies that differed, {unreadable} that could \
                 not be read as a whole; {skipped} were left out, as a member was missing"
            ),
        });
    });
}
