//! The requests of a run as a table, a row for each, written while the run continues: CSV, or Parquet if the path ends
//! so and the program supports it. Times are whole nanoseconds of drive time.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use nandscape_drive::Stage;
use nandscape_drive::breakdown::cause;
use nandscape_files::output;
use nandscape_lab_run::Observer;
use nandscape_lab_workload::Served;
use nandscape_sim::Cause;

use crate::csv;
use crate::document::WriteError;
use crate::tables::{Column, Table};

/// Rows that are held until they are written.
const ROWS: usize = 1 << 16;

/// Numbers of a request in addition to the times of its stages.
pub const REQUEST_NUMBERS: [&str; 5] = ["arrival_ns", "completion_ns", "latency_ns", "offset_bytes", "bytes"];

/// Writes the requests of a run.
pub struct RequestLog {
    path: PathBuf,
    /// The stages whose times are columns, and the causes of waits.
    times: Vec<(Stage, Option<Cause>)>,
    /// The layers whose times are columns, too.
    layers: Vec<String>,
    inner: RefCell<Inner>,
}

struct Inner {
    /// The opened file, until the first rows are written: a run that fails before leaves its content.
    file: Option<File>,
    /// `None` before the first rows, and after the end.
    out: Option<Out>,
    /// Rows that are not written yet.
    table: Table,
    is_parquet: bool,
    /// Why writing stopped.
    failed: Option<io::Error>,
}

enum Out {
    Csv(csv::Rows<BufWriter<File>>),
    #[cfg(feature = "parquet")]
    Parquet(crate::parquet::Groups<BufWriter<File>>),
}

/// The times of a request: the name of the column, the stage, and the cause of a wait.
pub fn request_times() -> Vec<(String, Stage, Option<Cause>)> {
    let mut times: Vec<_> = Stage::ALL.iter().map(|stage| (format!("{}_ns", stage.name()), *stage, None)).collect();
    // Causes of trouble come last: columns keep their places.
    for of_trouble in [false, true] {
        for stage in Stage::WAITS {
            let of =
                |(cause, name): &(Cause, &str)| (format!("{}_behind_{name}_ns", stage.name()), stage, Some(*cause));
            times.extend(cause::ALL.iter().filter(|(cause, _)| cause::is_of_trouble(*cause) == of_trouble).map(of));
        }
    }
    times
}

/// The table without rows; times in layers come last.
fn empty(layers: &[String]) -> Table {
    let text = |name: &str| (name.to_owned(), Column::Text(Vec::new()));
    let whole = |name: String| (name, Column::Whole(Vec::new()));
    let numbers = REQUEST_NUMBERS
        .iter()
        .map(|name| (*name).to_owned())
        .chain(request_times().into_iter().map(|(name, _, _)| name))
        .chain(layers.iter().map(|layer| format!("layer_{layer}_ns")));
    let columns = [text("direction"), text("status")].into_iter().chain(numbers.map(whole)).collect();
    Table { name: "requests", columns }
}

impl RequestLog {
    /// Opens the file, or creates it. Its content stays until the first rows are written. The time in each of these layers of
    /// a host has a column: with the stages of the drives, they sum to the latency.
    ///
    /// # Errors
    /// When it cannot be opened, or must be Parquet and this program writes none.
    pub fn create(path: &Path, layers: &[String]) -> Result<RequestLog, WriteError> {
        let wrong = |error: io::Error| WriteError::of(path, error);
        let is_parquet = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        if is_parquet && cfg!(not(feature = "parquet")) {
            let problem = "this program writes no Parquet; build it with --features parquet, or name a .csv file";
            return Err(wrong(io::Error::other(problem)));
        }
        let table = empty(layers);
        let file = output::open(path).map_err(wrong)?;
        let times = request_times().into_iter().map(|(_, stage, cause)| (stage, cause)).collect();
        let inner = RefCell::new(Inner { file: Some(file), out: None, table, is_parquet, failed: None });
        Ok(RequestLog { path: path.to_owned(), times, layers: layers.to_vec(), inner })
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// Why the file could not be written; the rows until then may be in it.
    pub fn finish(&self) -> Result<(), WriteError> {
        let mut inner = self.inner.borrow_mut();
        inner.flush();
        let ended = match (inner.failed.take(), inner.out.take()) {
            (Some(error), _) => Err(error),
            (None, Some(Out::Csv(rows))) => rows.finish(),
            #[cfg(feature = "parquet")]
            (None, Some(Out::Parquet(groups))) => groups.finish().map(drop),
            (None, None) => Ok(()),
        };
        ended.map_err(|error| WriteError::of(&self.path, error))
    }
}

impl Observer for RequestLog {
    fn served(&self, request: &Served<'_>) {
        let Served { direction, bytes, offset, submitted, completed, completion } = *request;
        let (from, to, breakdown) = (submitted.ns(), completed.ns(), &completion.breakdown);
        let status = if completion.status.is_success() { "ok".to_owned() } else { completion.status.to_string() };
        let time = |(stage, cause): &(Stage, Option<Cause>)| match cause {
            None => breakdown.stage(*stage).ns(),
            Some(cause) => breakdown.waited(*stage, *cause).ns(),
        };
        let mut texts = [direction.name().to_owned(), status].into_iter();
        let in_layer = |layer: &String| {
            let mut layers = breakdown.layers().filter(|(name, _)| name == layer);
            layers.next().map_or(0, |(_, span)| span.ns())
        };
        let times = self.times.iter().map(time).chain(self.layers.iter().map(in_layer));
        let mut numbers = [from, to, to - from, offset, bytes].into_iter().chain(times);
        let mut inner = self.inner.borrow_mut();
        for (_, column) in &mut inner.table.columns {
            match column {
                Column::Text(cells) => cells.extend(texts.next()),
                Column::Whole(cells) => cells.push(numbers.next()),
                Column::Real(_) => unreachable!("the table has no such column"),
            }
        }
        if inner.table.rows() >= ROWS {
            inner.flush();
        }
    }
}

impl Inner {
    /// Writes the rows that are held. After a failure they are dropped.
    fn flush(&mut self) {
        if self.failed.is_none() {
            let begun = self.file.take().map_or(Ok(()), |file| self.begin(file));
            let written = begun.and_then(|()| match &mut self.out {
                Some(Out::Csv(rows)) => rows.write(&self.table),
                #[cfg(feature = "parquet")]
                Some(Out::Parquet(groups)) => groups.write(&self.table),
                None => Ok(()),
            });
            self.failed = written.err();
        }
        self.table.clear();
    }

    /// Empties the file and begins its table.
    fn begin(&mut self, file: File) -> io::Result<()> {
        file.set_len(0)?;
        let file = BufWriter::new(file);
        self.out = Some(match self.is_parquet {
            #[cfg(feature = "parquet")]
            true => Out::Parquet(crate::parquet::Groups::new(file, &self.table)?),
            _ => Out::Csv(csv::Rows::new(file, &self.table)?),
        });
        Ok(())
    }
}
