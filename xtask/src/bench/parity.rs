//! The parity of eight pages of 4 KiB, by the common code of arrays and drives with stripes.
//!
//! An experiment of the lab in the program measures it, so that any revision can be measured.

use anyhow::Context as _;
use serde_json::Value;

use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::say;

/// Aims and figures of the experiment.
const FIGURES: [(&str, &str, &str); 3] = [
    ("p50, in the caches", "in the caches, p50, us", "below 3"),
    ("p99, in the caches", "in the caches, p99, us", ""),
    ("p50, scattered over 256 MiB", "from memory, p50, us", ""),
];

pub(crate) fn of_eight_pages(subject: &Subject) -> Measured {
    let Some(outcome) = subject.claim("ttflash-arithmetic")? else {
        say::line("the command lab is not there: left out");
        return Ok(None);
    };
    let figures = figures(&outcome).context("the claim gives no times of a parity")?;
    Ok(Some((figures, outcome)))
}

fn figures(outcome: &Value) -> Option<Vec<Figure>> {
    let all: Vec<&Value> =
        outcome["points"].as_array()?.iter().filter_map(|point| point["figures"].as_array()).flatten().collect();
    let of = |(asked, name, aim): &(&str, &'static str, &'static str)| {
        let value = all.iter().find(|figure| figure["name"] == *asked)?["value"].as_f64()?;
        Some(Figure { name, value, aim, more_is_better: false })
    };
    FIGURES.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_times_are_those_of_the_claim() {
        let named = |name: &str, value: f64| json!({"name": name, "value": value});
        let times = FIGURES.map(|(asked, ..)| named(asked, asked.len() as f64));
        let outcome = json!({"points": [{"figures": [named("a copyback", 840.0)]}, {"figures": times}]});
        let values: Vec<f64> = figures(&outcome).unwrap().iter().map(|figure| figure.value).collect();
        assert_eq!(values, [18.0, 18.0, 27.0]);
        assert_eq!(figures(&json!({"points": [{"figures": []}]})), None);
    }
}
