//! The Python package: a run in Python compared with one of the command, and a policy in Python with the same one in Rust.
//!
//! The package is that of this tree in the release profile, also where another revision is measured.

use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::python;
use crate::run::{output, root};

/// CPU time of a run in Python, against the command.
pub(crate) fn overhead(subject: &Subject) -> Measured {
    let program = subject.program().to_str().context("the program's path is no UTF-8")?;
    measured(&["overhead", program], "CPU time in Python to that of the command", "under 1.05")
}

/// CPU time of a run whose victim policy is a function of Python, against the same policy in Rust.
pub(crate) fn policy(_: &Subject) -> Measured {
    measured(&["policy"], "CPU time with a policy in Python to that in Rust", "")
}

fn measured(words: &[&str], name: &'static str, aim: &'static str) -> Measured {
    let mut command = Command::new(python::released()?);
    command.arg(root().join("python/bench/cost.py")).args(words);
    let raw: Value = serde_json::from_str(&output(&mut command)?).context("cost.py prints no JSON")?;
    let value = ratio(&raw).context("cost.py prints no times")?;
    Ok(Some((vec![Figure { name, value, aim, more_is_better: false }], raw)))
}

fn ratio(raw: &Value) -> Option<f64> {
    Some(raw.get("python_s")?.as_f64()? / raw.get("other_s")?.as_f64()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_figure_is_a_ratio() {
        assert_eq!(ratio(&json!({"python_s": 3.0, "other_s": 2.0})), Some(1.5));
        assert_eq!(ratio(&json!({"python_s": 3.0})), None);
    }
}
