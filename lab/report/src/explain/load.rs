//! Reports to explain: `report.json`, its folder, the output of `sim --json` or `--find-rate --json`, or the file of
//! a point of a sweep.

use std::path::Path;

use serde_json::Value;

use crate::compare::LoadError;
use crate::compare::load::{check, read_json};

/// Reads a report.
pub(super) fn report(path: &Path) -> Result<Value, LoadError> {
    let file = if path.is_dir() { path.join("report.json") } else { path.to_owned() };
    if !file.exists() && path.join("sweep.csv").is_file() {
        let problem = "a folder of `nandscape sweep`, whose figures are in its sweep.html; a file of its folder points is a report";
        return Err(LoadError::Other { path: path.display().to_string(), problem: problem.to_owned() });
    }
    let mut value = read_json(&file)?;
    let mut place = "";
    // A point of a sweep, and a search of rates, hold a report.
    if value.get("latency_us").is_none() && value.get("report").is_some_and(Value::is_object) {
        value = value["report"].take();
        place = "report";
    }
    check(&file, &value, place)?;
    Ok(value)
}
