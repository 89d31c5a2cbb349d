//! Raw results: one file of JSON lines per session, one line per run. They are kept with the sources.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use super::calibration::Calibration;
use super::suite::Figure;
use crate::clock;

/// The machine of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Machine {
    /// The processor's model.
    pub(crate) cpu: String,
    /// Processors that programs may use.
    pub(crate) cores: usize,
}

/// One run.
#[derive(Serialize)]
pub(crate) struct Line {
    pub(crate) date: String,
    /// The index of the compared program: 0 is this tree's.
    pub(crate) subject: usize,
    pub(crate) revision: String,
    pub(crate) machine: Machine,
    pub(crate) benchmark: &'static str,
    pub(crate) run: u32,
    pub(crate) calibration: Calibration,
    pub(crate) figures: Vec<Figure>,
    /// The simulator's whole report.
    pub(crate) report: Value,
}

/// The file of a session. It is made with the first run: a session that measures nothing leaves none.
pub(crate) struct Record {
    path: PathBuf,
    file: Option<File>,
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = model(&info).unwrap_or(std::env::consts::ARCH).to_owned();
        Machine { cpu, cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// The processor's model, as Linux reports it.
fn model(info: &str) -> Option<&str> {
    info.lines().find_map(|line| line.strip_prefix("model name")).and_then(|rest| Some(rest.split_once(':')?.1.trim()))
}

impl Record {
    /// A file in `folder`, named after the time and the program.
    pub(crate) fn new(folder: &Path, revision: &str) -> anyhow::Result<Record> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // Some systems do not allow colons in file names.
        let path = folder.join(format!("{}-{revision}.jsonl", clock::date().replace(':', "")));
        Ok(Record { path, file: None })
    }

    /// Writes a run immediately, so that an interrupted session keeps its results.
    pub(crate) fn add(&mut self, line: &Line) -> anyhow::Result<()> {
        let text = serde_json::to_string(line).context("a run is plain data")?;
        let failed = || format!("cannot write {}", self.path.display());
        let mut file = match self.file.take() {
            Some(file) => file,
            None => File::create_new(&self.path).with_context(failed)?,
        };
        writeln!(file, "{text}").with_context(failed)?;
        self.file = Some(file);
        Ok(())
    }

    /// Whether there is a run in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.file.is_none()
    }

    /// Its name.
    pub(crate) fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_from_what_linux_tells() {
        assert_eq!(model("processor\t: 0\nmodel name\t: A Processor @ 3 GHz\n"), Some("A Processor @ 3 GHz"));
        assert_eq!(model("processor : 0\n"), None);
    }

    #[test]
    fn each_run_is_a_line_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::new(folder.path(), "abc").unwrap();
        // A session that was broken off before its first run has ended.
        assert!(record.is_empty() && std::fs::read_dir(folder.path()).unwrap().next().is_none());
        let line = |run| Line {
            date: clock::date(),
            subject: 0,
            revision: "abc".to_owned(),
            machine: Machine::here(),
            benchmark: "reads",
            run,
            calibration: Calibration { integer_s: 0.1, memory_s: 0.2 },
            figures: Vec::new(),
            report: Value::Null,
        };
        record.add(&line(1)).unwrap();
        record.add(&line(2)).unwrap();
        assert!(!record.is_empty());
        let text = std::fs::read_to_string(record.shown()).unwrap();
        let runs: Vec<Value> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["run"].clone()).collect();
        assert_eq!(runs, [1, 2]);
    }
}
