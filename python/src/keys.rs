//! Keys and values of Python as those of a sweep: text is parsed as on the command line.

use nandscape_lab_sweep::{Axis, Choice, Inputs, Sweep, SweepError, Value, WorkloadFrom};
use pyo3::FromPyObject;

/// A key and the text of its value.
pub(crate) type Pair = (String, String);

/// The name of sweeps that Python describes.
const NAME: &str = "python";

/// A sweep without parameters. `inline` is a workload file's table as JSON.
///
/// # Errors
/// When `inline` is none.
pub(crate) fn described(pairs: &[Pair], inline: Option<&str>) -> Result<Sweep, String> {
    let mut sweep = Sweep::new(NAME);
    if let Some(text) = inline {
        let table = serde_json::from_str(text).map_err(|error| format!("workload: {error}"))?;
        sweep.workload = Some(WorkloadFrom::Inline(table));
    }
    set(&mut sweep, pairs);
    Ok(sweep)
}

/// Sets keys for all points.
pub(crate) fn set(sweep: &mut Sweep, pairs: &[Pair]) {
    pairs.iter().for_each(|(key, text)| sweep.set(key, Value::parse(text)));
}

/// A parameter: the texts of a key's values, or the keys that each named choice sets.
#[derive(FromPyObject)]
pub(crate) enum Choices {
    /// Values of the key.
    Values(Vec<String>),
    /// Names, each with its keys.
    Named(Vec<(String, Vec<Pair>)>),
}

impl Choices {
    /// The parameter of this name.
    pub(crate) fn axis(&self, name: &str) -> Axis {
        let parsed = |(key, text): &Pair| (key.clone(), Value::parse(text));
        match self {
            Choices::Values(texts) => Axis::of_key(name, texts.iter().map(|text| Value::parse(text)).collect()),
            Choices::Named(choices) => {
                let choice = |(name, keys): &(String, Vec<Pair>)| Choice {
                    value: Value(toml::Value::String(name.clone())),
                    set: keys.iter().map(parsed).collect(),
                };
                Axis { name: name.to_owned(), choices: choices.iter().map(choice).collect() }
            }
        }
    }
}

/// The inputs of one run.
///
/// # Errors
/// The key or value that is none, or why there can be no such drive.
pub(crate) fn inputs(pairs: &[Pair], inline: Option<&str>, seed: u64) -> Result<Inputs, String> {
    let mut sweep = described(pairs, inline)?;
    sweep.seeds = vec![seed];
    let plan = sweep.plan().map_err(|error| plain(&error))?;
    let point = plan.points.into_iter().next().expect("a sweep without parameters is one point");
    let mut inputs = point.inputs?;
    for change in &mut inputs.set {
        // As it was given, which is how the command reports it.
        let as_given = |(key, text): &&Pair| *change == format!("{key}={}", Value::parse(text).0);
        if let Some((key, text)) = pairs.iter().find(as_given) {
            *change = format!("{key}={text}");
        }
    }
    Ok(inputs)
}

/// An error without the name of a sweep that Python described.
pub(crate) fn plain(error: &SweepError) -> String {
    if error.origin == NAME { error.problem.clone() } else { error.to_string() }
}
