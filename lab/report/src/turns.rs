//! The page of runs on a storage engine over several drives: the tails of reads, and the turns of the drives.

use std::collections::BTreeMap;

use minijinja::context;
use nandscape_sim::Histogram;
use serde_json::{Value, json};

use crate::page;

const SCRIPT: &str = concat!(include_str!("../templates/several.js"), include_str!("../templates/turns.js"));

/// Kinds of work, their colours and what they are.
const KINDS: [(&str, &str, &str); 8] = [
    ("collect", "--gc", "token: garbage collection on order"),
    ("write", "--program", "token: writes"),
    ("become ready", "--wear", "token: until nothing internal runs"),
    ("reads of clients", "--transfer", "reads of clients are under way"),
    ("read", "--read", "flash: read"),
    ("program", "--program", "flash: program"),
    ("gc", "--gc", "flash: GC and wear levelling"),
    ("erase", "--erase", "flash: erase"),
];

/// A run under a policy.
pub struct EngineRun {
    /// The policy, and what else distinguishes the run.
    pub label: String,
    /// Latencies of reads.
    pub reads: Histogram,
    /// The lines of its timeline.
    pub lines: Vec<String>,
    /// The length of an interval of the timeline, in seconds.
    pub interval_s: f64,
    /// The length of the run, in seconds.
    pub took_s: f64,
    /// By kind of work, by line: parts per million of each interval.
    pub parts_per_million: BTreeMap<&'static str, Vec<Vec<u32>>>,
    /// By line: when its drive had a token, from and to, in seconds.
    pub tokens_s: Vec<Vec<[f64; 2]>>,
}

/// The page.
pub struct EnginePage {
    /// A description of the load.
    pub load: String,
    /// The table's header, and a row for each run.
    pub table: (Vec<String>, Vec<Vec<String>>),
    /// The runs.
    pub runs: Vec<EngineRun>,
}

impl EnginePage {
    /// As HTML; `command` made it.
    pub fn to_html(&self, command: &str) -> String {
        let data = self.runs.iter().map(EngineRun::data).collect::<Vec<Value>>();
        let colors: BTreeMap<&str, &str> = KINDS.iter().map(|(kind, color, _)| (*kind, *color)).collect();
        let of = |(_, color, what): &(&'static str, &'static str, &'static str)| context! { color, what };
        let timelines: Vec<_> = self
            .runs
            .iter()
            .enumerate()
            .map(|(index, run)| context! { id => format!("turns-{index}"), label => run.label })
            .collect();
        let (header, rows) = &self.table;
        let shown = context! {
            load => self.load, header, rows, timelines, command,
            kinds => KINDS.iter().map(of).collect::<Vec<_>>(),
        };
        page::render("turns.html", SCRIPT, &json!({ "runs": data, "kinds": colors }).to_string(), shown)
    }
}

/// The most seconds of a run that its timeline shows at first.
const FIRST_S: f64 = 0.25;

impl EngineRun {
    /// The data of its charts.
    fn data(&self) -> Value {
        let (latency_us, requests): (Vec<f64>, Vec<u64>) =
            self.reads.values().map(|(span, count)| (span.as_us(), count)).unzip();
        json!({
            "label": self.label,
            "histogram": { "latency_us": latency_us, "requests": requests },
            "zoom_s": FIRST_S,
            "turns": {
                "lines": self.lines, "interval_s": self.interval_s, "took_s": self.took_s,
                "parts_per_million": self.parts_per_million, "tokens_s": self.tokens_s,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Span;

    use super::*;

    #[test]
    fn the_page_has_a_timeline_for_each_run_and_escapes_what_it_shows() {
        let mut reads = Histogram::new();
        reads.record(Span::from_us(80));
        let run = |label: &str| EngineRun {
            label: label.to_owned(),
            reads: reads.clone(),
            lines: vec!["drive 0 token".to_owned()],
            interval_s: 1e-3,
            took_s: 2e-3,
            parts_per_million: KINDS.iter().map(|(kind, ..)| (*kind, vec![vec![0, 5]])).collect(),
            tokens_s: vec![vec![[0.0, 1e-3]]],
        };
        let table = (vec!["policy".to_owned()], vec![vec!["<mixed>".to_owned()]]);
        let page = EnginePage { load: "8 readers".to_owned(), table, runs: vec![run("mixed"), run("epochs")] };
        let html = page.to_html("nandscape paper engine");
        for part in ["id=\"turns-0\"", "id=\"turns-1\"", "&lt;mixed&gt;", "\"drive 0 token\"", "token: writes"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<mixed>"));
    }
}
