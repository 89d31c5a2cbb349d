//! End-to-end write amplification, of the store times the drive: several forms, each with several numbers of keys for
//! different utilisations of the drive, and with several seeds.
//!
//! Left out: live drives, which do not report the bytes that they program.

use crate::form::Form;
use crate::load::Load;
use crate::outcome::Outcome;
use crate::simulated::{RunError, Spec, run};

/// See the file.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// A form, its drive, and the parameters of all its runs. The preceding overwrites are `warm_up` times the keys.
    pub forms: Vec<Spec>,
    /// Numbers of keys.
    pub keys: Vec<u64>,
    /// Preceding overwrites for each key; `None` for those of the specs.
    pub warm_up: Option<u64>,
    /// Seeds, from that of the specs on.
    pub seeds: u64,
}

/// The figures of several seeds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Spread {
    /// The lowest value.
    pub low: f64,
    /// Their mean.
    pub mean: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    fn of(outcomes: &[Outcome], figure: impl Fn(&Outcome) -> Option<f64>) -> Option<Spread> {
        let figures =
            outcomes.iter().map(figure).collect::<Option<Vec<f64>>>().filter(|figures| !figures.is_empty())?;
        Some(Spread {
            low: figures.iter().copied().fold(f64::INFINITY, f64::min),
            mean: figures.iter().sum::<f64>() / figures.len() as f64,
            high: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// A form with a number of keys. Loads without puts have no factors.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Keys.
    pub keys: u64,
    /// The form.
    pub form: Form,
    /// The share of the capacity that all runs take in the end.
    pub full: Option<Spread>,
    /// Operations a second.
    pub rate: Option<Spread>,
    /// Bytes that the store writes for each that is put.
    pub store: Option<Spread>,
    /// Bytes that the drive programs for each that is written to it.
    pub drive: Option<Spread>,
    /// Of these, data of the host: less than 1 where data is deallocated or replaced in the write buffer.
    pub data: Option<Spread>,
    /// And data that garbage collection moves.
    pub moved: Option<Spread>,
    /// Bytes that the drive programs for each that is put.
    pub total: Option<Spread>,
}

/// Runs it. `begins` hears the number of each run.
///
/// # Errors
/// When a run is not possible.
pub fn experiment(of: &Experiment, begins: &mut dyn FnMut(usize)) -> Result<Vec<Row>, RunError> {
    let (mut rows, mut begun) = (Vec::new(), 0);
    for keys in &of.keys {
        for spec in &of.forms {
            let warm_up = of.warm_up.map_or(spec.load.warm_up, |times| times.saturating_mul(*keys));
            let load = Load { keys: *keys, warm_up, ..spec.load };
            let mut outcomes = Vec::new();
            for seed in 0..of.seeds {
                begins(begun);
                begun += 1;
                outcomes.push(run(&Spec { load, seed: spec.seed.wrapping_add(seed), ..spec.clone() })?);
            }
            rows.push(row(*keys, spec.form, &outcomes));
        }
    }
    Ok(rows)
}

fn row(keys: u64, form: Form, outcomes: &[Outcome]) -> Row {
    let spread = |figure: fn(&Outcome) -> Option<f64>| Spread::of(outcomes, figure);
    Row {
        keys,
        form,
        full: spread(|outcome| Some(outcome.utilisation())),
        rate: spread(|outcome| Some(outcome.rate())),
        store: spread(Outcome::application_waf),
        drive: spread(Outcome::drive_waf),
        data: spread(Outcome::data_factor),
        moved: spread(Outcome::moved_factor),
        total: spread(Outcome::total_waf),
    }
}
