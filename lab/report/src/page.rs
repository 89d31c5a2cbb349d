//! Pages: filled-in templates with embedded style, code and data, so that a page is one file that loads nothing.

use std::collections::BTreeMap;

use minijinja::{Environment, Value, context};
use nandscape_lab_run::record::{Part, Slowest};
use nandscape_lab_run::{FlowReport, Latency};

use crate::explain::{Explanation, Kind};
use crate::format::{count, percent, rounded, seconds, us, us_or_dash};

/// Templates, by the names that they use for each other.
const TEMPLATES: &[(&str, &str)] = &[
    ("base.html", include_str!("../templates/base.html")),
    ("parts.html", include_str!("../templates/parts.html")),
    ("run.html", include_str!("../templates/run.html")),
    ("array.html", include_str!("../templates/array.html")),
    ("compare.html", include_str!("../templates/compare.html")),
    ("dashboard.html", include_str!("../templates/dashboard.html")),
    ("demo.html", include_str!("../templates/demo.html")),
    ("sweep.html", include_str!("../templates/sweep.html")),
    ("turns.html", include_str!("../templates/turns.html")),
];

/// A marker that identifies pages of nandscape.
pub const PAGE_MARK: &str = "<meta name=\"generator\" content=\"nandscape";

/// The look of all pages.
pub const STYLE: &str = include_str!("../templates/style.css");
const CHARTS: &str = include_str!("../templates/charts.js");
const EXPORTS: &str = include_str!("../templates/exports.js");
const TIMELINE: &str = include_str!("../templates/timeline.js");
const UPLOT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const UPLOT_CSS: &str = include_str!("../vendor/uplot/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("../vendor/uplot/LICENSE");

/// Fills in a template. `script` draws the charts from `data`, JSON embedded in the page.
pub(crate) fn render(template: &str, script: &str, data: &str, shown: Value) -> String {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("a template of ours is right");
    }
    let page = context! {
        version => env!("CARGO_PKG_VERSION"),
        style => STYLE, exports => EXPORTS, charts => CHARTS, timeline => TIMELINE,
        uplot => UPLOT, uplot_css => UPLOT_CSS, uplot_license => UPLOT_LICENSE,
        script, data => embedded(data),
        ..shown
    };
    let template = environment.get_template(template).expect("one of ours");
    template.render(page).expect("a template of ours is right")
}

/// The jobs of a workload that has several, or one with a deadline.
pub(crate) fn flows(flows: &[FlowReport], fairness: Option<f64>) -> Value {
    let with_deadlines = flows.iter().any(|flow| flow.deadline.is_some());
    let mut columns = vec![
        "requests",
        "a second",
        "mean",
        "read p50",
        "read p99",
        "read p99.9",
        "write p50",
        "write p99",
        "write p99.9",
        "alone",
        "slowdown",
    ];
    columns.extend(with_deadlines.then_some(["due", "in time", "latest"]).into_iter().flatten());
    let or_dash = |figure: Option<f64>, text: fn(f64) -> String| figure.map_or("-".to_owned(), text);
    let row = |flow: &FlowReport| {
        let of = |way: &str| match flow.latency_us.get(way) {
            Some(latency) => [latency.p50, latency.p99, latency.p99_9].map(us_or_dash),
            None => [(); 3].map(|()| "-".to_owned()),
        };
        let mut cells = vec![count(flow.requests), or_dash(flow.iops, rounded), us_or_dash(flow.mean_us)];
        cells.extend(of("read").into_iter().chain(of("write")));
        cells.extend([us_or_dash(flow.alone_mean_us), or_dash(flow.slowdown, |slowdown| format!("{slowdown:.2}"))]);
        if with_deadlines {
            let deadline = flow.deadline.as_ref();
            cells.push(us_or_dash(deadline.map(|deadline| deadline.due_us)));
            cells.push(or_dash(deadline.and_then(|deadline| deadline.met_ratio), percent));
            cells.push(us_or_dash(deadline.and_then(|deadline| deadline.latest_us)));
        }
        context! { name => flow.name, cells }
    };
    let fairness = fairness.map(|fairness| format!("{fairness:.3}"));
    context! { columns, rows => flows.iter().map(row).collect::<Vec<_>>(), fairness }
}

/// An explanation for a template: the findings and the advice, each sentence with its figures.
pub(crate) fn explained(explanation: &Explanation) -> Value {
    let of_kind = |kind| -> Vec<Value> {
        explanation.of_kind(kind).map(|one| context! { text => one.text, figures => one.brackets() }).collect()
    };
    context! { found => of_kind(Kind::Finding), advice => of_kind(Kind::Advice) }
}

/// The table of latencies for a template, a row for each name.
pub(crate) fn latencies<'a>(rows: impl Iterator<Item = (String, &'a Latency)>) -> Value {
    let columns = ["count", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "p99.9999", "max"];
    let row = |(name, latency): (String, &Latency)| {
        let figures = latency.figures().map(|(_, figure)| us_or_dash(figure));
        let cells: Vec<String> = [count(latency.count)].into_iter().chain(figures).collect();
        context! { name, cells }
    };
    context! { columns, rows => rows.map(row).collect::<Vec<_>>() }
}

/// Rows of the operations of a workload.
pub(crate) fn operations<'a>(
    operations: &'a BTreeMap<&'static str, Latency>,
) -> impl Iterator<Item = (String, &'a Latency)> {
    let seen = operations.iter().filter(|(_, latency)| latency.count > 0);
    seen.map(|(name, latency)| (format!("operation {name}"), latency))
}

/// JSON within HTML: nothing in it may end its element. In JSON, `<` occurs within strings only.
fn embedded(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The slowest request in words, of a drive with these dies.
pub(crate) fn slowest(slowest: &Slowest, dies: &[String]) -> Value {
    let Slowest { direction, submitted_s, latency_us, parts, die } = slowest;
    let part = |part: &Part| {
        let stage = part.stage.replace('_', " ");
        let behind = part.behind.map_or(String::new(), |behind| format!(" behind {}", behind.replace('_', " ")));
        format!("{} µs {stage}{behind}", us(part.us))
    };
    let most: Vec<String> = parts.iter().take(3).map(part).collect();
    let text = format!(
        "Submitted {} into the run, it took {} µs; most of that is {}.",
        seconds(*submitted_s),
        us(*latency_us),
        most.join(", then ")
    );
    let die = die.and_then(|die| dies.get(die as usize));
    context! { direction, text, die }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_read_names_its_die_where_it_is_known() {
        let dies = ["channel 0 die 0", "channel 0 die 1"].map(str::to_owned);
        let of = |die| {
            slowest(&Slowest { direction: "read", submitted_s: 0.1, latency_us: 5.0, parts: Vec::new(), die }, &dies)
        };
        let named = |die| of(die).get_attr("die").expect("it is a map").as_str().map(str::to_owned);
        assert_eq!(named(Some(1)).as_deref(), Some("channel 0 die 1"));
        assert_eq!((named(Some(2)), named(None)), (None, None));
    }

    #[test]
    fn data_cannot_end_the_element_it_is_in() {
        let json = r#"{"notes":["</script><script>alert(1)"]}"#;
        let safe = embedded(json);
        let (one, other): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(json).unwrap(), serde_json::from_str(&safe).unwrap());
        assert!(!safe.contains('<') && one == other, "{safe}");
    }
}
