//! The contribution of an array to the tail of its drives: busy sub-I/Os of stripe reads, the commands of a write, failed members
//! and their rebuilds.

use serde_json::Value;

use super::cite::{Cite, Sentence, at, number};
use super::windows;
use crate::format::{count, percent, seconds, us};

/// The share of stripe reads at busy drives from which a technique is worthwhile.
const WORTH: f64 = 0.001;
/// The share of the writes' mean from which collections are mentioned.
const TOLD: f64 = 0.15;

/// The findings of the report of an array.
pub(super) fn found(report: &Value) -> Vec<Sentence> {
    let first = [busy(report), windows::found(report), writes(report)].into_iter().flatten();
    let members = failures(report).into_iter().chain(rebuilds(report));
    first.chain(members).chain([rebuilt(report), missing(report)].into_iter().flatten()).collect()
}

/// What to change.
pub(super) fn advice(report: &Value) -> Vec<Sentence> {
    [technique(report), windows::advice(report)].into_iter().flatten().collect()
}

/// Stripe reads that met `busy` busy drives or more.
fn met(report: &Value, busy: usize) -> Option<f64> {
    let counts = at(report, "array.busy_sub_ios")?.as_array()?;
    // The sum of nothing is -0 in the library.
    Some(counts.iter().skip(busy).filter_map(Value::as_f64).fold(0.0, |sum, count| sum + count))
}

fn busy(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let all = cite.number("array.stripe_reads").filter(|all| *all > 0.0)?;
    let (once, twice) = (met(report, 1)?, met(report, 2)?);
    cite.value("array.busy_sub_ios");
    let together = cite.number("array.reconstructions")?;
    Some(cite.finding(format!(
        "Of {} stripe reads, {} ({}) met a drive that was busy with background work, {} of them two or more; {} were reconstructed from other \
         drives.",
        count(all as u64),
        count(once as u64),
        percent(once / all),
        count(twice as u64),
        count(together as u64)
    )))
}

/// A write is several commands, and waits for the slowest.
fn writes(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let writes = cite.number("array.stripe_writes").filter(|writes| *writes > 0.0)?;
    let (reads, sent) = (cite.number("array.reads_for_writes")?, cite.number("array.writes")?);
    let (read_for_rebuilds, rebuilt) = of_rebuilds(report, &mut cite)?;
    let (reads, sent) = ((reads - read_for_rebuilds).max(0.0), (sent - rebuilt).max(0.0));
    let (reads, sent) = (reads / writes, sent / writes);
    let text = match has_parity(report) {
        true => format!(
            "The write of a stripe is {reads:.1} reads of what it needs for the parity, then {sent:.1} writes, and waits for the slowest \
             of each"
        ),
        false => format!("The write of a stripe is {sent:.1} writes, and waits for the slowest"),
    };
    let (path, mean) = ("breakdown_us.write.die_wait_by.gc", number(report, "latency_us.write.mean")?);
    let waits = number(report, path).filter(|waits| *waits > TOLD * mean);
    let rest = match waits {
        Some(waits) => {
            cite.value(path);
            cite.value("latency_us.write.mean");
            format!(
                ": {} of {} µs on average behind collections, which no technique here keeps from writes.",
                us(waits),
                us(mean)
            )
        }
        None => ".".to_owned(),
    };
    Some(cite.finding(text + &rest))
}

/// Whether the level has parity: that of mirrors and plain stripes has none.
fn has_parity(report: &Value) -> bool {
    let level = at(report, "array.array").and_then(Value::as_str).unwrap_or_default();
    !["raid0:", "raid1:", "raid10:"].iter().any(|without| level.starts_with(without))
}

/// Reads and writes of rebuilds, which are counted among those of writes. `None` where an older report does not
/// distinguish them.
fn of_rebuilds(report: &Value, cite: &mut Cite<'_>) -> Option<(f64, f64)> {
    match number(report, "array.stripes_rebuilt").filter(|stripes| *stripes > 0.0) {
        None => Some((0.0, 0.0)),
        Some(stripes) => {
            let reads = cite.number("array.reads_for_rebuilds")?;
            cite.value("array.stripes_rebuilt");
            Some((reads, stripes))
        }
    }
}

/// What rebuilds have sent in addition to the requests.
fn rebuilt(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let (reads, stripes) = of_rebuilds(report, &mut cite).filter(|(_, stripes)| *stripes > 0.0)?;
    Some(cite.finding(format!(
        "Rebuilding took {} reads and {} writes, a write for each stripe, in addition to those of the requests.",
        count(reads as u64),
        count(stripes as u64)
    )))
}

/// A drive by its number, with its name if the report has one.
fn drive(report: &Value, path: &str) -> Option<String> {
    let drive = at(report, path)?.as_u64()?;
    let name = at(report, &format!("drives.{drive}.name")).and_then(Value::as_str);
    Some(name.map_or(format!("drive {drive}"), str::to_owned))
}

/// A time of the run, which is cited.
fn moment(cite: &mut Cite<'_>, path: &str) -> String {
    match cite.number(path) {
        Some(at_s) => format!("{} into the run", seconds(at_s)),
        None => {
            cite.value(path);
            "before the measured phase".to_owned()
        }
    }
}

fn entries(report: &Value, path: &str) -> Vec<String> {
    let entries = at(report, path).and_then(Value::as_array).map_or(0, Vec::len);
    (0..entries).map(|number| format!("{path}.{number}")).collect()
}

fn failures(report: &Value) -> Vec<Sentence> {
    let failure = |place: String| {
        let mut cite = Cite::of(report);
        let member = cite.number(&format!("{place}.member"))?;
        let drive = drive(report, &format!("{place}.drive"))?;
        let when = moment(&mut cite, &format!("{place}.at_s"));
        Some(cite.finding(format!("Member {member}, {drive}, failed {when}.")))
    };
    entries(report, "array.member_failures").into_iter().filter_map(failure).collect()
}

fn rebuilds(report: &Value) -> Vec<Sentence> {
    let rebuild = |place: String| {
        let mut cite = Cite::of(report);
        let member = cite.number(&format!("{place}.member"))?;
        let drive = drive(report, &format!("{place}.drive"))?;
        let when = moment(&mut cite, &format!("{place}.from_s"));
        let end = match cite.number(&format!("{place}.took_s")) {
            Some(took) => format!("took {}", seconds(took)),
            None => left(report, &mut cite, member),
        };
        Some(cite.finding(format!("The rebuild of member {member} on {drive} began {when} and {end}.")))
    };
    entries(report, "array.rebuilds").into_iter().filter_map(rebuild).collect()
}

/// What became of a rebuild that has not ended.
fn left(report: &Value, cite: &mut Cite<'_>, member: f64) -> String {
    let is_under_way = number(report, "array.rebuilding.0") == Some(member);
    match is_under_way.then(|| cite.number("array.rebuilding.1")).flatten() {
        Some(share) => format!("had done {} when the run ended", percent(share)),
        None => "did not end: the drive failed, too".to_owned(),
    }
}

fn missing(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let members = at(report, "array.missing")?.as_array()?.len();
    let is_lost = at(report, "array.is_lost")?.as_bool()?;
    if members == 0 && !is_lost {
        return None;
    }
    cite.value("array.missing");
    cite.value("array.is_lost");
    Some(cite.finding(match is_lost {
        true => {
            "More members have failed than the array tolerates: reads of what they held and all writes fail.".to_owned()
        }
        false if members == 1 => {
            "One member is missing at the end: what it held is put together from the others.".to_owned()
        }
        false => format!("{members} members are missing at the end: what they held is put together from the others."),
    }))
}

fn technique(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let technique = at(report, "array.technique")?.as_str()?;
    let all = number(report, "array.stripe_reads").filter(|all| *all > 0.0)?;
    let (once, twice) = (met(report, 1)? / all, met(report, 2)?);
    cite.value("array.technique");
    cite.value("array.busy_sub_ios");
    match technique {
        "base" if once >= WORTH && number(report, "array.tolerates")? > 0.0 => Some(cite.advice(
            "Let the array read around drives that report being busy: --set array.technique=tea2, or teafa, whose drives take turns."
                .to_owned(),
        )),
        "tea1" | "tea2" if twice > 0.0 => Some(cite.advice(
            "Let the drives take turns with their work, so that no stripe meets two at it: --set array.technique=teafa; writes pay for it."
                .to_owned(),
        )),
        _ => None,
    }
}
