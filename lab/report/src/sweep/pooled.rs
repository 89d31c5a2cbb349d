//! The points of a sweep without their seeds: a cell for each combination of the parameters' values, with the mean over its
//! seeds and the 95% confidence interval of that mean.

use nandscape_lab_sweep::{Outcome, figure};

use crate::compare::interval::mean_and_half_width;

/// One combination of values.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cell {
    /// For each parameter, the position of its choice.
    pub(crate) choices: Vec<usize>,
    /// Seeds that the figures are of: those that were measured and did not fail.
    pub(crate) seeds: usize,
    /// For each figure that is shown, the mean over the seeds, and half of its interval if there are several. `None` where no
    /// point has the figure.
    pub(crate) figures: Vec<Option<(f64, Option<f64>)>>,
}

/// The cells, in the order of the plan.
pub(super) fn cells(outcome: &Outcome, shown: &[String]) -> Vec<Cell> {
    let points: Vec<usize> = (0..outcome.states.len()).collect();
    let same = |one: &usize, other: &usize| outcome.plan.points[*one].choices == outcome.plan.points[*other].choices;
    let cell = |points: &[usize]| {
        let whole = |point: &&usize| outcome.states[**point].problem().is_none();
        let reports: Vec<_> = points.iter().filter(whole).filter_map(|point| outcome.states[*point].report()).collect();
        let values = |name: &String| reports.iter().filter_map(|report| figure(report, name)).collect::<Vec<f64>>();
        Cell {
            choices: outcome.plan.points[points[0]].choices.clone(),
            seeds: reports.len(),
            figures: shown.iter().map(|name| mean_and_half_width(&values(name))).collect(),
        }
    };
    points.chunk_by(same).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SweepReport;
    use nandscape_lab_sweep::{State, Sweep, Value};

    /// A sweep of one point and three seeds.
    fn outcome() -> Outcome {
        let mut sweep = Sweep::new("s");
        for (key, value) in [("rw", "randread"), ("capacity", "64MiB"), ("io_count", "200")] {
            sweep.set(key, Value::parse(value));
        }
        sweep.seeds = vec![1, 2, 3];
        let plan = sweep.plan().unwrap();
        let measured = plan.points.iter().map(|point| point.inputs.as_ref().unwrap().measure(|_| ()));
        let states = measured.map(|stored| State::Done(Box::new(stored.unwrap()))).collect();
        Outcome { plan, states }
    }

    #[test]
    fn means_are_of_points_that_did_not_fail_and_tables_say_of_how_many() {
        let shown = ["requests".to_owned(), "iops".to_owned()];
        let mut outcome = outcome();
        let all = cells(&outcome, &shown);
        assert_eq!((all[0].seeds, all[0].figures[0].map(|(mean, _)| mean)), (3, Some(200.0)));
        assert!(!SweepReport::new(&outcome).unwrap().table().0.contains(&"seeds".to_owned()));

        let State::Done(failed) = &mut outcome.states[0] else { panic!("measured") };
        failed.problem = Some("2 requests failed".to_owned());
        let most = failed.report["iops"].as_f64().unwrap() * 1e6;
        failed.report["iops"] = most.into();
        outcome.states[2] = State::Missing;
        let left = cells(&outcome, &shown);
        assert!(left[0].seeds == 1 && left[0].figures[1].is_some_and(|(mean, half)| mean < most && half.is_none()));
        let report = SweepReport::new(&outcome).unwrap();
        let (heads, rows) = report.table();
        assert_eq!((heads[0].as_str(), rows[0][0].as_str()), ("seeds", "1 of 3"));
        assert!(report.to_html("", "").contains("their seeds are not in the means"));
    }
}
