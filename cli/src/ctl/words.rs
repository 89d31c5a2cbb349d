//! Replies of a control socket as text.

use nandscape_lab_report::format::{bytes, count, us_or_dash};
use serde_json::Value;

use crate::table;

const KINDS: [&str; 5] = ["reads", "writes", "others", "flushes", "fua_writes"];

fn all<'a>(reply: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    reply[name].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Whether a server serves, or how far its start is.
pub(super) fn status(status: &Value) -> String {
    let drive = status["drive"].as_str().map_or_else(String::new, |drive| format!("drive {drive}: "));
    let share = status["share"].as_f64().map_or_else(String::new, |share| format!(", {:.0}%", share * 100.0));
    format!("{drive}{}{share}\n", text(&status["phase"]))
}

/// The drives of a server: how much each has done, and whether it takes writes.
pub(super) fn drives(statistics: &Value) -> String {
    let mut table = table::table(&["drive", "reads", "writes", "others", "errors", "state"]);
    for drive in all(statistics, "drives") {
        let [reads, writes, others] = ["reads", "writes", "others"].map(|kind| number(&drive[kind]["count"]));
        let errors = ["reads", "writes", "others"].map(|kind| number(&drive[kind]["errors"])).iter().sum();
        table.add_row([
            text(&drive["name"]).to_owned(),
            count(reads),
            count(writes),
            count(others),
            count(errors),
            state(drive),
        ]);
    }
    table.trim_fmt() + "\n"
}

/// What a drive is for the store that has it, and whether it takes writes.
fn state(drive: &Value) -> String {
    let left =
        drive["rebuild_bytes_left"].as_u64().map_or_else(String::new, |left| format!(", {} left", bytes(left as f64)));
    let absent = drive["state"].as_str().map(|state| format!("{state}{left}"));
    let read_only = drive["read_only"].as_str().map(|why| format!("read-only: {why}"));
    let all: Vec<String> = absent.into_iter().chain(read_only).collect();
    if all.is_empty() { "takes writes".to_owned() } else { all.join("; ") }
}

/// The figures of each drive by kind of command, and how well the server keeps up.
pub(super) fn statistics(statistics: &Value) -> String {
    let head = ["drive", "commands", "count", "data", "errors", "mean, us", "p50", "p99", "p99.9", "max"];
    let mut table = table::table(&head);
    for drive in all(statistics, "drives") {
        for kind in KINDS {
            let requests = &drive[kind];
            if number(&requests["count"]) + number(&requests["errors"]) == 0 {
                continue;
            }
            let latency = |name: &str| us_or_dash(requests["latency_us"][name].as_f64());
            let name = text(&drive["name"]).to_owned();
            let moved = bytes(number(&requests["bytes"]) as f64);
            let counts = [count(number(&requests["count"])), moved, count(number(&requests["errors"]))];
            let latencies = ["mean", "p50", "p99", "p99_9", "max"].map(latency);
            table.add_row([name, kind.replace('_', " ")].into_iter().chain(counts).chain(latencies));
        }
    }
    let line = |drive: &Value, layer: &Value, line: &Value| {
        format!("{} {}: {}\n", text(&drive["name"]), text(&layer["name"]), text(line))
    };
    let of_layers = all(statistics, "drives").flat_map(|drive| all(drive, "layers").map(move |layer| (drive, layer)));
    let layers: String =
        of_layers.flat_map(|(drive, layer)| all(layer, "lines").map(move |words| line(drive, layer, words))).collect();
    let seconds = statistics["time_s"].as_f64().unwrap_or(0.0);
    let (clients, outstanding) = (number(&statistics["clients"]), number(&statistics["outstanding"]));
    let lag = us_or_dash(statistics["timing"]["release_lag_us"]["p99"].as_f64());
    format!(
        "{}\n{layers}{seconds:.1} s of drive time, {clients} clients, {outstanding} commands in the drives, p99 of the release lag {lag} us\n",
        table.trim_fmt()
    )
}

/// The settings of each drive, a line each.
pub(super) fn settings(drives: &[&Value]) -> String {
    let of = |drive: &Value| -> Vec<String> {
        let name = text(&drive["name"]).to_owned();
        match drive["settings"].as_object() {
            Some(settings) if !settings.is_empty() => {
                settings.iter().map(|(key, value)| format!("{name}: {key}={}\n", text(value))).collect()
            }
            _ => vec![format!("{name}: no setting changes while the drive runs\n")],
        }
    };
    drives.iter().flat_map(|drive| of(drive)).collect()
}

/// The fault rules of each drive.
pub(super) fn faults(drives: &[&Value]) -> String {
    let mut table = table::table(&["drive", "matched", "struck", "rule"]);
    let mut any = false;
    for drive in drives {
        for fault in all(drive, "faults") {
            any = true;
            let [matched, struck] = ["matched", "struck"].map(|name| count(number(&fault[name])));
            table.add_row([text(&drive["name"]).to_owned(), matched, struck, text(&fault["rule"]).to_owned()]);
        }
    }
    if any { table.trim_fmt() + "\n" } else { "no fault rules\n".to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replies_are_shown_in_words() {
        let read = json!({ "count": 2, "bytes": 8_192, "errors": 1, "latency_us": { "mean": 80.5, "p50": 80.0 } });
        let none = json!({ "count": 0, "bytes": 0, "errors": 0, "latency_us": {} });
        let reply = json!({ "time_s": 1.5, "clients": 1, "outstanding": 3, "timing": {}, "drives": [
            { "name": "a", "reads": read, "writes": none, "others": none, "read_only": "no spare blocks are left",
              "layers": [{ "name": "cache", "lines": ["50% of reads hit"] }] },
        ] });
        assert!(drives(&reply).contains("read-only: no spare blocks are left"));
        for (given, words) in [
            (json!({}), "takes writes"),
            (json!({ "state": "unreachable" }), "unreachable"),
            (json!({ "state": "lost", "read_only": "the drive is missing" }), "lost; read-only: the drive is missing"),
            (json!({ "state": "rebuilding", "rebuild_bytes_left": 3_000_000 }), "rebuilding, 3.00 MB left"),
        ] {
            assert_eq!(state(&given), words);
        }
        let shown = statistics(&reply);
        assert!(shown.contains("80.5") && !shown.contains("writes"), "{shown}");
        assert!(shown.contains("\na cache: 50% of reads hit\n"), "{shown}");
        assert!(shown.contains("1.5 s of drive time, 1 clients, 3 commands"), "{shown}");
        let a =
            json!({ "name": "a", "settings": { "k": "4" }, "faults": [{ "rule": "fail", "matched": 7, "struck": 5 }] });
        let b = json!({ "name": "b", "settings": {}, "faults": [] });
        assert_eq!(settings(&[&a, &b]), "a: k=4\nb: no setting changes while the drive runs\n");
        let shown = faults(&[&a, &b]);
        assert!(shown.contains("fail") && shown.contains('7') && shown.contains('5'), "{shown}");
        assert_eq!(faults(&[&b]), "no fault rules\n");
    }
}
