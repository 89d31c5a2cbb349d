//! Common code of pages with several runs: the runs' distributions in one chart.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The distribution of a direction over several runs; null if any run has none.
pub(crate) fn histogram<'a>(reports: impl Iterator<Item = &'a Value>, way: &str) -> Value {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for report in reports {
        let histogram = &report["details"]["histogram"][way];
        let (Some(latencies), Some(counts)) = (histogram["latency_us"].as_array(), histogram["requests"].as_array())
        else {
            return Value::Null;
        };
        for (latency, count) in latencies.iter().zip(counts) {
            let ns = (latency.as_f64().unwrap_or(0.0) * 1e3).round() as u64;
            *sums.entry(ns).or_default() += count.as_u64().unwrap_or(0);
        }
    }
    let (latency_us, requests): (Vec<f64>, Vec<u64>) =
        sums.into_iter().map(|(ns, count)| (ns as f64 / 1e3, count)).unzip();
    json!({ "latency_us": latency_us, "requests": requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_summed() {
        let run = |latency_us: [f64; 2], requests: [u64; 2]| json!({"details": {"histogram": {"read": {"latency_us": latency_us, "requests": requests}}}});
        let runs = [run([1.5, 2.0], [3, 4]), run([2.0, 7.25], [1, 1])];
        let expected = json!({"latency_us": [1.5, 2.0, 7.25], "requests": [3, 5, 1]});
        assert_eq!(histogram(runs.iter(), "read"), expected);
        assert_eq!(histogram([json!({})].iter(), "read"), Value::Null);
    }
}
