//! The points of a sweep: all combinations of its parameters' values, each with each seed.

use crate::error::SweepError;
use crate::point::Inputs;
use crate::settings::{Profiles, Settings};
use crate::spec::{Choice, Sweep};
use crate::value::Value;

/// A sweep and its points.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The sweep.
    pub sweep: Sweep,
    /// Its points: seeds vary fastest, then the last parameter.
    pub points: Vec<Planned>,
}

/// A point of a sweep.
#[derive(Clone, Debug)]
pub struct Planned {
    /// For each parameter, the position of its choice.
    pub choices: Vec<usize>,
    /// The seed.
    pub seed: u64,
    /// What it is measured with, or why there can be no such drive.
    pub inputs: Result<Inputs, String>,
}

impl Sweep {
    /// Its points.
    ///
    /// # Errors
    /// When the sweep, a key or a value is invalid. An invalid drive is an error of its point.
    pub fn plan(self) -> Result<Plan, SweepError> {
        self.check()?;
        let mut profiles = Profiles::new();
        let mut points = Vec::new();
        for choices in self.grid() {
            let at = |error: SweepError| SweepError::new(self.label(&choices), error);
            let mut settings = self.settings(&choices).map_err(at)?;
            settings.read_trace().map_err(at)?;
            settings.check_start().map_err(at)?;
            for seed in &self.seeds {
                let inputs = settings.inputs(*seed, &mut profiles).map_err(at)?;
                points.push(Planned { choices: choices.clone(), seed: *seed, inputs });
            }
        }
        Ok(Plan { sweep: self, points })
    }

    /// All combinations of choices, the last parameter fastest, each parameter in its order.
    fn grid(&self) -> Vec<Vec<usize>> {
        let mut grid = vec![Vec::new()];
        for axis in &self.axes {
            let order = axis.order();
            let with = |at: &usize, choices: &Vec<usize>| choices.iter().chain([at]).copied().collect();
            grid = grid.iter().flat_map(|choices| order.iter().map(move |at| with(at, choices))).collect();
        }
        grid
    }

    fn settings(&self, choices: &[usize]) -> Result<Settings, SweepError> {
        let chosen = self.axes.iter().zip(choices).flat_map(|(axis, at)| &axis.choices[*at].set);
        let keys: Vec<&(String, Value)> = self.set.iter().chain(chosen).collect();
        let mut settings = Settings::new(self.workload.as_ref(), self.takes_policies)?;
        // The other keys change what these name.
        let (names, rest): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|(key, _)| ["drive", "workload", "trace"].contains(&key.as_str()));
        names.into_iter().chain(rest).try_for_each(|(key, value)| settings.set(key, value))?;
        Ok(settings)
    }

    /// A point in words: its parameters' values.
    pub fn label(&self, choices: &[usize]) -> String {
        let parts = self.axes.iter().zip(choices).map(|(axis, at)| {
            let Choice { value, .. } = &axis.choices[*at];
            format!("{} {}", axis.name, value.text())
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() { self.name.clone() } else { parts.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Axis;

    fn sweep() -> Sweep {
        let mut sweep = Sweep::new("s");
        sweep.set = vec![("rw".into(), Value::parse("randread")), ("capacity".into(), Value::parse("64MiB"))];
        sweep.vary(Axis::of_key("iodepth", Value::list("8,1")));
        sweep.vary(Axis::of_key("geometry.channels", Value::list("4,1000")));
        sweep.seeds = vec![1, 2];
        sweep
    }

    #[test]
    fn points_are_all_combinations_in_the_order_of_their_numbers() {
        let plan = sweep().plan().unwrap();
        assert_eq!(plan.points.len(), 8);
        let labels: Vec<String> = plan.points.iter().map(|point| plan.sweep.label(&point.choices)).collect();
        assert_eq!(labels[0], "iodepth 1, geometry.channels 4");
        assert_eq!(labels[7], "iodepth 8, geometry.channels 1000");
        assert!(
            plan.points[0].inputs.is_ok() && plan.points[2].inputs.as_ref().is_err_and(|why| why.contains("channels"))
        );
        assert_ne!(plan.points[0].inputs, plan.points[1].inputs);
    }

    #[test]
    fn a_mistake_is_named_with_its_point() {
        let mut wrong = sweep();
        wrong.vary(Axis::of_key("bs", Value::list("4k,5")));
        let error = wrong.plan().unwrap_err().to_string();
        assert!(error.contains("bs 5") && error.contains("multiples of 512"), "{error}");
    }
}
