//! What bounds the rate: the part of the drive, or of its host, that is busy all the time.

use serde_json::Value;

use super::cite::{Cite, Sentence};
use crate::format::percent;

/// The part that has no room for more, if there is one.
pub(super) fn sentence(report: &Value) -> Option<Sentence> {
    let kind = report["limited_by"].as_str()?;
    let mut cite = Cite::of(report);
    cite.value("limited_by");
    if kind == "host_processors" {
        let share = percent(cite.number("cpu.busy")?);
        return Some(cite.finding(format!("The rate is bounded by the host's processors: busy {share} of the time.")));
    }
    let share = percent(cite.number(&format!("busy.{kind}.mean"))?);
    if kind != "register" {
        let what = match kind {
            "die" => "dies",
            "channel" => "channels",
            "link_to_host" => "the link to the host",
            "link_to_device" => "the link to the drive",
            _ => "the controller's processors",
        };
        return Some(cite.finding(format!("The rate is bounded by {what}: busy {share} of the time.")));
    }
    let [array, channel] = ["die", "channel"].map(|kind| cite.number(&format!("busy.{kind}.mean")).map(percent));
    Some(cite.finding(format!(
        "The rate is bounded by the registers of planes: taken {share} of the time, while arrays work {} and channels {} of it. A \
         plane has one register, and starts nothing while a page waits there for its channel.",
        array?, channel?
    )))
}
