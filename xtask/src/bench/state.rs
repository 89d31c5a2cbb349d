//! The set-up of a worn drive of 1 TiB: from a saved state, against preconditioning.
//!
//! Left out: the time to write the file.

use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::servers::Folder;
use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::say;

const DRIVE: [&str; 4] = ["--drive", "default", "--set", "capacity=1TiB"];
const LOAD: [&str; 4] = ["--rw", "randread", "--io-count", "1000"];

pub(crate) fn set_up(subject: &Subject) -> Measured {
    let help = Command::new(subject.program()).args(["sim", "--help"]).output().context("cannot run the program")?;
    if !String::from_utf8_lossy(&help.stdout).contains("--save-state") {
        say::line(&format!("{} has no --save-state: left out", subject.revision));
        return Ok(None);
    }
    let folder = Folder::new()?;
    let path = folder.path("worn.state");
    let path = path.to_str().context("the folder's name is no UTF-8")?;
    let of = |words: &[&str]| subject.report(&[&DRIVE[..], &LOAD, words].concat());
    let steady = ["--precondition", "steady"];
    of(&[&steady[..], &["--save-state", path]].concat())?;
    let (made, taken) = (of(&steady)?, of(&["--from-state", path])?);
    let (made_s, taken_s) = set_up_s(&made).zip(set_up_s(&taken)).context("the report lacks host.setup_s")?;
    let file_bytes = std::fs::metadata(path).context("the state is gone")?.len();
    let figure = |name, value, more_is_better| Figure { name, value, aim: "", more_is_better };
    let figures = vec![
        Figure { aim: "under 1", ..figure("set-up from a state, s", taken_s, false) },
        figure("preconditioning, s", made_s, false),
        figure("preconditioning to set-up from a state", made_s / taken_s, true),
    ];
    Ok(Some((figures, json!({"drive": DRIVE, "made_s": made_s, "taken_s": taken_s, "file_bytes": file_bytes}))))
}

fn set_up_s(report: &Value) -> Option<f64> {
    report.pointer("/host/setup_s")?.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_of_the_report() {
        assert_eq!(set_up_s(&json!({"host": {"setup_s": 0.5}})), Some(0.5));
        assert_eq!(set_up_s(&json!({"setup_s": 0.5})), None);
    }
}
