//! The page of a comparison.

use minijinja::context;
use serde_json::{Value, json};

use super::{Cell, Comparison, Figure, METHOD};
use crate::bars::{self, Bar};
use crate::explain::Explanation;
use crate::format::{bytes, percent, rounded, us};
use crate::{page, several};

const SCRIPT: &str = concat!(include_str!("../../templates/several.js"), include_str!("../../templates/compare.js"));

/// The most seeds of an experiment whose runs are drawn one by one, as a band.
const MOST_DRAWN: usize = 16;

/// A figure for people.
pub(super) fn text(figure: &Figure, value: f64) -> String {
    match figure.unit {
        "us" => us(value),
        "B/s" => format!("{}/s", bytes(value)),
        "%" => percent(value),
        _ if value >= 1_000.0 => rounded(value),
        _ => {
            let digits = if value >= 10.0 { 1 } else { 4 };
            format!("{value:.digits$}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

impl Figure {
    /// A cell for people: the value, the interval, and in the second part the ratio.
    pub fn text(&self, cell: &Cell) -> (String, String) {
        let half = cell.half_width_95.map_or(String::new(), |half| format!(" ± {}", text(self, half)));
        let ratio = cell.ratio.map_or(String::new(), |ratio| match ratio {
            small if small > 0.0 && small < 0.1 => format!("{small:.4}x"),
            ratio => format!("{ratio:.2}x"),
        });
        (text(self, cell.value) + &half, ratio)
    }
}

pub(super) fn render(comparison: &Comparison, command: &str) -> String {
    let columns = &comparison.columns;
    let runs: Vec<Value> = columns
        .iter()
        .map(|column| {
            let of = |way| several::histogram(column.runs.iter().map(|run| &run.report), way);
            let each = |way| -> Vec<Value> {
                let runs = column.runs.iter().filter(|_| (2..=MOST_DRAWN).contains(&column.runs.len()));
                runs.map(|run| several::histogram(std::iter::once(&run.report), way)).collect()
            };
            let seeds = json!({ "read": each("read"), "write": each("write") });
            json!({ "label": column.label, "read": of("read"), "write": of("write"), "seeds": seeds })
        })
        .collect();
    let data = json!({ "comparison": comparison, "runs": runs, "places": places(comparison) });
    let drawn = |way: &str| runs.iter().any(|run| !run[way].is_null());
    let rows: Vec<_> = comparison
        .figures
        .iter()
        .map(|figure| {
            let cell = |(index, cell): (usize, &Option<Cell>)| {
                let (value, ratio) = cell.as_ref().map_or((String::new(), String::new()), |cell| figure.text(cell));
                context! { value, ratio => if index == 0 { String::new() } else { ratio } }
            };
            let cells: Vec<_> = figure.cells.iter().enumerate().map(cell).collect();
            context! { name => figure.name, unit => figure.unit, cells }
        })
        .collect();
    let heads: Vec<_> = columns
        .iter()
        .map(|column| {
            let seeds = match &column.seeds[..] {
                [seed] => format!("seed {seed}"),
                seeds => format!("{} seeds", seeds.len()),
            };
            context! { label => column.label, seeds, files => column.files }
        })
        .collect();
    let shown = context! {
        title => columns.iter().map(|column| column.label.as_str()).collect::<Vec<_>>().join(" · "),
        heads, rows, command,
        tails => ["read", "write"].into_iter().filter(|way| drawn(way)).collect::<Vec<_>>(),
        several_seeds => columns.iter().any(|column| column.runs.len() > 1),
        method => METHOD,
        explained => columns.iter().map(|column| {
            context! { label => column.label, words => page::explained(&Explanation::of(&column.runs[0].report)) }
        }).collect::<Vec<_>>(),
        differences => comparison.differences.iter().map(|one| context! { key => one.key, values => one.values }).collect::<Vec<_>>(),
        breakdowns => ["read", "write"].into_iter().filter_map(|way| breakdown(comparison, way)).collect::<Vec<_>>(),
    };
    page::render("compare.html", SCRIPT, &data.to_string(), shown)
}

/// The position of each experiment among all, from 0 to 1, where only one number distinguishes them: their colours are
/// then those of a scale. `None` where anything else differs.
fn places(comparison: &Comparison) -> Option<Vec<f64>> {
    let told: Vec<_> = comparison.differences.iter().filter(|one| one.key != "seed" && one.key != "workload").collect();
    let [one] = &told[..] else { return None };
    let split = |value: &String| -> Option<(f64, String)> {
        let end = value.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(value.len());
        Some((value[..end].parse().ok()?, value[end..].to_owned()))
    };
    let numbers = one.values.iter().map(split).collect::<Option<Vec<(f64, String)>>>()?;
    let same_unit = numbers.iter().all(|(_, unit)| *unit == numbers[0].1);
    let mut sorted: Vec<f64> = numbers.iter().map(|(number, _)| *number).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let last = sorted.len() - 1;
    let place = |(number, _): &(f64, String)| sorted.partition_point(|other| other < number) as f64 / last as f64;
    (same_unit && last > 1).then(|| numbers.iter().map(place).collect())
}

/// The mean of values of the same shape; each counts by its weight.
fn pooled(values: &[(&Value, f64)]) -> Value {
    match values[0].0 {
        Value::Object(fields) => {
            let of =
                |key: &String| pooled(&values.iter().map(|(value, weight)| (&value[key], *weight)).collect::<Vec<_>>());
            Value::Object(fields.keys().map(|key| (key.clone(), of(key))).collect())
        }
        _ => {
            let weights: f64 = values.iter().map(|(_, weight)| weight).sum();
            let sum: f64 = values.iter().map(|(value, weight)| value.as_f64().unwrap_or(0.0) * weight).sum();
            json!(sum / weights)
        }
    }
}

/// The bars of one direction: the means over all requests of each experiment.
fn breakdown(comparison: &Comparison, way: &str) -> Option<minijinja::Value> {
    let bar = |column: &'_ super::Column| -> Option<(String, f64, Value)> {
        let latency = |run: &'_ crate::compare::load::Run| {
            let latency = &run.report["latency_us"][way];
            Some((latency["mean"].as_f64()?, latency["count"].as_f64().filter(|count| *count > 0.0)?))
        };
        let means = column.runs.iter().map(latency).collect::<Option<Vec<(f64, f64)>>>()?;
        let requests: f64 = means.iter().map(|(_, count)| count).sum();
        let mean = means.iter().map(|(mean, count)| mean * count).sum::<f64>() / requests;
        let stages = column.runs.iter().map(|run| &run.report["breakdown_us"][way]);
        let stages: Vec<_> = stages.zip(means.iter().map(|(_, count)| *count)).collect();
        Some((column.label.clone(), mean, pooled(&stages)))
    };
    let found: Vec<_> = comparison.columns.iter().filter_map(bar).collect();
    let bars: Vec<Bar<'_>> =
        found.iter().map(|(name, mean_us, stages)| Bar { name: name.clone(), mean_us: *mean_us, stages }).collect();
    (!bars.is_empty()).then(|| context! { way, bars => bars::bars(&bars), key => bars::key(&bars) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::differences::Difference;

    fn comparison(differences: &[(&str, &[&str])]) -> Comparison {
        let of = |(key, values): &(&str, &[&str])| Difference {
            key: (*key).to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let differences = differences.iter().map(of).collect();
        Comparison { schema: 1, method: METHOD, columns: Vec::new(), figures: Vec::new(), differences }
    }

    #[test]
    fn experiments_that_one_number_tells_apart_have_places() {
        let seeds = ("seed", &["1", "2", "3"][..]);
        let places = |values: &[&str]| places(&comparison(&[("workload: iodepth", values), seeds]));
        assert_eq!(places(&["8", "1", "32"]), Some(vec![0.5, 0.0, 1.0]));
        assert_eq!(places(&["4KiB", "16KiB", "8KiB"]), Some(vec![0.0, 1.0, 0.5]));
        assert_eq!(
            (places(&["8", "1"]), places(&["4KiB", "1MiB", "2MiB"]), places(&["a", "b", "c"])),
            (None, None, None)
        );
    }

    #[test]
    fn the_breakdown_of_a_pool_is_that_of_all_its_requests() {
        let (one, other) =
            (json!({"array": 10.0, "queue_by": {"gc": 4.0}}), json!({"array": 40.0, "queue_by": {"gc": 1.0}}));
        assert_eq!(pooled(&[(&one, 2.0), (&other, 1.0)]), json!({"array": 20.0, "queue_by": {"gc": 3.0}}));
    }
}
