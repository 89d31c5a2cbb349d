//! All points of a sweep as one JSON object, byte-identical for the same sweep on any machine.

use nandscape_lab_sweep::{Outcome, Planned, State};
use serde_json::{Map, Value, json};

use crate::compare::METHOD;

/// The version of this form.
const SCHEMA: u32 = 1;

/// The object.
pub(super) fn of(outcome: &Outcome) -> String {
    let sweep = &outcome.plan.sweep;
    let parameters = sweep.axes.iter().map(|axis| {
        let values = axis.order().into_iter().map(|at| shown(&axis.choices[at].value));
        json!({ "name": axis.name, "values": values.collect::<Vec<_>>() })
    });
    let points = outcome.plan.points.iter().zip(&outcome.states).map(|(planned, state)| point(outcome, planned, state));
    let object = json!({
        "schema": SCHEMA,
        "name": sweep.name,
        "description": sweep.description,
        "method": METHOD,
        "parameters": parameters.collect::<Vec<_>>(),
        "seeds": sweep.seeds,
        "points": points.collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&object).expect("plain data")
}

fn point(outcome: &Outcome, planned: &Planned, state: &State) -> Value {
    let axes = outcome.plan.sweep.axes.iter().zip(&planned.choices);
    let values: Map<String, Value> =
        axes.map(|(axis, at)| (axis.name.clone(), shown(&axis.choices[*at].value))).collect();
    json!({
        "values": values,
        "seed": planned.seed,
        "point": planned.inputs.as_ref().ok().map(nandscape_lab_sweep::Inputs::digest),
        "problem": state.problem(),
        "report": state.report(),
    })
}

fn shown(value: &nandscape_lab_sweep::Value) -> Value {
    serde_json::to_value(&value.0).unwrap_or_else(|_| value.text().into())
}
