//! Windows of an array's drives: background work of the drives outside their windows, which were too long for the load.

use serde_json::Value;

use super::cite::{Cite, Sentence, at, number};
use crate::format::{count, rounded};

/// Work begun outside of windows, and the figure of each drive that counts it.
const WORK: [(&str, &str); 2] =
    [("steps of collections", "report.gc.forced_steps"), ("programs of buffered data", "report.gc.forced_programs")];

/// The length, and how often each of [`WORK`] has begun outside of windows, if any has.
fn outside(report: &Value, cite: &mut Cite<'_>) -> Option<(f64, [u64; 2])> {
    let ms = cite.number("array.window_ms")?;
    let drives = at(report, "drives")?.as_array()?.len();
    let counts = WORK.map(|(_, path)| {
        let mut all = 0.0;
        for place in (0..drives).map(|drive| format!("drives.{drive}.{path}")) {
            // It is left out where it is zero.
            all += number(report, &place).and_then(|_| cite.number(&place)).unwrap_or(0.0);
        }
        all as u64
    });
    counts.iter().any(|count| *count > 0).then_some((ms, counts))
}

/// That work has begun outside of windows.
pub(super) fn found(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let (ms, counts) = outside(report, &mut cite)?;
    let parts = WORK.iter().zip(counts).filter(|(_, times)| *times > 0);
    let parts: Vec<String> = parts.map(|((what, _), times)| format!("{} {what}", count(times))).collect();
    Some(cite.finding(format!(
        "Drives take turns with windows of {} ms, and did not keep to them: {} began in the turns of others, for want of space.",
        rounded(ms),
        parts.join(" and ")
    )))
}

/// A shorter length.
pub(super) fn advice(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let (ms, _) = outside(report, &mut cite)?;
    Some(cite.advice(format!(
        "Have the turns change more often, so that space lasts between two of them: --set array.window={:.0}ms, a quarter of what it is, or \
         less; drives recommend a length if it is left out.",
        (ms / 4.0).floor().max(1.0)
    )))
}
