//! Where the mean goes: stacked bars and a table, from the `breakdown_us` of a report.

use minijinja::{Value, context};
use nandscape_drive::Stage;
use nandscape_drive::breakdown::cause;
use nandscape_host_path::{LAYER as HOST, stage as host_stage};

use crate::format::us;

/// The stages of one mean, as a report has them.
pub(crate) type Stages = serde_json::Value;

/// A part of a bar.
struct Part {
    name: String,
    color: &'static str,
    wait: bool,
    us: f64,
}

/// One bar.
pub(crate) struct Bar<'a> {
    pub(crate) name: String,
    pub(crate) mean_us: f64,
    pub(crate) stages: &'a Stages,
}

/// The meaning of a stage, as in docs/output.md.
fn meaning(stage: Stage) -> &'static str {
    match stage {
        Stage::Queue => "in the submission queue, for the controller, for room in the write buffer",
        Stage::Firmware => "the firmware's work on the command",
        Stage::DieWait => "for the plane: its register, or its array",
        Stage::Array => "sensing or programming",
        Stage::ChannelWait => "for the channel, or for the cache register that the channel has yet to empty",
        Stage::Transfer => "data on the channel",
        Stage::Ecc => "error correction",
        Stage::Link => "the host link, with the wait for it",
    }
}

fn stage_color(stage: Stage) -> &'static str {
    match stage {
        Stage::Firmware => "--firmware",
        Stage::Transfer => "--transfer",
        Stage::Ecc => "--ecc",
        Stage::Link => "--link",
        _ => "--array",
    }
}

/// The host's stages that took time, in the order of a command's path; those of the drive lie between. The wait for a processor is
/// divided by who had that, if the report has it.
fn of_host(stages: &Stages) -> Vec<(String, f64)> {
    let (by, mut parts) = (&stages[format!("{HOST}_by")], Vec::new());
    for name in host_stage::ALL {
        if name == host_stage::RUN_DELAY && stages[RUN_DELAY_BY].is_object() {
            let wait = |holder: &str| (format!("{name}, behind {holder}"), number(&stages[RUN_DELAY_BY][holder]));
            parts.extend(host_stage::HOLDERS.map(wait));
        } else {
            parts.push((name.to_owned(), number(&by[name])));
        }
    }
    parts.retain(|(_, us)| *us > 0.0);
    parts
}

/// The wait for a processor by who had it.
const RUN_DELAY_BY: &str = "run_delay_by";

fn cause_color(name: &str) -> &'static str {
    match name {
        "host_read" => "--read",
        "host_write" => "--write",
        "gc" => "--gc",
        "wear" => "--wear",
        "read_modify_write" => "--fill",
        "power" => "--power",
        "retry" => "--retry",
        "fault" => "--fault",
        _ => "--metadata",
    }
}

fn cause_words(name: &str) -> &str {
    match name {
        "host_read" => "host reads",
        "host_write" => "host writes",
        "gc" => "GC",
        "wear" => "wear levelling",
        "read_modify_write" => "read-modify-writes",
        "power" => "power outages",
        "retry" => "retries",
        "fault" => "faults",
        other => other,
    }
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// The wait in a stage with this cause.
fn waited(stages: &Stages, stage: Stage, cause: &str) -> f64 {
    number(&stages[format!("{}_by", stage.name())][cause])
}

/// The parts of a mean in the order of a command's path, without parts that took no time.
fn parts(stages: &Stages) -> Vec<Part> {
    let mut parts: Vec<Part> = of_host(stages)
        .into_iter()
        .map(|(name, us)| Part { name: format!("host, {}", name.replace('_', " ")), color: "--run4", wait: false, us })
        .collect();
    for stage in Stage::ALL {
        let name = stage.name().replace('_', " ");
        if Stage::WAITS.contains(&stage) {
            parts.extend(cause::ALL.iter().map(|(_, cause)| Part {
                name: format!("{name}, behind {}", cause_words(cause)),
                color: cause_color(cause),
                wait: true,
                us: waited(stages, stage, cause),
            }));
        } else {
            parts.push(Part { name, color: stage_color(stage), wait: false, us: number(&stages[stage.name()]) });
        }
    }
    parts.retain(|part| part.us > 0.0);
    parts
}

/// Bars for the template. The length of a bar is its mean, on the same scale for all.
pub(crate) fn bars(bars: &[Bar<'_>]) -> Value {
    let longest = bars.iter().map(|bar| bar.mean_us).fold(0.0, f64::max);
    let bar = |bar: &Bar<'_>| {
        let width = if longest > 0.0 { 100.0 * bar.mean_us / longest } else { 100.0 };
        let part = |part: &Part| {
            let Part { name, color, wait, us: figure } = part;
            let room = width / 100.0 * figure / bar.mean_us;
            let label = match room {
                wide if wide > 0.3 => format!("{name} {}", us(*figure)),
                wide if wide > 0.08 => us(*figure),
                _ => String::new(),
            };
            context! { name, color, wait, label, share => figure, text => format!("{} µs", us(*figure)) }
        };
        let parts: Vec<Value> = parts(bar.stages).iter().map(part).collect();
        context! { name => bar.name, total => format!("{} µs", us(bar.mean_us)), width, parts }
    };
    bars.iter().map(bar).collect()
}

/// The legend of the colours that occur.
pub(crate) fn key(bars: &[Bar<'_>]) -> Value {
    let all: Vec<Part> = bars.iter().flat_map(|bar| parts(bar.stages)).collect();
    let mut entries = Vec::new();
    for (_, cause) in cause::ALL {
        if all.iter().any(|part| part.wait && part.color == cause_color(cause)) {
            let name = format!("waiting behind {}", cause_words(cause));
            entries.push(context! { name, color => cause_color(cause), wait => true });
        }
    }
    if all.iter().any(|part| part.color == "--run4") {
        entries.push(context! { name => HOST, color => "--run4", wait => false });
    }
    for stage in Stage::ALL.iter().filter(|stage| !Stage::WAITS.contains(stage)) {
        let name = stage.name();
        if all.iter().any(|part| !part.wait && part.name == name) {
            entries.push(context! { name, color => stage_color(*stage), wait => false });
        }
    }
    entries.into_iter().collect()
}

/// Rows for the template: stages down, bars across, with waits by cause.
pub(crate) fn rows(bars: &[Bar<'_>]) -> Value {
    let mut rows = Vec::new();
    if bars.iter().any(|bar| !bar.stages[HOST].is_null()) {
        let cells: Vec<String> = bars.iter().map(|bar| us(number(&bar.stages[HOST]))).collect();
        rows.push(
            context! { name => HOST, cells, meaning => "system call, block layer, interrupt, switches", part => false },
        );
        let mut row = |name: String, by: &str, of: &str| {
            let times: Vec<f64> = bars.iter().map(|bar| number(&bar.stages[by][of])).collect();
            if times.iter().any(|time| *time > 0.0) {
                let cells: Vec<String> = times.into_iter().map(us).collect();
                rows.push(context! { name, cells, meaning => "", part => true });
            }
        };
        for stage in host_stage::ALL {
            row(stage.replace('_', " "), &format!("{HOST}_by"), stage);
            if stage == host_stage::RUN_DELAY {
                host_stage::HOLDERS.iter().for_each(|holder| row(format!("behind {holder}"), RUN_DELAY_BY, holder));
            }
        }
    }
    for stage in Stage::ALL {
        let cells: Vec<String> = bars.iter().map(|bar| us(number(&bar.stages[stage.name()]))).collect();
        rows.push(context! { name => stage.name(), cells, meaning => meaning(stage), part => false });
        for (_, cause) in cause::ALL.iter().filter(|_| Stage::WAITS.contains(&stage)) {
            let waits: Vec<f64> = bars.iter().map(|bar| waited(bar.stages, stage, cause)).collect();
            if waits.iter().any(|wait| *wait > 0.0) {
                let cells: Vec<String> = waits.into_iter().map(us).collect();
                rows.push(context! { name => format!("behind {cause}"), cells, meaning => "", part => true });
            }
        }
    }
    let means: Vec<String> = bars.iter().map(|bar| us(bar.mean_us)).collect();
    rows.push(context! { name => "mean", cells => means, meaning => "the sum", part => false });
    rows.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_a_processor_is_divided_by_who_had_it() {
        let stages = serde_json::json!({
            "host": 9.0, "host_by": {"run_delay": 6.0, "syscall": 3.0}, "run_delay_by": {"load": 5.0, "softirq": 1.0, "kernel": 0.0},
        });
        let names: Vec<(String, f64)> = parts(&stages).into_iter().map(|part| (part.name, part.us)).collect();
        let expected =
            [("host, syscall", 3.0), ("host, run delay, behind softirq", 1.0), ("host, run delay, behind load", 5.0)];
        assert_eq!(names, expected.map(|(name, us)| (name.to_owned(), us)));
        let rows = rows(&[Bar { name: "read".to_owned(), mean_us: 9.0, stages: &stages }]).to_string();
        assert!(rows.contains("behind softirq") && !rows.contains("behind kernel"), "{rows}");
    }

    #[test]
    fn bars_are_to_scale() {
        let stages = serde_json::json!({ "array": 40.0 });
        let bar = |name: &str, mean_us| Bar { name: name.to_owned(), mean_us, stages: &stages };
        let drawn = bars(&[bar("read", 40.0), bar("write", 10.0)]);
        let width = |at: usize| {
            let bar = drawn.get_item(&Value::from(at)).expect("a bar");
            f64::try_from(bar.get_attr("width").expect("it has a width")).expect("a number")
        };
        assert_eq!((width(0), width(1)), (100.0, 25.0));
    }

    #[test]
    fn parts_are_told_apart_by_stage_and_cause_and_sum_to_the_mean() {
        let stages = serde_json::json!({
            "queue": 3.0, "queue_by": {"host_read": 1.0, "gc": 2.0},
            "firmware": 4.0, "die_wait": 5.0, "die_wait_by": {"gc": 5.0},
            "array": 60.0, "channel_wait": 0.0, "channel_wait_by": {}, "transfer": 3.5, "ecc": 0.0, "link": 1.5,
        });
        let parts = parts(&stages);
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        let expected = [
            "queue, behind host reads",
            "queue, behind GC",
            "firmware",
            "die wait, behind GC",
            "array",
            "transfer",
            "link",
        ];
        assert_eq!(names, expected);
        assert_eq!(parts.iter().map(|part| part.us).sum::<f64>(), 77.0);
    }
}
